//! SHOW STATEMENTS: by shape, why statements were packed or not. Shapes with the most runs come first. SHOW STATEMENT_TOTALS has
//! the sums over all shapes.

use super::answer::{Column, Row, row_of, text};
use crate::operator::view::statements::{ShownStatement, StatementTotals, statements, totals};
use crate::shared::Shared;

pub const COLUMNS: &[Column<ShownStatement>] = &[
    ("pool", |shown| text(shown.pool)),
    ("statement", |shown| text(&shown.statement)),
    ("verdict", |shown| text(shown.verdict)),
    ("reason", |shown| text(&shown.reason)),
    ("instead", |shown| shown.remedy.and_then(text)),
    ("runs", |shown| text(shown.runs.runs)),
    ("packed", |shown| text(shown.runs.packed)),
    ("merged", |shown| text(shown.runs.merged)),
    ("passed", |shown| text(shown.runs.passed)),
    ("passed_not_packable", |shown| text(shown.runs.passed_not_packable)),
    ("passed_in_own_transaction", |shown| text(shown.runs.passed_in_own_transaction)),
    ("passed_session_pinned", |shown| text(shown.runs.passed_session_pinned)),
    ("passed_switched_off", |shown| text(shown.runs.passed_switched_off)),
    ("passed_in_shadow_mode", |shown| text(shown.runs.passed_in_shadow_mode)),
    ("passed_fails_too_often", |shown| text(shown.runs.passed_fails_too_often)),
    ("passed_with_others", |shown| text(shown.runs.passed_with_others)),
    ("passed_undecided", |shown| text(shown.runs.passed_undecided)),
    ("given_back_by_lane", |shown| text(shown.runs.given_back_by_lane)),
    ("failed_in_lane", |shown| text(shown.runs.failed_in_lane)),
    ("left_lane_for_lock", |shown| text(shown.runs.left_lane_for_lock)),
    ("left_lane_too_slow", |shown| text(shown.runs.left_lane_too_slow)),
];

/// The columns of the sums.
pub const TOTALS: &[Column<StatementTotals>] = &[
    ("shapes", |all| text(all.shapes)),
    ("listed", |all| text(all.listed)),
    ("runs", |all| text(all.runs.runs)),
    ("packed", |all| text(all.runs.packed)),
    ("merged", |all| text(all.runs.merged)),
    ("passed", |all| text(all.runs.passed)),
    ("passed_not_packable", |all| text(all.runs.passed_not_packable)),
    ("passed_in_own_transaction", |all| text(all.runs.passed_in_own_transaction)),
    ("passed_session_pinned", |all| text(all.runs.passed_session_pinned)),
    ("passed_switched_off", |all| text(all.runs.passed_switched_off)),
    ("passed_in_shadow_mode", |all| text(all.runs.passed_in_shadow_mode)),
    ("passed_fails_too_often", |all| text(all.runs.passed_fails_too_often)),
    ("passed_with_others", |all| text(all.runs.passed_with_others)),
    ("passed_undecided", |all| text(all.runs.passed_undecided)),
    ("given_back_by_lane", |all| text(all.runs.given_back_by_lane)),
    ("failed_in_lane", |all| text(all.runs.failed_in_lane)),
    ("left_lane_for_lock", |all| text(all.runs.left_lane_for_lock)),
    ("left_lane_too_slow", |all| text(all.runs.left_lane_too_slow)),
];

pub fn sums(shared: &Shared) -> Vec<Row> {
    vec![row_of(TOTALS, &totals(shared))]
}

/// One row for each shape that was run.
pub fn rows(shared: &Shared) -> Vec<Row> {
    statements(shared).iter().map(|shown| row_of(COLUMNS, shown)).collect()
}
