//! A slow statement with others beside it, and texts that take long to parse.

use super::Draft;
use crate::program::{Frame, Step};

pub fn write(draft: &mut Draft) {
    draft.set_up("create table t_N (id int primary key, n int); insert into t_N select g, 0 from generate_series(1, 5) g");
    for session in ['a', 'b', 'c'] {
        draft.query(session, "select n from t_N where id = 2");
        draft.query(session, "update t_N set n = n + 1 where id = 2");
    }
    if draft.once_in(3) {
        let sql = long_text(draft);
        draft.query('a', sql);
        return;
    }
    // Some seconds: more than the tolerance for an answer.
    let takes_long = ["30000 + id - id", "29999 + id - id", "29998 + id - id"]
        .map(|number| format!("length(factorial({number})::text)"))
        .join(" + ");
    let slow = match draft.random.u8(..2) {
        0 => format!("update t_N set n = {takes_long} where id = 1 returning n"),
        _ => format!("select n, {takes_long} from t_N where id = 3"),
    };
    draft.steps.push(Step { session: 'a', waits: false, frames: vec![Frame::Query(slow)] });
    for _ in 0..6 {
        let session = ['b', 'c', 'd'][draft.random.usize(..3)];
        let id = Some(draft.pick(&["2", "4", "5"]));
        let sql = draft
            .pick(&["select n from t_N where id = $1", "update t_N set n = n + 1 where id = $1 returning n"]);
        draft.run(session, sql, &[id]);
    }
    draft.query('a', "select 1");
}

/// A statement whose length is near the limit for packing.
fn long_text(draft: &mut Draft) -> String {
    let times = 60_000;
    match draft.random.u8(..5) {
        0 => format!("select {}1{}", "(".repeat(times / 8), ")".repeat(times / 8)),
        1 => format!("select {}1", "- ".repeat(times / 2)),
        2 => format!("select n from t_N where id = 1{}", " or id = 2".repeat(times / 10)),
        3 => format!("select {}1", "1,".repeat(1_600)),
        _ => format!("select n from t_N where id in ({}1)", "1,".repeat(times / 2 - 20)),
    }
}
