//! The doctor for MariaDB: a recording of a server, and its diagnosis.
//!
//! | file | contents |
//! |---|---|
//! | `server` | the connection and its queries (`sql/mariadb/`) |
//! | `sampler` | one run: samples, counters, facts about tables |
//! | `recording` | what was read, as plain data |
//! | `texts` | texts of statements without their values |
//! | `load`, `rows`, `statements`, `rates` | the averages: sessions, rows that are waited for, statements, counters |
//! | `verdict` | the gateway's decision about a statement |
//! | `diagnosis` | what is wrong, and what to do |
//! | `summary`, `report`, `text` | the five lines, the report, and its text |
//! | `explain` | the verdict on one statement |
//! | `error` | why there is no report |

pub mod diagnosis;
mod error;
mod explain;
pub mod load;
pub mod rates;
pub mod recording;
pub mod report;
pub mod rows;
mod sampler;
mod server;
pub mod statements;
mod summary;
#[cfg(test)]
mod tests;
pub mod text;
mod texts;
pub mod verdict;

use std::time::Duration;

pub use error::Error;
pub use explain::explain;
use hotrow_mysql_client::Upstream;

use crate::args::Args;
use crate::mariadb::recording::Recording;

/// Whether a URL names a server that speaks MySQL's protocol.
pub fn is_meant_by(url: &str) -> bool {
    Upstream::is_meant_by(url)
}

/// Checks the arguments, without a connection.
pub fn check(args: &Args) -> Result<(), Error> {
    upstream(args).map(drop)
}

fn upstream(args: &Args) -> Result<Upstream, Error> {
    if args.html.is_some() {
        let hint = "leave it out; --json writes the report to a file";
        return Err(Error::Option { option: "--html", hint });
    }
    Ok(args.server().parse()?)
}

/// Records the server without a diagnosis.
pub async fn record(args: &Args) -> Result<Recording, Error> {
    let length = Duration::from_secs(args.seconds.into());
    sampler::record(&upstream(args)?, length, Duration::from_millis(args.interval_ms.into())).await
}
