//! COPY in both directions, by both protocols, complete and in pieces, with errors before, in and after the data.

use super::{Draft, bind, execute, parse};
use crate::program::Frame;

const FROM: &[&str] = &[
    "copy t_N from stdin",
    "copy t_N (id) from stdin",
    "copy t_N from stdin with (format csv)",
    "copy refused_N from stdin",
    "copy nothing_N from stdin",
    "copy t_N from stdin; select 1",
];

const TO: &[&str] = &[
    "copy t_N to stdout",
    "copy (select id from t_N order by id) to stdout with (format csv, header)",
    "copy (select 1 / (id - 2) from t_N order by id) to stdout",
];

pub fn write(draft: &mut Draft) {
    draft.set_up("create table t_N (id int primary key, n int); insert into t_N values (1, 0), (2, 0);
        create table refused_N (a int);
        create function refuses_N() returns trigger language plpgsql as $$ begin raise exception 'not today'; end $$;
        create trigger g_N before insert on refused_N for each statement execute function refuses_N()");
    draft.set_up_watch();
    for _ in 0..draft.random.u8(3..12) {
        let session = draft.session();
        match draft.random.u8(..8) {
            0..=2 => simple(draft, session),
            3 | 4 => extended(draft, session),
            5 => {
                let text = draft.pick(TO);
                if draft.random.bool() {
                    draft.query(session, text);
                } else {
                    draft.frames(session, vec![parse("", text), bind("", ""), execute(""), Frame::Sync]);
                }
            }
            6 => draft.run(session, "update t_N set n = n + 1 where id = $1 returning n", &[Some("1")]),
            _ => {
                let sql = draft.pick(&["begin", "commit", "rollback", "select count(*) from t_N"]);
                draft.query(session, sql);
            }
        }
    }
}

fn data(draft: &mut Draft, frames: &mut Vec<Frame>) {
    for _ in 0..draft.random.u8(..4) {
        let lines = draft.pick(&["3\t1\n", "4\t1\n5\t1\n", "6", "\t2\n", "x\t1\n", "7,8\n", "9\n", "\\.\n"]);
        frames.push(Frame::CopyData(lines.to_owned()));
    }
}

fn ends(draft: &mut Draft) -> Frame {
    if draft.once_in(4) { Frame::CopyFail("changed my mind".to_owned()) } else { Frame::CopyDone }
}

fn simple(draft: &mut Draft, session: char) {
    let mut frames = vec![Frame::Query(draft.pick(FROM).to_owned())];
    if draft.once_in(3) {
        draft.frames(session, std::mem::take(&mut frames));
    }
    data(draft, &mut frames);
    frames.push(ends(draft));
    if draft.once_in(4) {
        frames.push(Frame::Query("select n from t_N where id = 1".to_owned()));
    }
    draft.frames(session, frames);
}

fn extended(draft: &mut Draft, session: char) {
    let text = draft.pick(FROM);
    let mut frames = vec![parse("", text), bind("", ""), execute("")];
    let piecewise = draft.random.bool();
    if draft.once_in(3) {
        frames.push(Frame::Sync); // as libpq does, before the data
    } else if draft.random.bool() {
        frames.push(Frame::Flush);
    }
    if piecewise {
        draft.frames(session, std::mem::take(&mut frames));
    }
    data(draft, &mut frames);
    frames.extend([ends(draft), Frame::Sync]);
    if draft.once_in(4) {
        frames.push(Frame::Query("select n from t_N where id = 1".to_owned()));
    }
    draft.frames(session, frames);
}
