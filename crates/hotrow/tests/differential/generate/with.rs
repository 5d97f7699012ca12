//! Statements with WITH whose parts change rows: of several tables, of one table twice, by views, with foreign keys between
//! the parts, with names that hide tables, and with parameters that several parts use.

use super::Draft;

/// `$1` and `$2` are integers.
const STATEMENTS: &[&str] = &[
    "with a as (update t_N set n = n + 1 where k = $1 returning k, n) insert into log_N (k, n) select k, n from a",
    "with a as (update t_N set n = n + $2 where k = $1 and n < 6 returning *) insert into log_N (k, n, note) select a.k, a.n * 2, 'x' || note from a returning *",
    "with a as (update t_N set n = n + 1 where k = $1 returning n) select n from a",
    "with a as (update t_N set n = n + 1 where k = $1 returning *) select * from a where n > $2 order by n desc",
    "with a (x, y) as materialized (update t_N set n = n - 1 where k = $1 returning n, k) select y, x, x + y as z from a",
    "with a as not materialized (delete from t_N where k = $1 returning *) insert into t2_N select * from a on conflict (k) do nothing",
    "with a as (delete from t_N where k = $1 returning n) insert into t2_N (k, n) select $1, a.n from a on conflict (k) do update set n = t2_N.n + excluded.n returning k, n",
    "with a as (update t_N set n = n + 1 where k = $1) update t2_N set n = n + 10 where k = $2",
    "with a as (update t_N set n = n + 1 where k = $1) update t2_N set n = n + 10 where k = $2 returning n, k",
    "with a as (update t2_N set n = n + 1 where k = $2), b as (insert into log_N (k) values ($1)) update t_N set n = 10 / (n - 2) where k = $1 returning n",
    "with a as (update t2_N set n = 10 / (n - 3) where k = $2) delete from t_N where k = $1 returning k",
    "with a as (insert into t_N (k, n) values ($1, $2) on conflict (k) do update set n = t_N.n + excluded.n returning n) select n from a",
    "with a as (insert into t_N (k) values ($1) on conflict do nothing returning k) select k, 'new' from a",
    "with a as (insert into log_N (k) values ($1) returning k + 1 as counted) select counted from a",
    "with old as (select * from t_N where k = $1), a as (update t_N set n = n + $2 where k = $1) insert into log_N (k, n) select k, n from old",
    "with a as (update t_N set n = n + 1 where k = $1) select k, n from t_N where k = $1",
    "with a as (update t_N set n = n + 1 where k = $1) select 1 as one",
    "with a as (update t_N set n = n + 1 where k in ($1, $2) returning k) select k from a order by k",
    "with a as (update t_N set n = n + 1 where k = any(array[$1, $2]) returning k, n), b as (select n, k from a) select k, n from b order by 1",
    // Foreign keys between the parts.
    "with a as (insert into t_N (k) values ($1) returning k) insert into child_N (k, t) select $2, k from a",
    "with a as (delete from child_N where k = $1) delete from t_N where k = $2",
    "with a as (insert into child_N values ($1, $2)) delete from t_N where k = $2 returning k",
    "with a as (update child_N set t = $2 where k = $1 returning t) insert into t_N (k) select t from a",
    // Views, and one table twice.
    "with a as (update v_N set n = n + 1 where k = $1 returning *) insert into log_N (k, n) select k, n from a",
    "with a as (update v_N set n = n + 1 where k = $1 returning k) delete from t2_N where k = $1 returning *",
    "with a as (update v_N set n = n + 1 where k = $1) update t_N set n = n + 5 where k = $2",
    "with a as (update t_N set n = n + 1 where k = $1) update t_N set n = n + 5 where k = $2",
    "with a as (delete from t_N where k = $1 returning *) insert into t_N select * from a",
    // Names that hide tables, and others that do not.
    "with t_N as (update t_N set n = n + 1 where k = $1 returning n) select n from t_N",
    "with t2_N as (update t_N set n = n + 1 where k = $1 returning k, n) update t2_N set n = n + 7 where k = $2",
    "with t2_N as (update t_N set n = n + 1 where k = $1 returning k, n) select n from t2_N",
    "with log_N as (delete from t2_N where k = $1 returning k, n) insert into log_N (k, n) select k, n from log_N",
    "with a as (select n from t2_N where k = $2), t2_N as (update t_N set n = n + 1 where k = $1) select n from a",
    // Rows as a whole, and functions of them.
    "with a as (update t_N set n = n + 1 where k = $1 returning k, n) select a from a",
    "with a as (update t_N set n = n + 1 where k = $1 returning k, n) select a.f_N from a",
    "with a as (update t_N set n = n + 1 where k = $1 returning k, n) select f_N(a) from a",
    "with a as (update t_N set n = n + 1 where k = $1 returning note, mood) select upper(note), mood::text from a",
    // Errors of the server, and forms that are passed through.
    "with a as (update t_N set n = n + 1 where k = $1) select n from a",
    "with a as (update t_N set n = n + 1 where k = $1), a as (select 1) select 1",
    "with recursive a as (update t_N set n = n + 1 where k = $1 returning n) select n from a",
    "with a as (update t_N set n = n + 1 where k = $1 returning n) update t2_N set n = a.n from a where t2_N.k = $2",
    "with a as (update t_N set n = n + 1 where k = $1 returning n) select (select n from a), count(*) from a",
    "with a as (update t_N set n = n + 1 where k = $1 returning n) select n from a limit 1",
    "with a as (with b as (select 1) update t_N set n = n + 1 where k = $1) select 1",
];

