//! The facts from the catalog that a packed statement relies on, and the statement with which every batch
//! checks them. This module does not query the server.
//!
//! If a table that a prepared statement mentions changes, PostgreSQL analyses the statement again. It keeps
//! the parameter types but uses the new triggers and defaults. For each table, a batch therefore ends with a
//! statement that mentions the same table. It contains the literal `timestamptz 'now'`, whose value is fixed
//! when the statement is analysed. While that value equals the value that the lane knows, the table has not
//! changed. The check does not access the catalog.

use std::fmt::Write;

use crate::classify::facts::TableFacts;
use crate::classify::text::names::TableName;

/// A table or view that a statement names, as the gateway understood the statement.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Watch {
    /// The name as the statement writes it, quoted.
    pub name: String,
    /// The OID that the name meant.
    pub oid: u32,
    /// The catalog state for which the decision was made.
    pub fingerprint: String,
    /// The functions of its triggers, quoted, if the client's role can name them.
    pub trigger_functions: Vec<String>,
    /// The OIDs of its partitions. For a view, also those of the relations below it.
    pub parts: Vec<u32>,
}

impl Watch {
    pub(crate) fn new(name: &TableName, table: &TableFacts) -> Self {
        let mut above = table.views.iter().map(|view| view.oid).chain([table.oid]);
        let oid = above.next().unwrap_or(table.oid);
        Watch {
            name: name.to_regclass(),
            oid,
            fingerprint: table.fingerprint.clone(),
            trigger_functions: table.trigger_functions.clone(),
            parts: above.chain(table.partitions.iter().copied()).collect(),
        }
    }
}

/// The statement that ends a batch, for one of its tables, or none. It returns the transaction's ID (NULL if nothing was
/// written) and the time of its analysis. `$1` is the time of analysis that the lane relies on, or NULL. If the time differs,
/// or a name means another table, the statement divides by zero and the batch is rolled back.
///
/// The ID arrives before the commit begins. After a lost connection, the gateway can ask the server about it.
/// The lane's mark, if there is one, is set to the ID plus `$2`, the secret number of the lane's connection, unless `$2` is
/// NULL. The number is a parameter because the server shows the text of statements to other sessions of the same role.
///
/// If the statements use distributed tables, `$3` is the array of the shards that the batch has changed. The batch is also
/// rolled back if one of them is on another node by now: the transaction would not end where the ID belongs. Citus locks
/// the shards' placements until the commit, so none of them moves after this statement.
pub fn end_of_batch(watch: Option<&Watch>, mark: Option<&str>, is_distributed: bool) -> String {
    let id = "pg_catalog.pg_current_xact_id_if_assigned()";
    // The function is strict: if nothing was written, or there is no number, nothing is set.
    let id = match mark {
        Some(mark) => {
            let mark = mark.replace('\'', "''");
            format!(
                "pg_catalog.setval('{mark}'::pg_catalog.regclass, \
                 {id}::pg_catalog.text::pg_catalog.int8 operator(pg_catalog.+) $2) operator(pg_catalog.-) $2"
            )
        }
        None => id.to_owned(),
    };
    let analysed = "pg_catalog.timestamptz 'now'";
    let mut names = String::new();
    let mut mentions = String::new();
    if let Some(watch) = watch {
        let name = watch.name.replace('\'', "''");
        write!(
            names,
            " and pg_catalog.to_regclass('{name}') operator(pg_catalog.=) '{}'::pg_catalog.regclass",
            watch.oid
        )
        .expect("writing to a string does not fail");
        for function in &watch.trigger_functions {
            write!(mentions, " or {function}() is null").expect("writing to a string does not fail");
        }
        for oid in &watch.parts {
            write!(mentions, " or '{oid}'::pg_catalog.regclass is null")
                .expect("writing to a string does not fail");
        }
    }
    let placements = if is_distributed { PLACEMENTS } else { "" };
    // The functions are never called. The planner removes a branch that cannot be reached, but the server
    // records that the statement depends on them and on the parts.
    format!(
        "select {id}, {analysed}, \
         1 operator(pg_catalog./) case when ($1 is null or {analysed} operator(pg_catalog.=) $1){names}{placements} \
         then 1 else 0 end, case when false then false{mentions} end"
    )
}

/// Whether this node has all shards of `$3`.
const PLACEMENTS: &str = " and (select pg_catalog.count(*) from pg_catalog.pg_dist_placement p \
    join pg_catalog.pg_dist_local_group g on g.groupid operator(pg_catalog.=) p.groupid \
    where p.shardid operator(pg_catalog.=) any ($3) and p.shardstate operator(pg_catalog.=) 1) \
    operator(pg_catalog.=) pg_catalog.cardinality($3)";

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(name: &str, oid: u32, trigger_functions: &[&str]) -> Watch {
        let trigger_functions = trigger_functions.iter().map(|&name| name.to_owned()).collect();
        let parts = if oid == 16_500 { vec![16_501, 16_502] } else { Vec::new() };
        Watch { name: name.to_owned(), oid, fingerprint: String::new(), trigger_functions, parts }
    }

    #[test]
    fn the_end_of_a_batch_mentions_the_table_its_trigger_functions_and_partitions() {
        let end = |watch: Watch| end_of_batch(Some(&watch), None, false);
        let analysed = "select pg_catalog.pg_current_xact_id_if_assigned(), pg_catalog.timestamptz 'now', \
             1 operator(pg_catalog./) case when ($1 is null or pg_catalog.timestamptz 'now' operator(pg_catalog.=) $1)";
        assert_eq!(
            end(watch("\"it's\"", 16_400, &["s.f", "s.g"])),
            format!(
                "{analysed} and pg_catalog.to_regclass('\"it''s\"') operator(pg_catalog.=) '16400'::pg_catalog.regclass \
                 then 1 else 0 end, case when false then false or s.f() is null or s.g() is null end"
            )
        );
        assert_eq!(
            end(watch("\"a\".\"b\"", 16_500, &[])),
            format!(
                "{analysed} and pg_catalog.to_regclass('\"a\".\"b\"') operator(pg_catalog.=) '16500'::pg_catalog.regclass \
                 then 1 else 0 end, case when false then false or '16501'::pg_catalog.regclass is null \
                 or '16502'::pg_catalog.regclass is null end"
            )
        );
    }

    #[test]
    fn the_text_of_a_batchs_end_has_the_mark_and_not_the_connections_number() {
        let end = end_of_batch(None, Some("hotrow.mark_7"), false);
        assert!(
            end.starts_with(
                "select pg_catalog.setval('hotrow.mark_7'::pg_catalog.regclass, \
                 pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text::pg_catalog.int8 operator(pg_catalog.+) $2) \
                 operator(pg_catalog.-) $2, "
            ),
            "{end}"
        );
    }
}
