//! The text of one shard of a distributed hotrow schema: the tables, views and functions of all areas in a schema of their own.
//! It is made from the migrations. This module asks no server.
//!
//! A function of a shard runs only on the node that has the shard. It names the tables there (`counter_102008`), not the
//! distributed table (`counter`), so PostgreSQL itself plans its statements, and it may use whatever PostgreSQL can do. The
//! rows of its variables have the type of the distributed table, because this type exists on every node.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::feeds::NOT_IN_A_SHARD;
use crate::migrations::{MIGRATIONS, Migration};
use crate::text::Pack;

/// The areas that a shard has. The manifests declare how each of their functions is distributed.
const AREAS: [&str; 4] = ["counters", "sales", "queues", "feeds"];

/// The functions that only a shard has.
const FEEDS: &str = include_str!("../../sql/citus/feed_shard.sql");

/// The migrations of the area `base` that these areas need.
const BASE: [&str; 2] = ["0001_settings", "0002_requests"];

/// The migrations that a shard has.
fn parts() -> impl Iterator<Item = &'static Migration> {
    MIGRATIONS.iter().filter(|migration| AREAS.contains(&migration.area) || BASE.contains(&migration.name))
}

/// The schema of a shard.
pub fn schema(shard: i32) -> String {
    format!("hotrow_shard_{shard}")
}

/// The names of tables and of their primary keys on the node, by their names in the migrations.
#[derive(Debug, Default)]
pub struct Names {
    pub tables: BTreeMap<String, String>,
}

/// Those of all migrations, which every shard has.
static STATEMENTS: LazyLock<Statements> = LazyLock::new(Statements::read);

/// Statements of the migrations by kind.
#[derive(Default)]
struct Statements {
    tables: String,
    views: String,
    functions: String,
}

impl Statements {
    fn read() -> Self {
        let mut all = Self::default();
        for migration in parts() {
            let text = migration.text(Pack::Many);
            let mut rest = text.as_ref();
            while let Some((place, ending, to)) = next(rest) {
                let (before, found) = rest.split_at(place);
                let end = found.find(ending).map_or(found.len(), |end| end + ending.len());
                all.tables.push_str(before);
                match to {
                    Kind::View => all.views.push_str(&found[..end]),
                    Kind::Function if NOT_IN_A_SHARD.contains(&function_name(found)) => {}
                    Kind::Function => all.functions.push_str(&found[..end]),
                    // All parts of the hotrow schema share it: an argument of a call has this type.
                    Kind::Shared => {}
                }
                rest = &found[end..];
            }
            all.tables.push_str(rest);
        }
        all.functions.push_str(FEEDS);
        all
    }
}

/// The next statement that is not about a table: its place, its ending and its kind.
fn next(text: &str) -> Option<(usize, &'static str, Kind)> {
    const CREATE: &str = "\ncreate ";
    let kinds = [
        ("function hotrow.", "\n$$;\n", Kind::Function),
        ("view hotrow.", ";\n", Kind::View),
        ("domain hotrow.", ";\n", Kind::Shared),
    ];
    text.match_indices(CREATE).find_map(|(place, _)| {
        let created = &text[place + CREATE.len()..];
        let (_, ending, kind) = kinds.into_iter().find(|(beginning, ..)| created.starts_with(beginning))?;
        Some((place, ending, kind))
    })
}

#[derive(Clone, Copy)]
enum Kind {
    View,
    Function,
    Shared,
}

/// The name of the function that a statement creates.
fn function_name(statement: &str) -> &str {
    let name = statement.trim_start().trim_start_matches("create function hotrow.");
    name.split('(').next().unwrap_or_default()
}

/// The schema and its tables. They are ordinary tables until Citus distributes the schema.
pub fn tables(shard: i32) -> String {
    let schema = schema(shard);
    let here = |text| rename(text, &schema, &Names::default());
    let gate = here(include_str!("../../sql/citus/gate.sql"));
    format!("create schema {schema};\n{}{gate}", here(&STATEMENTS.tables))
}

/// The views and functions, after Citus has distributed the tables. They replace those of an earlier run.
pub fn functions(shard: i32, names: &Names) -> String {
    let schema = schema(shard);
    let views = rename(&STATEMENTS.views, &schema, &Names::default());
    let functions = fill(&rename(&STATEMENTS.functions, &schema, names), &schema, names);
    format!(
        "set local check_function_bodies = off;\n{}{}",
        views.replace("\ncreate view ", "\ncreate or replace view "),
        functions.replace("\ncreate function ", "\ncreate or replace function ")
    )
}

/// The columns of the view of reservations, which is a part of the requests. The view itself is one of the distributed table.
const RESERVATIONS: &str = "(select q.request_id as reservation_id, q.item, q.buyer, q.quantity, q.state as status, \
    q.at as reserved_at, q.expires_at from hotrow.request q where q.state is not null)";

