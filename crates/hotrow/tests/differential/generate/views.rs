//! Views over one table: simple ones, one above the other, with check options, defaults, barriers, rules and triggers. They
//! are replaced while sessions work with them, and the same rows are changed by the table's name.

use super::Draft;

/// `create view v_N ... as` and a query with the columns `k`, `n` and `note`.
const VIEWS: &[&str] = &[
    "v_N as select k, n, note from t_N",
    "v_N (note, k, n) as select note, k, n from t_N",
    "v_N with (security_barrier) as select k, note, n from t_N where n < 3",
    "v_N as select k, note, n from t_N where note is null or lower(note) like 'x%' with check option",
    "v_N as select m as k, k as m, n, note from t_N",
    "v_N as select k, n + 0 as n, note from t_N",
    "v_N as select note, n, k, n * 2 as twice from only t_N as x where k between 1 and 4 with local check option",
    "v_N as select distinct k, n, note from t_N",
    "v_N as select t.k, t.n, t.note from t_N t join t_N u on u.k = t.k",
    "v_N as select k, n, f_N(note) as note from t_N",
    "v_N as select k, n, current_setting('application_name') as note from t_N",
    "v_N as select k, n, note from u_N",
];

/// Views above `v_N`, which has the columns `a`, `b`.
const OUTER: &[&str] = &[
    "w_N as select k as a, n as b from v_N",
    "w_N (b, a) as select v.n, v.k from v_N v where v.n <> 2 with cascaded check option",
    "w_N as select n as a, k as b from v_N",
];

const STATEMENTS: &[&str] = &[
    "update v_N set n = n + 1 where k = $1",
    "update v_N set n = v_N.n + 1, note = 'x' || n where k = $1 returning *",
    "update v_N set n = default where k = $1 returning n",
    "update v_N as y set n = 10 / (y.n - 2) where y.k in ($1, 3)",
    "update v_N set note = 'y' where k = $1 and n < 3",
    "insert into v_N (k) values ($1) returning *",
    "insert into v_N (k, n) values ($1, default), (2, 3)",
    "insert into v_N (k, n, note) values ($1, 4, null) on conflict (k) do update set n = excluded.n + v_N.n returning n",
    "insert into v_N (note, k) values ('x', $1) on conflict do nothing",
    "delete from v_N where k = $1 returning k, n",
    "select * from v_N where k = $1",
    "select n, k from v_N where k = any('{1,2,3}') order by k desc",
    "select v_N from v_N where k = $1",
    "update w_N set b = b + 1 where a = $1",
    "update w_N set b = b - 1 where a = $1 returning *",
    "insert into w_N values ($1, 1)",
    "insert into w_N (a) values ($1) on conflict (a) do update set b = w_N.b + 1",
    "select * from w_N where a = $1 order by b",
    "delete from w_N where a = $1",
    "update t_N set n = n + 1 where k = $1 returning n",
    "select * from t_N where k = $1",
];

/// DDL on the views and their table, and what undoes it. Some fail for some views.
const CHANGES: &[(&str, &str)] = &[
    ("create rule r_N as on update to v_N do instead nothing", "drop rule r_N on v_N"),
    (
        "create rule r_N as on insert to v_N do also insert into seen_N values (1, new.k)",
        "drop rule r_N on v_N",
    ),
    (
        "create trigger i_N instead of update or delete on v_N for each row execute function l_N()",
        "drop trigger i_N on v_N",
    ),
    ("create trigger l_N after update on t_N for each row execute function l_N()", "drop trigger l_N on t_N"),
    ("alter view v_N alter n set default 7", "alter view v_N alter n drop default"),
    ("alter view w_N alter a set default 8", "alter view w_N alter a drop default"),
    ("alter view v_N set (security_barrier)", "alter view v_N reset (security_barrier)"),
    ("alter view v_N set (check_option = local)", "alter view v_N reset (check_option)"),
    ("alter view v_N rename k to kk", "alter view v_N rename kk to k"),
    ("alter table t_N rename k to kk", "alter table t_N rename kk to k"),
    ("alter table t_N enable row level security", "alter table t_N disable row level security"),
    ("alter table t_N drop constraint t_N_pkey", "alter table t_N add primary key (k)"),
    ("revoke all on v_N from other", "grant all on v_N to other"),
    (
        "create or replace view v_N as select k, n, note from t_N",
        "create or replace view v_N as select k, n, note from t_N where k > 1",
    ),
];

pub fn write(draft: &mut Draft) {
    draft.set_up(
        "create table seen_N (tx int, k int);
        create function f_N(text) returns text immutable language sql as $$ select upper($1) $$;
        create function l_N() returns trigger language plpgsql as $$ begin insert into seen_N values (1, old.k); return null; end $$;
        create table t_N (k int primary key, n int default 0, note text, m int unique);
        create table u_N (note text, k int primary key, n int default 5);
        insert into t_N values (1, 0, null, 4), (2, 0, 'x', 3), (3, 1, 'z', 2), (4, 2, 'X', 1);
        insert into u_N values ('u', 1, 1), (null, 2, 2);
        grant all on t_N, u_N, seen_N to other",
    );
    replace(draft, 's');
    draft.set_up_watch();
    for _ in 0..draft.random.u8(10..40) {
        let session = draft.session();
        match draft.random.u8(..14) {
            0 => draft.change(session, CHANGES),
            1 if !draft.undoing.is_empty() => draft.undo(session),
            2 if draft.once_in(3) => replace(draft, session),
            _ => draft.run_one(session, STATEMENTS, &["1", "2", "3", "4", "5", "-1"]),
        }
    }
    draft.run('a', "select * from seen_N order by k", &[]);
}

fn replace(draft: &mut Draft, session: char) {
    let (inner, outer) = (draft.pick(VIEWS).to_owned(), draft.pick(OUTER).to_owned());
    draft.query(
        session,
        format!("drop view if exists v_N cascade; create view {inner}; create view {outer}; grant all on v_N, w_N to other"),
    );
}
