//! By shape, why statements were packed or not, and the sums over all shapes. Shapes with the most runs come first: statements that
//! ran once, such as those of a migration, do not hide the others. A shape has no values. The gateway's own checks are left out: an
//! operator cannot change them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use hotrow_connect::pack;
use hotrow_core::limits;
use hotrow_core::session::{RunOutcome, Statement as _};
use serde::Serialize;

use crate::pool::Pool;
use crate::shared::Shared;
use crate::statements::counts::Counts;
use crate::statements::{Explanation, Statement};

/// Number of characters of a shape that are shown.
pub(super) const SHAPE_CHARS_MAX: usize = 500;

/// A shape, with its verdict and the numbers of its runs.
#[derive(Debug, Serialize)]
pub struct ShownStatement {
    /// Its pool's number.
    pub pool: u64,
    /// The shape.
    pub statement: String,
    /// `packed`, `merged`, `passed`, `answered here` or `undecided`.
    pub verdict: &'static str,
    /// The reason for the verdict.
    pub reason: String,
    /// What to do about a statement that is passed through, if something is known.
    pub remedy: Option<&'static str>,
    /// The numbers of its runs.
    #[serde(flatten)]
    pub runs: Runs,
}

/// Numbers of runs, of one shape or of several.
#[derive(Debug, Serialize)]
pub struct Runs {
    /// All runs.
    pub runs: u64,
    /// Committed in a batch.
    pub packed: u64,
    /// Committed as part of a merged call.
    pub merged: u64,
    /// Passed through: the sum of the next eight.
    pub passed: u64,
    /// Of a statement that can never be packed.
    pub passed_not_packable: u64,
    /// Inside a transaction that the client had open.
    pub passed_in_own_transaction: u64,
    /// On a session pinned to its connection.
    pub passed_session_pinned: u64,
    /// With packing switched off.
    pub passed_switched_off: u64,
    /// In shadow mode, and otherwise it would have been packed.
    pub passed_in_shadow_mode: u64,
    /// Of a statement that fails too often in lanes, or took too long there.
    pub passed_fails_too_often: u64,
    /// Sent together with something that cannot be packed.
    pub passed_with_others: u64,
    /// While the catalog was asked about the statement.
    pub passed_undecided: u64,
    /// Run alone after a lane returned them.
    pub given_back_by_lane: u64,
    /// Returned by a lane because of an error of their own.
    pub failed_in_lane: u64,
    /// Returned by a lane because of an outsider's lock.
    pub left_lane_for_lock: u64,
    /// Returned by a lane because they took too long.
    pub left_lane_too_slow: u64,
}

/// The sums over all shapes that the gateway remembers.
#[derive(Debug, Serialize)]
pub struct StatementTotals {
    /// Number of shapes.
    pub shapes: usize,
    /// Number of shapes among them that are listed.
    pub listed: usize,
    #[serde(flatten)]
    pub runs: Runs,
}

/// The shapes that were run, each with its pool and one of its statements: the latest that has a verdict.
pub(super) fn remembered(shared: &Shared) -> Vec<(Arc<Pool>, Arc<Statement>)> {
    let of_pool = |pool: Arc<Pool>| {
        let mut shapes: HashMap<_, Arc<Statement>> = HashMap::new();
        for statement in pool.context.statements.all() {
            let shape = shapes.entry(Arc::as_ptr(&statement.record)).or_insert_with(|| statement.clone());
            if (statement.is_decided(), statement.id) > (shape.is_decided(), shape.id) {
                *shape = statement;
            }
        }
        shapes.into_values().map(move |statement| (pool.clone(), statement))
    };
    let mut all: Vec<_> = shared.pools().into_iter().flat_map(of_pool).collect();
    all.retain(|(_, statement)| statement.record.counts().total() > 0 && !pack::is_own(&statement.text));
    all
}

/// The shapes with the most runs.
pub fn statements(shared: &Shared) -> Vec<ShownStatement> {
    let mut all = remembered(shared);
    all.sort_by_cached_key(|(_, statement)| {
        let counts = statement.record.counts();
        (Reverse(counts.total()), Reverse(counts.passed()), statement.id)
    });
    let shown = all.iter().take(limits::SHOWN_STATEMENTS_MAX);
    shown.map(|(pool, statement)| ShownStatement::new(pool, statement)).collect()
}

/// The sums over all shapes.
pub fn totals(shared: &Shared) -> StatementTotals {
    let all = remembered(shared);
    let counts: Vec<&Counts> = all.iter().map(|(_, statement)| statement.record.counts()).collect();
    let listed = all.len().min(limits::SHOWN_STATEMENTS_MAX);
    StatementTotals { shapes: all.len(), listed, runs: Runs::of(&counts) }
}

impl ShownStatement {
    fn new(pool: &Pool, statement: &Statement) -> Self {
        let Explanation { verdict, reason, remedy } = verdict(pool, statement);
        ShownStatement {
            pool: pool.id,
            statement: statement.shown(SHAPE_CHARS_MAX),
            verdict,
            reason,
            remedy,
            runs: Runs::of(&[statement.record.counts()]),
        }
    }
}

impl Runs {
    fn of(shapes: &[&Counts]) -> Self {
        let count = |outcome| shapes.iter().map(|counts| counts.of(outcome)).sum();
        Runs {
            runs: shapes.iter().map(|counts| counts.total()).sum(),
            packed: count(RunOutcome::Packed),
            merged: count(RunOutcome::Merged),
            passed: shapes.iter().map(|counts| counts.passed()).sum(),
            passed_not_packable: count(RunOutcome::NotPackable),
            passed_in_own_transaction: count(RunOutcome::OwnTransaction),
            passed_session_pinned: count(RunOutcome::Pinned),
            passed_switched_off: count(RunOutcome::SwitchedOff),
            passed_in_shadow_mode: count(RunOutcome::Shadowed),
            passed_fails_too_often: count(RunOutcome::NoCredit),
            passed_with_others: count(RunOutcome::LargerUnit),
            passed_undecided: count(RunOutcome::Undecided),
            given_back_by_lane: count(RunOutcome::GivenBack),
            failed_in_lane: count(RunOutcome::Failed),
            left_lane_for_lock: count(RunOutcome::Blocked),
            left_lane_too_slow: count(RunOutcome::TooSlow),
        }
    }
}

fn verdict(pool: &Pool, statement: &Statement) -> Explanation {
    match (statement.explain(), pool.context.unpackable()) {
        (Some(explained), None) if matches!(explained.verdict, "packed" | "merged") => {
            if statement.has_credit() {
                return explained;
            }
            let why = explained.reason;
            let reason = format!("it fails too often in lanes, or takes too long there; otherwise {why}");
            Explanation::new("passed", reason)
        }
        (Some(explained), Some(_)) if matches!(explained.verdict, "passed" | "answered here") => explained,
        (_, Some(why)) => Explanation::new("passed", why),
        (Some(explained), None) => explained,
        (None, None) => Explanation::new(
            "undecided",
            "not decided yet: so far it has run only in transactions or on held connections",
        ),
    }
}
