//! Tests of decisions about statements, as tables of text and verdict. The catalog's facts are made up.

mod bulk;
mod catalog;
mod common;
mod declared;
mod distributed;
mod heads;
mod linear;
mod merged;
mod namesakes;
mod packed;
mod pages;
mod passed;
mod queues;
mod reached;
mod robust;
mod session;
mod switches;
mod views;

use hotrow_lane::lane::LaneKind;

use super::*;
use crate::key::KeySource;

/// A built-in type by its name.
fn column(name: &str, attnum: i16, type_name: &str) -> Column {
    let (type_oid, avg_width) = match type_name {
        "integer" => (23, 4),
        "bigint" => (20, 8),
        "text" => (25, 12),
        "uuid" => (2950, 16),
        "boolean" => (16, 1),
        "timestamptz" => (1184, 8),
        "jsonb" => (3802, 40),
        other => panic!("unknown type: {other}"),
    };
    Column {
        name: name.to_owned(),
        attnum,
        type_oid,
        type_kind: TypeKind::Builtin,
        avg_width,
        own_type: None,
        interval_fields: false,
        default: None,
        generated: false,
        identity: false,
        cached_sequence: false,
    }
}

fn index(name: &str, primary: bool, columns: &[&str]) -> Index {
    Index { name: name.to_owned(), primary, columns: columns.iter().map(|c| (*c).to_owned()).collect() }
}

fn table(oid: u32, name: &str, columns: &[(&str, &str)], indexes: Vec<Index>) -> TableFacts {
    let numbered = columns.iter().zip(1..);
    TableFacts {
        oid,
        schema: "public".to_owned(),
        name: name.to_owned(),
        relkind: 'r',
        persistence: 'p',
        has_rules: false,
        row_security: false,
        has_children: false,
        is_partition: false,
        partitions: Vec::new(),
        partition_key: Vec::new(),
        odd_partition: None,
        deferrable: false,
        deferred_columns: Vec::new(),
        columns: numbered.map(|((name, kind), attnum)| column(name, attnum, kind)).collect(),
        unique_indexes: indexes,
        triggers: Vec::new(),
        expressions: Vec::new(),
        referrers: Vec::new(),
        views: Vec::new(),
        fingerprint: String::new(),
        trigger_functions: Vec::new(),
        has_citus: false,
        distribution: None,
    }
}

/// `inv`: a hot row, with a second unique index.
fn inv() -> TableFacts {
    let columns =
        [("id", "integer"), ("stock", "integer"), ("sold", "integer"), ("sku", "text"), ("note", "text")];
    table(100, "inv", &columns, vec![index("inv_sku_key", false, &["sku"]), index("inv_pkey", true, &["id"])])
}

/// `users`: a table of a web framework, with a sequence for its key.
fn users() -> TableFacts {
    let columns = [
        ("id", "bigint"),
        ("email", "text"),
        ("name", "text"),
        ("is_active", "boolean"),
        ("data", "jsonb"),
        ("created_at", "timestamptz"),
        ("updated_at", "timestamptz"),
    ];
    let mut users = table(
        200,
        "users",
        &columns,
        vec![index("users_pkey", true, &["id"]), index("users_email", false, &["email"])],
    );
    users.columns[0].default = Some("nextval('users_id_seq'::regclass)".to_owned());
    users.columns[5].default = Some("now()".to_owned());
    users
}

/// `line`: a key of two columns.
fn line() -> TableFacts {
    let columns = [("order_id", "uuid"), ("no", "integer"), ("sku", "text"), ("quantity", "bigint")];
    table(300, "line", &columns, vec![index("line_pkey", true, &["order_id", "no"])])
}

/// `log`: no unique index.
fn log() -> TableFacts {
    table(400, "log", &[("at", "timestamptz"), ("message", "text")], Vec::new())
}

fn find(name: &TableName) -> Option<TableFacts> {
    [inv(), users(), line(), log()].into_iter().find(|table| table.name == name.name)
}

/// The facts about a candidate, and about the statements in its WITH.
fn facts_of(candidate: &Candidate) -> Facts {
    let with = candidate.with.iter().map(|common| facts_of(&common.statement)).collect();
    Facts { table: candidate.table.as_ref().and_then(find), with, ..Facts::default() }
}

/// The verdict after a change of the table's facts.
fn verdict_with(sql: &str, change: impl FnOnce(&mut Facts)) -> String {
    match analyse(sql) {
        Analysis::Candidate(candidate) => {
            let mut facts = facts_of(&candidate);
            change(&mut facts);
            describe(&decide(&candidate, &facts, &[]))
        }
        Analysis::Pass(pass) => format!("pass: {}", pass.reason),
        other => format!("{other:?}"),
    }
}

fn verdict(sql: &str) -> String {
    verdict_with(sql, |_| {})
}

fn describe(decision: &Decision) -> String {
    let packing = match decision {
        Decision::Pass { reason, .. } => return format!("pass: {reason}"),
        Decision::Packed(packing) => packing,
    };
    let lane = match packing.kind {
        LaneKind::Read => "read",
        LaneKind::Write => "write",
    };
    let key_of = |packing: &Packing| {
        packing.key.as_ref().map_or("no key".to_owned(), |key| {
            let columns =
                key.columns.iter().map(|column| format!("{}={}", column.name, source(&column.source)));
            columns.collect::<Vec<_>>().join(",")
        })
    };
    let key = packing.with.iter().chain([packing]).map(key_of).collect::<Vec<_>>().join(" + ");
    let rows = if packing.returns_rows { ", rows" } else { "" };
    let sequence = if packing.touches_sequence { ", sequence" } else { "" };
    format!("{lane} {key}{rows}{sequence}")
}

fn source(of: &KeySource) -> String {
    match of {
        KeySource::Param(index) => format!("${}", index + 1),
        KeySource::Const(text) => text.clone(),
        KeySource::OneOf(sources) => {
            format!("({})", sources.iter().map(source).collect::<Vec<_>>().join("|"))
        }
        KeySource::Element(index) => format!("any ${}", index + 1),
        KeySource::Each(sources) => {
            let value = |one: &Option<KeySource>| one.as_ref().map_or("null".to_owned(), source);
            format!("[{}]", sources.iter().map(value).collect::<Vec<_>>().join(" "))
        }
        KeySource::Unnested(index) => format!("unnest ${}", index + 1),
    }
}

/// Each statement has exactly this verdict.
fn check_exactly(table: &[(&str, &str)]) {
    for (sql, expected) in table {
        assert_eq!(verdict(sql), *expected, "{sql}");
    }
}

/// Each statement is passed through, with this reason.
fn check_passed(table: &[(&str, &str)]) {
    for (sql, reason) in table {
        let verdict = verdict(sql);
        assert!(verdict.starts_with("pass: "), "{sql}: {verdict}");
        assert!(verdict.contains(reason), "{sql}: {verdict}, not {reason}");
    }
}