/// Statements on the same rows.
const OTHERS: &[&str] = &[
    "update t_N set n = n + 1 where k = $1 returning n",
    "insert into t_N (k) values ($1) on conflict do nothing",
    "insert into t2_N (k) values ($1) on conflict do nothing",
    "delete from child_N where k = $1",
    "select k, n, note from t_N where k = $1",
    "select * from t2_N where k = $1",
];

/// DDL, and what undoes it.
const CHANGES: &[(&str, &str)] = &[
    ("create table a (n int, k int)", "drop table a"),
    (
        "create trigger l_N before update on t_N for each row execute function l_N()",
        "drop trigger l_N on t_N",
    ),
    (
        "create trigger s_N after update or delete on t2_N for each row execute function s_N()",
        "drop trigger s_N on t2_N",
    ),
    ("create rule r_N as on insert to log_N do instead nothing", "drop rule r_N on log_N"),
    ("alter table t_N rename n to m", "alter table t_N rename m to n"),
    ("alter table t2_N add more int default 3", "alter table t2_N drop more"),
    ("alter table t2_N drop constraint t2_N_pkey", "alter table t2_N add primary key (k)"),
    ("alter table log_N alter n type bigint", "alter table log_N alter n type int"),
    ("alter table t2_N enable row level security", "alter table t2_N disable row level security"),
    ("revoke all on log_N from other", "grant all on log_N to other"),
];

pub fn write(draft: &mut Draft) {
    draft.set_up(
        "create type mood_N as enum ('sad', 'happy');
        create table t_N (k int primary key, n int default 0, note text default 'y', mood mood_N default 'sad');
        create table t2_N (k bigint primary key, n int default 0, note text, mood mood_N);
        create table p_N (k bigint not null, n int);
        create table log_N (k int, n int, note text);
        create table child_N (k int primary key, t int references t_N);
        create view v_N as select n, k from t_N;
        create function f_N(record) returns text immutable language plpgsql as $$ begin return 'called'; end $$;
        create function l_N() returns trigger language plpgsql as $$ begin new.note := new.note || new.n; return new; end $$;
        create function s_N() returns trigger language plpgsql as $$ begin insert into p_N values (old.k, 1); return null; end $$;
        insert into t_N (k, n, note) values (1, 0, 'y'), (2, 1, null), (3, 2, 'z');
        insert into t2_N values (1, 0), (2, 1), (4, 3);
        insert into child_N values (1, 1);
        grant all on t_N, t2_N, log_N, child_N, v_N, p_N to other",
    );
    draft.set_up_watch();
    for _ in 0..draft.random.u8(10..40) {
        let session = draft.session();
        match draft.random.u8(..16) {
            0 => draft.change(session, CHANGES),
            1 if !draft.undoing.is_empty() => draft.undo(session),
            2 => {
                let boundary = draft.pick(&["begin", "commit", "rollback"]);
                draft.query(session, boundary);
            }
            kind => {
                let statements = if kind < 13 { STATEMENTS } else { OTHERS };
                let statement = draft.pick(statements);
                let keys = ["1", "2", "3", "4", "5"].map(Some);
                let all = [keys[draft.random.usize(..5)], keys[draft.random.usize(..5)]];
                let count = if statement.contains("$2") { 2 } else { 1 };
                draft.run(session, statement, &all[..count]);
            }
        }
    }
    draft.undo_rest();
    draft.run('a', "select k, n, note from log_N order by k, n, note", &[]);
}
