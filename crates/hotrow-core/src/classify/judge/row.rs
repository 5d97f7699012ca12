//! Determines the row for which a statement contends, and how often one commit can change it. Whether the
//! statement can be packed is decided elsewhere.

use crate::key::{KeyColumn, KeySource, KeySpec, ValueForm};

use crate::classify::facts::{Column, Index, TableFacts};
use crate::classify::known::builtin_types;
use crate::classify::read::candidate::{ArrayParam, Candidate, Head, Operand, Verb};
use crate::classify::read::head::ADDRESS;
use crate::classify::reason::Reason;
use crate::limits;

/// The unique index whose columns are all bound by equality. The primary key is preferred.
pub(crate) fn point_key<'t>(
    candidate: &Candidate,
    table: &'t TableFacts,
) -> Result<(&'t Index, KeySpec), Reason> {
    let bound = |name: &String| {
        candidate.equalities.iter().find(|equality| equality.column == *name).map(|it| it.operand.clone())
    };
    let (index, key) = table
        .indexes_by_preference()
        .find_map(|index| Some((index, key_over(table, &index.columns, bound)?)))
        .ok_or_else(|| Reason::NoUniqueIndex(table.name.clone()))?;
    if key.rows_named() > limits::UNIT_ROWS_MAX {
        return Err(Reason::ManyRows);
    }
    if candidate.limited && !key.is_single() {
        return Err(Reason::Unsupported("LIMIT, OFFSET or FETCH of several rows"));
    }
    Ok((index, key))
}

/// The key of a row to be inserted: the conflict target if its row can be updated, otherwise the primary key
/// if the statement contains it.
pub(crate) fn insert_key(
    candidate: &Candidate,
    table: &TableFacts,
) -> Result<(Option<KeySpec>, String), Reason> {
    let insert = candidate.insert.as_ref().ok_or(Reason::Unsupported("INSERT from a query"))?;
    // The rows of a distributed table can be on several nodes.
    if insert.is_bulk() && table.distribution.is_some() {
        return Ok((None, String::new()));
    }
    let of_rows = if insert.is_bulk() { " of each row" } else { "" };
    let given = |name: &String| candidate.inserted(name, table);
    let target = insert.conflict.as_ref().and_then(|conflict| {
        let named = conflict.constraint.as_ref();
        let index = named.and_then(|name| table.unique_indexes.iter().find(|index| index.name == *name));
        let columns = index.map_or(&conflict.columns, |index| &index.columns);
        key_over(table, columns, given).map(|key| (key, columns.join(", ")))
    });
    if insert.conflict.as_ref().is_some_and(|conflict| conflict.updates) && target.is_none() {
        return Err(Reason::ConflictTarget);
    }
    if candidate.reads.is_some() && insert.conflict.is_some() && target.is_none() {
        return Err(Reason::Unsupported("ON CONFLICT with several rows"));
    }
    let primary = || {
        let index = table.unique_indexes.iter().find(|index| index.primary)?;
        Some((key_over(table, &index.columns, given)?, "the primary key".to_owned()))
    };
    match target.map(|(key, columns)| (key, format!("the conflict target ({columns})"))).or_else(primary) {
        Some((key, _)) if key.rows_named() > limits::UNIT_ROWS_MAX && insert.conflict.is_some() => {
            Err(Reason::ManyRows)
        }
        Some((key, what)) if key.rows_named() <= limits::UNIT_ROWS_MAX => {
            Ok((Some(key), format!("{what}{of_rows} is given")))
        }
        _ => Ok((None, "an INSERT of new rows contends for no row that is known beforehand".to_owned())),
    }
}

/// The key of the rows that a query with LIMIT finds: the table, and the constants that select a part of it. No row has this
/// key. It gathers statements that meet at the first rows.
pub(crate) fn head_key(candidate: &Candidate, head: &Head, table: &TableFacts) -> Result<KeySpec, Reason> {
    let is_bound = |name: &String| {
        head.ties.contains(name) || candidate.equalities.iter().any(|equality| equality.column == *name)
    };
    let by_address = head.ties.iter().any(|column| column == ADDRESS);
    if !by_address && !table.unique_indexes.iter().any(|index| index.columns.iter().all(is_bound)) {
        return Err(Reason::NoUniqueIndex(table.name.clone()));
    }
    let columns = table.columns.iter().filter_map(|column| {
        let bound = head.equalities.iter().find(|equality| equality.column == column.name)?;
        let source = source(bound.operand.clone())?;
        let is_single = matches!(source, KeySource::Param(_) | KeySource::Const(_));
        is_single.then(|| key_column(column, source))
    });
    Ok(KeySpec { table: table.oid, columns: columns.collect() })
}

/// The largest number of rows that such a query finds.
pub(crate) fn head_limit(head: &Head) -> Result<KeySource, Reason> {
    match source(head.limit.clone()) {
        Some(KeySource::Const(text)) => match text.parse::<usize>() {
            Ok(limit) if limit <= limits::UNIT_ROWS_MAX => Ok(KeySource::Const(text)),
            Ok(_) => Err(Reason::ManyRows),
            Err(_) => Err(Reason::Unsupported("LIMIT or OFFSET with an expression")),
        },
        Some(param @ KeySource::Param(_)) => Ok(param),
        _ => Err(Reason::Unsupported("LIMIT or OFFSET with an expression")),
    }
}

/// Whether the value that the statement gives this column is the one that the row has: nothing converts it to another type
/// on the way. `types` are the declared types of the parameters.
pub(crate) fn is_exact(candidate: &Candidate, table: &TableFacts, column: &Column, types: &[u32]) -> bool {
    let operand = match candidate.verb {
        Verb::Insert => candidate.inserted(&column.name, table),
        Verb::Select | Verb::Update | Verb::Delete => {
            let bound = candidate.equalities.iter().find(|equality| equality.column == column.name);
            bound.map(|equality| equality.operand.clone())
        }
    };
    operand.is_some_and(|operand| keeps_value(&operand, column.type_oid, types))
}

