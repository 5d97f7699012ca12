//! Commands that create, alter and drop objects, or that gather and show facts about them, beside statements of other
//! sessions on the same tables. Temporary tables hide them for some sessions.

use super::Draft;
use crate::program::Frame;

const COMMANDS: &[&str] = &[
    "truncate t_N",
    "truncate only t_N restart identity cascade",
    "comment on table t_N is 'first'",
    "comment on table t_N is null",
    "comment on column t_N.n is 'it''s a number'",
    "grant select, update on t_N to pg_monitor",
    "revoke all on t_N from pg_monitor",
    "grant all on all tables in schema one to public",
    "analyze t_N",
    "analyze t_N (n)",
    "vacuum t_N",
    "vacuum (analyze) t_N",
    "reindex table t_N",
    "cluster t_N using t_N_pkey",
    "do $$ begin update t_N set n = n + 100 where id = 1; end $$",
    "do $$ begin perform 1; raise notice 'done'; end $$",
    "do $$ begin create index if not exists i_N on t_N (v); end $$",
    "do language plpgsql 'begin execute ''alter table t_N add if not exists w int default 4''; end'",
    "create index on t_N (n)",
    "create unique index if not exists x_N on t_N (id, n)",
    "drop index if exists x_N, i_N",
    "alter table t_N add if not exists w int default 7",
    "alter table t_N drop if exists w",
    "alter table t_N rename n to m",
    "alter table t_N rename m to n",
    "alter table t_N set (fillfactor = 70)",
    "alter table t_N add constraint c_N check (n < 200) not valid",
    "alter table t_N drop constraint if exists c_N",
    "alter table t_N alter v type varchar(20)",
    "alter table t_N alter v type text",
    "alter table t_N alter n set default 3, alter n set statistics 10",
    "alter table t_N replica identity full",
    "alter table t_N set unlogged",
    "alter table t_N set logged",
    "create or replace view v_N as select id, n from t_N where n < 100",
    "create or replace view v_N as select id, n from t_N",
    "drop view if exists v_N cascade",
    "create type k_N as enum ('a', 'b')",
    "alter type k_N add value if not exists 'c'",
    "drop type if exists k_N cascade",
    "create domain o_N as int check (value > 0)",
    "alter domain o_N drop constraint if exists o_N_check",
    "drop domain if exists o_N cascade",
    "create or replace function f_N(x int) returns int immutable language sql as $$ select x + 1 $$",
    "create or replace function f_N(x int) returns int volatile language plpgsql as $$ begin return x + 2; end $$",
    "alter function f_N(int) stable",
    "drop function if exists f_N(int) cascade",
    "create table if not exists t_N (id int primary key, n int default 0, v text)",
    "drop table if exists t_N cascade",
    "create table u_N (like t_N including all); insert into u_N table t_N; drop table t_N cascade; alter table u_N rename to t_N",
    "create schema if not exists s_N; create table if not exists s_N.t_N (id int primary key, n int default 900, v text)",
    "create statistics if not exists st_N on id, n from t_N",
    "create sequence if not exists q_N owned by t_N.n",
    "security label on table t_N is 'x'",
    "import foreign schema x from server y into z",
    "lock table t_N in access exclusive mode",
    "refresh materialized view m_N",
    "create materialized view if not exists m_N as select count(*) from t_N",
    "create table a_N as select * from t_N with no data",
    "select * into b_N from t_N",
    "insert into t_N select g from generate_series(1, 4) g on conflict do nothing",
    "insert into t_N values (1), (2), (3), (4) on conflict do nothing",
];

/// Temporary objects, and what shows or drops them.
const TEMPORARY: &[&str] = &[
    "create temporary table t_N (id int primary key, n int default 1000, v text)",
    "create temp table t_N (like one.t_N including all); insert into t_N values (1, 50), (2, 60)",
    "create local temporary table if not exists t_N on commit delete rows as select 1 as id, 70 as n, 'x' as v",
    "create temp view t_N as select 1 as id, 80 as n, null::text as v",
    "create temp sequence q_N",
    "create temp table x_N as select 1; drop table x_N",
    "create table pg_temp.t_N (id int primary key, n int, v text)",
    "create function pg_temp.f_N(int) returns int language sql as $$ select 77 $$",
    "set search_path = one, pg_temp, two",
    "set search_path = pg_temp, two, one",
    "set search_path = s_N, one, two",
    "reset search_path",
    "drop table pg_temp.t_N",
    "drop view pg_temp.t_N",
    "truncate pg_temp.t_N",
    "discard temp",
    "discard all",
];

const USES: &[&str] = &[
    "update t_N set n = n + 1 where id = $1 returning n",
    "update t_N set v = 'x' where id = $1",
    "update one.t_N set n = n + 1 where id = $1 returning n",
    "insert into t_N (id) values ($1) on conflict (id) do update set n = t_N.n + 1 returning n",
    "insert into t_N (id, v) values ($1, 'new') on conflict do nothing",
    "delete from t_N where id = $1 returning n, v",
    "select n, v from t_N where id = $1",
    "select n from t_N where id = $1 for update",
    "select n from v_N where id = $1",
    "update v_N set n = n + 1 where id = $1 returning n",
    "update t_N set n = f_N(n) where id = $1 returning n",
    "select f_N(n) from t_N where id = $1",
    "select n::text::o_N from t_N where id = $1",
    "select 'a'::k_N, $1::int",
    "begin; update t_N set n = n + 1 where id = $1; commit",
    "select obj_description('t_N'::regclass), $1::int",
    "select has_table_privilege('pg_monitor', 't_N', 'update'), $1::int",
    "select count(*), $1::int from t_N",
    "select count(*), $1::int from pg_indexes where tablename = 't_N'",
];

pub fn write(draft: &mut Draft) {
    draft.set_up_watch();
    draft.set_up(
        "create table one.t_N (id int primary key, n int default 0, v text); insert into one.t_N values (1), (2), (3);
        create table two.t_N (id int primary key, n int default 500, v text); insert into two.t_N values (1), (2)",
    );
    (0..draft.random.u8(2..8)).for_each(|_| using(draft));
    for _ in 0..draft.random.u8(3..10) {
        let session = draft.session();
        let command = match draft.random.u8(..8) {
            0 | 1 => draft.pick(TEMPORARY),
            2 => {
                // A transaction that has used the table keeps others from altering it.
                draft.query(session, "begin");
                using_by(draft, session);
                "select 1"
            }
            _ => draft.pick(COMMANDS),
        };
        match draft.random.u8(..6) {
            0 => {
                draft.query(session, format!("begin; {command}"));
                using(draft);
                let end = draft.pick(&["commit", "commit", "rollback"]);
                draft.query(session, end);
            }
            1 => draft.query(session, format!("{command}; select 'behind'")),
            2 => draft.run(session, command, &[]),
            _ => draft.query(session, command),
        }
        (0..draft.random.u8(1..5)).for_each(|_| using(draft));
        match draft.random.u8(..8) {
            0 => draft.watch(),
            1 => {
                let session = draft.session();
                draft.frames(session, vec![Frame::Leave]);
            }
            2 | 3 => {
                let (session, end) = (draft.session(), draft.pick(&["commit", "rollback"]));
                draft.query(session, end);
            }
            _ => {}
        }
    }
}

fn using(draft: &mut Draft) {
    let session = draft.session();
    using_by(draft, session);
}

fn using_by(draft: &mut Draft, session: char) {
    // A statement that was prepared earlier may mean another object: docs/differences.md.
    draft.named.clear();
    draft.run_one(session, USES, &["1", "2", "3", "4"]);
}
