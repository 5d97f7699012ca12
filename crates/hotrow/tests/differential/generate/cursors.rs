//! Cursors of SQL and portals of the protocol that are read in pieces.

use super::{Draft, bind, describe, parse};
use crate::program::Frame;

const STEPS: &[&str] = &[
    "begin",
    "commit",
    "rollback",
    "declare c1 cursor for select id from t_N order by id",
    "declare c1 scroll cursor with hold for select id from t_N order by id",
    "declare c2 no scroll cursor for select n from t_N order by id for update",
    "fetch c1",
    "fetch 2 from c1",
    "fetch backward 1 from c1",
    "fetch absolute 3 from c1",
    "move last in c1",
    "fetch all c1",
    "update t_N set n = n + 1 where current of c2",
    "fetch c2",
    "close c1",
    "close all",
    "select name, is_holdable from pg_cursors where name like 'c%' order by name",
    "update t_N set n = n + 1 where id = 1 returning n",
    "select n from t_N where id = 2",
    "discard all",
];

pub fn write(draft: &mut Draft) {
    draft.set_up("create table t_N (id int primary key, n int); insert into t_N select g, g from generate_series(1, 9) g");
    draft.set_up_watch();
    for _ in 0..draft.random.u8(10..35) {
        let session = draft.session();
        match draft.random.u8(..8) {
            0..=4 => {
                let step = draft.pick(STEPS);
                if draft.once_in(3) { draft.run(session, step, &[]) } else { draft.query(session, step) }
            }
            5 | 6 => portal(draft, session),
            _ => draft.watch(),
        }
    }
}

fn portal(draft: &mut Draft, session: char) {
    let name = draft.pick(&["", "p1", "p2"]);
    let mut frames = Vec::new();
    if draft.random.bool() {
        let text = draft.pick(&[
            "select id, n from t_N order by id",
            "select n from t_N where id = 3",
            "update t_N set n = n + 1 where id = 4 returning n",
            "select generate_series(1, 5)",
        ]);
        frames.extend([parse("", text), bind(name, "")]);
    }
    for _ in 0..draft.random.u8(1..4) {
        frames.push(match draft.random.u8(..6) {
            0 => describe('P', name),
            1 => Frame::Close('P', name.to_owned()),
            2 => Frame::Execute(name.to_owned(), 0),
            _ => Frame::Execute(name.to_owned(), 2),
        });
    }
    frames.push(Frame::Sync);
    draft.frames(session, frames);
}
