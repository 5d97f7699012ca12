//! What shadow mode has found, by database and user: the share of statements that would have been packed, the commits that this
//! would have saved, and the statement that is in the way most often.

use hotrow_core::page;
use hotrow_core::session::RunOutcome;
use serde::Serialize;

use super::statements::{SHAPE_CHARS_MAX, remembered};
use crate::metrics::{METRICS, ShadowTraffic};
use crate::shared::Shared;
use crate::statements::Statement;

/// The numbers of one database and user.
#[derive(Clone, Debug, Serialize)]
pub struct ShadowOfClients {
    pub database: String,
    pub user: String,
    /// Seconds from the first statement in shadow mode to the last one.
    pub seconds: f64,
    /// Statements in shadow mode, without commands about sessions and transactions.
    pub statements: u64,
    /// Statements among them that would have been packed.
    pub would_pack: u64,
    /// Writing units that would have been packed.
    pub units: u64,
    /// Units among them that began while another unit worked on one of their rows.
    pub met: u64,
    /// The mean number of units that one commit would have had.
    pub units_per_commit: f64,
    /// Commits that these units would not have needed.
    pub commits_saved: u64,
    /// The statement that was passed through most often for another reason than shadow mode. One with a remedy comes first.
    pub blocker: Option<Blocker>,
}

/// A statement that would not have been packed.
#[derive(Clone, Debug, Serialize)]
pub struct Blocker {
    /// Its shape, without values.
    pub statement: String,
    /// How often it would not have been packed.
    pub runs: u64,
    pub reason: String,
    /// What to do, if something is known.
    pub remedy: Option<&'static str>,
}

/// The numbers of all databases and users with statements in shadow mode, those with the most statements first.
pub fn shadow(shared: &Shared) -> Vec<ShadowOfClients> {
    let mut all: Vec<ShadowOfClients> = METRICS
        .traffic
        .all()
        .into_iter()
        .filter(|(_, traffic)| traffic.shadow.statements() > 0)
        .map(|((database, user), traffic)| ShadowOfClients {
            blocker: blocker(shared, &database, &user),
            ..ShadowOfClients::new(database, user, &traffic.shadow)
        })
        .collect();
    all.sort_by_key(|of| std::cmp::Reverse(of.statements));
    all
}

impl ShadowOfClients {
    fn new(database: String, user: String, found: &ShadowTraffic) -> Self {
        let (units, batched, batches) = (found.units.get(), found.batched.get(), found.batches.get());
        let units_per_commit = batched.max(1) as f64 / batches.max(1) as f64;
        ShadowOfClients {
            database,
            user,
            seconds: found.watched().as_secs_f64(),
            statements: found.statements(),
            would_pack: found.would_pack.get(),
            units,
            met: found.met.get(),
            units_per_commit,
            commits_saved: (units as f64 * (1.0 - 1.0 / units_per_commit)) as u64,
            blocker: None,
        }
    }

    /// The share of statements that would have been packed, in percent.
    pub fn percent(&self) -> f64 {
        100.0 * self.would_pack as f64 / self.statements.max(1) as f64
    }

    pub fn saved_per_second(&self) -> f64 {
        self.commits_saved as f64 / self.seconds.max(1.0)
    }
}

/// Outcomes that a change of the application can avoid.
const AVOIDABLE: [RunOutcome; 5] = [
    RunOutcome::NotPackable,
    RunOutcome::OwnTransaction,
    RunOutcome::Pinned,
    RunOutcome::NoCredit,
    RunOutcome::LargerUnit,
];

fn blocker(shared: &Shared, database: &str, user: &str) -> Option<Blocker> {
    let lost = |statement: &Statement| -> u64 {
        AVOIDABLE.iter().map(|outcome| statement.record.counts().of(*outcome)).sum()
    };
    remembered(shared)
        .into_iter()
        .filter(|(pool, _)| (pool.identity.database(), pool.identity.user()) == (database, user))
        .filter(|(_, statement)| statement.is_work() && lost(statement) > 0)
        .map(|(_, statement)| (lost(&statement), why(&statement), statement))
        .max_by_key(|(runs, (_, remedy), _)| (remedy.is_some_and(is_step), *runs))
        .map(|(runs, (reason, remedy), statement)| {
            let statement = statement.shown(SHAPE_CHARS_MAX);
            Blocker { statement, runs, reason, remedy }
        })
}

/// Whether a remedy can be followed. Some say that there is nothing to do.
fn is_step(remedy: &str) -> bool {
    !remedy.starts_with("nothing")
}

/// The most frequent reason in words, and its remedy.
fn why(statement: &Statement) -> (String, Option<&'static str>) {
    let counts = statement.record.counts();
    let outcome = AVOIDABLE.into_iter().max_by_key(|outcome| counts.of(*outcome));
    let outcome = outcome.unwrap_or(RunOutcome::NotPackable);
    let (reason, remedy) = match outcome {
        RunOutcome::OwnTransaction => (
            "it runs in a transaction whose statements come one by one",
            "send it outside of a transaction, or send BEGIN, all statements and COMMIT together",
        ),
        RunOutcome::Pinned => (
            "its session keeps a connection because of state that is left there",
            concat!("SHOW CLIENTS names the state; ", page!("console.md"), " says how to avoid it"),
        ),
        RunOutcome::NoCredit => (
            "it fails too often, or takes too long",
            "leave it as it is: packing would make other statements wait for it",
        ),
        RunOutcome::LargerUnit => (
            "it is sent together with a statement that cannot be packed, or before the answer to the one before",
            "send it as a query of its own",
        ),
        _ => {
            let explained = statement.explain();
            let reason = explained.as_ref().map_or_else(String::new, |explained| explained.reason.clone());
            return (reason, explained.and_then(|explained| explained.remedy));
        }
    };
    (reason.to_owned(), Some(remedy))
}
