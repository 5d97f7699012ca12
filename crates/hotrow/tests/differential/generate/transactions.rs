//! Transactions in blocks and without: savepoints, errors, isolation levels, several statements in one text, deferred
//! constraints, locks that another session holds.

use super::{Draft, SESSIONS, parse};
use crate::program::Frame;

const SETUP: &str = "create table t_N (id int primary key, n int not null default 0, u int unique deferrable initially deferred);
    insert into t_N (id) select generate_series(1, 6)";

const STEPS: &[&str] = &[
    "begin",
    "begin",
    "begin isolation level serializable",
    "start transaction isolation level serializable, read write, deferrable",
    "begin read write",
    "begin read only",
    "start transaction isolation level repeatable read",
    "commit",
    "commit",
    "commit",
    "end",
    "rollback",
    "rollback",
    "abort",
    "commit and chain",
    "rollback and chain",
    "savepoint s1",
    "rollback to s1",
    "release s1",
    "set transaction isolation level serializable",
    "set constraints all immediate",
    "set constraints all deferred",
    "select 1 / 0",
    "select 1; select 2; select 3",
    "begin; update t_N set n = n + 1 where id = 1; commit",
    "begin; update t_N set n = n + 1 where id = 2; select 1 / 0; commit",
    "begin; update t_N set n = n + 1 where id = 2; rollback",
    "update t_N set n = n + 1 where id = 3; update t_N set n = n + 1 where id = 4",
    "update t_N set n = n + 1 where id = 3; select 1 / 0",
    "update t_N set n = n + 1 where id = 3; commit; select n from t_N where id = 3",
    "savepoint outside; select 1",
    "lock t_N in share mode",
    "select n from t_N where id = 1 for update",
    "select n from t_N where id = 1 for update nowait",
    "select n from t_N where id = 2 for update skip locked",
    "show transaction_isolation",
    "show transaction_read_only",
    "",
    ";",
    "-- nothing",
    "selec 1",
    "update t_N set nothing = 1 where id = 1",
    "commit prepared 'nothing_N'",
    "vacuum t_N",
    "truncate t_N",
    "select count(*), sum(n) from t_N",
];

pub fn write(draft: &mut Draft) {
    draft.set_up(SETUP);
    draft.set_up_watch();
    for _ in 0..draft.random.u8(10..40) {
        let session = draft.session();
        match draft.random.u8(..10) {
            0..=3 => {
                let step = draft.pick(STEPS);
                if draft.once_in(4) { draft.run(session, step, &[]) } else { draft.query(session, step) }
            }
            4..=7 => {
                let id = draft.pick(&["1", "2", "3", "7"]);
                row(draft, session, id);
            }
            8 if draft.once_in(3) => chained(draft, session),
            8 => pipelined(draft, session),
            _ => draft.watch(),
        }
    }
    for session in SESSIONS {
        let end = draft.pick(&["commit", "rollback"]);
        draft.query(session, end);
    }
}

fn row(draft: &mut Draft, session: char, id: &str) {
    let id = Some(id);
    match draft.random.u8(..6) {
        0 | 1 => draft.run(session, "update t_N set n = n + 1 where id = $1 returning n", &[id]),
        2 => draft.run(session, "insert into t_N (id, u) values ($1, 1)", &[id]),
        3 => draft.run(session, "update t_N set u = 1 where id = $1", &[id]),
        4 => draft.run(session, "delete from t_N where id = $1", &[id]),
        _ => draft.run(session, "select n, u from t_N where id = $1", &[id]),
    }
}

/// Transactions that follow each other by AND CHAIN, some of which fail.
fn chained(draft: &mut Draft, session: char) {
    let begin = draft.pick(&[
        "begin",
        "begin read only",
        "begin isolation level serializable, read only, deferrable",
        "start transaction isolation level repeatable read",
    ]);
    draft.query(session, begin);
    for _ in 0..draft.random.u8(1..4) {
        let step = draft.pick(&["select 1", "select 1 / 0", "", "update t_N set n = n + 1 where id = 1"]);
        draft.query(session, step);
        let chain = draft.pick(&["commit and chain", "rollback and chain", "abort and chain"]);
        draft.query(session, chain);
    }
    draft.query(session, "show transaction_isolation");
    draft.query(session, "update t_N set n = n + 1 where id = 5");
}

/// A block whose statements are sent in one write, as separate messages or before one Sync.
fn pipelined(draft: &mut Draft, session: char) {
    let mut frames = Vec::new();
    let single = draft.random.bool();
    let end = draft.pick(&["commit", "commit", "rollback"]);
    let middle = draft.pick(&[
        "update t_N set n = n + 1 where id = 1",
        "update t_N set n = n / 0 where id = 1",
        "insert into t_N (id) values (1)",
        "select n from t_N where id = 1",
    ]);
    for text in ["begin", middle, "update t_N set n = n + 1 where id = 2 returning n", end] {
        if single {
            frames.push(Frame::Query(text.to_owned()));
            continue;
        }
        frames.extend([parse("", text), draft.bound("", "", &[]), super::execute("")]);
        if draft.once_in(3) {
            frames.push(Frame::Sync);
        }
    }
    if !single {
        frames.push(Frame::Sync);
    }
    draft.frames(session, frames);
}
