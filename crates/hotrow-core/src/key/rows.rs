//! The rows of a statement that compares a column with several values.

use std::hash::Hasher;

use hotrow_lane::key::{Key, RowHasher};

use super::{KeySource, KeySpec, ParamValue, elements};
use crate::limits;

/// A row that a statement can find.
#[derive(Clone, Debug)]
pub struct Row<'p> {
    pub key: Key,
    /// The values of the key's columns.
    pub values: Vec<ParamValue<'p>>,
}

impl KeySpec {
    /// Number of rows that the statement's text names. Each array counts as one.
    pub fn rows_named(&self) -> usize {
        let named = self.columns.iter().map(|column| match &column.source {
            KeySource::OneOf(sources) => sources.len(),
            KeySource::Param(_) | KeySource::Const(_) | KeySource::Element(_) => 1,
        });
        named.fold(1, usize::saturating_mul)
    }

    /// The rows for one set of parameters, each once. `None` if an array cannot be read, or if there are too
    /// many rows.
    pub fn rows<'p>(&'p self, param: impl Fn(u16) -> Option<ParamValue<'p>>) -> Option<Vec<Row<'p>>> {
        let mut combinations = vec![Vec::new()];
        for column in &self.columns {
            let values = column.source.values(&param)?;
            if combinations.len() * values.len() > limits::UNIT_ROWS_MAX {
                return None;
            }
            let with = |before: &Vec<_>, value| before.iter().copied().chain([value]).collect();
            let all =
                combinations.iter().flat_map(|before| values.iter().map(move |value| with(before, *value)));
            combinations = all.collect();
        }
        let mut rows: Vec<_> = combinations.into_iter().map(|values| self.row(values)).collect();
        rows.sort_by_key(|row| row.key);
        rows.dedup_by_key(|row| row.key);
        Some(rows)
    }

    fn row<'p>(&self, values: Vec<ParamValue<'p>>) -> Row<'p> {
        let mut hasher = RowHasher::default();
        self.columns.iter().zip(&values).for_each(|(column, value)| column.feed(*value, &mut hasher));
        Row { key: Key { table: self.table, hash: hasher.finish() }, values }
    }
}

impl KeySource {
    /// All values except NULL. `None` if they cannot be read.
    pub(crate) fn values<'p>(
        &'p self,
        param: impl Fn(u16) -> Option<ParamValue<'p>>,
    ) -> Option<Vec<ParamValue<'p>>> {
        match self {
            KeySource::OneOf(sources) => {
                Some(sources.iter().filter_map(|source| source.value(&param)).collect())
            }
            KeySource::Element(index) => param(*index).map_or_else(|| Some(Vec::new()), elements),
            KeySource::Param(_) | KeySource::Const(_) => Some(self.value(param).into_iter().collect()),
        }
    }
}
