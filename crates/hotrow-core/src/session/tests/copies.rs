//! Programs of simulated clients with COPY and with cursors.

use hotrow_wire::frontend::{self, tag};
use hotrow_wire::{put_cstr, put_frame};

use super::program::Writer;

impl Writer<'_> {
    /// A cursor in a transaction or outside of one. It can be missing, or be there already.
    pub(super) fn cursor(&mut self) {
        let declare = format!("declare k cursor for select n from t where id = {}", self.row);
        for _ in 0..self.random.usize(1..8) {
            let text = match self.random.u8(..8) {
                ..2 => "begin",
                2 | 3 => &declare,
                4..6 => "fetch k",
                6 => "close k",
                _ => "copy t to stdout",
            };
            self.boundary(text);
        }
        let end = self.one(&["commit", "rollback"]);
        self.boundary(end);
    }

    pub(super) fn copy_data(&mut self) {
        let ends = [tag::COPY_DONE, tag::COPY_FAIL];
        let end = ends[self.random.usize(..2)];
        put_frame(&mut self.out, tag::COPY_DATA, |out| out.extend_from_slice(b"1\n"));
        put_frame(&mut self.out, end, |out| {
            if end == tag::COPY_FAIL {
                put_cstr(out, b"no");
            }
        });
    }

    /// A COPY by a portal, which a later Bind may replace or not.
    pub(super) fn copy_by_portal(&mut self) {
        if self.random.bool() {
            frontend::put_query(&mut self.out, "begin");
        }
        self.parse("copy", "copy t from stdin");
        self.bind("copy", "copy", 0);
        self.out.extend_from_slice(frontend::SYNC);
        for _ in 0..self.random.usize(..6) {
            match self.random.u8(..7) {
                0..2 => frontend::put_query(&mut self.out, "savepoint a"),
                2..4 => frontend::put_query(&mut self.out, "rollback to a"),
                4 => self.named(tag::CLOSE, false, "copy"),
                _ => {
                    let text = self.one(&["show work_mem", "deallocate a", "discard all"]);
                    self.parse("", text);
                    self.bind("copy", "", 0);
                    self.out.extend_from_slice(frontend::SYNC);
                }
            }
        }
        self.execute("copy");
        self.copy_data();
        self.named(tag::CLOSE, true, "copy");
        self.out.extend_from_slice(frontend::SYNC);
        frontend::put_query(&mut self.out, "rollback");
    }
}
