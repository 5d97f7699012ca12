//! Tests the effects that statements have on the session or remove from it, and Hotrow's own commands.

use super::*;
use crate::settings::PlainSet;

/// The effect of a SET LOCAL that decides what names mean.
const LOCAL: &str = "meaning of names until the end of the transaction";

fn pass(sql: &str) -> Pass {
    match analyse(sql) {
        Analysis::Pass(pass) => pass,
        other => panic!("{sql}: {other:?}"),
    }
}

/// The names of the effects, joined.
fn effect(sql: &str) -> String {
    match analyse(sql) {
        Analysis::Candidate(candidate) => candidate.effect().names().join(", "),
        Analysis::Pass(pass) => pass.effect.names().join(", "),
        other => panic!("{sql}: {other:?}"),
    }
}

fn check_effects(cases: &[(&str, &str)]) {
    for (sql, expected) in cases {
        assert_eq!(effect(sql), *expected, "{sql}");
    }
}

#[test]
fn effects_of_settings_and_temporary_objects() {
    check_effects(&[
        ("set work_mem = '1GB'", "settings"),
        ("SET SESSION search_path TO a, b", "settings"),
        ("set time zone 'UTC'", "settings"),
        ("set names 'utf8'", "settings"),
        ("set session characteristics as transaction isolation level serializable", "settings"),
        (
            "update pg_settings set setting = $1 where name = $2",
            "settings that no view lists, the seed of random(), role",
        ),
        (
            "with x as (select 1) update pg_catalog.\"pg_settings\" s set setting = 'a'",
            "settings that no view lists, the seed of random(), role",
        ),
        ("select setting from pg_settings", ""),
        ("set role admin", "role"),
        ("set session authorization default", "role"),
        ("set role = 'admin'", "role"),
        ("set app.tenant = 'a'", "settings that no view lists"),
        ("set \"App\".tenant to 5", "settings that no view lists"),
        ("set local.tenant = 'a'", "settings that no view lists"),
        ("set session Local . tenant = 'a'", "settings that no view lists"),
        ("set transaction.tenant to a", "settings that no view lists"),
        ("set constraints.tenant to a", "settings that no view lists"),
        ("set session.tenant to a", "settings that no view lists"),
        ("set role.tenant to a", "settings that no view lists"),
        ("set session authorization.tenant to a", "settings that no view lists"),
        ("set local local.tenant = 'a'", ""),
        ("set SEED = 0.5", "the seed of random()"),
        ("set local work_mem = '1GB'", ""),
        ("set local search_path = a", LOCAL),
        ("SET LOCAL Role a", LOCAL),
        ("set local session authorization a", LOCAL),
        ("set local session_replication_role = replica", LOCAL),
        ("set transaction read only", ""),
        ("set constraints all deferred", ""),
        ("set local app.tenant = 'a'", ""),
        ("set local SEED = 0.5", "the seed of random()"),
        ("set transaction isolation level serializable", ""),
        ("set constraints all deferred", ""),
        ("reset work_mem", "settings"),
        ("reset app.tenant", ""),
        ("reset role", ""),
        ("show work_mem", ""),
        ("create temp table t (a int)", "temporary objects"),
        ("create temporary view v as select 1", "temporary objects"),
        ("create local temp sequence s", "temporary objects"),
        ("create or replace temp view v as select 1", "temporary objects"),
        ("create table pg_temp.t (a int)", "temporary objects"),
        ("create function pg_temp.f() returns int language sql as 'select 1'", "temporary objects"),
        ("create table t (a int)", ""),
        ("create table t as select 1", ""),
        ("create table t as select f()", "sequence values, unknown"),
        ("create unlogged table t as select set_config('a', 'b', false)", "settings"),
        ("select * into temp x from inv", "temporary objects"),
        ("select 1 into temporary table x", "temporary objects"),
        ("select * from pg_temp.t", "temporary objects"),
        ("insert into pg_temp.t values (1)", "temporary objects, sequence values"),
        ("update pg_temp_3.t set a = 1", "temporary objects"),
    ]);
}

