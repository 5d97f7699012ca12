//! Transactions in one text, in one unit and in pipelines that are refused: by errors of all kinds, by locks of another
//! session, by timeouts, deadlocks and deferred constraints. The session goes on afterwards.

use super::{Draft, execute, parse};
use crate::program::{Frame, Step};

/// What begins and ends a transaction.
const BEGINS: &[&str] = &[
    "begin",
    "begin",
    "begin",
    "start transaction",
    "begin read only",
    "begin isolation level serializable",
    "begin isolation level repeatable read",
    "begin transaction read write",
];
const ENDS: &[&str] = &[
    "commit",
    "commit",
    "commit",
    "end",
    "rollback",
    "abort",
    "commit and chain",
    "rollback and chain",
    "rollback to s",
    "select 1",
];

/// Statements that succeed.
const WORKS: &[&str] = &[
    "update t_N set n = n + 1 where id = 1",
    "update t_N set n = n + 1 where id = 2 returning n",
    "insert into t_N values (3) on conflict (id) do update set n = t_N.n + 1",
    "select n from t_N where id = 1",
    "delete from t_N where id = 4",
    "insert into t_N values (4)",
    "savepoint s",
    "release s",
    "rollback to s",
    "select 1",
    "",
];

/// Statements that fail, or make the commit fail.
const FAILS: &[&str] = &[
    "update t_N set n = n / 0 where id = 1",
    "update t_N set n = 1 / (n - n) where id = 2 returning n",
    "insert into t_N values (1)",
    "insert into u_N (id, k) values (5, 99)",
    "update u_N set k = 99 where id = 1",
    "update u_N set u = 7 where id in (1, 2)",
    "update t_N set n = -1 where id = 1",
    "update t_N set id = 1 where id = 2",
    "update t_N set n = null where id = 1",
    "update t_N set nothing = 1 where id = 1",
    "update nothing_N set n = 1 where id = 1",
    "update t_N set n = 'x' where id = 1",
    "update t_N set n = 99999999999 where id = 1",
    "updat t_N set n = 1",
    "update t_N set n = n + 1 where id = 'x'",
    "select raises_N(1)",
    "update t_N set n = raises_N(n) where id = 1",
    "set work_mem = 'much'",
    "begin",
    "vacuum t_N",
    "lock t_N in access exclusive mode nowait",
    "select n from t_N where id = 1 for update nowait",
    "set transaction isolation level serializable",
    "set constraints all immediate",
    "update u_N set u = 7 where id = 1; update u_N set u = 7 where id = 2; set constraints all immediate",
];

/// What a session does after a refusal, to show its state.
const AFTER: &[&str] = &[
    "select n from t_N where id = 1",
    "update t_N set n = n + 1 where id = 2 returning n",
    "commit",
    "rollback",
    "show transaction_isolation",
    "show transaction_read_only",
    "begin; update t_N set n = n + 1 where id = 1; commit",
];

pub fn write(draft: &mut Draft) {
    draft.set_up(
        "create table r_N (id int primary key); insert into r_N values (1);
        create table t_N (id int primary key, n int not null default 0 check (n >= 0));
        create table u_N (id int primary key, u int unique deferrable initially deferred,
            k int references r_N deferrable initially deferred);
        insert into t_N values (1), (2), (6), (7); insert into u_N values (1), (2), (6), (7);
        create or replace function raises_N(int) returns int language plpgsql as $$ begin raise exception 'refused %', $1; end $$",
    );
    for _ in 0..draft.random.u8(3..9) {
        let session = draft.session();
        if !draft.once_in(3) {
            draft.query(session, "rollback");
        }
        match draft.random.u8(..12) {
            0..=5 => {
                let texts = transaction(draft, None);
                send(draft, session, &texts);
            }
            6..=8 => blocked(draft, session),
            9 => deadlock(draft),
            _ => {
                let limit = draft.pick(&[
                    "set lock_timeout = '60ms'",
                    "set statement_timeout = '90ms'",
                    "set default_transaction_read_only = on",
                    "set default_transaction_deferrable = on",
                    "reset all",
                    "begin; set local lock_timeout = '30ms'",
                ]);
                draft.query(session, limit);
            }
        }
        after(draft, session);
    }
    for session in super::SESSIONS {
        draft.query(session, "rollback");
    }
}

fn after(draft: &mut Draft, session: char) {
    for _ in 0..draft.random.u8(..4) {
        let text = draft.pick(AFTER);
        draft.run(session, text, &[]);
    }
}

