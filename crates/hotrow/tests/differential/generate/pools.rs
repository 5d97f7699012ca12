//! Many kinds of clients: each set of startup settings has its own pool.

use super::Draft;
use crate::program::{Frame, Step};

pub fn write(draft: &mut Draft) {
    draft.set_up_watch();
    for threshold in 2..110 {
        let options = format!("-c geqo_threshold={threshold}");
        let connect = Frame::Connect(vec![("options".to_owned(), options)]);
        draft.steps.push(Step::new('e', vec![connect]));
        draft.query('e', "select f from w_N where id = 1");
    }
}
