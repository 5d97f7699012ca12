//! Functions whose bodies do several things to their session, of all kinds and volatilities, and statements that reach
//! them. Other sessions look for what is left.

use super::leaks::HIDDEN;
use super::{Draft, SETUP};
use crate::program::Frame;

/// What a body in PL/pgSQL does, and what shows it.
const EFFECTS: &[&str] = &[
    "null;",
    "null;",
    "perform set_config('work_mem', '7MB', false);",
    "perform set_config('work_mem', '8MB', true);",
    "set intervalstyle = 'iso_8601';",
    "update pg_settings set setting = '6MB' where name = 'work_mem';",
    "set local extra_float_digits = -3;",
    "execute 'set timezone to ''Asia/Tokyo''';",
    "execute format('set %I to %L', 'datestyle', 'german');",
    "execute format('select set_config(%L, %L, %L)', 'bytea_output', 'escape', false);",
    "reset datestyle;",
    "execute 'reset all';",
    "perform set_config('app.tenant_N', 'left', false);",
    "perform set_config('app.tenant_N', 'local', true);",
    "perform set_config('search_path', 'two', true);",
    "perform pg_try_advisory_lock(4711);",
    "perform pg_try_advisory_lock_shared(47, 11);",
    "perform pg_try_advisory_xact_lock(4711);",
    "perform pg_advisory_unlock_all();",
    "execute 'create temporary table if not exists tt_N (n int)';",
    "execute 'create temporary table tt_N (n int)'; drop table tt_N;",
    "create temporary table tt_N on commit drop as select 1 as n;",
    "create temporary table if not exists t_N (id int primary key, n int default 50, v text);",
    "perform nextval('sq_N');",
    "perform setval('sq_N', 5);",
    "listen ch_N;",
    "execute 'unlisten *';",
    "perform pg_notify('nobody_N', 'said');",
    "execute 'prepare pp_N as select 1';",
    "execute 'deallocate all';",
    "execute 'declare cu_N cursor with hold for select 1';",
    "raise notice 'noticed %', current_setting('work_mem');",
    "raise warning using message = 'warned', errcode = '01N00', hint = 'none';",
    "raise exception 'refused' using errcode = 'P0042';",
    "perform 1 / 0;",
    "begin perform set_config('work_mem', '9MB', false); perform 1 / 0; exception when others then null; end;",
    "begin perform pg_try_advisory_lock(4711); raise exception 'x'; exception when others then raise notice 'caught %', sqlstate; end;",
    "insert into log_N values ('called');",
    "update t_N set n = n + 100 where id = 3;",
    "perform n from t_N where id = 2 for update;",
    "set role pg_monitor;",
    "set session characteristics as transaction read only;",
    "discard temp;",
    "set constraints all immediate;",
];

/// How a function is declared. Its language is PL/pgSQL. It is not immutable, because it has no arguments: a connection keeps the
/// result in plans, so whether the function runs again depends on the connection (docs/differences.md). Functions that reach it
/// are immutable.
const DECLARED: &[&str] = &[
    "",
    "",
    "volatile",
    "stable",
    "strict",
    "security definer",
    "set work_mem = '11MB'",
    "set search_path = one, two, public set timezone = 'Europe/Paris'",
    "stable parallel safe leakproof",
];

/// Bodies in SQL.
const BODIES: &[&str] = &[
    "select set_config('work_mem', '7MB', false)",
    "select set_config('timezone', 'Asia/Tokyo', true)",
    "insert into log_N values ('sql') returning v",
    "update t_N set n = n + 1 where id = 3; select 'x'",
    "select pg_try_advisory_lock(4711)::text",
    "select inner_N()",
    "select current_setting('work_mem')",
    "select max(n)::text from t_N",
    "select null::text",
];

