//! State that a statement leaves in its session without a sign of it in its text, and sessions that could find the
//! state.

use super::{Draft, parse};
use crate::program::Frame;

/// Objects that call a function, each with a statement that uses the object.
pub(super) const HIDDEN: &[(&str, &str)] = &[
    ("create view v_N as select sets_N() as s", "select * from v_N"),
    (
        "create function of_N(t_N) returns text language sql as $$ select sets_N() $$",
        "select t.of_N from t_N t where t.id = 1",
    ),
    (
        "create function op_N(int, int) returns text language sql as $$ select sets_N() $$; create operator one.=%=% (leftarg = int, rightarg = int, function = op_N)",
        "select 1 operator(one.=%=%) 2",
    ),
    (
        "create type c_N as (n int); create function cast_N(c_N) returns text language sql as $$ select sets_N() $$; create cast (c_N as text) with function cast_N(c_N)",
        "select (row(1)::c_N)::text",
    ),
    (
        "create table x_N (id int primary key, s text default sets_N())",
        "insert into x_N (id) values (1) on conflict do nothing",
    ),
    (
        "create table x_N (id int primary key, s text check (sets_N() is not null))",
        "insert into x_N (id) values (1) on conflict do nothing",
    ),
    (
        "create function tr_N() returns trigger language plpgsql as $$ begin perform sets_N(); return new; end $$; create trigger g_N before update on t_N for each row execute function tr_N()",
        "update t_N set n = n + 1 where id = 1",
    ),
    (
        "create function tr_N() returns trigger language plpgsql as $$ begin new.v := sets_N(); return new; end $$; create trigger g_N before update on t_N for each row execute function tr_N()",
        "update t_N set n = n + 1 where id = 2 returning v",
    ),
    (
        "create rule r_N as on insert to t_N do also select sets_N()",
        "insert into t_N values (4) on conflict do nothing",
    ),
    ("select", "do $$ begin perform sets_N(); end $$"),
    ("select", "select sets_N()"),
    ("select", "select n from t_N where id = 1 and sets_N() is not null"),
    ("create procedure pr_N() language plpgsql as $$ begin perform sets_N(); end $$", "call pr_N()"),
    ("create domain d_N as int check (sets_N() is not null)", "select 1::d_N"),
    (
        "create domain d_N as text default sets_N(); create table x_N (id int primary key, d d_N)",
        "insert into x_N (id) values (1) on conflict do nothing",
    ),
    (
        "create function da_N(int, text default sets_N()) returns int language plpgsql immutable as $$ begin return $1; end $$",
        "update t_N set n = da_N(n) where id = 1",
    ),
    (
        "create domain d_N as int check (sets_N() is not null); create function de_N(int) returns int language plpgsql immutable as $$ declare d d_N; begin d := $1; return d; end $$",
        "update t_N set n = de_N(n) where id = 2",
    ),
    (
        "create type e_N as enum ('a'); create function ca_N(text) returns e_N language sql immutable as $$ select sets_N(); select 'a'::e_N $$; create cast (text as e_N) with function ca_N(text) as assignment; create table x_N (id int primary key, e e_N); insert into x_N values (1)",
        "update x_N set e = lower('A') where id = 1",
    ),
    ("create aggregate ag_N(int) (sfunc = st_N, stype = text)", "select ag_N(n) from t_N"),
    ("prepare p_N as select sets_N()", "execute p_N"),
];

const LEAVES: &[&str] = &[
    "select set_config('timezone', 'Asia/Tokyo', false)",
    "select set_config('search_path', 'two', false)",
    "select set_config('work_mem', '7MB', false)",
    "select set_config('extra_float_digits', '-3', false)",
    "select set_config('default_transaction_read_only', 'on', false)",
    "select pg_try_advisory_lock(4711)::text",
];

