//! Runs small workloads and cuts the connection before every step of each, with different frames under way
//! and different events afterwards.

use hotrow_lane::key::Key;
use hotrow_lane::lane::Merge;

use super::faults::{self, Cut, Then};
use super::history::Work;
use super::model::Statement::{self, Add, Defer, Demand, Insert, Kill, Poison, Read};
use super::schedule::{self, Schedule};
use super::server::Lock;
use super::tally::Tally;
use super::workload::{plain, row, small};
use super::world::World;

const A: Key = Key { table: 1, hash: 1 };
const B: Key = Key { table: 1, hash: 2 };

/// Cuts a lane at every step. The first sessions up to `wave` submit before there is a connection.
fn every_step(lane: usize, wave: usize, world: impl Fn() -> World) -> Tally {
    every_step_then(lane, wave, &(1..12).step_by(2).collect::<Vec<_>>(), world)
}

/// The same, with each reaction to the lost connection, and with a second cut after each number of steps in
/// `again`.
fn every_step_then(lane: usize, wave: usize, again: &[usize], world: impl Fn() -> World) -> Tally {
    let thens = [Then::Recovers, Then::Waits, Then::GivesUp, Then::IsForgotten];
    let thens: Vec<_> = thens.into_iter().chain(again.iter().map(|steps| Then::IsCutAgain(*steps))).collect();
    let mut tally = Tally::default();
    for schedule in [Schedule::Eager(wave), Schedule::Lazy(wave)] {
        let mut calm = world();
        assert_eq!(
            schedule::run_and_check(&mut calm, schedule.clone(), &mut faults::None),
            Vec::<String>::new()
        );
        for (step, then) in (0..calm.steps).flat_map(|step| thens.iter().map(move |then| (step, *then))) {
            let (mut keep, mut on_their_way) = (0, 0);
            while keep <= on_their_way {
                let mut cut = Cut::new(lane, step, keep, then);
                let mut world = world();
                let wrong = schedule::run_and_check(&mut world, schedule.clone(), &mut cut);
                assert!(wrong.is_empty(), "{schedule:?}, {cut:?}: {wrong:#?}");
                tally.add(&world.history);
                on_their_way = cut.on_their_way;
                keep += 1 + on_their_way / 4;
            }
        }
    }
    tally
}

/// Events that every workload of writes must have caused when it is cut at every step.
const WRITES: [&str; 7] = [
    "answered: ready",
    "answered: asked, committed",
    "again: asked, aborted",
    "again: not all sent",
    "Refused(OutcomeUnknown): no id",
    "Refused(OutcomeUnknown): asked, unknown",
    "Refused(OutcomeUnknown): outcome not available",
];

fn writes(sessions: &[&[Statement]]) -> Tally {
    let tally = every_step(0, sessions.len(), || small(sessions));
    tally.require(&WRITES);
    tally
}

fn add(row: Key, n: i64) -> Statement {
    Add { row, n }
}

#[test]
fn one_row() {
    writes(&[&[add(A, -3)], &[add(A, -3)], &[add(A, 2)]]);
}

#[test]
fn two_rows_and_a_session_with_both_in_either_order() {
    writes(&[&[add(B, -1), add(A, -1), add(B, -1)], &[add(A, 1)], &[add(B, 5), Insert { table: 2 }]]);
}

#[test]
fn a_poison_unit_first_in_the_middle_and_last() {
    for place in 0..3 {
        let mut sessions = [[add(A, -1)], [add(A, -2)], [add(A, 3)]];
        sessions[place] = [Poison];
        let sessions: Vec<&[Statement]> = sessions.iter().map(|units| &units[..]).collect();
        let tally = every_step(0, 3, || {
            let mut world = small(&sessions);
            world.history.units.iter_mut().for_each(|work| work.key = Some(A));
            world
        });
        tally.require(&WRITES);
        tally.require(&["failed alone", "again: failed", "again: failed and lost"]);
    }
}

#[test]
fn a_unit_whose_failure_depends_on_the_order() {
    let tally = writes(&[&[Demand { row: A, n: -3 }], &[Demand { row: A, n: -3 }], &[add(A, 1)]]);
    tally.require(&["failed alone", "again: failed"]);
}

