//! What the gateway answers for the server: a SET to the value in force, and the beginning of a transaction. The next messages
//! find the state that the server would have.

use bytes::BytesMut;
use hotrow_wire::frontend::{self, tag};

use super::program::Writer;
use super::random::{play_as, refused_after_failure, seeds};
use super::world::World;

const SET: &str = "set work_mem = '1MB'";

impl Writer<'_> {
    /// A SET until the gateway answers it, then the same among others and among units that a lane runs.
    fn write_kept(&mut self, units: usize) {
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
    fn write_portals_of_begin(&mut self, transactions: usize) {
        (0..3).for_each(|_| frontend::put_query(&mut self.out, SET));
        for _ in 0..transactions {
            self.parse("", "begin");
            self.bind("", "", 0);
            self.execute_for("", 0);
            self.out.extend_from_slice(frontend::SYNC);
            for _ in 0..self.random.usize(..3) {
                match self.random.u8(..4) {
                    0 => frontend::put_query(&mut self.out, SET),
                    1 => frontend::put_query(&mut self.out, "set hotrow.pack = on"),
                    2 => self.boundary(SET),
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
    fn write_describing_transactions(&mut self, transactions: usize) {
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

fn play(seed: u64, program: impl Fn(&mut fastrand::Rng, usize) -> BytesMut) {
    let change = |world: &mut World| {
        world.sends = 60;
        for client in &mut world.clients {
            (client.waits, client.sends_several) = (true, seed % 8 < 4);
        }
    };
    play_as(seed, change, program);
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
    assert!(seeds().count() == 1 || refused > 100, "{refused} statements");
}