#[test]
fn effects_of_commands_about_statements_notifications_and_cursors() {
    check_effects(&[
        ("prepare p as select 1", "prepared statements"),
        ("prepare p (int) as select f($1)", "prepared statements, sequence values, unknown"),
        ("prepare transaction 'x'", ""),
        ("prepare transaction as select 1", "prepared statements"),
        ("prepare transaction (int) as select $1", "prepared statements"),
        ("execute p(1)", "sequence values, unknown"),
        ("listen c", "LISTEN"),
        ("unlisten c", ""),
        ("notify c, 'x'", ""),
        ("declare c cursor with hold for select 1", "cursors WITH HOLD"),
        ("declare c insensitive no scroll cursor without hold for select 1", ""),
        ("declare c cursor for select 1", ""),
        ("declare c cursor for select f()", "sequence values, unknown"),
        ("fetch 1 from c", ""),
        ("close c", ""),
    ]);
}

#[test]
fn effects_of_calls_that_change_settings() {
    check_effects(&[
        ("select set_config('a.b', 'c', true)", ""),
        ("select set_config('Search_Path', $1, true)", LOCAL),
        ("select set_config('A.B', $1, TRUE), set_config('work_mem', $2, true)", ""),
        ("select set_config('role', 'a', true)", LOCAL),
        ("select set_config('Seed', '0.5', true)", "the seed of random()"),
        ("select set_config('seed', $1, false)", "the seed of random()"),
        ("select set_config('a.b', 'c', false)", "settings that no view lists"),
        ("select set_config('a.b', 'c', $1)", "settings that no view lists"),
        ("select set_config('a.b', 'c', \"true\")", "settings that no view lists"),
        ("select set_config('a.b', 'c', true and n > 0) from inv", "settings that no view lists"),
        ("select set_config('a.b', 'c' || $1, true)", ""),
        ("select set_config('response.headers', '[{\"X-Id\":\"' || r.id || '\"}]', true) from r", ""),
        ("select set_config('a.b', concat('a', array['b', 'c'][1])::text, true)", ""),
        (
            "select set_config('a.b', f('c', true), false)",
            "settings that no view lists, sequence values, unknown",
        ),
        ("select set_config('a.b', (select 'c'), true, 1)", "settings that no view lists"),
        ("select set_config('search_path', v, true)", LOCAL),
        ("select set_config('work_mem', v, is_local)", "settings"),
        ("select set_config('a.b', 'c', true), set_config('a.c', 'c', false)", "settings that no view lists"),
        (
            "select set_config(lower('a.b'), 'c', true)",
            "settings that no view lists, the seed of random(), role",
        ),
        ("select set_config('a.b', set_config('role', 'c', false), true)", "role"),
        (
            r"select set_config('se\145d', '0.5', true)",
            "settings that no view lists, the seed of random(), role",
        ),
        ("select set_config('Work_Mem', $1, false)", "settings"),
        ("select set_config($1, $2, false)", "settings that no view lists, the seed of random(), role"),
        (
            "select set_config(name => 'work_mem', $2, false)",
            "settings that no view lists, the seed of random(), role",
        ),
        ("select set_config('role', 'a', false)", "role"),
    ]);
}

