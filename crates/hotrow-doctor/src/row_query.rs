//! The statement that reads rows of one table. Its text contains names that users of the server have chosen.

use hotrow_core::untrusted;

use crate::recording::Table;

/// A statement's text is written once, from pieces of `rows.sql` and from names. The contents of a name are not
/// read again, so a name that looks like a placeholder stays a name.
const ROWS: &str = include_str!("../sql/rows.sql");

/// A name as SQL needs it. Only `Name::new` makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name(String);

impl Name {
    /// `None` if the name has a character that a statement should not contain, even in quotes: a line break, another
    /// control character, or one that changes the direction of text.
    fn new(name: &str) -> Option<Self> {
        let is_plain = !name.is_empty() && untrusted::visible(name) == name;
        is_plain.then(|| Self(untrusted::identifier(name)))
    }
}

/// The statement that reads rows of a table. `None` if a name cannot be written into a statement.
pub fn row_query(table: &Table) -> Option<String> {
    let (Name(schema), Name(name)) = (Name::new(&table.schema)?, Name::new(&table.name)?);
    let columns = table.key_columns().into_iter().map(Name::new).collect::<Option<Vec<_>>>()?;
    let values =
        columns.iter().map(|Name(name)| format!("pg_catalog.left(pg_catalog.concat(t.{name}), 100)"));
    let key = format!("array[{}]::pg_catalog.text[]", values.collect::<Vec<_>>().join(", "));
    let mut text = String::new();
    let mut pieces = ROWS.split('{');
    text.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (placeholder, after) = piece.split_once('}').unwrap_or((piece, ""));
        match placeholder {
            "key" => text.push_str(&key),
            _ => text.extend([&schema, ".", &name]),
        }
        text.push_str(after);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::UniqueKey;

    fn table(name: &str, columns: &[&str]) -> Table {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Table {
            schema: "public".into(),
            name: name.into(),
            keys: vec![UniqueKey { columns }],
            ..Table::default()
        }
    }

    #[test]
    fn a_name_that_looks_like_sql_or_a_placeholder_stays_a_name() {
        let plain = row_query(&table("item", &["id"])).unwrap();
        assert_eq!(plain.matches(r#"from only "public"."item" t"#).count(), 2, "{plain}");
        assert_eq!(plain.matches(r#"array[pg_catalog.left(pg_catalog.concat(t."id"), 100)]"#).count(), 2);
        let odd = [
            "{table}",
            "{key}",
            "TABLE_NAME",
            "/*",
            "--",
            "$$",
            "'",
            "\\",
            "}",
            "{",
            r#""),9),evil()] as key--""#,
        ];
        for odd in odd {
            // Without its quoted name, the text is that of any other table.
            let quoted = untrusted::identifier(odd);
            let expected = row_query(&table("item", &["item", "id"])).unwrap().replace(r#""item""#, &quoted);
            assert_eq!(row_query(&table(odd, &[odd, "id"])), Some(expected));
        }
    }

    #[test]
    fn a_name_with_control_characters_is_in_no_statement() {
        for odd in ["a\nb", "a\rb", "a\0b", "a\u{1b}b", "a\u{85}b", "a\u{2028}b", "a\u{202e}b", ""] {
            assert_eq!(row_query(&table(odd, &["id"])), None, "{odd:?}");
            assert_eq!(row_query(&table("item", &["id", odd])), None, "{odd:?}");
        }
    }

    #[test]
    fn only_the_four_places_outside_of_comments_are_filled() {
        let filled = ROWS.lines().filter(|line| line.contains(['{', '}']));
        let places: usize =
            filled.map(|line| line.matches('{').count() * usize::from(!line.contains("--"))).sum();
        assert_eq!((places, ROWS.matches('{').count(), ROWS.matches('}').count()), (4, 4, 4));
    }
}
