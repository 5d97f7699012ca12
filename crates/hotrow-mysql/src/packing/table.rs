//! The facts about a table, and which statements on it can be packed by which key. No I/O.

use std::hash::Hasher;

use hotrow_lane::key::{Key, RowHasher, hash_of};

use crate::packing::reader::{Kind, Literal, Statement};

/// How the values of a key's column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    Integer,
    Text,
    /// A value of another type: such a key is not used.
    Other,
}

/// The facts about a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What `hotrow.definition` says.
    pub definition: String,
    /// The columns, in lower case.
    pub columns: Vec<String>,
    /// The unique indexes: their columns, in lower case, each with its type.
    pub keys: Vec<Vec<(String, KeyType)>>,
}

/// The definition of tables on which statements can be packed: InnoDB, no view, no versions, without triggers. The third part
/// says whether a column has generated numbers.
const PACKABLE: [&str; 2] = ["InnoDB:BASE TABLE:0:0", "InnoDB:BASE TABLE:1:0"];
const WITH_GENERATED_NUMBERS: &str = PACKABLE[1];

impl Table {
    /// Whether no trigger runs for its statements.
    pub fn has_no_triggers(&self) -> bool {
        self.definition.ends_with(":0")
    }

    /// The key by which a statement can be packed. None if it has to be passed through.
    pub fn key(&self, number: u32, statement: &Statement<'_>) -> Option<Key> {
        if !PACKABLE.contains(&self.definition.as_str()) {
            return None;
        }
        // LAST_INSERT_ID() has to be right afterwards.
        if statement.kind == Kind::Insert && self.definition == WITH_GENERATED_NUMBERS {
            return None;
        }
        let is_known = |name: &str| self.columns.contains(&name.to_ascii_lowercase());
        if !statement.columns.iter().all(|name| is_known(name)) {
            return None;
        }
        let key = self.keys.iter().find_map(|columns| hash(columns, &statement.equals))?;
        let is_key =
            |name: &&str| self.keys.iter().flatten().any(|(column, _)| column.eq_ignore_ascii_case(name));
        if statement.assigned.iter().any(is_key) {
            return None;
        }
        Some(Key { table: number, hash: key })
    }
}

/// The hash of a key's values, if the statement gives all of them in the form of their type. Equal rows have equal hashes unless a
/// collation says otherwise, which costs time only.
fn hash(columns: &[(String, KeyType)], equals: &[(&str, Literal<'_>)]) -> Option<u64> {
    let mut hasher = RowHasher::default();
    for (column, kind) in columns {
        let mut values = equals.iter().filter(|(name, _)| name.eq_ignore_ascii_case(column));
        match (kind, &values.next()?.1) {
            (KeyType::Integer, Literal::Integer(digits)) => {
                hasher.part(1, digits.trim_start_matches('0').as_bytes());
            }
            (KeyType::Text, Literal::Text(text)) => {
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
    use crate::packing::reader::read;

    fn table(definition: &str) -> Table {
        let text = |name: &str| (name.to_owned(), KeyType::Text);
        let keys = vec![vec![("id".to_owned(), KeyType::Integer)], vec![text("a"), text("b")]];
        let columns = ["id", "a", "b", "n"].map(str::to_owned).to_vec();
        Table { definition: definition.to_owned(), columns, keys }
    }

    #[test]
    fn a_whole_unique_key_in_the_form_of_its_type_is_needed() {
        let table = table(PACKABLE[0]);
        let key = |sql: &str| table.key(1, &read(sql).unwrap());
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
        assert!(key("insert into t (id, n) values (1, 2) on duplicate key update n = values(n)").is_some());
    }

    #[test]
    fn tables_that_are_not_plain_are_passed_through() {
        let key = |definition: &str, sql: &str| table(definition).key(1, &read(sql).unwrap());
        let (update, insert) = ("update t set n = 1 where id = 7", "insert into t (id, n) values (1, 2)");
        assert!(key("InnoDB:BASE TABLE:1:0", update).is_some());
        assert!(key("InnoDB:BASE TABLE:1:0", insert).is_none());
        for other in
            ["MyISAM:BASE TABLE:0:0", "InnoDB:SYSTEM VERSIONED:0:0", "InnoDB:BASE TABLE:0:1", "VIEW", ""]
        {
            assert!(key(other, update).is_none(), "{other}");
        }
    }
}
