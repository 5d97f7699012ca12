//! The messages of simulated clients: random, in the forms that drivers use, and in others.

use bytes::BytesMut;
use hotrow_wire::frontend::{self, ObjectName, Parse, tag};
use hotrow_wire::{put_cstr, put_frame};

use super::replicas::SHARED_ROW;

/// Writes the messages of one client, which uses two rows that no other client uses, and reads a shared one.
pub struct Writer<'r> {
    pub random: &'r mut fastrand::Rng,
    pub out: BytesMut,
    /// The client's first row.
    pub row: u64,
    /// Only statements whose effect can be counted, each in a unit of its own.
    pub is_countable: bool,
}

/// The row from which a client's calls take, after its first row. Only another client puts something there.
pub const BOX: u64 = 2;

/// The last one is also a name that the gateway gives to a statement on its connections.
const NAMES: [&str; 4] = ["", "a", "b", "hotrow_1"];
pub(super) const UPDATE: &str = "update t set n = n + 1 where id = $1";
const UPDATE_RETURNING: &str = "update t set n = n + 1 where id = $1 returning n";
const UPDATE_BOTH: &str = "update t set n = n + $1 where id = $2";
const SELECT: &str = "select n from t where id = $1";
const TAKE: &str = "update t set n = n - 1 where n > 0 and id = $1";
const FAILS: &str = "update t set n = n / 0 where id = $1";

