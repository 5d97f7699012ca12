//! A scenario like the load in a report of `hotrow doctor`, for `hotrow bench --like`. It reads the report and decides the
//! shape; the scripts are made in `script.rs`.

mod script;

use crate::doctor_report::Report;
use crate::error::Error;
use crate::flush::FlushTime;
use crate::scenario::{Clients, Disk, Prediction, Rows, Scenario, Script, Technique, Worth};
use crate::scenarios::{SELL_DIRECT, USUAL};
use crate::sql;
use hotrow_doctor::diagnosis::workload::Workload;
use script::Shape;
use std::path::Path;

/// Rows of the table: the hot ones and all others.
const ROWS: u32 = 100_000;
/// Clients of a load. A report can have more sessions than a private server serves well.
const CLIENTS_MAX: f64 = 1_000.0;
/// CPU time of a transaction in the server, in microseconds, that a plain update needs anyway.
const USUAL_WORK_US: f64 = 200.0;
/// A flush that takes this much longer than here is delayed, in microseconds. Shorter differences are those of busy cores.
const DELAY_MIN_US: f64 = 300.0;

/// Reads a report and makes its scenario.
pub fn scenario(file: &Path) -> Result<&'static Scenario, Error> {
    let text = std::fs::read_to_string(file).map_err(Error::file("read", file))?;
    let refused = |reason: String| Error::Report { file: file.to_owned(), reason };
    let report = Report::parse(&text).map_err(|error| refused(error.to_string()))?;
    if report.workload.transactions.is_none_or(|rate| rate <= 0.0) {
        return Err(refused("the doctor saw no transactions".into()));
    }
    let own_flush = FlushTime::measure(&std::env::temp_dir())?;
    Ok(like(&report, own_flush.p50_us as f64))
}

/// The scenario of a report. It lives as long as the program, like all other scenarios.
fn like(report: &Report, own_flush_us: f64) -> &'static Scenario {
    let load = &report.workload;
    let script = Script::same(leak(script::script(&Shape::of(load))));
    let delay = load.flush_us.map_or(0.0, |flush| flush - own_flush_us);
    let disk = if delay >= DELAY_MIN_US { Disk::slower(delay as u32) } else { Disk::OWN };
    let work = work_us(load);
    let most = Shape::of(load).changes;
    let prepare = leak(format!("set hotrow_bench.work_us = {work:.0};\n{}", sql!("like_work.sql")));
    let direct = Technique {
        about: "the load of the report, directly to the server",
        script,
        disk,
        prepare,
        worth: Worth::Mixed { most },
        ..SELL_DIRECT
    };
    let techniques = vec![direct, direct.through_hotrow("the same load, through Hotrow")];
    Box::leak(Box::new(Scenario {
        name: "like",
        shows: "A load like that of a doctor's report: transactions per second, and the gain that the report predicts",
        set_up: sql!("like.sql"),
        before_run: sql!("like_before_run.sql"),
        tables: &["hotrow_bench.inv"],
        reading: sql!("inventory_reading.sql"),
        rows: Rows::UpTo(ROWS),
        clients: Clients::Always(Box::leak(Box::new([load.sessions.round().clamp(1.0, CLIENTS_MAX) as u32]))),
        techniques: Vec::leak(techniques),
        prediction: Prediction::Reported { low: report.prediction.low, high: report.prediction.high },
        remarks: Vec::leak(vec![leak(remark(report, work, disk))]),
        ..USUAL
    }))
}

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// The CPU time that a statement needs beside that of a plain update. The queue for a hot row computes too, so the
/// statement's part is known only without one.
fn work_us(load: &Workload) -> f64 {
    let known = load.execution_us.filter(|_| load.waiting < 1.0).unwrap_or(0.0);
    (known / load.changes.max(1.0) - USUAL_WORK_US).max(0.0)
}

fn remark(report: &Report, work_us: f64, disk: Disk) -> String {
    let load = &report.workload;
    let finding = report.findings.first().map_or("nothing", |finding| finding.kind.as_str());
    let hot: Vec<String> = load.hot.iter().map(|share| format!("{:.0} %", share * 100.0)).collect();
    let hot = if hot.is_empty() {
        "No row was hot.".to_owned()
    } else {
        format!("Hot rows took {} of the writes.", hot.join(", "))
    };
    format!(
        "The report's main finding is `{finding}`. On the examined server, {:.0} sessions made {:.0} transactions per second: \
         {:.0} % of them wrote, {:.0} % of the calls were packable, and {:.0} % were in transactions that wait for their client. \
         {hot} Here, each WAL flush takes {} µs longer, and each statement computes {work_us:.0} µs more than a plain update. The \
         prediction is one for the examined server. It holds here as far as cores and disk are alike.",
        load.sessions,
        load.transactions.unwrap_or(0.0),
        load.writing * 100.0,
        load.packable * 100.0,
        load.interactive * 100.0,
        disk.delay_us,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(workload: &str) -> Report {
        let text = format!(
            r#"{{"version": 1, "findings": [{{"kind": "hot_row"}}], "prediction": {{"low": 2, "high": 4}}, "workload": {workload}}}"#
        );
        Report::parse(&text).unwrap()
    }

    const HOT: &str = r#"{"sessions": 63.6, "transactions": 2000, "writing": 1, "changes": 1, "hot": [0.9], "waiting": 50,
        "packable": 1, "interactive": 0, "client_us": 0, "pause_us": 90, "flush_us": 2100, "execution_us": 900,
        "cores": null}"#;

    #[test]
    fn sessions_flushes_and_the_prediction_are_those_of_the_report() {
        let scenario = like(&report(HOT), 100.0);
        assert!(matches!(scenario.clients, Clients::Always([64])), "{:?}", scenario.clients);
        assert_eq!(scenario.techniques[1].disk, Disk::slower(2_000));
        assert_eq!(scenario.prediction, Prediction::Reported { low: 2.0, high: 4.0 });
        assert!(scenario.techniques[0].prepare.contains("work_us = 0;"), "the queue computes");
        assert_eq!(like(&report(HOT), 1_900.0).techniques[0].disk, Disk::OWN);
    }

    #[test]
    fn statements_that_compute_do_so_here_too() {
        let slow = HOT.replace("\"waiting\": 50", "\"waiting\": 0").replace("\"hot\": [0.9]", "\"hot\": []");
        let scenario = like(&report(&slow), 100.0);
        assert!(scenario.techniques[0].prepare.contains("work_us = 700;"));
        assert!(scenario.remarks[0].contains("No row was hot"), "{}", scenario.remarks[0]);
    }
}
