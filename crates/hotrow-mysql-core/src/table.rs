//! The facts about a table, and which statements on it can be packed by which key. No I/O.

use std::hash::Hasher;

use hotrow_lane::key::{Key, RowHasher, hash_of};
use hotrow_lane::limits::UNIT_ROWS_MAX;

use crate::reader::{ALL, Equals, Kind, Literal, Statement};

/// What a column has: how its values are written, and whether a lane can return them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Integer,
    Text,
    /// A value of another type: such a key is not used, and such a column is not returned.
    Other,
}

impl ColumnType {
    /// The type with this name in the questions for facts.
    pub fn of(name: &str) -> Self {
        match name {
            "integer" => ColumnType::Integer,
            "text" => ColumnType::Text,
            _ => ColumnType::Other,
        }
    }
}

/// The most values that a lane returns. With more, or with long texts, its answers could be large.
const RETURNED_MAX: usize = 64;

/// The facts about a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What `hotrow.definition` says.
    pub definition: String,
    /// The columns, in lower case. Long texts are of the other type.
    pub columns: Vec<(String, ColumnType)>,
    /// The column that gets generated numbers.
    pub generated: Option<String>,
    /// The unique indexes: their columns, in lower case, each with its type.
    pub keys: Vec<Vec<(String, ColumnType)>>,
    /// Whether it has a primary key, and a lane can read a whole row.
    pub has_short_rows: bool,
}

/// The definition of tables on which statements can be packed: InnoDB, no view, no versions, without triggers, and without
/// expressions that could see the session. The third part says whether a column has generated numbers.
const PACKABLE: [&str; 2] = ["InnoDB:BASE TABLE:0:0:0", "InnoDB:BASE TABLE:1:0:0"];
const WITH_GENERATED_NUMBERS: &str = PACKABLE[1];

impl Table {
    /// Whether a statement on it runs nothing but itself: no view, and no trigger.
    pub fn calls_nothing(&self) -> bool {
        let parts: Vec<&str> = self.definition.split(':').collect();
        matches!(parts[..], ["InnoDB" | "Aria" | "MyISAM", "BASE TABLE" | "SYSTEM VERSIONED", _, "0", _, _])
    }

    /// The type of a column. None if there is no such column.
    fn column(&self, name: &str) -> Option<ColumnType> {
        let mut columns = self.columns.iter().filter(|(column, _)| column.eq_ignore_ascii_case(name));
        columns.next().map(|(_, kind)| *kind)
    }

    /// Whether a lane can return these columns of this number of rows. One of them can be a star.
    fn returns(&self, columns: &[&str], rows: usize) -> bool {
        let is_short = |kind: ColumnType| kind != ColumnType::Other;
        let count = columns.iter().map(|name| if *name == ALL { self.columns.len() } else { 1 });
        rows * count.sum::<usize>() <= RETURNED_MAX
            && columns.iter().all(|name| match *name {
                ALL => self.columns.iter().all(|(_, kind)| is_short(*kind)),
                name => self.column(name).is_some_and(is_short),
            })
    }

    /// Whether a statement warns of nothing in strict mode, so that it leaves its error alone if it fails.
    pub fn never_warns(&self, statement: &Statement<'_>) -> bool {
        let is_integer = |name: &&str| self.column(name) == Some(ColumnType::Integer);
        statement.is_integral && statement.columns.iter().all(is_integer)
    }

    /// Whether an INSERT gives all numbers that could be generated. Only then it leaves LAST_INSERT_ID() as it is.
    fn generates_nothing(&self, statement: &Statement<'_>) -> bool {
        let Some(generated) = &self.generated else { return false };
        let is_it = |name: &str| name.eq_ignore_ascii_case(generated);
        // Zero stands for the next number.
        let gives = |row: &Equals<'_>| {
            row.iter().any(|(name, value)| {
                is_it(name)
                    && matches!(value, Literal::Integer(digits) if digits.bytes().any(|digit| digit != b'0'))
            })
        };
        statement.rows.iter().all(gives) && !statement.assigned.iter().any(|name| is_it(name))
    }

    /// The keys by which a statement can be packed, of all its rows. None if it has to be passed through.
    pub fn keys(&self, number: u32, statement: &Statement<'_>) -> Option<Vec<Key>> {
        let (form, _) = self.definition.rsplit_once(':').filter(|(form, _)| PACKABLE.contains(form))?;
        let inserts = matches!(statement.kind, Kind::Insert | Kind::Replace);
        if inserts && form == WITH_GENERATED_NUMBERS && !self.generates_nothing(statement) {
            return None;
        }
        let rows = statement.rows.len();
        // REPLACE of many rows could delete more than `hotrow.restored` has.
        let rows_max = if statement.kind == Kind::Replace { 1 } else { UNIT_ROWS_MAX };
        if rows > rows_max || !self.returns(&statement.returned, rows) {
            return None;
        }
        if !statement.columns.iter().all(|name| self.column(name).is_some()) {
            return None;
        }
        let of_row = |row| self.keys.iter().find_map(|columns| hash(columns, row));
        let keys = statement.rows.iter().map(|row| Some(Key { table: number, hash: of_row(row)? }));
        let keys: Option<Vec<Key>> = keys.collect();
        let is_key =
            |name: &&str| self.keys.iter().flatten().any(|(column, _)| column.eq_ignore_ascii_case(name));
        if statement.assigned.iter().any(is_key) {
            return None;
        }
        keys
    }
}

