//! Sequences: each session has its own values. No sequence has a cache, because the gaps would differ
//! (docs/differences.md).

use super::Draft;

const STEPS: &[&str] = &[
    "select nextval('q_N')",
    "select currval('q_N')",
    "select currval('parent_N_id_seq')",
    "select lastval()",
    "select setval('q_N', 50)",
    "select setval('q_N', 60, false)",
    "select nextval('q_N') = currval('q_N')",
    "insert into parent_N (who) values ('x')",
    "insert into parent_N (who) values ('x') returning id",
    "insert into parent_N (who) values ('x') returning currval('parent_N_id_seq') = id",
    "begin; insert into parent_N (who) values ('y'); commit",
    "insert into child_N (who) values ('x')",
    "insert into child_N (who) values ('x') returning id",
    "insert into child_N (parent_id, who) values (lastval(), 'x')",
    "insert into numbered_N (who) values ('x')",
    "insert into numbered_N (who) values ('x') returning id",
    "insert into numbered_N (who) select 'x'",
    "update m_N set v = v + 1 where id = 1",
    "select v from m_N where id = 1",
    "update m_N set v = currval('parent_N_id_seq') where id = 2",
    "begin",
    "commit",
    "rollback",
    "select 1 / 0",
    "discard sequences",
    "alter sequence q_N restart",
];

pub fn write(draft: &mut Draft) {
    draft.set_up_watch();
    draft.set_up("create sequence q_N; create sequence cached_N cache 20;
        create unlogged table drawn_N (by text, value bigint unique);
        create table parent_N (id serial primary key, who text);
        create table child_N (id serial primary key, parent_id int default currval('parent_N_id_seq'), who text);
        create table numbered_N (id int primary key, who text);
        create function numbers_N() returns trigger language plpgsql as $$ begin new.id := nextval('q_N'); return new; end $$;
        create trigger n_N before insert on numbered_N for each row execute function numbers_N();
        create table m_N (id int primary key, v int); insert into m_N values (1, 0), (2, 0);
        create table audit_N (id serial primary key, what int);
        create function audits_N() returns trigger language plpgsql as $$ begin insert into audit_N (what) values (new.v); return new; end $$;
        create trigger g_N after update on m_N for each row execute function audits_N()");
    for _ in 0..draft.random.u8(6..25) {
        let (session, step) = (draft.session(), draft.pick(STEPS));
        draft.run(session, step, &[]);
        if draft.random.u8(..4) == 0 {
            // Values of a sequence with a cache have other gaps through the gateway, but ascend in each session. The
            // contents of unlogged tables are not compared.
            let ascends = format!(
                "with next as (select nextval('cached_N') as value)
                 insert into drawn_N select '{session}', value from next
                 returning value > coalesce((select max(value) from drawn_N where by = '{session}'), 0)"
            );
            draft.run(session, &ascends, &[]);
        }
    }
}
