//! SHOW CONFIG: the settings in force, in the form of PgBouncer. A setting's name ends with its unit.

use super::answer::{Row, row};
use crate::shared::Shared;

/// The columns.
pub const COLUMNS: [&str; 4] = ["key", "value", "default", "changeable"];

/// One row for each setting, and PgBouncer's name of the one that exporters read.
pub fn rows(shared: &Shared) -> Vec<Row> {
    let config = shared.config();
    let changes = |restart| if restart { "with the next start" } else { "with a reload" };
    let settings =
        config.shown.iter().map(|one| row![one.name, one.value, one.default, changes(one.needs_restart)]);
    let tables = config.tables.iter().map(|table| row!["[[pool]]", table.describe(), "", changes(false)]);
    let clients =
        row!["max_client_conn", config.clients_max, hotrow_core::limits::CLIENTS_MAX, changes(false)];
    settings.chain(tables).chain([clients]).collect()
}