pub fn hidden_settings(draft: &mut Draft) {
    draft.set_up_watch();
    let leaves = draft.pick(LEAVES);
    draft.set_up(format!(
        "create table t_N (id int primary key, n int default 0, v text); insert into t_N values (1), (2);
        create function sets_N() returns text language sql as $$ {leaves} $$;
        create function st_N(text, int) returns text language sql as $$ select sets_N() $$"
    ));
    let mut reaching = Vec::new();
    for _ in 0..draft.random.u8(1..3) {
        let (setup, reaches) = HIDDEN[draft.random.usize(..HIDDEN.len())];
        draft.set_up(setup);
        reaching.push(reaches);
    }
    draft.watch();
    for _ in 0..draft.random.u8(2..8) {
        let session = draft.session();
        let reaches = draft.pick(&reaching);
        draft.run(session, reaches, &[]);
        draft.watch();
        if draft.once_in(4) {
            let (session, clears) =
                (draft.session(), draft.pick(&["discard all", "reset all", "begin", "rollback"]));
            draft.query(session, clears);
        }
        if draft.once_in(4) {
            // A statement that is bound and not executed has no effect.
            let (session, clears) =
                (draft.session(), draft.pick(&["discard all", "reset all", "unlisten *"]));
            let bound = draft.bound("", "", &[]);
            draft.frames(session, vec![parse("", clears), bound, Frame::Sync]);
        }
        if draft.once_in(4) {
            let session = draft.session();
            draft.frames(session, vec![Frame::Leave]);
        }
    }
    draft.watch();
}

/// Functions of extensions and of the system that change the state of their server process.
pub fn extension_settings(draft: &mut Draft) {
    draft.set_up_watch();
    for _ in 0..draft.random.u8(5..16) {
        let session = draft.session();
        let sql = draft.pick(&[
            "select set_limit(0.99)",
            "select set_limit(0.1)",
            "select show_limit()",
            "select show_limit()",
            "select name % 'hotrox' from w_N where id = 1",
            "set pg_trgm.similarity_threshold = 0.9",
            "reset all",
            "select setseed(0.5)",
            "begin",
            "commit",
        ]);
        draft.run(session, sql, &[]);
    }
}

/// Advisory locks that are taken and released, and statements that only seem to do so.
pub fn locks(draft: &mut Draft) {
    draft.set_up_watch();
    draft.set_up("create table t_N (id int primary key, n int default 0); insert into t_N values (1), (2)");
    for _ in 0..draft.random.u8(6..25) {
        let session = draft.session();
        let sql = draft.pick(&[
            "select pg_try_advisory_lock(4712)",
            "select pg_try_advisory_lock(4713)",
            "select pg_advisory_lock_shared(4712)",
            "select pg_advisory_lock(4713)",
            "select pg_try_advisory_lock_shared(1, 2)",
            "select pg_advisory_unlock(4712)",
            "select pg_advisory_unlock_shared(4712)",
            "select pg_advisory_unlock(4713)",
            "select pg_advisory_unlock_all()",
            "with x as (select 1) select pg_advisory_unlock_all() from x where false",
            "select case when false then pg_advisory_unlock_all()::text end",
            "select pg_advisory_unlock_all() where 1 = 0",
            "select pg_try_advisory_xact_lock(4712)",
            "select n from t_N where id = 1 and pg_try_advisory_lock(4712)",
            "update t_N set n = n + 1 where id = 1 and pg_try_advisory_xact_lock(4712) returning n",
            "begin",
            "rollback",
            "commit",
            "savepoint s",
            "rollback to s",
            "select 1 / 0",
            "discard all",
        ]);
        if draft.once_in(15) {
            draft.frames(session, vec![Frame::Leave]);
        } else {
            draft.run(session, sql, &[]);
        }
        if draft.once_in(3) {
            draft.watch();
        }
    }
    draft.watch();
}

/// Temporary tables, which hide other tables.
pub fn temporary(draft: &mut Draft) {
    draft.set_up_watch();
    draft.set_up("create table t_N (id int primary key, n int default 0); insert into t_N values (1), (2);
        create function makes_N() returns int language plpgsql as $$ begin create temporary table if not exists t_N (id int primary key, n int default 100); return 1; end $$");
    for _ in 0..draft.random.u8(6..25) {
        let session = draft.session();
        let sql = draft.pick(&[
            "create temporary table t_N (id int primary key, n int default 7)",
            "create temporary table t_N on commit drop as select 1 as id, 9 as n",
            "select 1 as id, 8 as n into temporary t_N",
            "create temporary view t_N as select 1 as id, 5 as n",
            "select makes_N()",
            "insert into t_N values (1, 70) on conflict do nothing",
            "insert into t_N values (3)",
            "update t_N set n = n + 1 where id = 1 returning n",
            "select n from t_N where id = 1",
            "select count(*) from t_N",
            "drop table t_N",
            "drop table pg_temp.t_N",
            "drop view pg_temp.t_N",
            "begin",
            "commit",
            "rollback",
            "discard temp",
            "discard all",
        ]);
        draft.run(session, sql, &[]);
        if draft.once_in(4) {
            draft.watch();
        }
    }
}
