//! DDL between two runs of a statement, which must be decided again: changed types of columns, tables and functions
//! that come earlier in the search path, tables that are created again.

use super::Draft;

/// A column's old and new type, how to convert, and values for both.
const CHANGES: &[(&str, &str, &[&str])] = &[
    ("int", "text", &["7", "007", " 7"]),
    ("text", "int", &["7", "007", " 7"]),
    ("int", "bigint", &["7", "9000000000"]),
    ("timestamp", "timestamptz", &["2020-01-01 00:00", "2020-01-01 00:00:00+05"]),
    ("float8", "numeric", &["1.5", "12345678901234567890.123"]),
    ("date", "timestamp", &["2020-01-01", "2020-01-01 12:34:56"]),
    ("char(10)", "text", &["a", "a   "]),
    ("jsonb", "json", &["{}", "{\"b\":1, \"a\":2, \"a\":3}"]),
    ("varchar(3)", "varchar(9)", &["abc", "abcd"]),
    ("numeric(6,2)", "numeric(6,4)", &["1.5", "1.2345"]),
];

/// A session changes the catalog and does nothing else: directly, in a transaction, or in one that is rolled back.
pub(super) fn ddl(draft: &mut Draft, between: &mut dyn FnMut(&mut Draft), sql: &str) {
    let session = draft.session();
    match draft.random.u8(..5) {
        0 => {
            draft.query(session, "begin");
            draft.query(session, sql);
            let end = draft.pick(&["commit", "commit", "rollback"]);
            draft.query(session, end);
        }
        1 => draft.run(session, sql, &[]),
        2 => {
            draft.query(session, format!("begin; {sql}; commit"));
        }
        _ => draft.query(session, sql),
    }
    for _ in 0..draft.random.u8(1..4) {
        between(draft);
    }
}

/// Uses a table, changes a column's type, and uses it again.
pub fn column_types(draft: &mut Draft) {
    let (old, new, values) = CHANGES[draft.random.usize(..CHANGES.len())];
    let keyed = draft.once_in(3) && !old.starts_with("json");
    let key = if keyed { old } else { "int" };
    draft.set_up_watch();
    draft.set_up(format!("create table t_N (id {key} primary key, v {old})"));
    let mut using = |draft: &mut Draft| {
        let session = draft.session();
        let (v, w) = (Some(draft.pick(values)), Some(draft.pick(values)));
        let id = if keyed { v } else { Some(draft.pick(&["1", "2"])) };
        if draft.once_in(6) {
            let sql = draft.pick(&["set work_mem = '5MB'", "reset work_mem"]); // the session moves to another pool
            draft.query(session, sql);
        }
        match draft.random.u8(..7) {
            0 | 1 => draft.run(session, "update t_N set v = $1 where id = $2 returning v", &[w, id]),
            2 => draft.run(session, "insert into t_N values ($1, $2) on conflict do nothing", &[id, w]),
            3 => draft.run(session, "insert into t_N values ($1, $2)", &[id, w]),
            4 => draft.run(session, "delete from t_N where id = $1", &[id]),
            5 => draft.run(session, "select v from t_N where id = $1", &[id]),
            _ => draft.run(session, "select * from t_N where id = $1", &[id]),
        }
    };
    (0..draft.random.u8(3..15)).for_each(|_| using(draft));
    let mut to = new;
    for _ in 0..draft.random.u8(1..4) {
        let column = if keyed { "id" } else { "v" };
        let sql = match draft.random.u8(..4) {
            0 => draft
                .pick(&[
                    "alter table t_N add w int default 3",
                    "alter table t_N rename v to w",
                    "alter table t_N drop v",
                ])
                .to_owned(),
            _ => format!("alter table t_N alter {column} type {to} using {column}::text::{to}"),
        };
        to = if to == new { old } else { new };
        ddl(draft, &mut using, &sql);
    }
}

/// Tables of one name in two schemas have columns of different types. Sessions prepare statements under one search path and run
/// them under another one.
pub fn other_schemas(draft: &mut Draft) {
    let (one, two, values) = CHANGES[draft.random.usize(..CHANGES.len())];
    for (schema, of) in [("one", one), ("two", two)] {
        draft.set_up(format!(
            "create table {schema}.t_N (id int primary key, v {of}); insert into {schema}.t_N values (1), (2)"
        ));
    }
    for _ in 0..draft.random.u8(5..25) {
        let (session, id) = (draft.session(), Some(draft.pick(&["1", "2", "3"])));
        let value = Some(draft.pick(values));
        match draft.random.u8(..8) {
            0 | 1 => {
                let sql = draft.pick(&[
                    "set search_path = one",
                    "set search_path = two",
                    "set search_path = two, one",
                    "set work_mem = '5MB'",
                    "reset work_mem",
                ]);
                draft.query(session, sql);
            }
            2 | 3 => draft.run(session, "update t_N set v = $1 where id = $2", &[value, id]),
            4 => draft.run(session, "insert into t_N values ($1, $2) on conflict do nothing", &[id, value]),
            5 => draft.run(session, "delete from t_N where id = $1 and v <> $2", &[id, value]),
            _ => {
                for schema in ["one", "two"] {
                    draft.query(session, format!("select id, v::text from {schema}.t_N order by id"));
                }
            }
        }
    }
}

