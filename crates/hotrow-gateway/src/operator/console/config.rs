//! SHOW CONFIG: the settings in force.

use super::answer::{Row, row};
use crate::shared::Shared;

/// The columns.
pub const COLUMNS: [&str; 5] = ["name", "value", "default", "unit", "changes"];

/// One row for each setting.
pub fn rows(shared: &Shared) -> Vec<Row> {
    let config = shared.config();
    let changes = |restart| if restart { "with the next start" } else { "with a reload" };
    let settings = config
        .shown
        .iter()
        .map(|one| row![one.name, one.value, one.default, one.unit, changes(one.needs_restart)]);
    let tables = config.tables.iter().map(|table| row!["[[pool]]", table.describe(), "", "", changes(false)]);
    settings.chain(tables).collect()
}
