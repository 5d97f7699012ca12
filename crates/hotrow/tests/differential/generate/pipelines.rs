//! Messages of the extended protocol in any order, with errors and other messages between them.

use super::{Draft, bind, describe, execute, parse};
use crate::program::Frame;

const TEXTS: &[&str] = &[
    "select 1",
    "select 1 / 0",
    "bad sql",
    "",
    "update t_N set n = n + 1 where id = 1",
    "update t_N set n = n + 1 where id = 2 returning n",
    "update t_N set n = n / 0 where id = 1",
    "select n from t_N where id = 1",
    "insert into t_N values (1, 5)",
    "insert into t_N values (9, 5) on conflict (id) do update set n = t_N.n + 1 returning n",
    "delete from t_N where id = 9",
    "begin",
    "commit",
    "rollback",
    "set work_mem = '5MB'",
    "select generate_series(1, 3)",
];

const HELD_BACK: &[&str] = &[
    "deallocate all",
    "discard all",
    "reset all",
    "unlisten *",
    "select 2",
    "update t_N set n = n + 1 where id = 3 returning n",
    "begin; update t_N set n = n + 1 where id = 3; commit",
    "deallocate s1",
    "bad sql",
    "select 1 / 0",
];

pub fn write(draft: &mut Draft) {
    draft.set_up("create table t_N (id int primary key, n int); insert into t_N select g, 0 from generate_series(1, 5) g");
    draft.set_up_watch();
    for _ in 0..draft.random.u8(4..14) {
        let session = draft.session();
        let mut frames = Vec::new();
        for _ in 0..draft.random.u8(1..5) {
            unit(draft, &mut frames);
            match draft.random.u8(..10) {
                0 => {
                    let text = draft.pick(HELD_BACK).to_owned();
                    frames.push(Frame::Query(text));
                }
                1 => frames.push(Frame::Flush),
                2 => {}
                _ => frames.push(Frame::Sync),
            }
        }
        frames.push(Frame::Sync);
        draft.frames(session, frames);
        if draft.once_in(6) {
            draft.watch();
        }
    }
}

/// Messages that mostly belong together.
fn unit(draft: &mut Draft, frames: &mut Vec<Frame>) {
    let name = draft.pick(&["", "", "s1", "s2"]);
    let portal = draft.pick(&["", "", "", "p1"]);
    match draft.random.u8(..10) {
        0..=4 => {
            let text = draft.pick(TEXTS);
            frames.extend([parse(name, text), bind(portal, name)]);
            if draft.random.bool() {
                frames.push(describe('P', portal));
            }
            frames.push(execute(portal));
        }
        5 => frames.extend([bind(portal, name), execute(portal)]),
        6 => {
            let text = draft.pick(TEXTS);
            frames.extend([parse(name, text), describe('S', name)]);
        }
        7 => frames.push(Frame::Close(if draft.random.bool() { 'S' } else { 'P' }, name.to_owned())),
        8 => frames.extend([bind(portal, name), execute(portal), bind(portal, name), execute(portal)]),
        _ => frames.push(match draft.random.u8(..4) {
            0 => execute("nothing"),
            1 => describe('S', "nothing"),
            2 => bind("", "nothing"),
            _ => describe('P', portal),
        }),
    }
}
