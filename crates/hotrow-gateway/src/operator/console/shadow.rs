//! SHOW SHADOW: what the gateway would have packed, by database and user.

use super::answer::{Column, Row, row_of, text};
use crate::operator::view::shadow::{ShadowOfClients, shadow};
use crate::shared::Shared;

pub const COLUMNS: &[Column<ShadowOfClients>] = &[
    ("database", |of| text(&of.database)),
    ("user", |of| text(&of.user)),
    ("seconds", |of| text(format!("{:.0}", of.seconds))),
    ("statements", |of| text(of.statements)),
    ("would_pack", |of| text(of.would_pack)),
    ("share_percent", |of| text(format!("{:.1}", of.percent()))),
    ("units", |of| text(of.units)),
    ("met", |of| text(of.met)),
    ("units_per_commit", |of| text(format!("{:.1}", of.units_per_commit))),
    ("commits_saved", |of| text(of.commits_saved)),
    ("commits_saved_per_second", |of| text(format!("{:.1}", of.saved_per_second()))),
    ("blocker", |of| of.blocker.as_ref().and_then(|blocker| text(&blocker.statement))),
    ("blocker_runs", |of| of.blocker.as_ref().and_then(|blocker| text(blocker.runs))),
    ("reason", |of| of.blocker.as_ref().and_then(|blocker| text(&blocker.reason))),
    ("instead", |of| of.blocker.as_ref().and_then(|blocker| blocker.remedy).and_then(text)),
];

/// One row for each database and user with statements in shadow mode.
pub fn rows(shared: &Shared) -> Vec<Row> {
    shadow(shared).iter().map(|of| row_of(COLUMNS, of)).collect()
}
