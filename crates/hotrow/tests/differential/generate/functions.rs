//! Functions: notices, errors with context, side effects, DO blocks, and the FunctionCall message.

use super::{Draft, parse};
use crate::program::Frame;

const SETUP: &str = "create table t_N (id int primary key, n int default 0); insert into t_N select generate_series(1, 5);
    create table log_N (id int generated always as identity, what text);
    create function says_N(x int) returns int language plpgsql as $$ begin raise notice 'it is %', x; return x; end $$;
    create function logs_N(x text) returns text language plpgsql as $$ begin insert into log_N (what) values (x); return x; end $$;
    create function fails_N(x int) returns int language plpgsql as $$ begin return 10 / x; end $$;
    create function twice_N(x int) returns int immutable language sql as $$ select x * 2 $$;
    create function rows_N(x int) returns setof int language sql as $$ select generate_series(1, x) $$;
    create function changed_N() returns trigger language plpgsql as $$ begin
        insert into log_N (what) values (tg_op || ' ' || coalesce(new.n, old.n)); raise notice 'changed'; return coalesce(new, old); end $$;
    create procedure does_N(x int) language plpgsql as $$ begin update t_N set n = n + x where id = 1; commit; update t_N set n = n + x where id = 2; end $$";

const STEPS: &[&str] = &[
    "select says_N($1)",
    "select logs_N($1::text)",
    "select fails_N($1)",
    "select twice_N($1)",
    "select * from rows_N($1)",
    "call does_N($1)",
    "update t_N set n = twice_N(n + 1) where id = $1 returning n",
    "update t_N set n = says_N(n + 1) where id = $1 returning n",
    "update t_N set n = fails_N(n) where id = $1",
    "insert into t_N (id, n) values ($1, twice_N(4)) on conflict (id) do update set n = excluded.n returning *",
    "select n from t_N where id = $1",
    "select n, says_N(n) from t_N where id = $1",
    "select id from t_N where id = $1 and logs_N('where') is not null",
];

pub fn write(draft: &mut Draft) {
    draft.set_up(SETUP);
    draft.set_up_watch();
    if draft.random.bool() {
        let when = draft.pick(&["before update", "after update", "before insert or delete"]);
        draft.set_up(format!(
            "create trigger changes {when} on t_N for each row execute function changed_N()"
        ));
    }
    for _ in 0..draft.random.u8(8..30) {
        let session = draft.session();
        match draft.random.u8(..10) {
            0 => draft.query(session, "do $$ begin raise warning 'done'; perform logs_N('do'); end $$"),
            1 => {
                let step = draft.pick(&[
                    "begin",
                    "commit",
                    "rollback",
                    "select 1 / 0",
                    "delete from t_N where id = 3",
                ]);
                draft.query(session, step);
            }
            2 => draft.watch(),
            _ => {
                let (step, value) = (draft.pick(STEPS), draft.pick(&["0", "1", "2", "3", "x"]));
                draft.run(session, step, &[Some(value)]);
            }
        }
    }
}

/// FunctionCall, alone and among other messages.
pub fn calls(draft: &mut Draft) {
    draft.set_up(SETUP);
    draft.set_up_watch();
    for _ in 0..draft.random.u8(5..20) {
        let session = draft.session();
        let call = call(draft);
        let frames = match draft.random.u8(..8) {
            0..=3 => vec![call],
            4 => vec![Frame::Query("begin".to_owned()), call, Frame::Query("rollback".to_owned())],
            5 => {
                let text = draft.pick(&[
                    "select logs_N('before')",
                    "select 1 / 0",
                    "update t_N set n = 1 where id = 1",
                ]);
                vec![parse("", text), super::bind("", ""), super::execute(""), call, Frame::Sync]
            }
            6 => vec![call, Frame::Query("select n from t_N where id = 1".to_owned())],
            _ => {
                draft.watch();
                continue;
            }
        };
        draft.frames(session, frames);
    }
    draft.watch();
}

fn call(draft: &mut Draft) -> Frame {
    let (function, values): (&str, &[&str]) = match draft.random.u8(..9) {
        0 => ("set_config(text,text,boolean)", &["work_mem", "7MB", "f"]),
        1 => ("set_config(text,text,boolean)", &["search_path", "pg_catalog", "f"]),
        2 => ("pg_try_advisory_lock(bigint)", &["4711"]),
        3 => ("pg_advisory_unlock(bigint)", &["4711"]),
        4 => ("logs_N(text)", &["called"]),
        5 => ("fails_N(integer)", &["0"]),
        6 => ("says_N(integer)", &["5"]),
        7 => ("twice_N(integer)", &["5", "6"]),
        _ => ("nothing_N(integer)", &["5"]),
    };
    Frame::Call(function.to_owned(), values.iter().map(|value| Some((*value).to_owned())).collect())
}

/// Notices that the planner raises, each time.
pub fn plan_notices(draft: &mut Draft) {
    draft.set_up_watch();
    for _ in 0..draft.random.u8(4..12) {
        let session = draft.session();
        let sql = draft.pick(&[
            "select to_tsquery('english', 'the')",
            "select 'cat' @@ to_tsquery('english', 'the')",
            "select f from w_N where id = 1",
            "update w_N set name = to_tsquery('english', 'the')::text where id = 1 returning name",
            "select name from w_N where id = 1 and to_tsvector('english', name) @@ to_tsquery('english', 'the')",
        ]);
        draft.query(session, sql);
    }
}
