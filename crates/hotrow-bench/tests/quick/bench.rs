//! The environment of the tests: a benchmark with its folder, stand-ins for gateways, and servers. It asserts nothing.

use crate::{Args, run};
use clap::Parser;
use hotrow_bench::{Error, Outcome};
use hotrow_postgres::PrivateServer;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// A report of the doctor with all fields that the benchmark reads.
pub const REPORT: &str = r#"{"version": 1, "findings": [{"kind": "hot_row"}], "prediction": {"low": 0.001, "high": 1000},
    "workload": {"sessions": 6.2, "transactions": 900, "writing": 0.8, "changes": 2.1, "hot": [0.6, 0.2], "packable": 0.7,
    "interactive": 0.2, "client_us": 900, "pause_us": 400, "waiting": 3, "flush_us": 90, "execution_us": 300}}"#;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// A folder for a report and for a stand-in for the gateway.
pub struct Bench {
    pub folder: TempDir,
}

impl Bench {
    /// An empty folder.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Runs the benchmark as the command line would.
    pub fn run(&self, arguments: &[&str]) -> Result<Outcome, Error> {
        let out = self.folder.path().join("out");
        let fixed = ["bench", "--quick", "--out", out.to_str().unwrap()];
        let command = Command::try_parse_from(fixed.iter().chain(arguments)).unwrap();
        run(command.args)
    }

    /// The report in JSON.
    pub fn report(&self) -> Value {
        let text = std::fs::read_to_string(self.folder.path().join("out/report.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// A program that is started as the gateway.
    pub fn program(&self, script: &str) -> String {
        let path = self.folder.path().join("gateway");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A stand-in that reports the address of the server as its own, so its clients connect directly to the server. As the
    /// doctor, it writes the report of this file's `REPORT`.
    pub fn stand_in(&self) -> String {
        let doctor = format!("[ \"$1\" = doctor ] && {{ echo '{REPORT}' > \"$5\"; exit; }}");
        self.program(&format!(
            "{doctor}\nserver=${{3#*@}}\necho \"hotrow: listening on ${{server%%/*}}\"\nexec sleep 600"
        ))
    }
}

/// Whether the schema of the benchmark exists.
pub fn schema_exists(server: &PrivateServer) -> bool {
    let rows = server.query("select to_regnamespace('hotrow_bench')::text").unwrap();
    rows[0][0].is_some()
}
