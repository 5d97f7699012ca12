//! Partitioned tables by key, whose partitions have triggers, checks, indexes and foreign keys of their own, and come and go.

use super::Draft;

/// `create table t_N (k int, g int default 1, n int default 0, note text, primary key (...)) partition by ...`, then its
/// partitions.
const TABLES: &[&str] = &[
    "primary key (k)) partition by hash (k);
     create table p_N partition of t_N for values with (modulus 3, remainder 0);
     create table q_N partition of t_N for values with (modulus 3, remainder 1);
     create table r_N partition of t_N for values with (modulus 3, remainder 2)",
    "primary key (g, k)) partition by range (k);
     create table p_N partition of t_N for values from (0) to (3);
     create table q_N (note text, n int default 5, k int not null, g int not null default 2);
     alter table t_N attach partition q_N for values from (3) to (6);
     create table r_N partition of t_N default",
    "primary key (k, g)) partition by list (g);
     create table p_N partition of t_N for values in (1) partition by range (k);
     create table q_N partition of p_N for values from (0) to (3);
     create table r_N partition of p_N for values from (3) to (6)",
    "unique (k)) partition by list (k);
     create table p_N partition of t_N (check (n < 4)) for values in (1, 2);
     create table q_N partition of t_N (note default 'q') for values in (3, 4, 5);
     create table r_N partition of t_N for values in (null)",
];

const STATEMENTS: &[&str] = &[
    "update t_N set n = n + 1 where k = $1 and g = 1",
    "update t_N set n = n + 1, note = coalesce(note, 'x') || n where k = $1 and g = 1 returning *",
    "update t_N set n = n + 1 where k in ($1, 1, 4) and g = 1",
    "update t_N set n = 10 / (n - 2) where k = $1 and g = 1",
    "update t_N set n = default, note = null where k = $1 and g = 1 returning n",
    "update t_N set k = k + 1 where k = $1 and g = 1 returning k",
    "update t_N set g = 1 where k = $1 and g = 1",
    "insert into t_N (k) values ($1) returning *",
    "insert into t_N (k, n) values ($1, 2), (2, 3)",
    "insert into t_N (k, g) values ($1, 1) on conflict do nothing",
    "insert into t_N (k, g) values ($1, 1) on conflict (k) do update set n = t_N.n + 1",
    "insert into t_N (k, g, n) values ($1, 1, 1) on conflict (k, g) do update set n = t_N.n + 1 returning n",
    "delete from t_N where k = $1 and g = 1 returning n",
    "select * from t_N where k = $1 and g = 1",
    "select n, k from t_N where k = any('{1,2,3,4,5}') and g = 1 order by k desc",
    "update p_N set n = n + 1 where k = $1 and g = 1",
    "select count(*) from p_N where k < $1",
];

/// DDL on the table and its partitions, and what undoes it. Some fail for some tables.
const CHANGES: &[(&str, &str)] = &[
    (
        "create trigger f_N before update on q_N for each row execute function f_N()",
        "drop trigger f_N on q_N",
    ),
    (
        "create trigger f_N before insert or update on t_N for each row execute function f_N()",
        "drop trigger f_N on t_N",
    ),
    (
        "create trigger l_N after update or delete on q_N for each row execute function l_N()",
        "drop trigger l_N on q_N",
    ),
    ("alter table q_N add constraint c_N check (n < 3) not valid", "alter table q_N drop constraint c_N"),
    (
        "alter table q_N add constraint c_N unique (n, k) deferrable initially deferred",
        "alter table q_N drop constraint c_N",
    ),
    ("create unique index i_N on r_N ((n % 2), note)", "drop index i_N"),
    (
        "create table ref_N (k int, g int, foreign key (k, g) references t_N (k, g) on delete cascade)",
        "drop table ref_N",
    ),
    ("create rule c_N as on update to q_N do instead nothing", "drop rule c_N on q_N"),
    ("alter table q_N enable row level security", "alter table q_N disable row level security"),
    ("alter table t_N alter note type varchar(8)", "alter table t_N alter note type text"),
    ("alter table t_N add m int default 7", "alter table t_N drop m"),
    ("alter table t_N detach partition r_N", "drop table if exists r_N"),
    ("create table s_N partition of t_N for values in (7)", "drop table s_N"),
    ("create table s_N partition of t_N default", "drop table s_N"),
    ("truncate q_N", "truncate t_N cascade"),
    ("drop table q_N", "drop table if exists p_N"),
];

pub fn write(draft: &mut Draft) {
    let table = draft.pick(TABLES);
    draft.set_up(format!(
        "create table seen_N (tx int, k int);
        create function f_N() returns trigger language plpgsql as $$ begin new.n := new.n + 10; return new; end $$;
        create function l_N() returns trigger language plpgsql as $$ begin insert into seen_N values (1, old.k); return null; end $$;
        create table t_N (k int, g int default 1, n int default 0, note text, {table}"
    ));
    draft.set_up("insert into t_N (k) values (1), (2), (3), (4)");
    draft.set_up_watch();
    for _ in 0..draft.random.u8(10..40) {
        let session = draft.session();
        match draft.random.u8(..10) {
            0 => draft.change(session, CHANGES),
            1 if !draft.undoing.is_empty() => draft.undo(session),
            _ => draft.run_one(session, STATEMENTS, &["1", "2", "3", "4", "5", "7", "-1"]),
        }
    }
    draft.run('a', "select * from seen_N order by k", &[]);
}
