//! Event triggers that remove or prepare statements without a sign in the command: no session gets a connection whose
//! statements are gone, a session that has met such an error keeps its settings, and a Parse finds the name in use.

use bytes::BytesMut;
use hotrow_wire::frontend;

use super::program::Writer;
use super::random::{play, seeds};

/// A trigger that follows this command deallocates all statements.
const FORGETS: &str = "create view x as select 1";

/// A trigger that follows this command prepares the statement `q`.
const PREPARES: &str = "create view q as select 1";

impl Writer<'_> {
    /// Statements with a name, each prepared right before it is used, among commands after which statements are gone.
    pub(super) fn write_forgotten(&mut self, units: usize) {
        for _ in 0..units {
            match self.random.u8(..9) {
                ..3 => self.named_statement(),
                8 => self.takes_hidden_name(),
                3 => self.forgets_while_pinned(),
                4 => self.query_text(FORGETS),
                5 => self.setting_or_show(),
                _ => self.transactions_of_names(),
            }
        }
        self.out.extend_from_slice(frontend::SYNC);
    }

    fn query_text(&mut self, text: &str) {
        frontend::put_query(&mut self.out, text);
    }

    /// The client gives a statement the name of one that a trigger has prepared.
    fn takes_hidden_name(&mut self) {
        let in_transaction = self.random.bool();
        if in_transaction {
            self.query_text("begin");
        }
        self.query_text(PREPARES);
        self.parse("q", "select n from t where id = $1");
        self.out.extend_from_slice(frontend::SYNC);
        if in_transaction {
            self.query_text("rollback");
        }
        self.query_text("deallocate all");
    }

    fn setting_or_show(&mut self) {
        let texts = ["set work_mem = '1MB'", "set work_mem = '2MB'", "show work_mem", "reset work_mem"];
        let text = self.one(&texts);
        self.query_text(text);
    }

    /// Prepares a statement, and runs it once or twice in later units.
    fn named_statement(&mut self) {
        self.prepare_named();
        for _ in 0..self.random.usize(1..3) {
            self.run_named();
        }
    }

    fn prepare_named(&mut self) {
        self.named(frontend::tag::CLOSE, true, "a");
        let text = self.one(&["select n from t where id = $1", "update t set n = n + 1 where id = $1"]);
        self.parse("a", text);
        self.out.extend_from_slice(frontend::SYNC);
    }

    fn run_named(&mut self) {
        self.bind("", "a", 1);
        self.execute_for("", 0);
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// In a transaction the statement is used on a connection that other sessions have had before.
    fn transactions_of_names(&mut self) {
        self.prepare_named();
        for _ in 0..self.random.usize(1..5) {
            self.query_text("begin");
            self.run_named();
            self.query_text("commit");
        }
    }

    /// A session that keeps its connection loses a statement there, and then needs the connection no longer.
    fn forgets_while_pinned(&mut self) {
        self.query_text("prepare q as select 1");
        self.named_statement();
        self.query_text(FORGETS);
        self.run_named();
        for _ in 0..self.random.usize(..3) {
            self.setting_or_show();
        }
        self.query_text("deallocate all");
        self.query_text("show work_mem");
    }
}

fn forgotten(random: &mut fastrand::Rng, client: usize) -> BytesMut {
    let units = random.usize(1..8);
    let mut writer = Writer { random, out: BytesMut::new(), row: 10 * client as u64, is_countable: false };
    writer.write_forgotten(units);
    writer.out
}

#[test]
fn statements_that_a_trigger_removes_are_missing_in_no_other_session() {
    for seed in seeds().step_by(4) {
        play(seed, true, forgotten);
    }
}
