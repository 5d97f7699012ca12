//! Statements that take the first rows of a table by a query with LIMIT: in WHERE, FROM, USING and WITH, with row locks of all
//! kinds, beside DDL, functions and names that hide others.

use super::Draft;

/// `$1` is a queue and `$2` a number. A statement of several rows returns none: their order depends on the server's plan.
const STATEMENTS: &[&str] = &[
    "update q_N set state = 'taken', n = n + 1 where id = (select id from q_N where state = 'new' order by id limit 1) returning *",
    "update q_N set state = 'taken' where id = (select id from q_N where queue = $1 and state = 'new' order by id limit 1 for update skip locked) returning id, state",
    "update q_N as q set n = q.n + $2 where q.id in (select j.id from q_N j where j.queue = $1 order by j.n desc, j.id limit 2 for no key update of j skip locked)",
    "update q_N set n = 10 / (n - $2) where id = (select id from q_N where queue = $1 order by id limit 1 for update nowait) returning n",
    "delete from q_N where ctid = (select ctid from q_N where pg_try_advisory_xact_lock(id) order by id limit 1) returning id, queue",
    "delete from q_N where id = any(select id from q_N where queue = $1 order by id limit $2)",
    "delete from q_N where id = any(array(select id from q_N order by id desc limit 1 for update skip locked)) returning id",
    "delete from q_N where id in (select id from q_N where state = 'taken' order by n, id fetch first 2 rows only) and n < 5",
    "delete from q_N where id = (select id from q_N where queue = $1 order by id limit 2) returning id",
    "delete from q_N using (select id, n from q_N where queue = $1 order by id limit 1 for share) as next where q_N.id = next.id and next.n < $2 returning q_N.id, next.n",
    "update q_N set state = 'done', n = next.n + 1 from (select * from q_N where state = 'taken' order by id limit 1 for update) next where next.id = q_N.id returning q_N.*",
    "with next as (select id from q_N where queue = $1 and state = 'new' order by id limit 1 for update skip locked) update q_N set state = 'taken' from next where q_N.id = next.id returning q_N.id, q_N.state",
    "with next as materialized (select id, n from q_N order by n, id limit 2 for update) update q_N j set n = next.n + $2 from next where j.id = next.id",
    "with next as (select id from q_N where queue = $1 order by id limit 1 for update skip locked) delete from q_N where id in (select id from next) returning id",
    "with tmp as (delete from q_N where ctid = (select ctid from q_N where pg_try_advisory_xact_lock(id) order by id limit 1) returning id, queue) insert into done_N (id, note) select tmp.id, queue from tmp",
    "with next as (select id from q_N order by id limit 1 for update), taken as (update q_N set n = n + 1 from next where next.id = q_N.id returning q_N.id, q_N.n) insert into done_N (id, n) select id, n from taken returning *",
    "with gone as (delete from q_N where id in (select unnest(array[$2, 9]::int[])) returning *) select count(*) from gone",
    "with taken as (update q_N set n = n + 1 where id = (select id from q_N order by id limit 1) returning id) select count(*) from taken",
    // Lists in arrays.
    "delete from q_N where id in (select unnest(array[1, $2]))",
    "update q_N set n = n + 1 where id in (select unnest(array[$2, 3]::int[]))",
    // Names that mean something else, functions of rows, and forms that are passed through.
    "with q_N as (select 3 as id) delete from q_N where id = (select id from q_N limit 1) returning id",
    "with next as (select id from q_N order by id limit 1) update q_N set n = n + 1 from next where q_N.id = next.id returning next.f_N",
    "with next as (select * from q_N order by id limit 1) update q_N set n = n + 1 from next where q_N.id = next.id returning next.f_N, next.state",
    "with next as (select id from q_N order by id limit 1) update q_N set n = n + 1 from next where q_N.id = next.id returning *",
    "with next as (select id from q_N order by id limit 1), again as (select id from next) update q_N set n = n + 1 from again where q_N.id = again.id returning q_N.id",
    "update q_N set n = n + 1 from (select id from q_N order by id limit 1) next",
    "update q_N set n = n + 1 where queue = (select queue from q_N order by id limit 1)",
    "update q_N set n = n + 1 where id = (select v.id from v_N v order by v.id limit 1) returning id",
    "update v_N set n = n + 1 where id = (select id from v_N order by id limit 1) returning id, n",
    "update q_N set n = n + 1 where id = (select id from q_N where f_N(queue) = 'called' order by id limit 1) returning id",
    "update q_N set n = n + 1 where id = (select q_N.id from q_N as j order by j.id limit 1) returning id",
    "update q_N set n = n + 1 where id = (select id from q_N order by id limit 1 offset 1) returning id",
    "delete from q_N where id = (select id from q_N order by id limit null)",
    "select id from q_N where queue = $1 order by id limit 1 for update skip locked",
];

