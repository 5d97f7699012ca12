//! The questions to a server for the facts about a table, with the table's name in them, and the facts that the answers have.

use crate::table::{ColumnType, Table};

/// The columns, the columns of the unique keys, and the definition, each with places for the table's name.
const COLUMNS: &str = include_str!("../sql/columns.sql");
const KEYS: &str = include_str!("../sql/keys.sql");
const DEFINITION: &str = include_str!("../sql/definition.sql");

/// The longest row of a table that a lane reads.
const ROW_BYTES_MAX: usize = 32 << 10;

/// The rows of an answer.
pub type Rows = Vec<Vec<Option<String>>>;

/// What has to be asked about a table.
#[derive(Debug)]
pub struct Questions {
    /// Its definition, by the routine that [`Table`] compares with.
    pub by_routine: String,
    /// The same without routines.
    pub definition: String,
    pub columns: String,
    pub keys: String,
}

impl Questions {
    /// The questions about a table.
    pub fn about(database: &str, table: &str) -> Self {
        let (database, table) = (literal(database), literal(table));
        let fill = |sql: &str| sql.replace("{database}", &database).replace("{table}", &table);
        Questions {
            by_routine: fill("select hotrow.definition({database}, {table})"),
            definition: fill(DEFINITION),
            columns: fill(COLUMNS),
            keys: fill(KEYS),
        }
    }
}

/// The facts in the answers.
pub fn facts(definition: String, columns: Rows, keys: &Rows) -> Table {
    let generated = columns.iter().find(|row| row.get(2).is_some_and(|is| is.as_deref() == Some("1")));
    let generated = generated.and_then(|row| row[0].clone());
    let bytes = columns.iter().map(|row| row.get(3)?.as_ref()?.parse::<usize>().ok());
    let bytes = bytes.sum::<Option<usize>>();
    let columns = columns.into_iter().filter_map(|row| match row.as_slice() {
        [Some(name), Some(kind), ..] => Some((name.clone(), ColumnType::of(kind))),
        _ => None,
    });
    let columns = columns.collect();
    let mut found: Vec<(&str, Vec<(String, ColumnType)>)> = Vec::new();
    for row in keys {
        let [Some(index), Some(column), Some(kind)] = row.as_slice() else { continue };
        let kind = ColumnType::of(kind);
        match found.iter_mut().find(|(name, _)| name == index) {
            Some((_, columns)) => columns.push((column.clone(), kind)),
            None => found.push((index, vec![(column.clone(), kind)])),
        }
    }
    let has_short_rows =
        bytes.is_some_and(|bytes| bytes <= ROW_BYTES_MAX) && found.iter().any(|(name, _)| *name == "PRIMARY");
    let keys = found.into_iter().map(|(_, columns)| columns).collect();
    Table { definition, columns, generated, keys, has_short_rows }
}

/// A name in backticks.
pub fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A name as a literal in every `sql_mode`.
pub fn literal(name: &str) -> String {
    let hex: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("convert(x'{hex}' using utf8mb4)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_an_index_are_one_key() {
        let row = |values: &[&str]| values.iter().map(|value| Some((*value).to_owned())).collect::<Vec<_>>();
        let columns = vec![row(&["id", "integer", "1", "70"]), row(&["name", "text", "0", "400"])];
        let keys = vec![
            row(&["PRIMARY", "id", "integer"]),
            row(&["u", "name", "text"]),
            row(&["u", "id", "integer"]),
        ];
        let table = facts("x".to_owned(), columns.clone(), &keys);
        assert_eq!(table.generated.as_deref(), Some("id"));
        let names: Vec<Vec<&str>> =
            table.keys.iter().map(|key| key.iter().map(|(name, _)| name.as_str()).collect()).collect();
        assert_eq!(names, [vec!["id"], vec!["name", "id"]]);
        assert!(table.has_short_rows);
        assert!(
            !facts(String::new(), columns.clone(), &keys[1..].to_vec()).has_short_rows,
            "it has no primary key"
        );
        let long = row(&["note", "other", "0", "65535"]);
        assert!(!facts(String::new(), [columns, vec![long]].concat(), &keys).has_short_rows);
    }

    #[test]
    fn names_cannot_leave_their_literal() {
        let questions = Questions::about("a'b", "{table}");
        assert!(questions.columns.contains("table_schema = convert(x'612762' using utf8mb4)"));
        assert!(questions.keys.contains("convert(x'7b7461626c657d' using utf8mb4)"), "{}", questions.keys);
        assert!(
            questions.by_routine.starts_with("select hotrow.definition(convert(x'612762' using utf8mb4), ")
        );
    }
}
