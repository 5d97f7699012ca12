//! `hotrow doctor --shadow`: what a gateway in shadow mode would have packed, in five lines for each database and user, with what to
//! do next. The console's SHOW SHADOW has the numbers.

use hotrow_core::untrusted::visible;
use tokio_postgres::{SimpleQueryMessage, SimpleQueryRow};

use crate::error::Error;
use crate::mariadb;

/// The database that stands for the gateway's console.
const CONSOLE: &str = "hotrow";

/// Statements from which a verdict is given.
const STATEMENTS_MIN: u64 = 1_000;
/// Commits saved per second from which packing is worth its change.
const SAVED_MIN: f64 = 1.0;
/// Units per commit from which packing is worth its change.
const UNITS_PER_COMMIT_MIN: f64 = 1.2;
/// The share of statements, in percent, below which the statement in the way comes first.
const PERCENT_MIN: f64 = 20.0;

/// The numbers of one database and user.
#[derive(Clone, Debug, Default)]
struct Found {
    database: String,
    user: String,
    seconds: f64,
    statements: u64,
    percent: f64,
    units: u64,
    met: u64,
    units_per_commit: f64,
    saved: u64,
    saved_per_second: f64,
    blocker: Option<Blocker>,
}

/// The statement that is in the way most often.
#[derive(Clone, Debug, Default)]
struct Blocker {
    statement: String,
    runs: u64,
    reason: String,
    instead: Option<String>,
}

/// Asks the gateway of this URL, and returns the verdict.
pub async fn shadow(gateway: &str) -> Result<String, Error> {
    if mariadb::is_meant_by(gateway) {
        return Err(Error::Shadow);
    }
    let client = hotrow_connect::driver::connect_to(gateway, CONSOLE).await?;
    let rejected = |error: tokio_postgres::Error| {
        Error::Console(
            error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned()),
        )
    };
    let messages = client.simple_query("show shadow").await.map_err(rejected)?;
    let found = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(Found::read(row)),
        _ => None,
    });
    let blocks: Vec<String> = found.map(|found| found.lines().join("\n") + "\n").collect();
    Ok(if blocks.is_empty() { NOTHING.to_owned() } else { blocks.join("\n") })
}

const NOTHING: &str = "No statement has run in shadow mode. Write pack = \"shadow\" into the settings file, in a [[pool]] table \
or for all clients, and run RELOAD on the console. A session can use it alone: set hotrow.pack = shadow.\n";

impl Found {
    fn read(row: &SimpleQueryRow) -> Self {
        let text = |name: &str| row.try_get(name).ok().flatten().map(|text| visible(text).into_owned());
        let number = |name: &str| text(name).and_then(|text| text.parse().ok()).unwrap_or_default();
        let real = |name: &str| text(name).and_then(|text| text.parse().ok()).unwrap_or_default();
        let blocker = text("blocker").map(|statement| Blocker {
            statement,
            runs: number("blocker_runs"),
            reason: text("reason").unwrap_or_default(),
            instead: text("instead"),
        });
        Found {
            database: text("database").unwrap_or_default(),
            user: text("user").unwrap_or_default(),
            seconds: real("seconds"),
            statements: number("statements"),
            percent: real("share_percent"),
            units: number("units"),
            met: number("met"),
            units_per_commit: real("units_per_commit"),
            saved: number("commits_saved"),
            saved_per_second: real("commits_saved_per_second"),
            blocker,
        }
    }

    /// The verdict.
    fn lines(&self) -> [String; 5] {
        let blocker = self.blocker.as_ref();
        let met = 100.0 * self.met as f64 / self.units.max(1) as f64;
        [
            format!(
                "database {}, user {}: {:.1} % of {} statements in {:.0} s would be packed",
                self.database, self.user, self.percent, self.statements, self.seconds
            ),
            format!("  met         {met:.1} % of the {} writing units met another unit on a row", self.units),
            format!(
                "  saved       {:.1} commits per second, {} in all: {:.1} units per commit",
                self.saved_per_second, self.saved, self.units_per_commit
            ),
            blocker.map_or_else(
                || "  in the way  nothing".to_owned(),
                |Blocker { statement, runs, reason, instead }| {
                    let instead = instead.as_deref().map(|instead| format!("; instead: {instead}"));
                    let instead = instead.unwrap_or_default();
                    format!("  in the way  {statement} ({runs} runs): {reason}{instead}")
                },
            ),
            format!("  next        {}", self.next()),
        ]
    }

    fn next(&self) -> String {
        let packs = self.saved_per_second >= SAVED_MIN && self.units_per_commit >= UNITS_PER_COMMIT_MIN;
        if self.statements < STATEMENTS_MIN {
            return format!("wait: a verdict needs {STATEMENTS_MIN} statements, at a time of usual load");
        }
        if self.percent < PERCENT_MIN && self.blocker.is_some() {
            return "change the statement that is in the way, and look again".to_owned();
        }
        if packs {
            return format!(
                "write [[pool]] database = \"{}\" user = \"{}\" pack = true into the settings file, and run RELOAD; \
                 unpacked_tables keeps single tables out",
                self.database, self.user
            );
        }
        "leave packing off here: it would save few commits under this load".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Found {
        Found {
            database: "shop".to_owned(),
            user: "ann".to_owned(),
            seconds: 3_600.0,
            statements: 1_000_000,
            percent: 93.1,
            units: 800_000,
            met: 400_000,
            units_per_commit: 7.5,
            saved: 693_333,
            saved_per_second: 192.6,
            blocker: Some(Blocker {
                statement: "update t set n = ?".to_owned(),
                runs: 5,
                reason: "it has no key".to_owned(),
                instead: Some("WHERE id = $1".to_owned()),
            }),
        }
    }

    #[test]
    fn the_verdict_has_five_lines_with_the_figures() {
        let lines = found().lines();
        for (line, text) in lines.iter().zip([
            "93.1 % of 1000000 statements in 3600 s",
            "50.0 % of the 800000",
            "192.6 commits per second, 693333 in all: 7.5 units",
            "update t set n = ? (5 runs): it has no key; instead: WHERE id = $1",
            "pack = true",
        ]) {
            assert!(line.contains(text) && !line.contains('\n'), "{line}");
        }
    }

    #[test]
    fn the_next_step_follows_from_the_figures() {
        let next = |change: fn(&mut Found)| {
            let mut found = found();
            change(&mut found);
            found.next()
        };
        assert!(next(|_| {}).contains("pack = true"));
        assert!(next(|found| found.statements = 999).starts_with("wait"));
        assert!(next(|found| found.percent = 10.0).starts_with("change the statement"));
        assert!(next(|found| found.units_per_commit = 1.1).starts_with("leave packing off"));
        assert!(next(|found| found.saved_per_second = 0.5).starts_with("leave packing off"));
        assert!(next(|found| (found.percent, found.blocker) = (10.0, None)).contains("pack = true"));
    }
}
