//! SHOW VERSION.

use super::answer::{Row, row};

/// The column.
pub const COLUMNS: [&str; 1] = ["version"];

pub fn rows() -> Vec<Row> {
    vec![row![concat!("hotrow ", env!("CARGO_PKG_VERSION"))]]
}