impl Writer<'_> {
    /// One client's messages.
    pub fn write(&mut self, units: usize) {
        let listens = !self.is_countable && self.random.u8(..3) == 0;
        if listens {
            frontend::put_query(&mut self.out, &format!("listen c{}", self.row));
        }
        for _ in 0..units {
            let notifying = if listens && self.random.u8(..3) == 0 { self.random.usize(1..6) } else { 0 };
            for _ in 0..notifying {
                let text = self.notifying();
                frontend::put_query(&mut self.out, &text);
            }
            match (self.is_countable, self.random.u8(..10)) {
                (true, ..4) => self.typical(),
                (true, 4..6) => self.query(false),
                (true, 6) => self.take(),
                (true, 7) => (0..4).for_each(|_| self.read()),
                (true, _) => self.countable_transaction(),
                (false, ..4) => self.typical(),
                (false, 4..7) => self.query(true),
                (false, 7) if self.random.u8(..3) == 0 => self.copy_by_portal(),
                (false, 7) => self.transaction(),
                (false, _) => self.anything(),
            }
        }
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// One client's messages: statements with a constant, among commands that decide what the constant means. Such a command
    /// in a transaction is the first one there, or follows another one.
    pub fn write_constants(&mut self, units: usize) {
        for _ in 0..units {
            match self.random.u8(..8) {
                ..4 => self.constants(),
                4 => {
                    let text =
                        self.one(&["set TimeZone = 'Etc/GMT+1'", "reset all", "discard all", "deallocate a"]);
                    self.setting(text);
                }
                5 => {
                    self.parse("", UPDATE);
                    self.bind("", "", 1);
                    self.execute("");
                    self.out.extend_from_slice(frontend::SYNC);
                }
                _ => self.local_constants(),
            }
        }
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// A transaction with other settings.
    fn local_constants(&mut self) {
        let sets = [
            "set local TimeZone = 'Etc/GMT+2'",
            "set local TimeZone = 'Etc/GMT+3'",
            "set TimeZone = 'Etc/GMT+2'",
        ];
        self.boundary("begin");
        let set = self.one(&sets);
        self.setting(set);
        let mut has_savepoint = false;
        for _ in 0..self.random.usize(..6) {
            match self.random.u8(..6) {
                0 => {
                    let set = self.one(&sets);
                    self.setting(set);
                }
                1 if has_savepoint => self.boundary("rollback to a"),
                1 => {
                    self.boundary("savepoint a");
                    has_savepoint = true;
                }
                _ => self.constants(),
            }
        }
        let end = self.one(&["commit", "commit", "rollback"]);
        self.boundary(end);
    }

    /// A command that decides what constants mean: the first message of its unit, apart from its own Parse.
    pub(super) fn setting(&mut self, text: &str) {
        let mut name = self.one(&["", "s"]);
        match self.random.u8(..3) {
            0 => return frontend::put_query(&mut self.out, text),
            1 if !name.is_empty() => {
                self.named(tag::CLOSE, true, name);
                self.out.extend_from_slice(frontend::SYNC);
                self.parse(name, text);
                self.out.extend_from_slice(frontend::SYNC);
            }
            _ => {
                self.parse("", text);
                name = "";
            }
        }
        self.bind("", name, 0);
        self.execute("");
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// Prepares a statement with a constant, or runs one.
    pub(super) fn constants(&mut self) {
        let name = self.one(&["", "a", "b", "c"]);
        match self.random.u8(..5) {
            ..2 => {
                if !name.is_empty() {
                    self.named(tag::CLOSE, true, name);
                }
                let text = self.one(&["select 'c'", "select 'c'", "select 'd'"]);
                self.parse(name, text);
            }
            2 => self.named(tag::DESCRIBE, true, name),
            _ => {
                self.bind("", name, 0);
                self.execute("");
            }
        }
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// One client's messages: mostly reads of its rows and of the shared row, among updates, preparations and commands.
    pub fn write_reads(&mut self, units: usize) {
        for _ in 0..units {
            match self.random.u8(..18) {
                ..9 => self.read(),
                9 => self.typical(),
                10 => self.prepares(),
                11 => self.block(),
                12..15 => self.reading_transaction(),
                15 => frontend::put_query(&mut self.out, "show work_mem"),
                _ => {
                    let text = self.literal();
                    frontend::put_query(&mut self.out, &text);
                }
            }
        }
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// A transaction of reads and updates as separate messages.
    fn reading_transaction(&mut self) {
        self.boundary("begin");
        for _ in 0..self.random.usize(..4) {
            let text = self.literal();
            frontend::put_query(&mut self.out, &text);
        }
        let end = self.one(&["commit", "commit", "rollback"]);
        self.boundary(end);
    }

    /// A SET until the gateway answers it, then transactions with this SET as a first, a later or a last statement.
    pub fn write_sets_in_transactions(&mut self) {
        const SET: &str = "set work_mem = '1MB'";
        (0..3).for_each(|_| frontend::put_query(&mut self.out, SET));
        for _ in 0..6 {
            frontend::put_query(&mut self.out, "begin");
            for _ in 0..self.random.usize(1..4) {
                let text = if self.random.bool() { SET.to_owned() } else { self.literal() };
                frontend::put_query(&mut self.out, &text);
            }
            let end = self.one(&["commit", "rollback"]);
            frontend::put_query(&mut self.out, end);
        }
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// Reads, then a unit that only prepares and describes a statement, and one more read.
    pub fn write_reads_around_preparing(&mut self) {
        let read = SELECT.replace("$1", &self.row.to_string());
        (0..3).for_each(|_| frontend::put_query(&mut self.out, &read));
        self.parse("a", UPDATE);
        self.named(tag::DESCRIBE, true, "a");
        self.out.extend_from_slice(frontend::SYNC);
        frontend::put_query(&mut self.out, &read);
    }

    /// Reads the shared row or a row of the client.
    pub(super) fn read(&mut self) {
        let row = if self.random.bool() { SHARED_ROW } else { self.row() };
        frontend::put_query(&mut self.out, &SELECT.replace("$1", &row.to_string()));
    }

    pub(super) fn row(&mut self) -> u64 {
        self.row + self.random.u64(..2)
    }

    pub(super) fn one<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[self.random.usize(..texts.len())]
    }

    /// A statement with literals, for a Query.
    pub(super) fn literal(&mut self) -> String {
        let row = self.row().to_string();
        self.one(&[UPDATE, UPDATE, UPDATE_RETURNING, SELECT, FAILS]).replace("$1", &row)
    }

    pub(super) fn command(&mut self) -> String {
        let texts = [
            "begin",
            "commit",
            "rollback",
            "savepoint a",
            "rollback to a",
            "deallocate a",
            "deallocate b",
            "deallocate hotrow_1",
            "deallocate all",
            "deallocate all; show work_mem",
            "selct",
            "",
            "set work_mem = '1MB'",
            "set work_mem = '1MB'",
            "set work_mem = '2MB'",
            "show work_mem",
            "show work_mem",
            "set application_name = 'x'",
            "reset all",
            "discard all",
            "prepare a as select 1",
            "create table x ()",
        ];
        match self.random.u8(..6) {
            0 => self.notifying(),
            _ => self.one(&texts).to_owned(),
        }
    }

    /// A statement about a channel that no other client uses.
    fn notifying(&mut self) -> String {
        let texts = [
            "listen c",
            "listen c",
            "listen d",
            "unlisten c",
            "unlisten d",
            "unlisten *",
            "notify c, '1'",
            "notify c, '1'",
            "notify c, '2'",
            "notify d, '1'",
            "select pg_listening_channels()",
        ];
        let row = self.row;
        self.one(&texts)
            .replace("n c", &format!("n c{row}"))
            .replace("n d", &format!("n d{row}"))
            .replace("y c", &format!("y c{row}"))
            .replace("y d", &format!("y d{row}"))
    }

    fn query(&mut self, any: bool) {
        let text = match (any, self.random.u8(..12)) {
            (false, _) | (_, ..5) => self.literal(),
            (_, 5) => format!("{}; {}", self.literal(), self.literal()),
            (_, 6) => return self.block(),
            (_, 7) => {
                frontend::put_query(&mut self.out, "copy t from stdin");
                return self.copy_data();
            }
            (_, 8) => return self.boundary("copy t to stdout"),
            (_, 9) => return self.cursor(),
            _ => self.command(),
        };
        frontend::put_query(&mut self.out, &text);
    }

    /// A call that waits if it finds nothing.
    fn take(&mut self) {
        let row = (self.row + BOX).to_string();
        self.parse("", TAKE);
        self.bind_values("", "", &[row.as_bytes()]);
        self.execute("");
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// A transaction whose statements are units of their own.
    fn countable_transaction(&mut self) {
        frontend::put_query(&mut self.out, "begin");
        for _ in 0..self.random.usize(1..4) {
            self.query(false);
        }
        let end = self.one(&["commit", "commit", "rollback"]);
        frontend::put_query(&mut self.out, end);
    }

    /// A transaction in one message, sometimes with a statement that the gateway answers itself.
    pub(super) fn block(&mut self) {
        let text = format!("begin; {}; {}; commit", self.literal(), self.literal());
        frontend::put_query(&mut self.out, &text);
        match self.random.u8(..3) {
            0 => frontend::put_query(&mut self.out, "deallocate b"),
            1 => {
                self.named(tag::CLOSE, true, "b");
                self.out.extend_from_slice(frontend::SYNC);
            }
            _ => {}
        }
    }

    /// BEGIN, statements and COMMIT as separate messages.
    fn transaction(&mut self) {
        self.boundary("begin");
        for _ in 0..self.random.usize(..4) {
            match self.random.u8(..6) {
                ..2 => self.typical(),
                2 => self.anything(),
                3 => self.prepares(),
                _ => {
                    let text = self.literal();
                    frontend::put_query(&mut self.out, &text);
                }
            }
        }
        let end = self.one(&["commit", "commit", "commit", "rollback", ""]);
        self.boundary(end);
    }

    /// Statements that are prepared and described in a unit of their own, as drivers do it before the first run. A name that
    /// is in use is an error.
    pub(super) fn prepares(&mut self) {
        for _ in 0..self.random.usize(1..3) {
            let name = self.one(&NAMES);
            if self.random.bool() {
                self.named(tag::CLOSE, true, name);
            }
            let text = self.one(&[UPDATE, UPDATE, UPDATE_RETURNING, SELECT, "selct"]);
            self.parse(name, text);
            self.named(tag::DESCRIBE, true, name);
        }
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// Transactions that begin with such units, and go on after their errors.
    pub fn write_names_in_use(&mut self) {
        for _ in 0..self.random.usize(1..4) {
            self.boundary("begin");
            for _ in 0..self.random.usize(1..4) {
                match self.random.u8(..6) {
                    ..2 => {
                        let text = self.literal();
                        frontend::put_query(&mut self.out, &text);
                    }
                    2 => self.typical(),
                    _ => self.prepares(),
                }
            }
            let end = self.one(&["commit", "rollback"]);
            self.boundary(end);
        }
    }

    /// Transactions that change the gateway's settings. Their values are shown by Queries, which the gateway answers.
    pub fn write_switches(&mut self, units: usize) {
        const SHOWS: [&str; 2] = ["show hotrow.pack", "show hotrow.reads"];
        const CHANGES: [&str; 10] = [
            "set hotrow.pack = off",
            "set hotrow.pack = on",
            "set local hotrow.pack = off",
            "set hotrow.pack = shadow",
            "set local hotrow.pack = shadow",
            "reset hotrow.pack",
            "set hotrow.reads = replica",
            "set local hotrow.reads = 'primary'",
            "reset all",
            "discard all",
        ];
        self.boundary("set hotrow.reads = 'primary'");
        for _ in 0..units {
            let is_transaction = self.random.u8(..4) > 0;
            if is_transaction {
                self.boundary("begin");
            }
            for _ in 0..self.random.usize(..12) {
                match self.random.u8(..10) {
                    ..3 => {
                        let change = self.one(&CHANGES);
                        self.boundary(change);
                    }
                    3 | 4 if is_transaction => {
                        let texts = [
                            "savepoint a",
                            "savepoint b",
                            "release a",
                            "release b",
                            "rollback to a",
                            "rollback to b",
                        ];
                        let text = self.one(&texts);
                        self.boundary(text);
                    }
                    5 if is_transaction => {
                        let several =
                            ["savepoint a; savepoint b; rollback to a", "commit; begin", "rollback; begin"];
                        let text = self.one(&several);
                        frontend::put_query(&mut self.out, text);
                    }
                    6 if self.random.bool() => self.typical(),
                    6 => self.prepares(),
                    7 => {
                        // An error takes back the changes of its unit.
                        let change = self.one(&CHANGES);
                        self.parse("", change);
                        self.bind("", "", 0);
                        self.execute("");
                        self.typical();
                    }
                    _ => {
                        let show = self.one(&SHOWS);
                        frontend::put_query(&mut self.out, show);
                    }
                }
            }
            if is_transaction {
                let end = self.one(&["commit", "commit", "rollback"]);
                self.boundary(end);
            }
            SHOWS.iter().for_each(|show| frontend::put_query(&mut self.out, show));
        }
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// A command without parameters, by a Query or an extended query.
    pub(super) fn boundary(&mut self, text: &str) {
        if self.random.bool() {
            return frontend::put_query(&mut self.out, text);
        }
        let name = self.one(&["", "", "begin"]);
        if !name.is_empty() {
            self.named(tag::CLOSE, true, name);
        }
        self.parse(name, text);
        let describes = self.random.u8(..4);
        if describes == 0 {
            self.named(tag::DESCRIBE, true, name);
        }
        self.bind("", name, 0);
        if describes == 1 {
            self.named(tag::DESCRIBE, false, "");
        }
        self.execute("");
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// One statement or several up to a Sync, as drivers send them.
    pub(super) fn typical(&mut self) {
        let count = if self.random.u8(..4) == 0 && !self.is_countable { 2 } else { 1 };
        for _ in 0..count {
            let name = self.one(&NAMES);
            let text = self.one(&[UPDATE, UPDATE_RETURNING, UPDATE_BOTH, SELECT, FAILS]);
            let parses = name.is_empty() || self.random.u8(..3) == 0;
            if parses {
                if !name.is_empty() && self.random.bool() {
                    self.named(tag::CLOSE, true, name);
                }
                self.parse(name, text);
            }
            let describes = self.random.u8(..4);
            if describes == 0 {
                self.named(tag::DESCRIBE, true, name);
            }
            let count = if parses { text.matches('$').count() } else { 1 };
            self.bind("", name, count);
            if describes == 1 {
                self.named(tag::DESCRIBE, false, "");
            }
            self.execute("");
        }
        if self.random.u8(..8) == 0 {
            self.named(tag::CLOSE, true, "b");
        }
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// Messages in any order.
    fn anything(&mut self) {
        for _ in 0..self.random.usize(1..6) {
            let name = self.one(&NAMES);
            let portal = self.one(&["", "", "p"]);
            match self.random.u8(..14) {
                0..3 => {
                    let command = self.command();
                    let text = self.one(&[UPDATE, UPDATE_RETURNING, SELECT, FAILS, &command, &command]);
                    let text = text.to_owned();
                    self.parse(name, &text);
                }
                3..6 => {
                    let count = self.random.usize(..2);
                    self.bind(portal, name, count);
                }
                6 => self.named(tag::DESCRIBE, true, name),
                7 => self.named(tag::DESCRIBE, false, portal),
                8..10 => self.execute(portal),
                10 => self.named(tag::CLOSE, true, name),
                11 => self.named(tag::CLOSE, false, portal),
                12 => self.out.extend_from_slice(frontend::FLUSH),
                _ => {
                    put_frame(&mut self.out, tag::FUNCTION_CALL, |out| out.extend_from_slice(&[0; 10]));
                }
            }
        }
        if self.random.u8(..4) > 0 {
            self.out.extend_from_slice(frontend::SYNC);
        }
    }

    pub(super) fn parse(&mut self, name: &str, text: &str) {
        // Some drivers declare types: an integer, or another type for which the text is another statement.
        let integer = if self.random.bool() { 23_u32 } else { 20 };
        let declared = if self.random.u8(..4) == 0 { text.matches('$').count() } else { 0 };
        let types = integer.to_be_bytes().repeat(declared);
        Parse { name: name.as_bytes(), text: text.as_bytes(), types: &types }.put(&mut self.out);
    }

    pub(super) fn bind(&mut self, portal: &str, name: &str, count: usize) {
        let row = self.row().to_string();
        let values = [b"1", row.as_bytes()];
        self.bind_values(portal, name, &values[2 - count.min(2)..]);
    }

    fn bind_values(&mut self, portal: &str, name: &str, values: &[&[u8]]) {
        let mut bind = BytesMut::new();
        frontend::put_bind_text(&mut bind, name.as_bytes(), values.iter().copied());
        let frame = hotrow_wire::split(&bind, |_| usize::MAX).ok().flatten().expect("just written");
        let bind = frontend::Bind::read(frame.body()).expect("just written");
        bind.put(portal.as_bytes(), name.as_bytes(), &mut self.out);
    }

    pub(super) fn named(&mut self, tag: u8, statement: bool, name: &str) {
        ObjectName { statement, name: name.as_bytes() }.put(tag, &mut self.out);
    }

    pub(super) fn execute(&mut self, portal: &str) {
        self.execute_for(portal, 0);
    }

    /// Runs a portal for this number of rows, or for all of them if it is 0.
    pub(super) fn execute_for(&mut self, portal: &str, rows: u8) {
        put_frame(&mut self.out, tag::EXECUTE, |out| {
            put_cstr(out, portal.as_bytes());
            out.extend_from_slice(&[0, 0, 0, rows]);
        });
    }
}
