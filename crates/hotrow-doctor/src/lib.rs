//! `hotrow doctor`: finds out what the sessions of a server wait for, which row is hot, and what the gateway would give.
//!
//! A thin shell reads the server and makes a recording. The diagnosis of a recording is pure.
//!
//! | file | contents |
//! |---|---|
//! | `args.rs` | the command line |
//! | `sampler.rs` | one run: samples, the rows behind the locks, counters |
//! | `server.rs` | the connection and its queries (`sql/`) |
//! | `machine.rs` | the server's machine, if the doctor runs on it |
//! | `row_query.rs` | the statement that reads rows of a table, with names in it |
//! | `judge.rs` | the gateway's decision about a statement, with facts from the server |
//! | `verdicts.rs` | the decisions about the statements of a recording |
//! | `explain.rs` | `hotrow explain`: the decision as text |
//! | `recorder.rs` | collects samples, with each statement's text once |
//! | `samples.rs` | samples within a bound; when to take the next one |
//! | `recording.rs`, `sample.rs`, `counters.rs` | what was read, as plain data |
//! | `diagnosis` | what is wrong and what the gateway would give |
//! | `report` | the report as JSON, text and an HTML page |
//! | `shadow.rs` | `hotrow doctor --shadow`: the verdict of a gateway in shadow mode |
//! | `mariadb` | the doctor for MariaDB |
//! | `watch.rs` | the server at one moment, for the operations page of the gateway |
//! | `error.rs` | why there is no report |

mod args;
pub mod counters;
pub mod diagnosis;
mod error;
mod explain;
mod judge;
mod machine;
pub mod mariadb;
mod recorder;
pub mod recording;
pub mod report;
mod row_query;
pub mod sample;
mod sampler;
mod samples;
mod server;
mod shadow;
mod verdicts;
mod watch;

use std::path::Path;
use std::time::Duration;

pub use args::Args;
pub use diagnosis::{Diagnosis, diagnose};
pub use error::Error;
pub use explain::explain;
use hotrow_connect::config::UpstreamConfig;
pub use judge::Error as JudgeError;
pub use recording::Recording;
pub use report::Report;
pub use shadow::shadow;
pub use watch::{ServerNow, Watch};

/// Checks the server's URL, without a connection.
pub fn check(args: &Args) -> Result<(), Error> {
    if mariadb::is_meant_by(args.server()) {
        return Ok(mariadb::check(args)?);
    }
    UpstreamConfig::for_command(args.server())?;
    Ok(())
}

/// Examines the server. The files of the arguments are written. Returns the report for a terminal.
pub async fn run(args: &Args) -> Result<String, Error> {
    // A file that cannot be written is an error before the examination, not after it.
    for path in args.json.iter().chain(&args.html) {
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
        opened.map_err(|source| Error::Write { path: path.clone(), source })?;
    }
    if mariadb::is_meant_by(args.server()) {
        let recording = mariadb::record(args).await?;
        let report = mariadb::report::Report::new(&mariadb::diagnosis::diagnose(&recording, args.show_keys));
        write_json(args, &report)?;
        return Ok(mariadb::text::text(&report));
    }
    let recording = record(args).await?;
    let diagnosis = diagnose(&recording, args.show_keys);
    let report = Report::new(&recording, &diagnosis, args.show_keys);
    write_json(args, &report)?;
    if let Some(path) = &args.html {
        write(path, &report::html::html(&report))?;
    }
    Ok(report::text::text(&report))
}

fn write_json(args: &Args, report: &impl serde::Serialize) -> Result<(), Error> {
    let Some(path) = &args.json else { return Ok(()) };
    let json = serde_json::to_string_pretty(report).expect("a report has string keys only");
    write(path, &(json + "\n"))
}

/// Records a PostgreSQL server without a diagnosis.
pub async fn record(args: &Args) -> Result<Recording, Error> {
    let length = Duration::from_secs(args.seconds.into());
    let interval = Duration::from_millis(args.interval_ms.into());
    let mut recording = sampler::record(args.server(), length, interval).await?;
    verdicts::judge(args.server(), &mut recording).await;
    Ok(recording)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|source| Error::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::{Args, Error, run};

    #[test]
    fn a_file_that_cannot_be_written_is_an_error_before_the_examination() {
        let upstream = "postgres://nobody@127.0.0.1:1/none".to_owned();
        let json = Some("/no/such/folder/report.json".into());
        let args = Args {
            url: None,
            upstream,
            shadow: None,
            seconds: 1,
            interval_ms: 10,
            json,
            html: None,
            show_keys: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refused = runtime.block_on(run(&args));
        assert!(matches!(refused, Err(Error::Write { .. })), "{:?}", refused.err());
    }
}