#[test]
fn effects_of_queries() {
    check_effects(&[
        ("select pg_advisory_lock(1)", "advisory locks"),
        ("select pg_try_advisory_lock(id) from inv", "advisory locks"),
        ("select pg_advisory_xact_lock(1), pg_advisory_unlock(1)", ""),
        ("select nextval('s'), count(*) from inv", "sequence values"),
        ("select setval('s', 1)", "sequence values"),
        ("select currval('s')", "reads currval or lastval"),
        ("insert into inv select * from inv", "sequence values"),
        ("with x as (insert into inv values (1) returning *) select * from x", "sequence values"),
        ("with x as (select f()) select * from x", "sequence values, unknown"),
        ("select * from f(1)", "sequence values, unknown"),
        ("select * from inv i, lateral f(i.id) g", "sequence values, unknown"),
        ("select (i).f from inv i", "sequence values, unknown"),
        ("select * from generate_series(1, 2)", ""),
        (
            "with recursive t (a, b) as (select 1, 2), u (c) as not materialized (values (1)) select * from t, u",
            "",
        ),
        ("select * from (values (1, 2)) as v (a, b) join inv i using (id)", ""),
        ("select x::numeric(10, 2), cast(y as varchar(5)), z::pg_catalog.numeric(3) from inv", ""),
        (
            "select sum(a) over (partition by (b) order by (c)) from inv group by rollup (a, b), grouping sets ((a))",
            "",
        ),
        ("insert into t (a, b) select 1, 2 on conflict (a) where (b > 1) do nothing", "sequence values"),
        ("select distinct on (a) f(b) from inv", "sequence values, unknown"),
        ("select 1 operator(public.+) 2 from inv", "sequence values, unknown"),
        ("select \"Odd\"(1) from inv", "sequence values, unknown"),
        ("select * from inv order by f(id)", "sequence values, unknown"),
        ("select array_agg(distinct stock order by stock) from inv group by sku having max(id) > 1", ""),
        ("select hotrow.increment('a')", ""),
        ("select * from hotrow.increment('a', 5)", ""),
        ("update inv set stock = 1 where stock = 2", ""),
        ("delete from inv where stock in (select max(stock) from inv)", ""),
        ("select pg_table_is_visible(c.oid) from pg_catalog.pg_class c", ""),
    ]);
}

#[test]
fn effects_of_other_commands() {
    check_effects(&[
        ("do $$ begin end $$", "sequence values, unknown"),
        ("call p()", "sequence values, unknown"),
        ("load 'x'", "sequence values, unknown"),
        ("frobnicate", "sequence values, unknown"),
        ("begin", ""),
        ("start transaction read only", ""),
        ("commit and chain", ""),
        ("rollback to savepoint a", ""),
        ("savepoint a", ""),
        ("copy inv from stdin", "sequence values"),
        ("copy (select 1) to stdout", ""),
        ("copy (select f(1), 2) to stdout with (format csv)", "sequence values, unknown"),
        ("vacuum inv", ""),
        ("explain select f()", ""),
        ("explain (analyze, buffers) select f()", "sequence values, unknown"),
        ("explain analyze select * from inv", ""),
        ("lock table inv", ""),
        ("truncate inv", ""),
        ("begin; set x.y = 1; commit", "settings that no view lists"),
        ("select 1; listen a; create temp table t ()", "temporary objects, LISTEN"),
        ("set hotrow.pack = off; select 1", "settings that no view lists"),
    ]);
}

#[test]
fn effects_that_statements_remove() {
    assert_eq!(pass("discard all").clears, Effect::DISCARDED);
    for keeps_seed in ["discard all", "reset all", "reset seed"] {
        assert!(!pass(keeps_seed).clears.names().contains(&"the seed of random()"), "{keeps_seed}");
    }
    assert_eq!(pass("DISCARD TEMP").clears.names(), ["temporary objects"]);
    assert_eq!(pass("discard plans").clears, Effect::NONE);
    assert_eq!(pass("discard sequences").clears.names(), ["sequence values", "reads currval or lastval"]);
    assert_eq!(
        pass("reset all").clears.names(),
        ["settings", "settings that no view lists", "application_name"]
    );
    for text in [
        "reset application_name",
        "set application_name to default",
        "set session application_name = DEFAULT",
    ] {
        assert_eq!(pass(text).clears.names(), ["application_name"], "{text}");
        assert!(!pass(text).effect.pins(), "{text}");
    }
    assert_eq!(pass("reset role").clears, Effect::NONE);
    assert_eq!(pass("unlisten *").clears.names(), ["LISTEN"]);
    assert_eq!(pass("deallocate all").clears.names(), ["prepared statements"]);
    assert_eq!(pass("deallocate prepare all").clears.names(), ["prepared statements"]);
    assert_eq!(pass("close all").clears.names(), ["cursors WITH HOLD"]);
    let unlock = pass("select pg_advisory_unlock_all() from inv");
    assert_eq!(unlock.clears, Effect::NONE, "the call may not be executed");
    assert_eq!(pass("discard all; select 1").clears, Effect::NONE, "a later error would undo it");
}

