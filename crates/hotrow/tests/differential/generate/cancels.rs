//! Cancel requests while statements wait for rows, tables and advisory locks of other sessions, for the catalog, for a
//! connection of a paused gateway, and at any moment. Sessions go on afterwards.

use super::{Draft, bind, execute, parse};
use crate::program::{Frame, Step};

/// Statements that a session can run while others wait for what it has: what blocks, and what is blocked.
const BLOCKS: &[(&str, &str)] = &[
    ("update t_N set n = n + 10 where id = 1", "update t_N set n = n + 1 where id = 1"),
    ("update t_N set n = n + 10 where id = 1", "update t_N set n = n + 1 where id = 1 returning n"),
    ("update t_N set n = n + 10 where id = 1", "update t_N set n = n + 1 where id in (1, 2)"),
    ("update t_N set n = n + 10 where id = 1", "delete from t_N where id = 1"),
    ("update t_N set n = n + 10 where id = 1", "select n from t_N where id = 1 for update"),
    (
        "update t_N set n = n + 10 where id = 1",
        "insert into t_N values (1) on conflict (id) do update set n = t_N.n + 1 returning n",
    ),
    (
        "update t_N set n = n + 10 where id = 1",
        "with x as (update t_N set n = n + 1 where id = 1 returning n) select n from x",
    ),
    (
        "update t_N set n = n + 10 where id = 1",
        "update t_N set n = n + 1 where id = 2; update t_N set n = n + 1 where id = 1",
    ),
    ("update t_N set n = n + 10 where id = 1", "select adds_N(1)"),
    ("update t_N set n = n + 10 where id = 1", "call adding_N(1)"),
    ("update t_N set n = n + 10 where id = 1", "do $$ begin perform adds_N(1); end $$"),
    ("insert into t_N values (200)", "insert into t_N values (200)"),
    ("insert into t_N values (200)", "insert into t_N values (200) on conflict do nothing"),
    ("lock t_N in access exclusive mode", "select n from t_N where id = 1"),
    ("lock t_N in access exclusive mode", "update t_N set n = n + 1 where id = 1"),
    ("lock t_N in exclusive mode", "alter table t_N add m int"),
    ("update t_N set n = 3 where id = 3", "truncate t_N"),
    ("update t_N set n = 3 where id = 3", "create index on t_N (n)"),
    ("select pg_advisory_lock(4715)", "select pg_advisory_lock(4715)"),
    ("select pg_advisory_xact_lock(4715)", "select n, pg_advisory_xact_lock(4715) from t_N where id = 2"),
    ("select hotrow.increment('c_N', 1)", "select hotrow.increment('c_N', 1)"),
    ("select hotrow.increment('c_N', 1)", "select value from hotrow.increment('c_N', 5)"),
    (
        "update t_N set n = n + 10 where id = 1; lock pg_trigger in access exclusive mode",
        "update t_N as alias set n = n + 1 where id = 1",
    ),
    ("select 1", "select pg_sleep(60)"),
    ("select 1", "select n from t_N, pg_sleep(60) where id = 1"),
];

/// Statements that may be cancelled or not.
const RACES: &[&str] = &[
    "update t_N set n = n + 1 where id = 1 returning n",
    "update t_N set n = n + 1 where id = 2 returning n",
    "insert into t_N values (300, 1) on conflict (id) do update set n = t_N.n + 1 returning n",
    "select n from t_N where id = 1",
    "update t_N set n = n + 1 where id = 1; update t_N set n = n + 1 where id = 2",
    "select adds_N(2)",
    "select hotrow.increment('d_N', 1)",
    "do $$ begin perform adds_N(2); end $$",
    "set work_mem = '5MB'",
    "reset work_mem",
    "select set_config('work_mem', '6MB', false)",
    "select count(*) from t_N, generate_series(1, 20000)",
];

