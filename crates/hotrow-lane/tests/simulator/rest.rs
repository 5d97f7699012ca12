//! Checks for the time when nothing moves any more: before the outsiders release their locks, and at the end.

use hotrow_lane::key::Key;

use super::sessions::State;
use super::world::World;

/// The hash of the key for a whole table.
const WHOLE_TABLE: u64 = u64::MAX;

/// Each unfinished session waits for an outsider's lock, or in a lane behind a unit that waits for one and
/// blocks its key. A blocked key holds up nothing else.
pub fn only_locks_are_waited_for(world: &mut World) {
    let blocked: Vec<(usize, Key)> = world.sessions.iter().flat_map(|session| session.blocks()).collect();
    let mut complaints = Vec::new();
    for session in &world.sessions {
        world.history.parked += usize::from(matches!(session.front(), Some((_, _, State::InLane))));
        let excused = match &session.front() {
            None => session.is_idle(),
            Some((unit, lane, State::InLane)) => {
                let claims = world.history.claims(*unit);
                let keyless = claims.is_empty().then_some(0);
                let tables = claims.iter().map(|claim| claim.key.table).chain(keyless);
                let wholes = tables.map(|table| Key { table, hash: WHOLE_TABLE });
                // Of rows of which it takes any, others can take the rest.
                let rows = claims.iter().filter(|claim| !claim.takes_any).map(|claim| claim.key);
                let keys: Vec<_> = rows.chain(wholes).collect();
                blocked.iter().any(|one| one.0 == *lane && keys.contains(&one.1))
            }
            Some((unit, _, _)) => {
                world.statements(*unit).iter().any(|(_, one)| world.server.must_wait(None, *one))
            }
        };
        if !excused {
            complaints.push(format!("held up for no reason: {:?}", session.front()));
        }
    }
    world.history.complaints.append(&mut complaints);
}

/// All clients have answers, all lanes are idle, and no lock is left.
pub fn nothing_is_left(world: &mut World) {
    let mut complaints = Vec::new();
    for (number, session) in world.sessions.iter().enumerate().filter(|(_, session)| !session.is_idle()) {
        complaints.push(format!("session {number} does not end: {:?}", session.front()));
    }
    for (number, _) in world.sessions.iter().enumerate().filter(|(_, session)| !session.has_all_answers()) {
        complaints.push(format!("session {number} does not have its answers in the order of its units"));
    }
    for (number, wire) in world.wires.iter().enumerate() {
        let mut sessions = world.sessions.iter().enumerate();
        if sessions.any(|(number, session)| session.gone && wire.lane.remembers(number as u64)) {
            complaints.push(format!("lane {number} remembers a session that is gone"));
        }
        if wire.slow.is_some() {
            complaints.push(format!("lane {number} is slow at the end"));
        }
        if !wire.lane.is_idle() || wire.lane.waiting() != 0 || wire.lane.in_doubt() {
            complaints.push(format!("lane {number} is not idle at the end"));
        }
    }
    if world.server.has_locks() {
        complaints.push("a transaction is left open".to_owned());
    }
    world.history.complaints.append(&mut complaints);
}