/// More ways to reach the function `sets_N`, as in [`HIDDEN`].
const REACHES: &[(&str, &str)] = &[
    (
        "create or replace function ix_N(int) returns int language plpgsql immutable as $$ begin perform sets_N(); return $1; end $$; create table y_N (id int primary key, n int default 0); create index on y_N (ix_N(n))",
        "insert into y_N values (1) returning n",
    ),
    (
        "create or replace function ix_N(int) returns int language plpgsql immutable as $$ begin perform sets_N(); return $1; end $$; create table y_N (id int primary key, n int default 0); create unique index on y_N (n) where ix_N(id) > 0",
        "insert into y_N values (7)",
    ),
    (
        "create or replace function ge_N(int) returns int language plpgsql immutable as $$ begin perform sets_N(); return $1; end $$; create table g_N (id int primary key, n int, g int generated always as (ge_N(n)) stored)",
        "insert into g_N values (1, 1) on conflict (id) do update set n = 2 returning g",
    ),
    (
        "create or replace procedure co_N(int) language plpgsql as $$ begin update t_N set n = n + $1 where id = 1; commit; perform sets_N(); rollback; perform sets_N(); end $$",
        "call co_N(1)",
    ),
    (
        "create or replace procedure ou_N(inout x text) language plpgsql as $$ begin x := sets_N(); end $$",
        "call ou_N('in')",
    ),
    ("select", "select v from t_N, lateral (select sets_N() as s) x where id = 1"),
    ("select", "select coalesce(v, sets_N()) from t_N where id = 2"),
    ("select", "update t_N set v = sets_N() where id = 1 returning v"),
    ("select", "update t_N set n = n + 1 where id = 1 returning sets_N()"),
    ("select", "insert into t_N (id, v) values (5, sets_N()) on conflict (id) do update set v = sets_N()"),
    ("select", "delete from t_N where id = 6 and sets_N() is null"),
    ("select", "with x as materialized (select sets_N() as s) select 1"),
    ("select", "with x as (select sets_N() as s) select n from t_N where id = 1"),
    ("select", "select n from t_N where id = 1 order by sets_N()"),
    ("select", "select case when n > 1000 then sets_N() else v end from t_N where id = 1"),
    ("select", "select count(*) from t_N group by sets_N()"),
    ("select", "select * from sets_N() s limit 1"),
    ("select", "explain (costs off) select sets_N()"),
    ("select", "values (sets_N())"),
    ("select", "select array(select sets_N() from t_N where id < 3)"),
    (
        "create or replace function se_N() returns setof text language sql as $$ select sets_N() from t_N where id < 3 $$",
        "select * from se_N()",
    ),
    (
        "create or replace function va_N(variadic text[]) returns text language plpgsql as $$ begin return $1[1]; end $$",
        "select va_N(sets_N(), sets_N())",
    ),
    (
        "create or replace function dy_N(text) returns text language plpgsql as $$ declare x text; begin execute $1 into x; return x; end $$",
        "select dy_N('select sets_N()')",
    ),
    (
        "create materialized view mv_N as select 1 as n",
        "do $$ begin perform sets_N(); refresh materialized view mv_N; end $$",
    ),
    (
        "create view w1_N with (security_barrier) as select id, n from t_N where sets_N() is not null or id = 1",
        "update w1_N set n = n + 1 where id = 1",
    ),
    (
        "alter table t_N enable row level security; create policy po_N on t_N using (sets_N() is null or true)",
        "update t_N set n = n + 1 where id = 1",
    ),
    (
        "create or replace function st_N() returns trigger language plpgsql as $$ begin perform sets_N(); return null; end $$; create trigger st_N after update on t_N for each statement execute function st_N()",
        "update t_N set n = n + 1 where id = 1 returning n",
    ),
    (
        "create or replace function ct_N() returns trigger language plpgsql as $$ begin perform sets_N(); return null; end $$; create constraint trigger ct_N after update on t_N deferrable initially deferred for each row execute function ct_N()",
        "update t_N set n = n + 1 where id = 2 returning n",
    ),
    (
        "create or replace function lt_N(int, int) returns bool language plpgsql immutable as $$ begin perform sets_N(); return $1 < $2; end $$; create operator one.<<<<_N (leftarg = int, rightarg = int, function = lt_N)",
        "select 1",
    ),
];

/// The other schema has a table with the same name. A change of its rows calls the function `sets_N`.
const NAMESAKE: &str = "
    create table two.t_N (id int primary key, n int default 0, v text); insert into two.t_N select * from t_N;
    create or replace function na_N() returns trigger language plpgsql as $$ begin perform one.sets_N(); return null; end $$;
    create trigger na_N after update on two.t_N for each row execute function na_N()";

