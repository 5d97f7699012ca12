//! `hotrow doctor`: finds out what the sessions of a server wait for, which row is hot, and what the gateway would give.
//!
//! What reads the server is a thin shell. What it has read is a recording, and the diagnosis of a recording is pure.
//!
//! | file | contents |
//! |---|---|
//! | `args.rs` | the command line |
//! | `sampler.rs` | one run: samples, the rows behind the locks, counters |
//! | `server.rs` | the connection and its queries (`sql/`) |
//! | `verdicts.rs` | the gateway's decisions about the statements |
//! | `recorder.rs` | collects samples within a bound; decides when to take the next one |
//! | `recording.rs`, `sample.rs`, `counters.rs` | what was read, as plain data |
//! | `diagnosis` | what is wrong and what the gateway would give |
//! | `report` | the report as JSON, text and an HTML page |
//! | `error.rs` | why there is no report |

mod args;
pub mod counters;
pub mod diagnosis;
mod error;
mod recorder;
pub mod recording;
pub mod report;
pub mod sample;
mod sampler;
mod server;
mod verdicts;

use std::path::Path;
use std::time::Duration;

pub use args::Args;
pub use diagnosis::{Diagnosis, diagnose};
pub use error::Error;
pub use recording::Recording;
pub use report::Report;

/// Examines the server. The files of the arguments are written.
pub async fn run(args: &Args) -> Result<Report, Error> {
    let recording = record(args).await?;
    let diagnosis = diagnose(&recording, args.show_keys);
    let report = Report::new(&recording, &diagnosis, args.show_keys);
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&report).expect("a report has string keys only");
        write(path, &(json + "\n"))?;
    }
    if let Some(path) = &args.html {
        write(path, &report::html::html(&report))?;
    }
    Ok(report)
}

/// Records the server without a diagnosis.
pub async fn record(args: &Args) -> Result<Recording, Error> {
    let length = Duration::from_secs(args.seconds.into());
    let interval = Duration::from_millis(args.interval_ms.into());
    let mut recording = sampler::record(&args.upstream, length, interval).await?;
    verdicts::judge(&args.upstream, &mut recording).await;
    Ok(recording)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|source| Error::Write { path: path.to_owned(), source })
}
