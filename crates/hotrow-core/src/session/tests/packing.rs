//! How the statements of simulated clients are packed: by the key in their texts.

use hotrow_lane::lane::LaneKind;

use crate::classify::{Packing, Watch};
use crate::key::{KeyColumn, KeySource, KeySpec, ValueForm, key_space};

/// The table, whose definition does not change.
fn watch() -> Watch {
    Watch {
        name: "t".to_owned(),
        oid: 1,
        fingerprint: String::new(),
        trigger_functions: Vec::new(),
        parts: Vec::new(),
    }
}

pub(super) fn packing(text: &str) -> Packing {
    let row = text.trim_end_matches(" returning n").rsplit(' ').next().unwrap_or_default();
    let source = match row.strip_prefix('$') {
        Some(parameter) => KeySource::Param(parameter.parse::<u16>().expect("a number") - 1),
        None => KeySource::Const(row.to_owned()),
    };
    let column = KeyColumn { name: "id".to_owned(), attnum: 1, form: ValueForm::Integer, source };
    let kind = if text.starts_with("select") { LaneKind::Read } else { LaneKind::Write };
    let table = if is_take(text) { key_space(BOXES) } else { 1 };
    Packing {
        kind,
        table: "t".to_owned(),
        key: Some(KeySpec { table, columns: vec![column] }),
        rows_per_commit: 128,
        touches_sequence: false,
        returns_rows: text.starts_with("select") || text.ends_with("returning n"),
        merging: None,
        lock_statement: None,
        in_key_space: false,
        is_declared: false,
        takes: None,
        watch: Some(Box::new(watch())),
        distribution: None,
        with: Box::default(),
        arrays: Box::default(),
        why: String::new(),
    }
}

/// The key space of rows from which calls take.
pub const BOXES: &str = "box";

/// Whether a statement is a call that waits if it finds nothing.
pub fn is_take(text: &str) -> bool {
    text.contains(" n > 0 ")
}
