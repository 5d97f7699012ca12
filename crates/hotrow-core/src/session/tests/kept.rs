//! What the gateway answers for the server: SETs whose outcome is known, and the beginning of a transaction. The next messages
//! find the state that the server would have.

use bytes::BytesMut;
use hotrow_wire::frontend::{self, tag};

use super::program::Writer;
use super::random::{Counts, is_often, play_as, refused_after_failure, seeds};
use super::world::World;

const SET: &str = "set work_mem = '1MB'";

impl Writer<'_> {
    /// A SET until the gateway answers it, then the same among others and among units that a lane runs.
    pub(super) fn write_kept(&mut self, units: usize) {
        (0..3).for_each(|_| self.boundary(SET));
        let listens = self.random.bool();
        if listens {
            let listen = format!("listen c{}", self.row);
            self.boundary(&listen);
        }
        for _ in 0..units {
            match self.random.u8(..10) {
                ..3 => self.boundary(SET),
                // Sometimes the session cannot move to the pool with this setting, and then goes back.
                3 | 4 if !listens => {
                    self.boundary("set work_mem = '2MB'");
                    self.boundary(SET);
                }
                3..7 => frontend::put_query(&mut self.out, "show work_mem"),
                7 => {
                    let text = self.literal();
                    frontend::put_query(&mut self.out, &text);
                }
                _ => self.unnamed_after_lane(),
            }
        }
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// SETs that lead to a few settings, again and again, and statements that show the settings. `reads`: also settings that
    /// decide what constants mean, and statements with constants.
    pub(super) fn write_moves(&mut self, units: usize, reads: bool) {
        const SETS: [&str; 5] = [
            "set work_mem = '1MB'",
            "set work_mem = '2MB'",
            "set work_mem = '4MB'",
            "set TimeZone = 'Etc/GMT+1'",
            "set TimeZone = 'UTC'",
        ];
        const TEXTS: [&str; 6] = [
            "set work_mem = '1MB'; set jit = 'off'",
            "set work_mem = '1MB'; selct",
            "set work_mem = '3MB'; show work_mem",
            "set jit = 'on'; set local work_mem = '1MB'",
            "set work_mem = '2MB'; set TimeZone = 'Etc/GMT+1'",
            "reset TimeZone; set work_mem = '1MB'",
        ];
        const SHOWS: [&str; 3] = ["show work_mem", "show TimeZone", "show jit"];
        const OTHERS: [&str; 4] = ["begin", "reset all", "set app.x = '1'", "discard all"];
        let first = |all: usize| if reads { all } else { all - 2 };
        for _ in 0..units {
            match self.random.u8(..16) {
                ..5 => {
                    let text = SETS[self.random.usize(..first(SETS.len()))];
                    self.setting(text);
                }
                5 | 6 => {
                    let text = TEXTS[self.random.usize(..first(TEXTS.len()))];
                    frontend::put_query(&mut self.out, text);
                }
                7 | 8 => {
                    let text = self.one(&SHOWS);
                    self.setting(text);
                }
                9 | 10 if reads => self.constants(),
                11 => {
                    let text = OTHERS[self.random.usize(..first(OTHERS.len()))];
                    self.boundary(text);
                }
                12 => {
                    let listen = format!("listen c{}", self.row);
                    self.boundary(&listen);
                }
                13 => self.boundary("commit"),
                _ => self.unnamed_after_lane(),
            }
        }
        self.boundary("rollback");
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// The unnamed statement is that of the SET, also if a lane has not answered the unit before.
    fn unnamed_after_lane(&mut self) {
        for (text, count) in [("update t set n = n + 1 where id = $1", 1), (SET, 0)] {
            self.parse("", text);
            self.bind("", "", count);
            self.execute_for("", 0);
            self.out.extend_from_slice(frontend::SYNC);
        }
        self.bind("", "", 0);
        self.execute_for("", 0);
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// Transactions that the gateway begins by a portal. The client may close it and then run it again.
    pub(super) fn write_portals_of_begin(&mut self, transactions: usize) {
        (0..3).for_each(|_| frontend::put_query(&mut self.out, SET));
        for _ in 0..transactions {
            self.parse("", "begin");
            self.bind("", "", 0);
            self.execute_for("", 0);
            self.out.extend_from_slice(frontend::SYNC);
            for _ in 0..self.random.usize(..3) {
                match self.random.u8(..5) {
                    0 => frontend::put_query(&mut self.out, SET),
                    1 => frontend::put_query(&mut self.out, "set hotrow.pack = on"),
                    2 => self.boundary(SET),
                    3 => frontend::put_query(&mut self.out, "selct"),
                    _ => {
                        self.named(tag::CLOSE, false, "");
                        self.out.extend_from_slice(frontend::SYNC);
                    }
                }
            }
            if self.random.bool() {
                self.execute_for("", 0);
                self.out.extend_from_slice(frontend::SYNC);
            }
            let text = self.literal();
            frontend::put_query(&mut self.out, &text);
            let end = self.one(&["commit", "rollback"]);
            frontend::put_query(&mut self.out, end);
        }
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// Transactions that begin with units that only prepare and describe statements.
    pub(super) fn write_describing_transactions(&mut self, transactions: usize) {
        for _ in 0..transactions {
            frontend::put_query(&mut self.out, "begin");
            for _ in 0..self.random.usize(1..4) {
                let describes = self.random.bool();
                if describes {
                    self.named(tag::CLOSE, true, "a");
                    self.parse("a", "update t set n = n + 1 where id = $1");
                    self.named(tag::DESCRIBE, true, "a");
                    self.out.extend_from_slice(frontend::SYNC);
                } else {
                    let text = self.literal();
                    frontend::put_query(&mut self.out, &text);
                }
            }
            let end = self.one(&["commit", "rollback"]);
            frontend::put_query(&mut self.out, end);
        }
        self.out.extend_from_slice(frontend::SYNC);
    }
}

fn writer(random: &mut fastrand::Rng, client: usize) -> Writer<'_> {
    Writer { random, out: BytesMut::new(), row: 10 * client as u64, is_countable: false }
}

/// Whether the clients send several units together.
fn sends_several(seed: u64) -> bool {
    seed % 8 < 4
}

fn play(seed: u64, program: impl Fn(&mut fastrand::Rng, usize) -> BytesMut) -> Counts {
    let change = |world: &mut World| {
        world.sends = 60;
        for client in &mut world.clients {
            (client.waits, client.sends_several) = (true, sends_several(seed));
        }
    };
    play_as(seed, change, program)
}

#[test]
fn a_set_that_the_gateway_answers_has_its_place_among_units_and_notifications() {
    for seed in seeds().step_by(4) {
        play(seed, |random, client| {
            let units = random.usize(1..16);
            let mut writer = writer(random, client);
            writer.write_kept(units);
            writer.out
        });
    }
}

#[test]
fn a_set_that_moves_a_session_without_a_connection_changes_what_the_server_would_change() {
    let mut sum = Counts::default();
    for seed in seeds().step_by(2) {
        sum.add(&play(seed, |random, client| {
            let units = random.usize(8..40);
            let mut writer = writer(random, client);
            writer.write_moves(units, !sends_several(seed));
            writer.out
        }));
    }
    assert!(["entered", "not entered"].iter().all(|step| is_often(sum.of(step), 100)), "{sum:?}");
}

#[test]
fn the_portal_of_a_begin_that_the_gateway_answers_is_there_until_it_is_closed() {
    for seed in seeds().step_by(4) {
        play(seed, |random, client| {
            let transactions = random.usize(1..6);
            let mut writer = writer(random, client);
            writer.write_portals_of_begin(transactions);
            writer.out
        });
    }
}

/// A unit that only prepares may be cancelled while it waits for a connection. The transaction has failed then, and the server
/// must not run its later statements outside of it.
#[test]
fn a_transaction_whose_preparation_was_refused_runs_nothing() {
    let mut refused = 0;
    for seed in seeds().step_by(4) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut writer = writer(&mut random, 0);
        writer.write_describing_transactions(6);
        let program = writer.out;
        let mut world = World::new(random, vec![program]);
        (world.waits, world.cancels) = (true, 12);
        world.clients[0].waits = true;
        world.run();
        refused += refused_after_failure(seed, &world.clients[0].received);
    }
    assert!(is_often(refused, 100), "{refused} statements");
}
