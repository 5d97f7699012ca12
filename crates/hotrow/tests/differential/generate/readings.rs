//! Constants in prepared statements: sessions with other settings prepare the same texts, for a transaction or for longer.
//! A SET in a transaction is its first statement, or follows another SET there.

use super::{Draft, bind, execute, parse};
use crate::program::Frame;

const TEXTS: &[&str] = &[
    "update t_N set at = '2020-01-01 10:00' where id = 1 returning extract(epoch from at)",
    "select extract(epoch from timestamptz '2020-01-01 10:00'), n from t_N where id = 1",
    "select date '01/02/2020' - date '2020-01-01'",
    "select n = null from t_N where id = 1",
];
const SETS: &[&str] = &[
    "set local timezone = 'Asia/Tokyo'",
    "set local timezone = 'Europe/Paris'",
    "set timezone = 'America/New_York'",
    "set local datestyle = 'iso, dmy'",
    "set local transform_null_equals = on",
    "select set_config('timezone', 'Asia/Tokyo', true)",
];

pub fn write(draft: &mut Draft) {
    draft.set_up(
        "create table t_N (id int primary key, n int, at timestamptz); insert into t_N values (1, 0)",
    );
    for _ in 0..draft.random.u8(5..20) {
        let session = draft.session();
        match draft.random.u8(..6) {
            0 => {
                let sql = draft.pick(&[
                    "set timezone = 'Asia/Tokyo'",
                    "reset timezone",
                    "deallocate all",
                    "discard all",
                ]);
                draft.query(session, sql);
            }
            1..4 => use_one(draft, session),
            _ => {
                draft.query(session, "begin");
                let set = draft.pick(SETS);
                draft.query(session, set);
                for _ in 0..draft.random.u8(1..5) {
                    use_one(draft, session);
                }
                let end = draft.pick(&["commit", "rollback"]);
                // A Query would remove the unnamed statement.
                if draft.random.bool() {
                    draft.query(session, end);
                } else {
                    let close = Frame::Close('S', "end".to_owned());
                    let frames = vec![close, parse("end", end), bind("", "end"), execute(""), Frame::Sync];
                    draft.frames(session, frames);
                    draft.frames(session, vec![bind("", ""), execute(""), Frame::Sync]);
                }
            }
        }
    }
}

/// A session prepares a statement, runs it, or closes it.
fn use_one(draft: &mut Draft, session: char) {
    let name = draft.pick(&["", "p", "q"]);
    let mut frames = match draft.random.u8(..6) {
        0 => vec![Frame::Close('S', name.to_owned())],
        1 | 2 => vec![Frame::Close('S', name.to_owned()), parse(name, draft.pick(TEXTS))],
        _ => vec![bind("", name), execute("")],
    };
    frames.push(Frame::Sync);
    draft.frames(session, frames);
}