/// Statements on the same rows.
const OTHERS: &[&str] = &[
    "insert into q_N (id, queue, n) values ($2, $1, 0) on conflict do nothing returning id",
    "insert into q_N (id, queue) values ($2, $1)",
    "update q_N set state = 'new' where id = $2 returning id",
    "delete from q_N where id = $2",
    "select id, queue, state, n from q_N where id = $2",
    "select count(*) from done_N",
];

/// DDL, and what undoes it.
const CHANGES: &[(&str, &str)] = &[
    (
        "create trigger c_N before update on q_N for each row execute function c_N()",
        "drop trigger c_N on q_N",
    ),
    (
        "create trigger s_N after update or delete on q_N for each row execute function s_N()",
        "drop trigger s_N on q_N",
    ),
    (
        "create function unnest(int[]) returns setof int language plpgsql as $$ begin perform set_config('work_mem', '77kB', false); return next 2; end $$",
        "drop function unnest(int[])",
    ),
    ("create function id(q_N) returns int language sql as 'select 2'", "drop function id(q_N)"),
    ("alter table q_N rename n to m", "alter table q_N rename m to n"),
    ("alter table q_N alter n type bigint", "alter table q_N alter n type int"),
    ("alter table q_N drop constraint q_N_pkey", "alter table q_N add primary key (id)"),
    ("alter table q_N enable row level security", "alter table q_N disable row level security"),
    (
        "alter table q_N enable row level security, force row level security",
        "alter table q_N disable row level security, no force row level security",
    ),
    (
        "alter table q_N enable row level security; alter table q_N owner to other",
        "alter table q_N owner to postgres; alter table q_N disable row level security",
    ),
    ("create policy p_N on q_N using (queue <> 'a')", "drop policy p_N on q_N"),
    ("create rule r_N as on delete to q_N do instead nothing", "drop rule r_N on q_N"),
    ("revoke select on q_N from other", "grant select on q_N to other"),
    ("create index on q_N (queue, id)", "drop index q_N_queue_id_idx"),
];

pub fn write(draft: &mut Draft) {
    draft.set_up(
        "create table q_N (id int primary key, queue text not null, state text not null default 'new', n int default 0);
        create table done_N (id int, n int, note text);
        create view v_N as select n, id from q_N;
        create function f_N(record) returns text immutable language plpgsql as $$ begin return 'called'; end $$;
        create function f_N(text) returns text language plpgsql as $$ begin perform set_config('work_mem', '78kB', false); return 'called'; end $$;
        create function c_N() returns trigger language plpgsql as $$ begin new.n := new.n + 1; return new; end $$;
        create function s_N() returns trigger language plpgsql as $$ begin insert into done_N (id) values (old.id); return null; end $$;
        insert into q_N (id, queue) select i, case when i % 3 = 0 then 'a' else 'b' end from generate_series(1, 30) i;
        grant all on q_N, done_N, v_N to other",
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
                let statements = if kind < 12 { STATEMENTS } else { OTHERS };
                let statement = draft.pick(statements);
                let queue = Some(draft.pick(&["a", "b", "c"]));
                let number = Some(draft.pick(&["0", "1", "2", "3", "7"]));
                run(draft, session, statement, [queue, number]);
            }
        }
    }
    draft.undo_rest();
    draft.run('a', "select id, queue, state, n from q_N order by id", &[]);
    draft.run('a', "select id, n, note from done_N order by id, n, note", &[]);
}

/// Runs a statement with those of both values that it has.
fn run(draft: &mut Draft, session: char, statement: &str, [queue, number]: [Option<&str>; 2]) {
    match (statement.contains("$1"), statement.contains("$2")) {
        (true, true) => draft.run(session, statement, &[queue, number]),
        (true, false) => draft.run(session, statement, &[queue]),
        (false, true) => draft.run(session, &statement.replace("$2", "$1"), &[number]),
        (false, false) => draft.run(session, statement, &[]),
    }
}
