//! Tables by their names: those of the setting `unpacked_tables`.

use crate::console::name_list;

/// Names of tables, and of functions with merge rules: `schema.table`, or `table` for one in any schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableList(Vec<String>);

impl TableList {
    /// Names separated by commas, each as the catalog has it.
    pub fn read(text: &str) -> Self {
        TableList(name_list(text))
    }

    /// Whether it names this table, which is given with its schema.
    pub fn has(&self, table: &str) -> bool {
        let is_same = |name: &String| {
            let before = table.strip_suffix(name.as_str());
            before.is_some_and(|schema| schema.is_empty() || schema.ends_with('.'))
        };
        self.0.iter().any(is_same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_or_without_schema_means_a_table() {
        let list = TableList::read(" shop.orders, stock ,,");
        for (table, expected) in [
            ("shop.orders", true),
            ("shop.stock", true),
            ("public.stock", true),
            ("public.orders", false),
            ("shop.livestock", false),
            ("shop.stock2", false),
            ("", false),
        ] {
            assert_eq!(list.has(table), expected, "{table}");
        }
        assert!(!TableList::read("").has("public.stock"));
    }
}
