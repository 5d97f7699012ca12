//! SHOW STATEMENTS: by shape, why statements were packed or not. Shapes that were passed through most often come first.

use hotrow_core::limits;
use hotrow_core::session::{RunOutcome, Statement as _};

use super::answer::{Row, row};
use crate::pool::Pool;
use crate::shared::Shared;
use crate::statements::Statement;

/// The columns.
pub const COLUMNS: [&str; 18] = [
    "pool",
    "statement",
    "verdict",
    "reason",
    "runs",
    "packed",
    "merged",
    "passed",
    "passed_not_packable",
    "passed_in_own_transaction",
    "passed_session_pinned",
    "passed_switched_off",
    "passed_fails_too_often",
    "passed_with_others",
    "given_back_by_lane",
    "failed_in_lane",
    "left_lane_for_lock",
    "left_lane_too_slow",
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
    all.iter().take(limits::SHOWN_STATEMENTS_MAX).map(|(pool, statement)| of(pool, statement)).collect()
}

fn of(pool: &Pool, statement: &Statement) -> Row {
    let (verdict, reason) = verdict(pool, statement);
    let counts = &statement.counts;
    let mut row = row![pool.id, statement.shown(SHAPE_CHARS_MAX), verdict, reason, counts.total()];
    row.extend([RunOutcome::Packed, RunOutcome::Merged].map(|outcome| Some(counts.of(outcome).to_string())));
    row.push(Some(counts.passed().to_string()));
    let rest = [
        RunOutcome::NotPackable,
        RunOutcome::OwnTransaction,
        RunOutcome::Pinned,
        RunOutcome::SwitchedOff,
        RunOutcome::NoCredit,
        RunOutcome::LargerUnit,
        RunOutcome::GivenBack,
        RunOutcome::Failed,
        RunOutcome::Blocked,
        RunOutcome::TooSlow,
    ];
    row.extend(rest.map(|outcome| Some(counts.of(outcome).to_string())));
    row
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
