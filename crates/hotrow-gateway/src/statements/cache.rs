//! A cache of statements by what clients send, bounded by count and bytes.

use std::collections::HashMap;
use std::sync::Arc;

use hotrow_connect::lock::Lock;
use hotrow_core::limits;
use hotrow_core::session::Statement as _;

use super::Statement;

/// The statement for this key. A statement whose text is too long to be parsed is cheap to make, and is not cached.
pub(super) fn lookup(
    cache: &Lock<Generations>,
    key: &[u8],
    make: impl FnOnce() -> Arc<Statement>,
) -> Arc<Statement> {
    if key.len() > 2 * limits::STATEMENT_BYTES_MAX {
        return make();
    }
    if let Some(statement) = cache.lock().get(key).filter(|statement| statement.is_current()) {
        return statement;
    }
    let statement = make(); // outside the lock, because parsing takes a while
    cache.lock().insert(key, statement)
}

/// A cache of two generations. When the young one is full, it becomes the old one, and entries that were not used
/// during a whole generation are dropped. Clients keep the statements that they still use.
#[derive(Debug, Default)]
pub(super) struct Generations {
    pub(super) young: HashMap<Box<[u8]>, Arc<Statement>>,
    pub(super) old: HashMap<Box<[u8]>, Arc<Statement>>,
    young_bytes: usize,
}

impl Generations {
    pub(super) fn get(&mut self, key: &[u8]) -> Option<Arc<Statement>> {
        if let Some(statement) = self.young.get(key) {
            return Some(statement.clone());
        }
        let statement = self.old.remove(key)?;
        Some(self.insert(key, statement))
    }

    /// The entry for this key: the given one, unless another task was faster.
    fn insert(&mut self, key: &[u8], statement: Arc<Statement>) -> Arc<Statement> {
        if self.young.len() >= limits::SHAPES_MAX || self.young_bytes > limits::SHAPES_BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += key.len() + statement.text.len();
        let entry = self.young.entry(key.into()).or_insert_with(|| statement.clone());
        if !entry.is_current() {
            *entry = statement;
        }
        entry.clone()
    }
}