/// A table or view of the same name is created in a schema that is searched earlier, and dropped.
pub fn shadowed_names(draft: &mut Draft) {
    draft.set_up_watch();
    draft.set_up("create table two.t_N (id int primary key, who text default 'two', n int default 0); insert into two.t_N values (1), (2)");
    let mut using = |draft: &mut Draft| {
        // A statement that was prepared earlier may mean either table: docs/differences.md.
        draft.named.clear();
        let (session, id) = (draft.session(), Some(draft.pick(&["1", "2", "3"])));
        match draft.random.u8(..5) {
            0 => draft.run(session, "select who from t_N where id = $1", &[id]),
            1 => draft.run(session, "update t_N set n = n + 1 where id = $1 returning who, n", &[id]),
            2 => draft.run(
                session,
                "insert into t_N (id) values ($1) on conflict (id) do nothing returning who",
                &[id],
            ),
            3 => draft.run(session, "delete from t_N where id = $1 returning who", &[id]),
            _ => draft.run(session, "select count(*) from t_N", &[]),
        }
    };
    (0..draft.random.u8(3..12)).for_each(|_| using(draft));
    for _ in 0..draft.random.u8(1..5) {
        let sql = draft.pick(&[
            "create table one.t_N (id int primary key, who text default 'one', n int default 0)",
            "create table one.t_N (like two.t_N including all); insert into one.t_N values (1, 'one'), (2, 'one')",
            "create view one.t_N as select id, 'view' as who, n from two.t_N",
            "drop table one.t_N",
            "alter table two.t_N set schema one",
            "alter table two.t_N rename to u_N",
            "alter table if exists u_N rename to t_N",
        ]);
        ddl(draft, &mut using, sql);
    }
}

/// A function is created that fits better, or a function gets another body.
pub fn overloads(draft: &mut Draft) {
    draft.set_up_watch();
    draft.set_up(
        "create table t_N (id int primary key, who text); insert into t_N values (1, 'none'), (2, 'none');
        create function two.f_N(numeric) returns text immutable language sql as $$ select 'two numeric' $$",
    );
    let mut using = |draft: &mut Draft| {
        let session = draft.session();
        match draft.random.u8(..5) {
            0 | 1 => draft.run(session, "select f_N(5)", &[]),
            2 => draft.run(session, "update t_N set who = f_N(id) where id = $1 returning who", &[Some("1")]),
            3 => draft.run(session, "insert into t_N values (3, f_N(7)) on conflict (id) do update set who = excluded.who returning who", &[]),
            _ => draft.run(session, "select f_N(id), who from t_N where id = $1", &[Some("2")]),
        }
    };
    (0..draft.random.u8(3..12)).for_each(|_| using(draft));
    for _ in 0..draft.random.u8(1..4) {
        let sql = draft.pick(&[
            "create function two.f_N(int) returns text immutable language sql as $$ select 'two int' $$",
            "create function one.f_N(numeric) returns text immutable language sql as $$ select 'one numeric' $$",
            "create function one.f_N(int) returns text immutable language sql as $$ select 'one int' $$",
            "create or replace function two.f_N(numeric) returns text immutable language sql as $$ select 'another' $$",
            "create or replace function two.f_N(numeric) returns text volatile language plpgsql as $$ begin raise notice 'volatile'; return 'volatile'; end $$",
            "drop function if exists two.f_N(int)",
            "alter function two.f_N(numeric) rename to g_N",
        ]);
        ddl(draft, &mut using, sql);
    }
}

/// A table of the same name is created again, with other columns.
pub fn recreated(draft: &mut Draft) {
    const TABLES: &[&str] = &[
        "create table t_N (id int primary key, v int)",
        "create table t_N (id text primary key, v text)",
        "create table t_N (v int, id bigint primary key)",
        "create table t_N (id int, v int)",
        "create table t_N (id int primary key, v int generated always as (id + 1) stored)",
        "create table t_N (id int primary key, v int) partition by range (id); create table t1_N partition of t_N default",
        "create temporary table t_N (id int primary key, v int)",
    ];
    draft.set_up_watch();
    let first = draft.pick(&TABLES[..3]);
    draft.set_up(first);
    let mut using = |draft: &mut Draft| {
        let (session, id) = (draft.session(), Some(draft.pick(&["1", "01", "2"])));
        match draft.random.u8(..5) {
            0 => draft.run(session, "insert into t_N (id, v) values ($1, 5)", &[id]),
            1 => draft.run(
                session,
                "insert into t_N (id) values ($1) on conflict do nothing returning *",
                &[id],
            ),
            2 => draft.run(session, "update t_N set v = $1 where id = $2 returning v", &[Some("7"), id]),
            3 => draft.run(session, "delete from t_N where id = $1", &[id]),
            _ => draft.run(session, "select v from t_N where id = $1", &[id]),
        }
    };
    (0..draft.random.u8(3..12)).for_each(|_| using(draft));
    for _ in 0..draft.random.u8(1..5) {
        let (drop, create) =
            (draft.pick(&["drop table t_N; ", "drop table if exists t_N; ", ""]), draft.pick(TABLES));
        ddl(draft, &mut using, &format!("{drop}{create}"));
    }
}
