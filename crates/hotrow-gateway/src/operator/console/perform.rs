//! Runs the console's commands.

use std::sync::Arc;

use hotrow_core::console::{Command, IgnoredCommand, Topic};
use hotrow_wire::backend::Problem;

use super::answer::{Answer, names};
use super::{clients, config, help, lanes, pools, statements, units, version};
use crate::operator::pause::NotInUse;
use crate::shared::Shared;

/// The columns of the command's answer, if the answer is a table.
pub fn columns(command: &Command) -> Option<Vec<&'static str>> {
    let Command::Show(topic) = command else { return None };
    Some(match topic {
        Topic::Clients => names(clients::COLUMNS),
        Topic::Lanes => names(lanes::COLUMNS),
        Topic::Units => units::COLUMNS.to_vec(),
        Topic::Statements => names(statements::COLUMNS),
        Topic::Pools => names(pools::COLUMNS),
        Topic::Config => config::COLUMNS.to_vec(),
        Topic::Version => version::COLUMNS.to_vec(),
        Topic::Help => help::COLUMNS.to_vec(),
    })
}

/// Runs a command.
pub async fn perform(shared: &Arc<Shared>, command: &Command) -> Result<Answer, Problem> {
    let named = |database: &Option<String>, error| not_in_use(shared, database, error);
    Ok(match command {
        Command::Show(topic) => {
            let rows = match topic {
                Topic::Clients => clients::rows(shared),
                Topic::Lanes => lanes::rows(shared).await,
                Topic::Units => units::rows(shared).await,
                Topic::Statements => statements::rows(shared),
                Topic::Pools => pools::rows(shared),
                Topic::Config => config::rows(shared),
                Topic::Version => version::rows(),
                Topic::Help => help::rows(),
            };
            Answer::table(columns(command).unwrap_or_default(), rows)
        }
        Command::Pause(database) => {
            shared.pause(database.as_deref()).await.map_err(|error| named(database, error))?;
            Answer::done("PAUSE")
        }
        Command::Resume(database) => {
            shared.resume(database.as_deref()).map_err(|error| named(database, error))?;
            Answer::done("RESUME")
        }
        Command::Reconnect(database) => {
            shared.reconnect(database.as_deref()).await.map_err(|error| named(database, error))?;
            Answer::done("RECONNECT")
        }
        Command::Reload => {
            shared.operator_requests.reload().await.map_err(|error| {
                Problem::error("F0000", error, "Nothing was changed. Fix the error and run RELOAD again.")
            })?;
            Answer::done("RELOAD")
        }
        Command::Shutdown => {
            tracing::info!("stopping: an operator has run SHUTDOWN");
            shared.operator_requests.shutdown().await;
            Answer::done("SHUTDOWN")
        }
        Command::Ignored(IgnoredCommand::Begin) => Answer::done("BEGIN"),
        Command::Ignored(IgnoredCommand::Commit) => Answer::done("COMMIT"),
        Command::Ignored(IgnoredCommand::Rollback) => Answer::done("ROLLBACK"),
        Command::Ignored(IgnoredCommand::Set) => Answer::done("SET"),
        Command::Empty => Answer::done(""),
    })
}

fn not_in_use(shared: &Shared, database: &Option<String>, NotInUse: NotInUse) -> Problem {
    let mut names: Vec<String> =
        shared.pools().iter().map(|pool| pool.identity.database().to_owned()).collect();
    names.sort();
    names.dedup();
    let hint = if names.is_empty() {
        "No database is in use yet. Without a name the command is for all databases.".to_owned()
    } else {
        format!("Databases in use: {}. Without a name the command is for all databases.", names.join(", "))
    };
    let name = database.as_deref().unwrap_or_default();
    Problem::error("3D000", format!("no client has used database \"{name}\""), hint)
}
