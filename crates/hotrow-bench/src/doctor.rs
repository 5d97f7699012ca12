//! Runs `hotrow doctor` as a program beside a load. Its report is read in `doctor_report.rs`.

use crate::child::Child;
use crate::doctor_report::{Examined, Report};
use crate::error::Error;
use crate::load::{Failure, NoFigure, Part};
use crate::plan::Plan;
use std::time::Duration;
use tokio::process::Command;

/// Examines the server while a part is run. The doctor begins after the clients have connected, and ends before the load.
pub async fn examine(plan: &Plan, url: &str, part: &Part) -> Result<Examined, NoFigure> {
    const TO_CONNECT: Duration = Duration::from_millis(300);
    const FOR_EACH_CLIENT: Duration = Duration::from_millis(4);
    let clients = part.run.clients;
    tokio::time::sleep(TO_CONNECT + FOR_EACH_CLIENT * clients).await;
    std::fs::create_dir_all(&plan.out).map_err(Error::file("create", &plan.out))?;
    let file = plan.out.join(format!("doctor-{}-{clients}-{}.json", part.run.scenario.name, part.number));
    let mut command = Command::new(&plan.doctor);
    command.args(["doctor", "--seconds", &part.seconds.saturating_sub(1).max(1).to_string()]);
    command.arg("--json").arg(&file).env("HOTROW_UPSTREAM", url);
    Child::start(&plan.doctor, command)?.end().await.map_err(|error| Failure(error.to_string()))?;
    let unreadable = |error: &dyn std::fmt::Display| Failure(format!("the doctor's report: {error}"));
    let text = std::fs::read_to_string(&file).map_err(|error| unreadable(&error))?;
    let report = Report::parse(&text).map_err(|error| unreadable(&error))?;
    let finding = report.findings.first().map_or_else(String::new, |finding| finding.kind.clone());
    Ok(Examined { range: report.prediction, finding })
}
