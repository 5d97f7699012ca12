//! SHOW STATEMENTS: by shape, why statements were packed or not. Shapes that were passed through most often come first.

use std::sync::Arc;

use hotrow_core::limits;
use hotrow_core::session::{RunOutcome, Statement as _};

use super::answer::{Column, Row, row_of, text};
use crate::pool::Pool;
use crate::shared::Shared;
use crate::statements::Statement;

/// A shape, with its verdict and the reason in words.
pub struct Shown {
    pool: Arc<Pool>,
    statement: Arc<Statement>,
    verdict: &'static str,
    reason: String,
}

impl Shown {
    fn count(&self, outcome: RunOutcome) -> Option<String> {
        text(self.statement.counts.of(outcome))
    }
}

/// The columns.
pub const COLUMNS: &[Column<Shown>] = &[
    ("pool", |shown| text(shown.pool.id)),
    ("statement", |shown| text(shown.statement.shown(SHAPE_CHARS_MAX))),
    ("verdict", |shown| text(shown.verdict)),
    ("reason", |shown| text(&shown.reason)),
    ("runs", |shown| text(shown.statement.counts.total())),
    ("packed", |shown| shown.count(RunOutcome::Packed)),
    ("merged", |shown| shown.count(RunOutcome::Merged)),
    ("passed", |shown| text(shown.statement.counts.passed())),
    ("passed_not_packable", |shown| shown.count(RunOutcome::NotPackable)),
    ("passed_in_own_transaction", |shown| shown.count(RunOutcome::OwnTransaction)),
    ("passed_session_pinned", |shown| shown.count(RunOutcome::Pinned)),
    ("passed_switched_off", |shown| shown.count(RunOutcome::SwitchedOff)),
    ("passed_fails_too_often", |shown| shown.count(RunOutcome::NoCredit)),
    ("passed_with_others", |shown| shown.count(RunOutcome::LargerUnit)),
    ("given_back_by_lane", |shown| shown.count(RunOutcome::GivenBack)),
    ("failed_in_lane", |shown| shown.count(RunOutcome::Failed)),
    ("left_lane_for_lock", |shown| shown.count(RunOutcome::Blocked)),
    ("left_lane_too_slow", |shown| shown.count(RunOutcome::TooSlow)),
];

/// Number of characters of a shape that are shown.
const SHAPE_CHARS_MAX: usize = 500;

/// One row for each shape that was run.
pub fn rows(shared: &Shared) -> Vec<Row> {
    let mut all: Vec<_> = shared
        .pools()
        .into_iter()
        .flat_map(|pool| {
            pool.context.statements.all().into_iter().map(move |statement| (pool.clone(), statement))
        })
        .filter(|(_, statement)| statement.counts.total() > 0)
        .collect();
    all.sort_by_cached_key(|(_, statement)| {
        let counts = &statement.counts;
        (std::cmp::Reverse(counts.passed()), std::cmp::Reverse(counts.total()), statement.id)
    });
    let shown = all.into_iter().take(limits::SHOWN_STATEMENTS_MAX).map(|(pool, statement)| {
        let (verdict, reason) = verdict(&pool, &statement);
        Shown { pool, statement, verdict, reason }
    });
    shown.map(|shown| row_of(COLUMNS, &shown)).collect()
}

fn verdict(pool: &Pool, statement: &Statement) -> (&'static str, String) {
    let decided = statement.explain();
    match (decided, pool.context.unpackable()) {
        (Some((verdict @ ("packed" | "merged"), why)), None) if statement.has_credit() => (verdict, why),
        (Some(("packed" | "merged", why)), None) => {
            ("passed", format!("it fails too often in lanes, or takes too long there; otherwise {why}"))
        }
        (Some((verdict @ ("passed" | "answered here"), why)), _) => (verdict, why),
        (_, Some(why)) => ("passed", why),
        (Some(other), None) => other,
        (None, None) => (
            "undecided",
            "not decided yet: so far it has run only in transactions or on held connections".to_owned(),
        ),
    }
}
