//! LISTEN and NOTIFY: which session gets which notification, and when.

use super::Draft;

const STEPS: &[&str] = &[
    "listen x_N",
    "listen x_N",
    "listen y_N",
    "begin; listen y_N; rollback",
    "begin; listen y_N; notify y_N, 'own'; commit",
    "do $$ begin execute 'listen y_N'; end $$",
    "do $$ begin execute 'unlisten y_N'; end $$",
    "unlisten x_N; notify x_N, 'between'; listen x_N",
    "set work_mem = '1MB'",
    "unlisten x_N",
    "unlisten *",
    "notify x_N",
    "notify x_N, 'payload'",
    "notify y_N, 'other'",
    "select pg_notify('x_N', 'by function')",
    "begin",
    "commit",
    "rollback",
    "begin; notify x_N, 'in a block'; rollback",
    "begin; notify x_N, 'in a block'; notify x_N, 'in a block'; commit",
    "update t_N set n = n + 1 where id = 1 returning n",
    "select n from t_N where id = 1",
    "select pg_listening_channels()",
    "discard all",
    "select 1 / 0",
];

pub fn write(draft: &mut Draft) {
    draft.set_up("create table t_N (id int primary key, n int default 0); insert into t_N values (1);
        create function tells_N() returns trigger language plpgsql as $$ begin perform pg_notify('x_N', 'changed ' || new.n); return new; end $$");
    if draft.random.bool() {
        draft.set_up("create trigger g_N after update on t_N for each row execute function tells_N()");
    }
    for _ in 0..draft.random.u8(6..20) {
        let (session, step) = (draft.session(), draft.pick(STEPS));
        draft.run(session, step, &[]);
    }
}