#[test]
fn a_failure_at_the_commit() {
    let sessions: [&[Statement]; 3] = [&[add(A, -3)], &[Defer { row: A, n: -3 }, add(A, 1)], &[add(B, 1)]];
    let tally = every_step(0, 3, || small(&sessions));
    tally.require(&["failed alone", "answered alone", "again: failed", "again: failed and lost"]);
    tally.require(&WRITES[2..]);
}

#[test]
fn a_pipelined_session_with_a_poison_unit_in_the_middle() {
    let tally = writes(&[&[add(A, 1), Poison, add(A, 1)], &[add(A, -1), add(A, -1)]]);
    tally.require(&["failed alone", "again: failed"]);
}

#[test]
fn nothing_written() {
    let tally = every_step(0, 2, || small(&[&[add(A, -9)], &[add(B, -9)]]));
    tally.require(&["answered: nothing written", "again: not all sent", "Refused(OutcomeUnknown): no id"]);
}

/// The first guard against this case is the check of the placement at the batch's end. This is the second one.
#[test]
fn rows_that_were_changed_on_another_server() {
    let tally = every_step(0, 3, || {
        let mut world = small(&[&[add(A, -3)], &[add(A, -9)], &[add(B, 2), Insert { table: 2 }]]);
        world.elsewhere = true;
        world
    });
    tally.require(&[
        "Refused(WrittenElsewhere): changed elsewhere, ready",
        "Refused(OutcomeUnknown): changed elsewhere, lost",
        "again: not all sent",
    ]);
    tally.require_none("answered: changed");
    let calls = every_step(0, 3, || {
        let mut world = small(&[&[add(A, -3)], &[add(A, -9)], &[add(B, 2)]]);
        world.elsewhere = true;
        world.history.units.iter_mut().for_each(|work| work.merge = Some(Merge { group: 1, most: 3 }));
        world
    });
    calls.require(&["answered: ready", "Refused(OutcomeUnknown): hidden changes, lost"]);
    calls.require_none("answered: hidden");
}

#[test]
fn reads_are_never_in_doubt() {
    let read = Read { row: A };
    let tally = every_step(1, 3, || small(&[&[read, read], &[read], &[add(A, 1), read]]));
    tally.require(&["answered: ready", "again: reads only"]);
    tally.require_none("Refused(OutcomeUnknown)");
}

#[test]
fn a_unit_that_terminates_every_connection() {
    let writes = every_step(0, 3, || small(&[&[add(A, 1)], &[Kill], &[add(B, 1)]]));
    writes.require(&["failed alone", "again: not all sent", "Refused(OutcomeUnknown): no id"]);
    let read = Read { row: A };
    let reads = every_step(1, 3, || {
        let mut world = small(&[&[read], &[Kill], &[read]]);
        world.history.units.iter_mut().for_each(|work| work.kind = hotrow_lane::lane::LaneKind::Read);
        world
    });
    reads.require(&["failed alone", "answered alone", "again: reads only"]);
}

#[test]
fn a_row_that_an_outsider_has_locked() {
    let tally = every_step(0, 4, || {
        let mut world =
            small(&[&[add(A, 1), add(A, 1)], &[add(B, 1), add(A, 1)], &[add(A, 2)], &[add(B, 2)]]);
        faults::lock(&mut world, Lock::Row(A));
        world
    });
    tally.require(&["answered alone", "again: failed", "parked behind a lock"]);
}

/// Two sessions whose units are under way when 33 more arrive.
fn crowd(first: [Statement; 2], others: impl Fn(usize) -> Statement) -> World {
    let mut world = small(&[&first[..1], &[first[1], add(A, -1)]]);
    for session in 2..35 {
        let number = world.add_session(0, 1);
        world.add_unit(Work { key: Some(row(session as u64 % 3)), ..plain(number, others(session)) });
    }
    world
}

#[test]
fn a_second_batch_during_a_commit() {
    let others = |session| if session == 20 { Poison } else { add(row(session as u64 % 3), -1) };
    let tally = every_step_then(0, 2, &[7], || crowd([add(A, -3), add(A, -3)], others));
    tally.require(&WRITES);
    tally.require(&["2 under way", "failed alone"]);
}

#[test]
fn a_second_batch_after_one_that_fails() {
    let others = |session| add(row(session as u64 % 3), 1);
    let tally = every_step_then(0, 2, &[], || crowd([add(A, -3), Poison], others));
    tally.require(&[
        "2 under way",
        "failed alone",
        "again: failed and lost",
        "Refused(NotSent): failed and lost",
    ]);
}
