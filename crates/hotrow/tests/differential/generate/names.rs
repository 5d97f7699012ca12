//! Names of prepared statements: taken, freed, taken again, by the protocol and by SQL, in pipelines with errors, and in DO blocks.

use super::{Draft, bind, describe, execute, parse};
use crate::program::Frame;

pub fn write(draft: &mut Draft) {
    draft.set_up("create table t_N (id int primary key, n int); insert into t_N values (1, 0), (2, 0)");
    for _ in 0..draft.random.u8(5..18) {
        let session = draft.session();
        let mut frames = Vec::new();
        for _ in 0..draft.random.u8(1..4) {
            for _ in 0..draft.random.u8(1..4) {
                message(draft, &mut frames);
            }
            frames.push(Frame::Sync);
        }
        draft.frames(session, frames);
        if draft.once_in(3) {
            let sql = draft.pick(&[
                "prepare s1 as select 5",
                "prepare s2 (int) as update t_N set n = n + $1 where id = 1 returning n",
                "execute s1",
                "execute s2 (2)",
                "deallocate s1",
                "deallocate s2",
                "deallocate all",
                "discard plans",
                "begin",
                "rollback",
                "select 1 / 0",
            ]);
            draft.query(session, sql);
        }
        if draft.once_in(6) {
            hidden(draft, session);
        }
    }
}

/// A name that a DO block has given, which its text does not show.
fn hidden(draft: &mut Draft, session: char) {
    let prepares = "do $$ begin execute 'prepare s3 as select 5'; end $$";
    let query = |text: &str| Frame::Query(text.to_owned());
    let mut frames = vec![query("deallocate all"), query(prepares)];
    if draft.once_in(2) {
        draft.frames(session, std::mem::take(&mut frames));
    }
    frames.extend([parse("s3", "select 1"), Frame::Sync, bind("", "s3"), execute(""), Frame::Sync]);
    draft.frames(session, frames);
}

fn message(draft: &mut Draft, frames: &mut Vec<Frame>) {
    let name = draft.pick(&["s1", "s1", "s2"]);
    match draft.random.u8(..12) {
        0..=2 => {
            let text = draft.pick(&[
                "select 1",
                "select 2",
                "bad sql",
                "update t_N set n = n + 1 where id = 1 returning n",
                "update t_N set n = n / (n - n) where id = 1",
                "select n from t_N where id = 2",
                "prepare s1 as select 5",
                "deallocate s1",
                "deallocate all",
            ]);
            frames.push(parse(name, text));
        }
        3..=6 => frames.extend([bind("", name), execute("")]),
        7 | 8 => frames.push(Frame::Close('S', name.to_owned())),
        9 => frames.push(describe('S', name)),
        10 => frames.push(execute("nothing")),
        _ => {
            let text = draft.pick(&["deallocate s1", "select 3", "select 1 / 0", "prepare s2 as select 6"]);
            frames.extend([parse("", text), bind("", ""), execute("")]);
        }
    }
}
