//! Counts the effects of a client's units by its replies: those that are acknowledged, and those in doubt.

use hotrow_wire::backend::{self, Report, Status, tag};
use hotrow_wire::{frontend, split};

use super::program::BOX;
use super::world::World;

/// The effects of a client's units.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Updates that are committed.
    pub updates: i64,
    /// Rows that were taken from the client's box.
    pub taken: i64,
    /// Units whose outcome is unknown.
    pub doubtful: i64,
}

/// The effects of a client's units. Each unit has one ReadyForQuery, unless the session `is_over`: a connection that is lost under a
/// passed-through unit ends it.
pub fn count(program: &[u8], received: &[u8], is_over: bool) -> Effects {
    let mut effects = Effects::default();
    // Of the transaction under way.
    let (mut updates, mut taken, mut is_rolled_back) = (0, 0, false);
    let mut readies = 0;
    for (tag, body) in frames(received) {
        match tag {
            tag::COMMAND_COMPLETE => {
                updates += i64::from(body.starts_with(b"UPDATE"));
                taken += i64::from(body.starts_with(b"DELETE 1"));
                is_rolled_back = body.starts_with(b"ROLLBACK");
            }
            tag::ERROR => {
                let report = Report::read(body).expect("valid");
                if report.code == b"08007" {
                    effects.doubtful += 1 + updates + taken;
                }
                is_rolled_back = true;
            }
            tag::READY => {
                readies += 1;
                if is_rolled_back {
                    (updates, taken) = (0, 0);
                }
                if backend::status(body).expect("valid") != Status::Transaction {
                    effects.updates += std::mem::take(&mut updates);
                    effects.taken += std::mem::take(&mut taken);
                    is_rolled_back = false;
                }
            }
            _ => {}
        }
    }
    let ends = [frontend::tag::QUERY, frontend::tag::SYNC];
    let units = frames(program).filter(|(tag, _)| ends.contains(tag)).count() as i64;
    if is_over {
        effects.doubtful += units - readies + updates + taken;
    } else {
        assert_eq!(readies, units, "each unit is answered once");
    }
    effects
}

/// Whether the rows of the client with this number show these effects, and at most those in doubt beside them.
pub fn check_rows(world: &World, number: usize, effects: &Effects) -> Result<(), String> {
    let row = |row: u64| world.database.value(10 * number as u64 + row);
    let (updates, taken) = (row(0) + row(1), world.clients[number].given - row(BOX));
    let beyond = (updates - effects.updates, taken - effects.taken);
    if beyond.0 >= 0 && beyond.1 >= 0 && beyond.0 + beyond.1 <= effects.doubtful {
        return Ok(());
    }
    Err(format!("{updates} updates, {taken} taken, but {effects:?}"))
}

fn frames(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let frame = split(bytes, |_| usize::MAX).expect("valid")?;
        bytes = &bytes[frame.bytes.len()..];
        Some((frame.tag, frame.body()))
    })
}
