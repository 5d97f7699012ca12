//! SHOW STATEMENTS: by shape, why statements were packed or not. Shapes that were passed through most often come first.

use super::answer::{Column, Row, row_of, text};
use crate::operator::view::statements::{ShownStatement, statements};
use crate::shared::Shared;

/// The columns.
pub const COLUMNS: &[Column<ShownStatement>] = &[
    ("pool", |shown| text(shown.pool)),
    ("statement", |shown| text(&shown.statement)),
    ("verdict", |shown| text(shown.verdict)),
    ("reason", |shown| text(&shown.reason)),
    ("instead", |shown| shown.remedy.and_then(text)),
    ("runs", |shown| text(shown.runs)),
    ("packed", |shown| text(shown.packed)),
    ("merged", |shown| text(shown.merged)),
    ("passed", |shown| text(shown.passed)),
    ("passed_not_packable", |shown| text(shown.passed_not_packable)),
    ("passed_in_own_transaction", |shown| text(shown.passed_in_own_transaction)),
    ("passed_session_pinned", |shown| text(shown.passed_session_pinned)),
    ("passed_switched_off", |shown| text(shown.passed_switched_off)),
    ("passed_fails_too_often", |shown| text(shown.passed_fails_too_often)),
    ("passed_with_others", |shown| text(shown.passed_with_others)),
    ("passed_undecided", |shown| text(shown.passed_undecided)),
    ("given_back_by_lane", |shown| text(shown.given_back_by_lane)),
    ("failed_in_lane", |shown| text(shown.failed_in_lane)),
    ("left_lane_for_lock", |shown| text(shown.left_lane_for_lock)),
    ("left_lane_too_slow", |shown| text(shown.left_lane_too_slow)),
];

/// One row for each shape that was run.
pub fn rows(shared: &Shared) -> Vec<Row> {
    statements(shared).iter().map(|shown| row_of(COLUMNS, shown)).collect()
}
