//! The text of one shard of a distributed pack: the tables, views and functions of all areas in a schema of their own.
//! It is made from the migrations. This module asks no server.
//!
//! A function of a shard runs only on the node that has the shard. It names the tables there (`counter_102008`), not the
//! distributed table (`counter`), so PostgreSQL itself plans its statements, and it may use whatever PostgreSQL can do. The
//! rows of its variables have the type of the distributed table, because this type exists on every node.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::feeds::NOT_IN_A_SHARD;
use crate::migrations::{MIGRATIONS, Migration};

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

/// How a shard stores feeds.
const STORAGE: &str = include_str!("../../sql/citus/feed_storage.sql");

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
            let mut rest = migration.file;
            while let Some((place, ending, to)) = next(rest) {
                let (before, found) = rest.split_at(place);
                let end = found.find(ending).map_or(found.len(), |end| end + ending.len());
                all.tables.push_str(before);
                match to {
                    Kind::View => all.views.push_str(&found[..end]),
                    Kind::Function if NOT_IN_A_SHARD.contains(&function_name(found)) => {}
                    Kind::Function => all.functions.push_str(&found[..end]),
                    // All parts of the pack share it: an argument of a call has this type.
                    Kind::Shared => {}
                }
                rest = &found[end..];
            }
            all.tables.push_str(rest);
        }
        all.tables = feed_tables(&all.tables);
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

/// The tables of feeds in a shard. They have no partitions, all posts are brought by fan-out, and the numbers of an identity
/// column, which no node knows, are replaced.
fn feed_tables(tables: &str) -> String {
    let mut text = tables.to_owned();
    for (from, to) in [
        (" partition by hash (user_id)", ""),
        (" partition by hash (author)", ""),
        ("default 1000 check (feed_inline >= 0)", "default 0 check (feed_inline = 0)"),
        (
            "default 10000 check (feed_pull_above >= 0)",
            "default 9223372036854775807 check (feed_pull_above = 9223372036854775807)",
        ),
        (
            "number bigint generated always as identity primary key",
            "number bigint not null default (extract(epoch from clock_timestamp()) * 1000000)::bigint",
        ),
    ] {
        text = text.replace(from, to);
    }
    let beginning = "\n-- Partitions by user and author.";
    let Some((before, rest)) = text.split_once(beginning) else { return text };
    let (_, after) = rest.split_once("\n$$;\n").unwrap_or(("", rest));
    format!("{before}\n{STORAGE}{after}")
}

/// The schema and its tables. They are ordinary tables until Citus distributes the schema.
pub fn tables(shard: i32) -> String {
    let schema = schema(shard);
    let tables = rename(&STATEMENTS.tables, &schema, &Names::default());
    format!(
        "create schema {schema};\n{tables}{}",
        include_str!("../../sql/citus/gate.sql").replace("hotrow.", &format!("{schema}."))
    )
}

/// The views and functions, after Citus has distributed the tables. They replace those of an earlier run.
pub fn functions(shard: i32, names: &Names) -> String {
    let schema = schema(shard);
    let views = rename(&STATEMENTS.views, &schema, &Names::default());
    let mut functions = STATEMENTS.functions.clone();
    for (from, to) in replacements(names) {
        functions = functions.replace(from, &to);
    }
    let functions = rename(&functions, &schema, names);
    format!(
        "set local check_function_bodies = off;\n{}{}",
        views.replace("\ncreate view ", "\ncreate or replace view "),
        functions.replace("\ncreate function ", "\ncreate or replace function ")
    )
}

/// The columns of the view of reservations, which is a part of the requests.
const RESERVATION: &str = "(select q.request_id as reservation_id, q.item, q.buyer, q.quantity, q.state as status, \
    q.at as reserved_at, q.expires_at from hotrow.request q where q.state is not null) r";
const RESERVATION_ROW: &str =
    "row(r.request_id, r.item, r.buyer, r.quantity, r.state, r.at, r.expires_at)::hotrow.reservation";