#[test]
fn what_a_statement_can_change_in_the_catalog() {
    for sql in [
        "create function f() returns int language sql return 1",
        "create schema s",
        "create type e as enum ('a')",
        "alter role u set search_path = s",
        "drop table t cascade",
        "drop function f",
        "grant usage on schema s to u",
        "grant execute on function f to u",
        "grant all on all functions in schema s to u",
        "grant parent to u",
        "revoke all on procedure p from u",
        "do $$ begin execute 'drop table t'; end $$",
        "do $$ begin create table t (a int); end $$",
        "do $$ begin end $$ language plpython3u",
        "do language plpython3u $$ pass $$",
        "do 'unreadable',",
        "call p()",
        "commit prepared 'x'",
        "not a statement",
        "select 1; drop function f",
    ] {
        assert_eq!(pass(sql).alters, Alters::Anything, "{sql}");
    }
    for sql in [
        "create table t (a int)",
        "create unlogged table t (a int)",
        "alter table t add b int",
        "drop table if exists t",
        "create unique index concurrently i on t (a)",
        "create or replace view v as select 1",
        "create materialized view v as select 1",
        "create trigger g before update on t execute function f()",
        "drop policy p on t",
        "create temp table t () inherits (u)",
        "create temp view v as select 1",
        "select * into x from t",
        "truncate t; drop table t",
    ] {
        assert_eq!(pass(sql).alters, Alters::Tables, "{sql}");
    }
    for sql in [
        "begin",
        "set a = 1",
        "select * from t",
        "select * from t for no key update of t",
        "copy t from stdin",
        "vacuum t",
        "explain select 1",
        "create temp table t (a int) on commit drop",
        "create local temporary table t as select 1",
        "truncate t",
        "comment on table t is 'x'",
        "grant select on t to u",
        "grant select (a), update on table t to u",
        "revoke all on all tables in schema s from u",
        "grant connect on database d to u",
        "reindex table t",
        "refresh materialized view v",
        "execute p(1)",
        "do $$ begin perform 1; end $$",
        "do $$ declare a int; begin select 1 into a; update t set b = a; end $$ language plpgsql",
        "do language plpgsql $$ begin null; end $$",
    ] {
        assert_eq!(pass(sql).alters, Alters::Nothing, "{sql}");
    }
}

#[test]
fn statements_that_the_server_refuses_while_a_database_is_used() {
    for sql in ["drop database if exists d", "create database d template c", "ALTER DATABASE d RENAME TO c"] {
        assert!(pass(sql).of_database, "{sql}");
    }
    for sql in ["drop table database", "comment on database d is ''", "create table t (a int)"] {
        assert!(!pass(sql).of_database, "{sql}");
    }
}

/// Each text, whether lanes can run its transaction, and from which servers the gateway can answer it before the first
/// statement.
#[test]
fn transactions_that_lanes_run_and_that_the_gateway_begins() {
    const ALL: Option<bool> = Some(true);
    const PRIMARIES: Option<bool> = Some(false);
    for (sql, in_lanes, answered) in [
        ("begin", true, ALL),
        ("BEGIN WORK", true, ALL),
        ("start transaction isolation level read committed", true, ALL),
        ("begin isolation level read committed, read write", true, PRIMARIES),
        ("begin read write", true, PRIMARIES),
        ("begin read only deferrable", false, ALL),
        ("begin isolation level repeatable read, read only, not deferrable", false, ALL),
        ("begin isolation level read uncommitted", false, ALL),
        ("begin isolation level serializable, deferrable", false, PRIMARIES),
        ("begin read only, read write", false, PRIMARIES),
        ("begin read only,", false, None),
        ("begin read", false, None),
        ("start", false, None),
        ("commit", true, ALL),
        ("end transaction", true, ALL),
        ("commit and chain", false, ALL),
        ("commit work and no chain", true, ALL),
        ("commit and", false, None),
        ("rollback", false, ALL),
        ("abort and chain", false, ALL),
        ("begin\x0b", false, None),
        ("abort work", false, ALL),
        ("rollback to a", false, None),
        ("savepoint a", false, None),
    ] {
        let pass = pass(sql);
        let from = pass.transaction.map(|transaction| match transaction {
            Transaction::Begin { on_standbys, .. } => on_standbys,
            Transaction::End { .. } => true,
        });
        assert_eq!((pass.block_command.is_some(), from), (in_lanes, answered), "{sql}");
    }
}