/// The hash of a key's values, if the statement gives all of them in the form of their type. Equal rows have equal hashes unless a
/// collation says otherwise, which costs time only.
fn hash(columns: &[(String, ColumnType)], equals: &[(&str, Literal<'_>)]) -> Option<u64> {
    let mut hasher = RowHasher::default();
    for (column, kind) in columns {
        let mut values = equals.iter().filter(|(name, _)| name.eq_ignore_ascii_case(column));
        match (kind, &values.next()?.1) {
            (ColumnType::Integer, Literal::Integer(digits)) => {
                hasher.part(1, digits.trim_start_matches('0').as_bytes());
            }
            (ColumnType::Text, Literal::Text(text)) => {
                hasher.part(2, text.trim_end_matches(' ').to_ascii_lowercase().as_bytes());
            }
            _ => return None,
        }
    }
    Some(hasher.finish())
}

/// A number for a table, on which gateways agree.
pub fn number(database: &str, table: &str) -> u32 {
    let hash = hash_of(format!("{database}\0{table}").as_bytes());
    u32::try_from(hash >> 32).expect("32 bits are left")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::read;

    fn table(definition: &str) -> Table {
        let text = |name: &str| (name.to_owned(), ColumnType::Text);
        let keys = vec![vec![("id".to_owned(), ColumnType::Integer)], vec![text("a"), text("b")]];
        let columns = [
            ("id", ColumnType::Integer),
            ("a", ColumnType::Text),
            ("b", ColumnType::Text),
            ("n", ColumnType::Integer),
        ]
        .map(|(name, kind)| (name.to_owned(), kind))
        .to_vec();
        let (definition, generated) = (format!("{definition}:1234"), Some("id".to_owned()));
        Table { definition, columns, generated, keys, has_short_rows: true }
    }

    #[test]
    fn a_whole_unique_key_in_the_form_of_its_type_is_needed() {
        let table = table(PACKABLE[0]);
        let key = |sql: &str| table.keys(1, &read(sql).unwrap());
        let seven = key("update t set n = n + 1 where id = 7");
        assert!(seven.is_some());
        assert_eq!(seven, key("delete from T where ID = 007 and n > 1"));
        assert_ne!(seven, key("delete from t where id = 8"));
        assert_eq!(
            key("delete from t where a = 'X ' and b = 'y'"),
            key("delete from t where b = 'y' and a = 'x'")
        );
        for sql in [
            "update t set n = 1 where id = '7'",
            "update t set n = 1 where a = 'x'",
            "update t set n = 1 where id > 7",
            "update t set n = x where id = 7",
            "update t set a = 'x' where id = 7",
            "update t set id = 8 where id = 7",
            "insert into t (n) values (1)",
        ] {
            assert_eq!(key(sql), None, "{sql}");
        }
        assert_eq!(
            key("insert into t (id, n) values (7, 2), (8, 3), (7, 4)").map(|keys| keys.len()),
            Some(3)
        );
        assert!(key("insert into t (id, n) values (7, 2), (n, 3)").is_none());
        assert!(key("replace into t (id, n) values (7, 2), (8, 3)").is_none());
        let many = |rows: usize| format!("insert into t (id, n) values {}", vec!["(1, 2)"; rows].join(","));
        assert!(key(&many(UNIT_ROWS_MAX)).is_some() && key(&many(UNIT_ROWS_MAX + 1)).is_none());
        assert!(key(&(many(16) + " returning *")).is_some() && key(&(many(17) + " returning *")).is_none());
        assert!(key("insert into t (id, n) values (1, 2) on duplicate key update n = values(n)").is_some());
    }

    #[test]
    fn statements_with_integers_only_do_not_warn() {
        let table = table(PACKABLE[0]);
        for (sql, never_warns) in [
            ("update t set n = n - 1 where id = 7 and N >= 1", true),
            ("update t set n = 1.5 where id = 7", false),
            ("update t set a = 1 where id = 7", false),
            ("update t set x = 1 where id = 7", false),
        ] {
            assert_eq!(table.never_warns(&read(sql).unwrap()), never_warns, "{sql}");
        }
    }

    #[test]
    fn tables_that_are_not_plain_are_passed_through() {
        let key = |definition: &str, sql: &str| table(definition).keys(1, &read(sql).unwrap());
        let (update, insert) = ("update t set n = 1 where id = 7", "insert into t (id, n) values (1, 2)");
        assert!(key("InnoDB:BASE TABLE:1:0:0", update).is_some());
        for (insert, is_packed) in [
            (insert, true),
            ("insert into t (id, n) values (01, 2), (2, 0)", true),
            ("insert into t (id, n) values (1, 2), (00, 2)", false),
            ("insert into t (id, n, a, b) values (-1, 2, 'x', 'y')", false),
            ("insert into t (id, n, a, b) values (null, 2, 'x', 'y')", false),
            ("insert into t (n, a, b) values (2, 'x', 'y')", false),
            ("replace into t (n, a, b) values (2, 'x', 'y')", false),
            ("update t set n = 2 where a = 'x' and b = 'y'", true),
        ] {
            assert_eq!(key("InnoDB:BASE TABLE:1:0:0", insert).is_some(), is_packed, "{insert}");
        }
        for (other, calls_nothing) in [
            ("MyISAM:BASE TABLE:0:0:0", true),
            ("InnoDB:SYSTEM VERSIONED:0:0:0", true),
            ("InnoDB:BASE TABLE:0:0:1", true),
            ("InnoDB:BASE TABLE:0:1:0", false),
            ("PERFORMANCE_SCHEMA:BASE TABLE:0:0:0", false),
            ("VIEW:0:0:0", false),
            ("", false),
        ] {
            assert!(key(other, update).is_none(), "{other}");
            assert_eq!(table(other).calls_nothing(), calls_nothing, "{other}");
        }
    }
}