/// Writes what `{{...}}` stands for: the name of the schema, or what the node knows: the name of a primary key there, those
/// of the parts of a table, or the reservations.
fn fill(text: &str, schema: &str, names: &Names) -> String {
    let mut parts = text.split("{{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (wanted, after) = part.split_once("}}").unwrap_or((part, ""));
        let (kind, table) = wanted.split_once(' ').unwrap_or((wanted, ""));
        let at_node = names.tables.get(table).map_or(table, String::as_str);
        match kind {
            "pack" => out.push_str("hotrow"),
            "parts" => {
                let parts = (0..).map_while(|part| names.tables.get(&format!("{table}_{part}")));
                out.push_str(&parts.map(|part| format!("'{part}'")).collect::<Vec<_>>().join(", "));
            }
            // Citus writes the number of the shard behind the name of the key as behind that of the table.
            "key" => out.extend([table, "_pkey", at_node.strip_prefix(table).unwrap_or_default()]),
            "reservations" => out.push_str(&rename(RESERVATIONS, schema, names)),
            _ => panic!("the migrations ask for {wanted}"),
        }
        out.push_str(after);
    }
    out
}

/// Writes the shard's schema in place of `hotrow`, and the node's names in place of those of tables that a statement uses.
fn rename(text: &str, schema: &str, names: &Names) -> String {
    const WORD: &str = "hotrow.";
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut out, mut rest) = (String::with_capacity(text.len() * 2), text);
    while let Some(place) = rest.find(WORD) {
        let (before, found) = rest.split_at(place);
        out.push_str(before);
        let after = &found[WORD.len()..];
        let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
        let (name, following) = after.split_at(end);
        rest = following;
        let verb = before.trim_end().rsplit(|c| !is_name(c)).next().unwrap_or_default();
        let uses_table = matches!(verb, "from" | "join" | "into" | "update") && !following.starts_with('(');
        match names.tables.get(name).filter(|_| uses_table) {
            None => out.extend([schema, ".", name]),
            Some(at_node) => out.extend([schema, ".", at_node]),
        }
        let has_alias = following.starts_with(" as ");
        if verb == "into" && uses_table && !has_alias && !names.tables.is_empty() {
            // Clauses of an INSERT name the row by the table.
            out.extend([" as ", name]);
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let statements = &STATEMENTS;
        let tables = statements.tables.split("create table hotrow.").skip(1).map(|text| {
            let name =
                text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap().to_owned();
            (name.clone(), format!("{name}_102008"))
        });
        Names { tables: tables.collect() }
    }

    #[test]
    fn the_migrations_are_split_into_tables_views_and_functions() {
        let statements = &STATEMENTS;
        for text in [&statements.tables, &statements.views] {
            assert!(!text.contains("create function"), "{text}");
        }
        assert_eq!(statements.views.matches("create view").count(), 2);
        let created: usize =
            parts().map(|migration| migration.text(Pack::Many).matches("create function").count()).sum();
        let more = FEEDS.matches("create function").count();
        assert_eq!(
            statements.functions.matches("create function").count(),
            created + more - NOT_IN_A_SHARD.len()
        );
        for text in ["partition by hash", "identity", "Partitions by user"] {
            assert!(!statements.tables.contains(text), "{text}");
        }
        for text in ["check (feed_inline = 0)", "check (feed_pull_above = ", "hotrow.inbox set (fillfactor"] {
            assert!(statements.tables.contains(text), "{text}");
        }
        assert!(names().tables.contains_key("queue_order_3"), "{:?}", names());
    }

    #[test]
    fn a_function_of_a_shard_uses_the_tables_of_the_node() {
        let text = functions(3, &names());
        // Types of arguments, rankings, and hints, which all shards share.
        for (place, _) in text.match_indices(" hotrow.") {
            let after = &text[place + " hotrow.".len()..];
            let is_shared = ["%I($1", "receipts", "add_ranking", "setting.", "create_queue."]
                .iter()
                .any(|name| after.starts_with(name));
            assert!(is_shared, "other schema: {}", &after[..60]);
        }
        for (place, _) in text.match_indices("hotrow_shard_3.") {
            let (before, after) = text.split_at(place);
            let name = after["hotrow_shard_3.".len()..]
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next();
            let verb = before.trim_end().rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap();
            let is_table = names().tables.contains_key(name.unwrap());
            let called = after["hotrow_shard_3.".len() + name.unwrap().len()..].starts_with('(');
            let is_view =
                before.contains("create or replace view") && !before.contains("create or replace function");
            assert!(
                !is_table
                    || called
                    || is_view
                    || !["from", "join", "into", "update", "on", "truncate"].contains(&verb),
                "{}{}",
                &before[before.len() - 40..],
                &after[..60]
            );
        }
        assert!(
            text.contains("insert into hotrow_shard_3.buyer_102008 as buyer (item, buyer, quantity)"),
            "{text}"
        );
        assert!(text.contains("'request_pkey_102008'") && text.contains("'ledger_7_102008'"));
        assert!(text.contains("'hotrow.queue.take '") && text.contains("'hotrow.memory_'"));
        assert!(text.contains("receipts hotrow.receipts"), "the domain is shared");
    }
}