#[test]
fn what_commands_do_with_savepoints() {
    let long = format!("savepoint {}", "ä".repeat(40));
    for (sql, steps) in [
        ("savepoint A", vec![Step::Savepoint("a".to_owned())]),
        ("savepoint \"A\"", vec![Step::Savepoint("A".to_owned())]),
        (&long, vec![Step::Savepoint("ä".repeat(31))]),
        ("release a", vec![Step::Release("a".to_owned())]),
        ("release savepoint a", vec![Step::Release("a".to_owned())]),
        ("release savepoint", vec![Step::Release("savepoint".to_owned())]),
        ("rollback to a", vec![Step::RollBackTo("a".to_owned())]),
        ("ROLLBACK WORK TO SAVEPOINT a", vec![Step::RollBackTo("a".to_owned())]),
        ("rollback", vec![]),
        ("commit", vec![]),
        ("reset all", vec![Step::ResetAll]),
        ("discard all", vec![Step::ResetAll]),
        ("reset work_mem", vec![]),
        ("discard temp", vec![]),
        ("rollback; savepoint a", vec![Step::End, Step::Savepoint("a".to_owned())]),
        (
            "create function f() returns int begin atomic select 1; end; rollback to a",
            vec![Step::RollBackTo("a".to_owned())],
        ),
    ] {
        assert_eq!(pass(sql).steps, steps, "{sql}");
    }
}

#[test]
fn deallocate_returns_the_name() {
    assert_eq!(analyse("deallocate a1"), Analysis::Deallocate("a1".to_owned()));
    assert_eq!(analyse("DEALLOCATE PREPARE \"S_1\""), Analysis::Deallocate("S_1".to_owned()));
    assert_eq!(analyse("deallocate prepare"), Analysis::Deallocate("prepare".to_owned()));
}

#[test]
fn reasons_contain_the_command() {
    for (sql, reason) in [
        ("commit", "COMMIT: an explicit transaction"),
        ("listen a", "LISTEN changes or reads the session"),
        ("copy t from stdin", "COPY uses its own subprotocol"),
        ("vacuum", "VACUUM is not a SELECT"),
    ] {
        assert!(pass(sql).reason.to_string().contains(reason), "{sql}");
        assert!(explain(&analyse(sql), None, &[]).contains("passed through\n  reason"), "{sql}");
    }
}

#[test]
fn only_some_effects_pin_the_connection() {
    assert!(pass("set a = 1").effect.pins());
    assert!(pass("call p()").effect.pins());
    assert!(!pass("insert into inv select * from inv").effect.pins());
    assert!(!pass("select * from inv").effect.pins());
}

