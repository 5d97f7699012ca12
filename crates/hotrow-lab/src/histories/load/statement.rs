//! The statements of the load: their texts, and the operations that their answers show.

use crate::histories::history::{Key, Op, Value};

/// The tables, each with this many rows.
pub fn tables(rows: u64) -> String {
    format!(
        "create table list (k bigint primary key, v bigint[] not null);
        insert into list select k, '{{}}' from generate_series(1, {rows}) k;
        create table register (k bigint primary key, v bigint);
        insert into register select k, null from generate_series(1, {rows}) k;
        analyze list; analyze register"
    )
}

/// An append to two lists appends a value for each, whose last digits are the list's number.
pub const VALUES_PER_APPEND: Value = 1_000_000;

/// One statement. Values are multiples of [`VALUES_PER_APPEND`].
#[derive(Clone, Debug)]
pub enum Statement {
    Append(Key, Value),
    /// The same with RETURNING, which reads the new list.
    AppendAndRead(Key, Value),
    /// The same by INSERT with ON CONFLICT.
    Upsert(Key, Value),
    /// One UPDATE of two lists.
    AppendToTwo([Key; 2], Value),
    Read(Key),
    /// The same with FOR UPDATE.
    LockAndRead(Key),
    /// One SELECT of two lists.
    ReadTwo([Key; 2]),
    Write(Key, Value),
    Get(Key),
}

impl Statement {
    /// The text with parameters, and their values.
    pub fn sql(&self) -> (&'static str, Vec<u64>) {
        match *self {
            Self::Append(key, value) => {
                ("update list set v = v || $1::bigint where k = $2", vec![value, key])
            }
            Self::AppendAndRead(key, value) => {
                ("update list set v = v || $1::bigint where k = $2 returning v", vec![value, key])
            }
            Self::Upsert(key, value) => (
                "insert into list (k, v) values ($2, array[$1::bigint]) on conflict (k) do update set v = list.v || excluded.v",
                vec![value, key],
            ),
            Self::AppendToTwo([one, other], value) => {
                ("update list set v = v || ($1::bigint + k) where k in ($2, $3)", vec![value, one, other])
            }
            Self::Read(key) => ("select v from list where k = $1", vec![key]),
            Self::LockAndRead(key) => ("select v from list where k = $1 for update", vec![key]),
            Self::ReadTwo([one, other]) => ("select k, v from list where k in ($1, $2)", vec![one, other]),
            Self::Write(key, value) => ("update register set v = $1 where k = $2", vec![value, key]),
            Self::Get(key) => ("select v from register where k = $1", vec![key]),
        }
    }

    /// The text with literals.
    pub fn text(&self) -> String {
        let (sql, values) = self.sql();
        let numbered = values.iter().zip(1..);
        numbered.fold(sql.to_owned(), |sql, (value, at)| sql.replace(&format!("${at}"), &value.to_string()))
    }

    /// The row that it locks first, if any: whether it is a register, and its number.
    pub fn locks(&self) -> Option<(bool, Key)> {
        match *self {
            Self::Append(key, _)
            | Self::AppendAndRead(key, _)
            | Self::Upsert(key, _)
            | Self::LockAndRead(key) => Some((false, key)),
            Self::AppendToTwo([one, other], _) => Some((false, one.min(other))),
            Self::Write(key, _) => Some((true, key)),
            Self::Read(_) | Self::ReadTwo(_) | Self::Get(_) => None,
        }
    }

    /// The operations that are known without an answer: the writes.
    pub fn writes(&self) -> Vec<Op> {
        match *self {
            Self::Append(key, value) | Self::AppendAndRead(key, value) | Self::Upsert(key, value) => {
                vec![Op::Append(key, value)]
            }
            Self::AppendToTwo(keys, value) => keys.map(|key| Op::Append(key, value + key)).to_vec(),
            Self::Write(key, value) => vec![Op::Write(key, value)],
            Self::Read(_) | Self::LockAndRead(_) | Self::ReadTwo(_) | Self::Get(_) => Vec::new(),
        }
    }

    /// The operations that an answer shows. The error says what an answer should have been.
    pub fn answered(&self, rows: &[Vec<Option<String>>], tag: &str) -> Result<Vec<Op>, String> {
        let mut ops = self.writes();
        let expected = match self {
            Self::Append(..) | Self::Write(..) => ("UPDATE 1", 0),
            Self::AppendAndRead(..) => ("UPDATE 1", 1),
            Self::Upsert(..) => ("INSERT 0 1", 0),
            Self::AppendToTwo(..) => ("UPDATE 2", 0),
            Self::Read(_) | Self::LockAndRead(_) | Self::Get(_) => ("SELECT 1", 1),
            Self::ReadTwo(_) => ("SELECT 2", 2),
        };
        let wrong = || format!("{self:?} was answered with {tag} and the rows {rows:?}");
        if expected != (tag, rows.len()) {
            return Err(wrong());
        }
        for row in rows {
            let op = match self {
                Self::Get(key) => number(row.first()).map(|value| Op::Get(*key, value)),
                Self::ReadTwo(_) => number(row.first())
                    .flatten()
                    .and_then(|key| Some(Op::Read(key, list(row.get(1)?.as_deref()?)?))),
                Self::AppendAndRead(key, _) | Self::Read(key) | Self::LockAndRead(key) => {
                    row.first().and_then(|list_text| Some(Op::Read(*key, list(list_text.as_deref()?)?)))
                }
                _ => None,
            };
            ops.push(op.ok_or_else(wrong)?);
        }
        Ok(ops)
    }
}

/// A number or NULL. `None` if it is neither.
fn number(text: Option<&Option<String>>) -> Option<Option<u64>> {
    match text? {
        Some(text) => text.parse().ok().map(Some),
        None => Some(None),
    }
}

/// An array such as `{1,2}`.
fn list(text: &str) -> Option<Vec<u64>> {
    let inside = text.strip_prefix('{')?.strip_suffix('}')?;
    inside.split(',').filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_values_in_the_place_of_parameters() {
        let text = Statement::AppendToTwo([3, 4], 7_000_000).text();
        assert_eq!(text, "update list set v = v || (7000000::bigint + k) where k in (3, 4)");
    }

    #[test]
    fn answers_become_operations() {
        let row = |values: &[&str]| values.iter().map(|value| Some((*value).to_owned())).collect::<Vec<_>>();
        let read = Statement::AppendAndRead(3, 9).answered(&[row(&["{7,9}"])], "UPDATE 1");
        assert_eq!(read, Ok(vec![Op::Append(3, 9), Op::Read(3, vec![7, 9])]));
        let two = Statement::ReadTwo([3, 4]).answered(&[row(&["4", "{}"]), row(&["3", "{1}"])], "SELECT 2");
        assert_eq!(two, Ok(vec![Op::Read(4, vec![]), Op::Read(3, vec![1])]));
        assert_eq!(Statement::Get(3).answered(&[vec![None]], "SELECT 1"), Ok(vec![Op::Get(3, None)]));
        assert!(Statement::Append(3, 9).answered(&[], "UPDATE 0").is_err());
        assert!(Statement::Get(3).answered(&[row(&["x"])], "SELECT 1").is_err());
    }
}
