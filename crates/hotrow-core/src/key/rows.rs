//! The rows of a statement that compares a column with several values, or inserts several rows.

use std::hash::Hasher;

use hotrow_lane::key::{Key, RowHasher};

use super::{KeyColumn, KeySource, KeySpec, ParamValue, elements, elements_and_nulls};
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
        let given = self.columns.iter().filter_map(|column| match &column.source {
            KeySource::Each(values) => Some(values.len()),
            _ => None,
        });
        let named = self.columns.iter().map(|column| match &column.source {
            KeySource::OneOf(sources) => sources.len(),
            _ => 1,
        });
        given.max().unwrap_or_else(|| named.fold(1, usize::saturating_mul))
    }

    /// Whether its columns have a value for row after row.
    fn goes_row_by_row(&self) -> bool {
        let is_of_rows =
            |column: &KeyColumn| matches!(column.source, KeySource::Each(_) | KeySource::Unnested(_));
        self.columns.iter().any(is_of_rows)
    }

    /// The rows for one set of parameters, each once. `None` if an array cannot be read, or if there are too
    /// many rows.
    pub fn rows<'p>(&'p self, param: impl Fn(u16) -> Option<ParamValue<'p>>) -> Option<Vec<Row<'p>>> {
        let tuples = if self.goes_row_by_row() { self.given(param)? } else { self.combinations(param)? };
        let mut rows: Vec<_> = tuples.into_iter().map(|values| self.row(values)).collect();
        rows.sort_by_key(|row| row.key);
        rows.dedup_by_key(|row| row.key);
        Some(rows)
    }

    /// The values of the rows that the statement gives one by one. A row with NULL in the key equals no other row.
    fn given<'p>(
        &'p self,
        param: impl Fn(u16) -> Option<ParamValue<'p>>,
    ) -> Option<Vec<Vec<ParamValue<'p>>>> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            columns.push(match &column.source {
                KeySource::Each(values) => values.iter().map(|value| value.as_ref()?.value(&param)).collect(),
                // The shorter ones of several arrays are filled up with NULL.
                KeySource::Unnested(index) => param(*index).map_or(Some(Vec::new()), elements_and_nulls)?,
                source => vec![source.value(&param); limits::UNIT_ROWS_MAX],
            });
        }
        // A value that all rows have is there as often as there can be rows.
        let of_rows = self
            .columns
            .iter()
            .zip(&columns)
            .filter(|(column, _)| matches!(column.source, KeySource::Each(_) | KeySource::Unnested(_)));
        let count = of_rows.map(|(_, values)| values.len()).max().unwrap_or_default();
        if count > limits::UNIT_ROWS_MAX {
            return None;
        }
        let row = |place| columns.iter().map(|values| values.get(place).copied().flatten()).collect();
        Some((0..count).filter_map(row).collect())
    }

    /// All combinations of the values that the statement compares with the columns.
    fn combinations<'p>(
        &'p self,
        param: impl Fn(u16) -> Option<ParamValue<'p>>,
    ) -> Option<Vec<Vec<ParamValue<'p>>>> {
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
        Some(combinations)
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
            KeySource::Element(index) | KeySource::Unnested(index) => {
                param(*index).map_or_else(|| Some(Vec::new()), elements)
            }
            KeySource::Each(sources) => {
                Some(sources.iter().flatten().filter_map(|source| source.value(&param)).collect())
            }
            KeySource::Param(_) | KeySource::Const(_) => Some(self.value(param).into_iter().collect()),
        }
    }
}