/// Types between which a value keeps its number, its text or its bytes.
const ALIKE: [&[u32]; 3] = [&[20, 21, 23], &[25, 1043], &[2950]];

fn keeps_value(operand: &Operand, wanted: u32, types: &[u32]) -> bool {
    let alike = ALIKE.iter().find(|types| types.contains(&wanted)).copied().unwrap_or_default();
    let is_alike = |oid: u32| alike.contains(&oid);
    let declared = |index: &u16| types.get(usize::from(*index)).copied().unwrap_or_default();
    let is_open = |oid| builtin_types::OPEN.contains(&oid);
    match operand {
        Operand::Const(_) => true,
        Operand::Param(index) => is_open(declared(index)) || is_alike(declared(index)),
        Operand::Element(index) => {
            let array = declared(index);
            is_open(array) || builtin_types::element_of(array).is_some_and(is_alike)
        }
        Operand::OneOf(operands) => operands.iter().all(|operand| keeps_value(operand, wanted, types)),
        // A number that is not an integer is no value of such a column, and is not read as one.
        Operand::Cast(inner, Some(builtin_types::NUMERIC))
            if ValueForm::of_type(wanted) == ValueForm::Integer =>
        {
            matches!(**inner, Operand::Const(_))
        }
        Operand::Cast(inner, oid) => oid.is_some_and(is_alike) && keeps_value(inner, wanted, types),
        Operand::Unnested(_)
        | Operand::Rows(_)
        | Operand::Null
        | Operand::Default
        | Operand::All
        | Operand::Expression => false,
    }
}

/// The parameters whose elements become rows. Each must be known to be an array of a type with one column: PostgreSQL's own
/// function also takes arrays of rows and types that are no arrays.
pub(crate) fn arrays(candidate: &Candidate, types: &[u32]) -> Result<Box<[u16]>, Reason> {
    let arrays = candidate.insert.iter().flat_map(|insert| insert.arrays.iter().flatten());
    let is_known = |array: &ArrayParam| {
        let declared = types.get(usize::from(array.index)).copied().unwrap_or_default();
        array.is_cast || builtin_types::element_of(declared).is_some()
    };
    let known = arrays.map(|array| is_known(array).then_some(array.index)).collect::<Option<_>>();
    known.ok_or(Reason::Unsupported("unnest of a parameter whose type is not known to be an array"))
}

/// A key over these columns, if each of them has a parameter or a constant.
fn key_over(
    table: &TableFacts,
    columns: &[String],
    value: impl Fn(&String) -> Option<Operand>,
) -> Option<KeySpec> {
    if columns.is_empty() {
        return None;
    }
    let columns = columns.iter().map(|name| {
        let column = table.column(name)?;
        let source = source(value(name)?)?;
        Some(key_column(column, source))
    });
    Some(KeySpec { table: table.oid, columns: columns.collect::<Option<_>>()? })
}

fn key_column(column: &Column, source: KeySource) -> KeyColumn {
    let form = ValueForm::of_type(column.type_oid);
    KeyColumn { name: column.name.clone(), attnum: column.attnum, form, source }
}

fn source(operand: Operand) -> Option<KeySource> {
    Some(match operand {
        Operand::Param(index) => KeySource::Param(index),
        Operand::Const(text) => KeySource::Const(text),
        Operand::OneOf(operands) => {
            KeySource::OneOf(operands.into_iter().map(source).collect::<Option<_>>()?)
        }
        Operand::Element(index) => KeySource::Element(index),
        Operand::Cast(operand, _) => source(*operand)?,
        Operand::Unnested(index) => KeySource::Unnested(index),
        Operand::Rows(operands) => KeySource::Each(operands.into_iter().map(of_row).collect::<Option<_>>()?),
        Operand::Null | Operand::Default | Operand::All | Operand::Expression => return None,
    })
}

/// The value of one of several rows.
fn of_row(operand: Operand) -> Option<Option<KeySource>> {
    if operand == Operand::Null { Some(None) } else { source(operand).map(Some) }
}

/// Bounds for the number of versions of one row that one commit can leave in a heap page.
const LEAST_ROWS_PER_COMMIT: u16 = 16;
pub(crate) const MOST_ROWS_PER_COMMIT: u16 = 128;

/// Number of versions of one row that fit a heap page with a fifth to spare. With more versions, the updates
/// leave the page.
pub(crate) fn rows_per_commit(table: &TableFacts) -> u16 {
    const PAGE_BYTES: u64 = 8160 * 8 / 10;
    const TUPLE_HEADER_AND_POINTER_BYTES: u64 = 28 + 4;
    let width: u64 = table.columns.iter().map(|column| u64::from(column.avg_width)).sum();
    let rows = PAGE_BYTES / (TUPLE_HEADER_AND_POINTER_BYTES + width.next_multiple_of(8));
    u16::try_from(rows).unwrap_or(u16::MAX).clamp(LEAST_ROWS_PER_COMMIT, MOST_ROWS_PER_COMMIT)
}

impl TableFacts {
    /// Unique indexes, the primary key first, then by name. Every gateway therefore prefers the same index.
    fn indexes_by_preference(&self) -> impl Iterator<Item = &Index> {
        let mut indexes: Vec<&Index> = self.unique_indexes.iter().collect();
        indexes.sort_by_key(|index| (!index.primary, &index.name));
        indexes.into_iter()
    }
}
