//! Runs the console's commands.

use std::sync::Arc;

use crate::console::{Command, IgnoredCommand, Topic};
use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;

use super::answer::{Answer, Field, Row, numbers, texts};
use super::{
    clients, config, databases, help, keys, lanes, lists, pool_settings, pools, replicas, servers, shadow,
    statements, stats, units, version,
};
use crate::operator::pause::NotInUse;
use crate::operator::view::Values;
use crate::shared::Shared;

/// The fields of the command's answer, if the answer is a table.
pub fn fields(command: &Command) -> Option<Vec<Field>> {
    let Command::Show(topic) = command else { return None };
    let of_names = |names: &[&'static str]| names.iter().map(|name| Field::text(name)).collect();
    Some(match topic {
        Topic::Keys => texts(keys::COLUMNS),
        Topic::Clients => texts(clients::COLUMNS),
        Topic::Lanes => texts(lanes::COLUMNS),
        Topic::Replicas => texts(replicas::COLUMNS),
        Topic::Units => of_names(&units::COLUMNS),
        Topic::Statements => texts(statements::COLUMNS),
        Topic::StatementTotals => texts(statements::TOTALS),
        Topic::Shadow => texts(shadow::COLUMNS),
        Topic::PoolSettings => texts(pool_settings::COLUMNS),
        Topic::Config => of_names(&config::COLUMNS),
        Topic::Pools => numbers(pools::COLUMNS, &pools::TEXTS),
        Topic::Databases => numbers(databases::COLUMNS, &databases::TEXTS),
        Topic::Servers => texts(servers::COLUMNS),
        Topic::Stats => numbers(&stats::all(), &stats::TEXTS),
        Topic::StatsTotals => numbers(stats::TOTALS, &stats::TEXTS),
        Topic::StatsAverages => numbers(stats::AVERAGES, &stats::TEXTS),
        Topic::Lists => numbers(lists::COLUMNS, &lists::TEXTS),
        Topic::Version => of_names(&version::COLUMNS),
        Topic::Help => of_names(&help::COLUMNS),
    })
}

async fn rows(shared: &Shared, topic: Topic, values: Values) -> Vec<Row> {
    match topic {
        Topic::Keys => keys::rows(shared, values).await,
        Topic::Clients => clients::rows(shared).await,
        Topic::Lanes => lanes::rows(shared).await,
        Topic::Replicas => replicas::rows(shared),
        Topic::Units => units::rows(shared).await,
        Topic::Statements => statements::rows(shared),
        Topic::StatementTotals => statements::sums(shared),
        Topic::Shadow => shadow::rows(shared),
        Topic::PoolSettings => pool_settings::rows(shared, values),
        Topic::Config => config::rows(shared),
        Topic::Pools => pools::rows(shared).await,
        Topic::Databases => databases::rows(shared).await,
        Topic::Servers => servers::rows(shared).await,
        Topic::Stats => stats::rows(shared, &stats::all()),
        Topic::StatsTotals => stats::rows(shared, stats::TOTALS),
        Topic::StatsAverages => stats::rows(shared, stats::AVERAGES),
        Topic::Lists => lists::rows(shared).await,
        Topic::Version => version::rows(),
        Topic::Help => help::rows(),
    }
}

/// Runs a command.
pub async fn perform(shared: &Arc<Shared>, command: &Command, values: Values) -> Result<Answer, Problem> {
    let named = |database: &Option<String>, error| not_in_use(shared, database, error);
    Ok(match command {
        Command::Show(topic) => {
            Answer::table(fields(command).unwrap_or_default(), rows(shared, *topic, values).await)
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
        Command::Kill(database) => {
            shared.kill(database.as_deref()).await.map_err(|error| named(database, error))?;
            Answer::done("KILL")
        }
        Command::KillClient(process_id) => {
            if !shared.controls.kill(*process_id) {
                let message = format!("no client has the process ID {process_id}");
                let hint = "SHOW CLIENTS lists the process IDs.";
                return Err(Problem::error(SqlState::UndefinedObject, message, hint));
            }
            Answer::done("KILL_CLIENT")
        }
        Command::Reload => {
            shared.operator_requests.reload().await.map_err(|error| {
                Problem::error(
                    SqlState::ConfigFileError,
                    error,
                    "Nothing was changed. Fix the error and run RELOAD again.",
                )
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
    Problem::error(SqlState::UndefinedDatabase, format!("no client has used database \"{name}\""), hint)
}
