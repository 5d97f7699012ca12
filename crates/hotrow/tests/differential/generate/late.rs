//! Defaults, triggers, rules, checks, policies and indexes that are added to a table in use, and dropped.

use super::Draft;

const CHANGES: &[&str] = &[
    "alter table t_N alter v set default 'late'",
    "alter table t_N alter v drop default",
    "alter table t_N alter v set not null",
    "alter table t_N add constraint c_N check (n < 3) not valid",
    "alter table t_N drop constraint if exists c_N",
    "alter table t_N drop constraint t_N_pkey",
    "alter table t_N add primary key (id)",
    "create unique index u_N on t_N (v)",
    "drop index if exists u_N",
    "create trigger g_N before insert or update on t_N for each row execute function changes_N()",
    "create trigger g_N after update on t_N for each statement execute function notes_N()",
    "drop trigger if exists g_N on t_N",
    "alter table t_N disable trigger all",
    "alter table t_N enable trigger all",
    "create rule r_N as on update to t_N do instead nothing",
    "create rule r_N as on update to t_N do also insert into log_N values (new.id)",
    "drop rule if exists r_N on t_N",
    "create or replace function changes_N() returns trigger language plpgsql as $$ begin new.v := 'replaced'; return new; end $$",
    "create or replace function changes_N() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$",
    "alter table t_N alter n type text using n::text",
    "alter table t_N alter n type int using n::int",
    "alter table t_N enable row level security; alter table t_N force row level security",
    "alter table t_N disable row level security",
    "create policy p_N on t_N using (id <> 1)",
    "truncate t_N",
    "insert into t_N (id) values (1), (2) on conflict do nothing",
    "alter domain d_N add constraint small check (value < 5) not valid",
    "alter domain d_N drop constraint if exists small",
    "alter domain b_N add constraint small check (value < 5) not valid",
    "alter domain b_N drop constraint if exists small",
    "alter domain c_N add constraint told check (tells_N(value)) not valid",
    "alter domain c_N drop constraint if exists told",
    "alter type e_N add value if not exists 'c'",
];

pub fn write(draft: &mut Draft) {
    draft.set_up("create domain b_N as int; create domain c_N as b_N; create domain d_N as c_N; create type e_N as enum ('a', 'b');
        create table log_N (id int);
        create table t_N (id int primary key, v text default 'early', n int default 0, d d_N, e e_N);
        insert into t_N (id) values (1), (2);
        create function changes_N() returns trigger language plpgsql as $$ begin new.v := 'changed'; return new; end $$;
        create function tells_N(int) returns bool language plpgsql as $$ begin raise notice 'told %', $1; return pg_try_advisory_lock(4711) or true; end $$;
        create function notes_N() returns trigger language plpgsql as $$ begin raise notice 'noted'; insert into log_N values (0); return null; end $$");
    draft.set_up_watch();
    (0..draft.random.u8(3..12)).for_each(|_| using(draft));
    for _ in 0..draft.random.u8(1..8) {
        let (session, change) = (draft.session(), draft.pick(CHANGES));
        if draft.once_in(4) {
            draft.query(session, "begin");
            draft.query(session, change);
            let end = draft.pick(&["commit", "commit", "rollback"]);
            draft.query(session, end);
        } else {
            draft.query(session, change);
        }
        (0..draft.random.u8(1..4)).for_each(|_| using(draft));
    }
}

fn using(draft: &mut Draft) {
    let (session, id) = (draft.session(), Some(draft.pick(&["1", "2", "3"])));
    let (e, d) = (Some(draft.pick(&["a", "c"])), Some(draft.pick(&["1", "7"])));
    match draft.random.u8(..9) {
        0 | 1 => draft.run(session, "update t_N set n = n + 1 where id = $1 returning v, n", &[id]),
        2 => draft.run(session, "insert into t_N (id) values ($1) returning v", &[id]),
        3 => draft.run(
            session,
            "insert into t_N (id) values ($1) on conflict (id) do update set n = t_N.n + 1 returning v, n",
            &[id],
        ),
        4 => draft.run(session, "delete from t_N where id = $1", &[id]),
        5 => draft.run(session, "update t_N set d = $1 where id = $2", &[d, id]),
        6 => draft.run(session, "update t_N set e = $1 where id = $2", &[e, id]),
        7 => draft.run(session, "update t_N set v = $1 where id = $2 returning v", &[d, id]),
        _ => draft.run(session, "select v, n from t_N where id = $1", &[id]),
    }
}
