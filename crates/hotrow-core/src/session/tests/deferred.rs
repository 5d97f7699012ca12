//! Writes that transactions hold back have the outcome of which their clients were told, and are neither lost nor run twice.

use bytes::BytesMut;
use hotrow_wire::frontend::{self, tag};

use super::program::{UPDATE, Writer};
use super::random::{Counts, is_often, play_as, play_with_faults, program, seeds};
use super::world::World;
use crate::pack_mode::PackMode;

impl Writer<'_> {
    /// Transactions whose messages come one by one: updates in all forms, some of them prepared there, among reads, savepoints,
    /// statements that fail and commands.
    pub fn write_transactions(&mut self, units: usize) {
        for _ in 0..units {
            self.boundary("begin");
            for _ in 0..self.random.usize(..6) {
                match self.random.u8(..18) {
                    ..8 => {
                        let text = UPDATE.replace("$1", &self.row().to_string());
                        frontend::put_query(&mut self.out, &text);
                    }
                    8..10 => self.typical(),
                    10 => self.prepares(),
                    11 => self.read(),
                    12 => {
                        let text = self.one(&["savepoint a", "rollback to a", "rollback to a", "release a"]);
                        self.boundary(text);
                    }
                    13 => {
                        let text = self.command();
                        frontend::put_query(&mut self.out, &text);
                    }
                    14 => {
                        let text = self.literal();
                        frontend::put_query(&mut self.out, &text);
                    }
                    15 => self.block(),
                    16 => self.out.extend_from_slice(frontend::SYNC),
                    _ => {
                        let is_statement = self.random.bool();
                        self.named(tag::CLOSE, is_statement, "");
                        self.out.extend_from_slice(frontend::SYNC);
                    }
                }
            }
            let end = self.one(&["commit", "commit", "commit", "rollback"]);
            self.boundary(end);
        }
        self.out.extend_from_slice(frontend::SYNC);
    }
}

/// The messages of a client that works in transactions.
fn transactions(random: &mut fastrand::Rng, client: usize) -> BytesMut {
    let units = random.usize(1..12);
    let mut writer = Writer { random, out: BytesMut::new(), row: 10 * client as u64, is_countable: false };
    writer.write_transactions(units);
    writer.out
}

#[test]
fn writes_that_are_held_back_have_the_replies_of_a_direct_connection() {
    let mut sum = Counts::default();
    for seed in seeds() {
        let change = |world: &mut World| {
            world.shared.pack_mode.set(PackMode::Deferred);
            world.clients.iter_mut().for_each(|client| client.waits = seed % 2 > 0);
        };
        sum.add(&play_as(seed, change, |random, client| match seed % 2 {
            0 => program(random, client, false),
            _ => transactions(random, client),
        }));
    }
    assert_eq!(sum.foretold_wrong, 0, "{sum:?}");
    assert!(is_often(sum.deferred, 2_000) && is_often(sum.packed, 1_000), "{sum:?}");
}

#[test]
fn of_writes_that_are_held_back_nothing_is_lost_and_nothing_runs_twice() {
    seeds().for_each(|seed| {
        play_with_faults(PackMode::Deferred, seed, 3, if seed % 2 == 0 { 6 } else { 0 });
    });
}