/// Texts of the migrations that mean something else on a node: names that Citus has given, whole rows, whose type is that of
/// the node's table, and changes of a view, which exists only as a view of the distributed table.
fn replacements(names: &Names) -> Vec<(&'static str, String)> {
    let key = |table: &str| match names.tables.get(table) {
        Some(name) => name.replacen(table, &format!("{table}_pkey"), 1),
        None => format!("{table}_pkey"),
    };
    let truncate = |parts: usize, tables: [&str; 2]| {
        let of_part = |part: usize| {
            let name = |table: &str| {
                let table = format!("{table}_{part}");
                format!("hotrow.{}", names.tables.get(&table).unwrap_or(&table))
            };
            format!("'truncate ' || ' {}, {}'", name(tables[0]), name(tables[1]))
        };
        let all: Vec<_> = (0..parts).map(of_part).collect();
        format!(
            "perform set_config('citus.enable_manual_changes_to_shards', 'on', true);\n    \
             execute (array[{}])[following + 1];",
            all.join(", ")
        )
    };
    let mut all = reservations();
    all.extend([
        // An entry with a text of its own needs no post.
        (
            "e.post_id is not null and p.author = e.from_user",
            "e.post_id is not null and e.content is null and p.author = e.from_user".to_owned(),
        ),
        ("'request_pkey'", format!("'{}'", key("request"))),
        (
            "execute format('truncate hotrow.ledger_%s, hotrow.log_entry_%s', following, following);",
            truncate(8, ["ledger", "log_entry"]),
        ),
        (
            "execute format('truncate hotrow.queue_order_%s, hotrow.processed_order_%s', following, following);",
            truncate(4, ["queue_order", "processed_order"]),
        ),
        // Through text, because the rows are grouped.
        ("q as wanted,", "q::text::hotrow.queue as wanted,".to_owned()),
        ("returning e as l", "returning row(e.*)::hotrow.queue_lease as l".to_owned()),
        ("hotrow.orders_of_run(l)", "hotrow.orders_of_run(row(l.*)::hotrow.queue_lease)".to_owned()),
        (
            "hotrow.orders_of_run(l::hotrow.queue_lease)",
            "hotrow.orders_of_run(row(l.*)::hotrow.queue_lease)".to_owned(),
        ),
    ]);
    all
}

/// The same about reservations.
fn reservations() -> Vec<(&'static str, String)> {
    let rows = |text: &str| text.replace("ROW", RESERVATION_ROW);
    vec![
        (
            "update hotrow.reservation r set status = 'expired'\n        where r.reservation_id = any",
            "update hotrow.request r set state = 'expired'\n        where r.state is not null and r.request_id = any".to_owned(),
        ),
        (
            "update hotrow.reservation r set status = 'confirmed'\n    where r.reservation_id = any \
             (confirm_batch.reservation_id) and hotrow.not_held(r, locked.at) is null",
            rows(
                "update hotrow.request r set state = 'confirmed'\n    where r.state is not null and r.request_id = any \
                 (confirm_batch.reservation_id) and hotrow.not_held(ROW, locked.at) is null",
            ),
        ),
        (
            "update hotrow.reservation r set status = 'cancelled'\n        where r.reservation_id = any \
             (cancel_batch.reservation_id) and hotrow.not_held(r, locked.at) is null",
            rows(
                "update hotrow.request r set state = 'cancelled'\n        where r.state is not null and r.request_id = any \
                 (cancel_batch.reservation_id) and hotrow.not_held(ROW, locked.at) is null",
            ),
        ),
        (
            "update hotrow.reservation r set expires_at = greatest(r.expires_at, locked.at + hold[i])\n            \
             where r.reservation_id = entry.reservation_id",
            "update hotrow.request r set expires_at = greatest(r.expires_at, locked.at + hold[i])\n            \
             where r.state is not null and r.request_id = entry.reservation_id"
                .to_owned(),
        ),
        ("select r, s.last_at from", "select row(r.*)::hotrow.reservation as r, s.last_at from".to_owned()),
        (
            "hotrow.not_held(r, '-infinity')",
            "hotrow.not_held(row(r.*)::hotrow.reservation, '-infinity')".to_owned(),
        ),
        ("from hotrow.reservation r", format!("from {RESERVATION}")),
        ("left join hotrow.reservation r", format!("left join {RESERVATION}")),
    ]
}

/// Writes the shard's schema in place of `hotrow`, and the node's names in place of those of tables that a statement uses. A
/// name after `'` is the beginning of a text: a channel or a setting.
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
        let is_part = before.chars().next_back().is_some_and(|c| is_name(c) || c == '\'');
        let verb = before.trim_end().rsplit(|c| !is_name(c)).next().unwrap_or_default();
        // Hints name what a client can use.
        // The copy of a ranking's function is shared by all shards.
        let is_ranking = name.is_empty() && following.starts_with("%I(");
        if is_part || matches!(verb, "with" | "in") || name == "receipts" || is_ranking {
            out.extend([WORD, name]);
            continue;
        }
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
    fn every_replaced_text_is_in_the_migrations() {
        let mut functions = STATEMENTS.functions.clone();
        for (from, to) in replacements(&names()) {
            assert!(functions.contains(from), "{from}");
            functions = functions.replace(from, &to);
        }
    }

    #[test]
    fn the_migrations_are_split_into_tables_views_and_functions() {
        let statements = &STATEMENTS;
        for text in [&statements.tables, &statements.views] {
            let text = text.replace(STORAGE, "");
            assert!(!text.contains("create function") && !text.contains("$$"), "{text}");
        }
        assert_eq!(statements.views.matches("create view").count(), 2);
        let created: usize = parts().map(|migration| migration.file.matches("create function").count()).sum();
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
        assert!(text.contains("'request_pkey_102008'") && text.contains("hotrow_shard_3.ledger_7_102008"));
        assert!(text.contains("'hotrow.queue.take '") && text.contains("'hotrow.memory_'"));
        assert!(text.contains("receipts hotrow.receipts"), "the domain is shared");
    }
}