pub fn write(draft: &mut Draft) {
    for (session, user) in
        [('a', "postgres"), ('b', "postgres"), ('c', "other"), ('e', "postgres"), ('f', "postgres")]
    {
        let parameters = [("user", user), ("options", "-c lock_timeout=0")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        draft.steps.push(Step::new(session, vec![Frame::Connect(parameters.to_vec())]));
    }
    draft.set_up_watch();
    draft.set_up(
        "create table t_N (id int primary key, n int default 0); insert into t_N values (1), (2), (3), (4);
        create table o_N (id int primary key, n int default 0); insert into o_N select generate_series(97, 102);
        create or replace function adds_N(int) returns int language sql as $$ update t_N set n = n + 1 where id = $1 returning n $$;
        create or replace procedure adding_N(int) language plpgsql as $$ begin update t_N set n = n + 1 where id = $1; commit; end $$",
    );
    for session in ['a', 'b'] {
        draft.query(session, "update t_N set n = n + 1 where id = 1");
    }
    for _ in 0..draft.random.u8(2..6) {
        match draft.random.u8(..8) {
            0..=2 => blocked(draft),
            3 => queued(draft),
            4 => behind_transactions(draft),
            5 | 6 => race(draft),
            _ => paused(draft),
        }
        let session = draft.pick(&[&'a', &'b', &'c']).to_owned();
        draft.run(session, "update t_N set n = n + 1 where id = 1 returning n", &[]);
        if draft.once_in(4) {
            draft.watch();
        }
    }
}

/// Begins a transaction for the statement that will wait, in some programs. A procedure that commits cannot run in one.
fn begins(draft: &mut Draft, session: char, sql: &str) -> bool {
    let begins = !sql.starts_with("call") && draft.once_in(3);
    if begins {
        draft.query(session, "begin");
        if draft.random.bool() {
            update_own(draft, session);
        }
    }
    begins
}

/// Sends a statement without waiting for its answer: alone, or in one unit with BEGIN and COMMIT.
fn send(draft: &mut Draft, session: char, sql: &str, in_block: bool) {
    let may_be_in_block = !in_block && !sql.starts_with("call");
    let is_single = sql.starts_with("do") || !sql.contains("; ");
    let frames = match draft.random.u8(..4) {
        0 if may_be_in_block => vec![Frame::Query(format!("begin; {sql}; commit"))],
        1 if may_be_in_block && is_single => {
            let texts = ["begin", sql, "commit"].map(|text| [parse("", text), bind("", ""), execute("")]);
            texts.into_iter().flatten().chain([Frame::Sync]).collect()
        }
        2 if is_single => {
            let name = draft.pick(&["", "kept"]);
            let close = Frame::Close('S', name.to_owned());
            vec![close, parse(name, sql), draft.bound("", name, &[]), execute(""), Frame::Sync]
        }
        _ => vec![Frame::Query(sql.to_owned())],
    };
    draft.steps.push(Step { session, waits: false, frames });
}

/// Updates a row that no other session needs.
fn update_own(draft: &mut Draft, session: char) {
    draft.query(session, format!("update o_N set n = n + 1 where id = {}", u32::from(session)));
}

/// What a session does when its statement was cancelled, while it still could not get what the other session has.
fn after(draft: &mut Draft, session: char) {
    draft.frames(session, vec![Frame::Cancel]);
    for _ in 0..draft.random.u8(..3) {
        let text = draft.pick(&["select 1", "show transaction_isolation", "commit"]);
        draft.query(session, text);
    }
    let end = draft.pick(&["rollback", "commit"]);
    draft.query(session, end);
}

fn hold(draft: &mut Draft, sql: &str) {
    draft.query('e', "begin");
    draft.query('e', sql);
}

fn release(draft: &mut Draft) {
    let end = draft.pick(&["commit", "rollback"]);
    draft.query('e', format!("{end}; select pg_advisory_unlock_all()"));
}

/// Another session has what the statement needs.
fn blocked(draft: &mut Draft) {
    let (holds, waits) = BLOCKS[draft.random.usize(..BLOCKS.len())];
    // Earlier steps may have inserted a row.
    let new = draft.random.u16(200..).to_string();
    let [holds, waits] = [holds, waits].map(|sql| sql.replace("200", &new));
    let session = draft.pick(&[&'a', &'b', &'c']).to_owned();
    let in_block = begins(draft, session, &waits);
    hold(draft, &holds);
    send(draft, session, &waits, in_block);
    after(draft, session);
    release(draft);
}

/// Several statements wait for one row, and are cancelled in any order.
fn queued(draft: &mut Draft) {
    const UPDATE: &str = "update t_N set n = n + 1 where id = 1";
    let mut sessions = ['a', 'b', 'c'];
    draft.random.shuffle(&mut sessions);
    let in_blocks = sessions.map(|session| begins(draft, session, UPDATE));
    hold(draft, "update t_N set n = n + 10 where id = 1");
    for (session, in_block) in sessions.into_iter().zip(in_blocks) {
        send(draft, session, UPDATE, in_block);
    }
    draft.random.shuffle(&mut sessions);
    for session in sessions {
        after(draft, session);
    }
    release(draft);
}

/// Two transactions that begin with a row are at the server, and another one waits for its turn.
fn behind_transactions(draft: &mut Draft) {
    const UPDATE: &str = "update t_N set n = n + 1 where id = 1";
    hold(draft, UPDATE);
    for session in ['f', 'a', 'b'] {
        draft.query(session, "begin");
        draft.steps.push(Step { session, waits: false, frames: vec![Frame::Query(UPDATE.to_owned())] });
    }
    let mut sessions = ['a', 'b'];
    draft.random.shuffle(&mut sessions);
    for session in sessions {
        after(draft, session);
    }
    release(draft);
    draft.query('f', "commit");
}

/// A request at any moment.
fn race(draft: &mut Draft) {
    let session = draft.pick(&[&'a', &'b', &'c']).to_owned();
    let in_block = draft.once_in(3);
    if in_block {
        draft.query(session, "begin");
        update_own(draft, session);
    }
    for _ in 0..draft.random.u8(1..6) {
        let sql = draft.pick(RACES);
        let after = draft.random.u32(..3_000);
        if in_block {
            draft.query(session, "savepoint s");
        }
        let (frames, is_block) = unit(draft, sql, in_block);
        let undo = match (in_block, is_block) {
            (true, _) => "rollback to s",
            (_, true) => "rollback",
            _ => "",
        };
        draft.frames(session, [vec![Frame::Race(after, undo.to_owned())], frames].concat());
    }
    if in_block {
        let end = draft.pick(&["rollback", "commit"]);
        draft.query(session, end);
    }
}

/// A statement as one unit, and whether it begins a transaction of its own.
fn unit(draft: &mut Draft, sql: &str, in_block: bool) -> (Vec<Frame>, bool) {
    match draft.random.u8(..3) {
        0 if !in_block => (vec![Frame::Query(format!("begin; {sql}; commit"))], true),
        1 if !sql.contains("; ") => {
            (vec![parse("", sql), draft.bound("", "", &[]), execute(""), Frame::Sync], false)
        }
        _ => (vec![Frame::Query(sql.to_owned())], false),
    }
}

/// No session has a transaction or state of its own here, so the gateway can be paused.
fn paused(draft: &mut Draft) {
    for session in ['a', 'b', 'c', 'e', 'f', 'd', super::SETUP] {
        draft.query(session, "discard all");
    }
    let session = draft.pick(&[&'a', &'b', &'c']).to_owned();
    let sql = draft.pick(RACES);
    let (frames, is_block) = unit(draft, sql, false);
    let undo = if is_block { "rollback" } else { "" };
    draft.frames(session, [vec![Frame::Paused(undo.to_owned())], frames].concat());
}