/// The statements of a transaction, of which some fail. `blocked` is one that must be among them.
fn transaction(draft: &mut Draft, blocked: Option<&str>) -> Vec<String> {
    let mut texts = Vec::new();
    if !draft.once_in(5) {
        texts.push(draft.pick(BEGINS).to_owned());
    }
    for _ in 0..draft.random.u8(..3) {
        texts.push(draft.pick(WORKS).to_owned());
    }
    match blocked {
        Some(text) => texts.push(text.to_owned()),
        None if draft.once_in(3) => {}
        None => texts.push(draft.pick(FAILS).to_owned()),
    }
    for _ in 0..draft.random.u8(..3) {
        texts.push(draft.pick(WORKS).to_owned());
    }
    if !draft.once_in(5) {
        texts.push(draft.pick(ENDS).to_owned());
        if draft.once_in(4) {
            texts.push(draft.pick(WORKS).to_owned());
        }
    }
    texts
}

/// Sends statements in one text, in one unit, in messages of one write or one after another.
fn send(draft: &mut Draft, session: char, texts: &[String]) {
    match draft.random.u8(..6) {
        0..=2 => draft.query(session, texts.join("; ")),
        3 => {
            let frames = texts.iter().map(|text| Frame::Query(text.clone()));
            draft.frames(session, frames.collect());
        }
        4 => {
            let apart = draft.random.bool();
            let mut frames = Vec::new();
            for text in texts {
                let bound = draft.bound("", "", &[]);
                frames.extend([parse("", text), bound, execute("")]);
                if apart {
                    frames.push(Frame::Sync);
                }
            }
            if !apart {
                frames.push(Frame::Sync);
            }
            draft.frames(session, frames);
        }
        _ => texts.iter().for_each(|text| draft.query(session, text.as_str())),
    }
}

/// Another session holds a lock.
fn blocked(draft: &mut Draft, session: char) {
    let holder = ['e', 'f'][usize::from(draft.random.bool())];
    let (holds, waits) = draft.pick(&[
        &("update t_N set n = n + 10 where id = 6", "update t_N set n = n + 1 where id = 6"),
        &("update t_N set n = n + 10 where id = 6", "update t_N set n = n + 1 where id = 6 returning n"),
        &("update t_N set n = n + 10 where id = 6", "select n from t_N where id = 6 for update nowait"),
        &("update t_N set n = n + 10 where id = 6", "select n from t_N where id = 6 for update skip locked"),
        &("update t_N set n = n + 10 where id = 6", "delete from t_N where id = 6"),
        &("insert into t_N values (8)", "insert into t_N values (8)"),
        &("insert into t_N values (8)", "insert into t_N values (8) on conflict do nothing"),
        &("lock t_N in exclusive mode", "update t_N set n = n + 1 where id = 6"),
        &("lock t_N in access exclusive mode", "select n from t_N where id = 6"),
        &("update u_N set u = 9 where id = 6", "update u_N set u = 9 where id = 7"),
        &("delete from r_N where id = 1", "update u_N set k = 1 where id = 7"),
        &("select pg_advisory_xact_lock(4714)", "select pg_advisory_xact_lock(4714)"),
    ]);
    draft.query(holder, "begin");
    draft.query(holder, *holds);
    let texts = transaction(draft, Some(waits));
    send(draft, session, &texts);
    if draft.random.bool() {
        after(draft, session);
    }
    let end = draft.pick(&["commit", "rollback"]);
    draft.query(holder, end);
}

/// Two transactions wait for each other. The second one is the victim, because only it looks for a deadlock.
fn deadlock(draft: &mut Draft) {
    for (session, own) in [('a', "6"), ('b', "7")] {
        draft.query(session, "rollback");
        let timeout = if session == 'a' { "'20s'" } else { "'150ms'" };
        draft.query(session, "begin");
        draft.query(session, format!("set local lock_timeout = 0; set local deadlock_timeout = {timeout}"));
        draft.query(session, format!("update t_N set n = n + 1 where id = {own}"));
    }
    let first = vec![Frame::Query("update t_N set n = n + 1 where id = 7; commit".to_owned())];
    draft.steps.push(Step { session: 'a', waits: false, frames: first });
    let second = draft
        .pick(&["update t_N set n = n + 1 where id = 6; commit", "update t_N set n = n + 1 where id = 6"]);
    draft.query('b', second);
    draft.query('a', "select n from t_N where id = 7");
    after(draft, 'b');
    draft.query('b', "rollback");
}