/// A SET or RESET whose effect depends on its text alone can be answered by the gateway. Settings that are reset have a minus.
#[test]
fn the_settings_of_a_text_of_sets_whose_effects_depend_on_it_alone() {
    for (sql, names) in [
        ("set work_mem = '5MB'", "work_mem"),
        ("SET SESSION Work_Mem TO 5120", "work_mem"),
        ("set search_path to tenant_1, \"$user\", 'x'", "search_path"),
        ("set time zone 'Asia/Tokyo'", "timezone"),
        ("set time zone interval '+00:00' hour to minute", "timezone"),
        ("set time zone interval '-3' hour", "timezone"),
        ("set TimeZone = utc", "timezone"),
        ("set \"TimeZone\" = utc", "timezone"),
        ("set extra_float_digits = -5", "extra_float_digits"),
        ("set synchronous_commit to local", "synchronous_commit"),
        ("set names 'latin1'", "client_encoding"),
        ("set client_encoding to utf8", "client_encoding"),
        ("set work_mem = '5MB'; set timezone = utc; set work_mem to 64;", "work_mem timezone work_mem"),
        ("reset work_mem", "-work_mem"),
        ("RESET Search_Path; set work_mem = 64", "-search_path work_mem"),
        ("reset time zone", "-timezone"),
        ("set time zone default", "-timezone"),
        ("set work_mem to default", "-work_mem"),
    ] {
        let shown = |set: &PlainSet| format!("{}{}", if set.resets { "-" } else { "" }, set.name);
        let found: Vec<_> = pass(sql).sets.iter().map(shown).collect();
        assert_eq!(found.join(" "), names, "{sql}");
    }
    for sql in [
        "set local work_mem = '5MB'",
        "set names to default",
        "reset client_encoding",
        "reset datestyle",
        "reset app.tenant",
        "reset role",
        "reset session authorization",
        "reset all",
        "reset work_mem x",
        "set time zone local",
        "set work_mem from current",
        "set work_mem",
        "set work_mem =",
        "set datestyle = dmy", // the other half of the value stays
        "set role other",
        "set session authorization other",
        "set session characteristics as transaction read only",
        "set transaction read only",
        "set names default",
        r"set search_path = 'a\\b'", // its meaning depends on `standard_conforming_strings`
        r"set jit = off; set search_path = 'a\'",
        "set time zone interval '-3 hours 30 minutes'", // IntervalStyle decides whether the minutes are negative
        "set time zone interval '-1 2:00' day to minute",
        "set search_path = nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", // a notice says that it is cut
        "set names",
        "set schema 'x'",
        "set app.tenant = 'x'",
        "set default_tablespace = 'x'", // the tablespace has to exist
        "set log_statement = 'all'",    // the right to set it can be revoked
        "select set_config('work_mem', '5MB', false)",
        "set work_mem = '5MB'; set datestyle = dmy",
        "set work_mem = '5MB'; select 1",
        "set work_mem = '5MB'; show work_mem",
        "set work_mem = '5MB'; set hotrow.pack = off",
        "set hotrow.pack = off; set work_mem = '5MB'",
        "begin; set work_mem = '5MB'; commit",
        "set work_mem = '5MB'; update t set n = 1 where id = 1",
        "begin",
    ] {
        assert!(pass(sql).sets.is_empty(), "{sql}");
    }
}

#[test]
fn commands_that_only_clear_state_are_known() {
    for (sql, cleared) in [
        ("discard all", Effect::DISCARDED),
        ("DISCARD TEMP", Effect { temporary: true, ..Effect::NONE }),
        ("unlisten *", Effect { listen: true, ..Effect::NONE }),
        ("close all", Effect { holdable_cursor: true, ..Effect::NONE }),
        ("deallocate all", Effect { prepared: true, ..Effect::NONE }),
        ("rollback", Effect::NONE),
        ("END WORK AND NO CHAIN", Effect::NONE),
        (
            "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *;",
            Effect { advisory_lock: true, holdable_cursor: true, listen: true, ..Effect::NONE },
        ),
    ] {
        assert_eq!(pass(sql).clears_only.as_deref(), Some(&cleared), "{sql}");
    }
    assert!(pass("reset all").clears_only.is_some_and(|cleared| cleared.settings && cleared.name));
    for sql in [
        "unlisten here",
        "close c",
        "reset work_mem",
        "reset application_name",
        "discard all; select 1",
        "select pg_advisory_unlock_all(), 1; close all",
        "select pg_advisory_unlock(1); close all",
        "select other.pg_advisory_unlock_all(); close all",
        "begin; close all; commit",
        "set work_mem = '5MB'; reset all",
        "rollback; close all",
        "rollback and chain",
        "rollback to a",
        "rollback prepared 'a'",
        "commit prepared 'a'",
        "begin",
    ] {
        assert_eq!(pass(sql).clears_only, None, "{sql}");
    }
}

#[test]
fn the_begin_of_a_text_of_several_is_known() {
    let begins = |sql: &str| pass(sql).begins.map(|begins| begins.1);
    assert_eq!(begins("begin; select 1; commit").as_deref(), Some("begin"));
    let modes = "START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY; select 1";
    assert_eq!(begins(modes).as_deref(), Some("START TRANSACTION ISOLATION LEVEL SERIALIZABLE , READ ONLY"));
    for sql in ["begin", "select 1; begin; select 2; commit", "savepoint a; select 1", "begin foo; select 1"]
    {
        assert_eq!(begins(sql), None, "{sql}");
    }
}