/// The update of the table that the search path decides about.
const UPDATE: &str = "update t_N set n = n + 1 where id = 2 returning n, v";

/// Queries that show what a function has left.
const QUERIES: &[&str] = &[
    "select nullif(current_setting('app.tenant_N', true), '')",
    "select count(*) from pg_prepared_statements where name = 'pp_N'",
    "select count(*) from pg_listening_channels() where pg_listening_channels = 'ch_N'",
    "select to_regclass('pg_temp.tt_N') is null",
    "select count(*) from pg_cursors where name = 'cu_N'",
    "select n, v from t_N where id = 1",
    UPDATE,
    UPDATE,
    "select current_user, current_setting('work_mem'), current_setting('transaction_read_only')",
    "select timestamptz '2020-01-31 12:00+00', interval '1 day 2 hours', 0.1::float8, '\\x00ff'::bytea",
];

pub fn write(draft: &mut Draft) {
    draft.set_up_watch();
    draft.set_up(
        "create sequence sq_N; create table log_N (v text); create table t_N (id int primary key, n int default 0, v text);
        insert into t_N select generate_series(1, 6);
        grant all on schema one, two to public; grant all on all tables in schema one, two to public",
    );
    declare(draft, "inner_N");
    declare(draft, "sets_N");
    draft.set_up(NAMESAKE);
    draft.set_up(
        "create or replace function st_N(text, int) returns text language sql as $$ select sets_N() $$",
    );
    let mut reaching = vec!["select sets_N()"];
    for _ in 0..draft.random.u8(1..4) {
        let all = HIDDEN.len() + REACHES.len();
        let index = draft.random.usize(..all);
        let (setup, reaches) = HIDDEN.get(index).unwrap_or_else(|| &REACHES[index - HIDDEN.len()]);
        draft.set_up(*setup);
        reaching.push(reaches);
    }
    for _ in 0..draft.random.u8(6..20) {
        let session = draft.session();
        match draft.random.u8(..13) {
            12 => {
                draft.query(session, "begin");
                let there = draft.pick(&[
                    "set local search_path = two, one",
                    "select set_config('search_path', 'two, one', true)",
                    "set search_path = two, one",
                ]);
                draft.query(session, there);
                draft.run(session, UPDATE, &[]);
                draft.query(session, "commit");
            }
            0..=4 => {
                let reaches = draft.pick(&reaching);
                draft.run(session, reaches, &[]);
            }
            5..=8 => {
                let query = draft.pick(QUERIES);
                draft.run(session, query, &[]);
            }
            9 => draft.watch(),
            10 => {
                let sql = draft.pick(&[
                    "begin",
                    "commit",
                    "rollback",
                    "savepoint s",
                    "rollback to s",
                    "discard all",
                    "reset all",
                ]);
                draft.query(session, sql);
            }
            _ if draft.once_in(3) => declare(draft, "sets_N"),
            _ => draft.frames(session, vec![Frame::Leave]),
        }
    }
}

/// Creates or replaces a function without arguments. `create or replace`, because differences of programs that create other
/// functions may be documented ones (`compare.rs`).
fn declare(draft: &mut Draft, name: &str) {
    let session =
        if draft.steps.last().is_some_and(|step| step.session == SETUP) { SETUP } else { draft.session() };
    let sql = match draft.random.u8(..4) {
        0 => {
            let body = draft.pick(BODIES);
            let volatility = draft.pick(&["", "stable"]);
            format!(
                "create or replace function {name}() returns text language sql {volatility} as $$ {body} $$"
            )
        }
        _ => {
            let declared = draft.pick(DECLARED);
            let mut body = String::new();
            for _ in 0..draft.random.u8(1..4) {
                body += draft.pick(EFFECTS);
            }
            if name == "sets_N" && draft.once_in(4) {
                body += "perform inner_N();";
            }
            let ends = draft.pick(&["return 'x';", "return current_setting('work_mem');", "return null;"]);
            format!(
                "create or replace function {name}() returns text language plpgsql {declared} as $$ begin {body} {ends} end $$"
            )
        }
    };
    draft.query(session, sql);
}
