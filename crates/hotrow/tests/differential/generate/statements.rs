//! Statements of all kinds: all except plain rows by key have to be passed through unchanged.

use super::Draft;

const STEPS: &[&str] = &[
    "with x as (update t_N set n = n + 1 where id = 1 returning n) select n from x",
    "with x as (select 1 as id) update t_N set n = n + 1 from x where t_N.id = x.id returning t_N.n",
    "merge into t_N using (values (1), (9)) as s(id) on t_N.id = s.id when matched then update set n = n + 1 when not matched then insert (id) values (s.id)",
    "insert into t_N (id, n) values (5, 1), (6, 1) on conflict (id) do update set n = t_N.n + 1 returning id, n",
    "insert into t_N (id, n) select 7, 1 on conflict do nothing",
    "insert into t_N default values",
    "update t_N set n = (select max(n) from t_N) where id = 1 returning n",
    "update t_N set n = u_N.n from u_N where u_N.id = t_N.id and t_N.id = 1 returning *",
    "update t_N set n = n + 1",
    "delete from t_N using u_N where t_N.id = u_N.id and u_N.id = 9",
    "delete from t_N where id > 5",
    "select t_N.id, u_N.n from t_N join u_N using (id) order by 1",
    "select id, sum(n) over (order by id) from t_N order by id",
    "select count(*), max(n) from t_N group by n % 2 order by 1, 2",
    "select id from t_N union select id from u_N order by 1",
    "select id from t_N where id = 1 for share",
    "select distinct on (n) id, n from t_N order by n, id",
    "values (1, 'a'), (2, 'b')",
    "table t_N",
    "explain (costs off) select n from t_N where id = 1",
    "explain (costs off) update t_N set n = 1 where id = 1",
    "select 1 as id into made_N",
    "create table made_N as select 1 as id",
    "create table if not exists made_N (id int)",
    "drop table if exists made_N",
    "create index if not exists i_N on t_N (n)",
    "drop index if exists i_N",
    "create view v_N as select id, n from t_N",
    "drop view if exists v_N",
    "update v_N set n = n + 1 where id = 1 returning n",
    "select n from v_N where id = 1",
    "truncate u_N",
    "insert into u_N values (1, 10) on conflict do nothing",
    "comment on table t_N is 'a table'",
    "select obj_description('t_N'::regclass)",
    "analyze t_N",
    "grant select on t_N to public",
    "prepare p_N (int) as select n from t_N where id = $1",
    "execute p_N (1)",
    "deallocate p_N",
    "checkpoint",
    "select * from t_N where false",
    "select",
    "select n from t_N where id = 1 limit 0",
    "select n from t_N where id = 1 offset 1",
    "select exists (select from t_N where id = 1)",
    "select to_jsonb(t) from t_N t where id = 1",
    "select array_agg(id order by id) from t_N",
    "select (t).n from t_N t where id = 1",
    "select t from t_N t where id = 1",
    "select * from t_N t(a, b) where a = 1",
    "select ctid is not null, tableoid::regclass::text from t_N where id = 2",
    "insert into part_N values (1, 1) on conflict (id) do update set n = part_N.n + 1 returning n",
    "update part_N set n = n + 1 where id = 1 returning n",
    "update part_N set id = 150 where id = 1 returning id",
    "delete from part_N where id = 150",
    "update child_N set n = n + 1 where id = 1 returning n",
    "insert into ref_N values (1, 1) on conflict do nothing",
    "insert into ref_N values (2, 77)",
    "delete from t_N where id = 1",
    "update t_N set id = 1 where id = 2",
    "update ref_N set t = 2 where id = 1",
    "begin",
    "commit",
    "rollback",
];

pub fn write(draft: &mut Draft) {
    draft.set_up("create table t_N (id int primary key, n int default 0); insert into t_N values (1, 1), (2, 2);
        create table u_N (id int primary key, n int); insert into u_N values (1, 10), (9, 90);
        create table part_N (id int primary key, n int) partition by range (id);
        create table low_N partition of part_N for values from (0) to (100); create table high_N partition of part_N for values from (100) to (200);
        create table child_N () inherits (u_N);
        create table ref_N (id int primary key, t int references t_N on delete cascade deferrable initially deferred)");
    draft.set_up_watch();
    for _ in 0..draft.random.u8(10..35) {
        let (session, step) = (draft.session(), draft.pick(STEPS));
        draft.run(session, step, &[]);
        if draft.once_in(12) {
            draft.watch();
        }
    }
}
