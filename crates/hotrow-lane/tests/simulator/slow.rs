//! Tests slow batches, statements that take too long for a lane, and cancel requests for units under way:
//! with scripts, and at every step of small workloads.

use hotrow_lane::key::Key;
use hotrow_lane::lane::LaneKind::Write;

use super::faults::{self, BatchFault, BatchFaults};
use super::model::Statement::{self, Add, Read, Slow};
use super::notation::script;
use super::schedule::{self, Schedule};
use super::tally::Tally;
use super::workload::plain;
use super::world::World;

#[test]
fn a_statement_that_takes_too_long_leaves_its_lane_and_the_others_run_again() {
    script(
        Write,
        "
        submit 1a 2b 2c 3d      -> connect
        connected               -> write 1a 2b 2c 3d
        submit 2e 4f            ->
        slow-at 2b              -> too-slow 2b; return 2c; return 2e; write 1a 3d 4f
        commits                 -> answer 1a 3d 4f
        ",
    );
}

#[test]
fn if_only_the_last_statement_takes_too_long_all_units_run_again() {
    script(
        Write,
        "
        submit 1a 2b                    -> connect
        connected                       -> write 1a 2b
        written, answered 2, too-slow   ->
        ready                           -> write 1a 2b
        commits                         -> answer 1a 2b
        ",
    );
}

#[test]
fn after_a_merged_call_takes_too_long_its_calls_run_one_by_one() {
    script(
        Write,
        "
        submit 1a#2 2b#2        -> connect
        connected               -> write [1a 2b]
        slow-at 1a              -> write 1a 2b
        slow-at 2b              -> too-slow 2b; write 1a
        commits                 -> answer 1a
        ",
    );
}

#[test]
fn units_behind_a_slow_batch_move_to_other_lanes_if_they_can() {
    script(
        Write,
        "
        submit 1a 2b                    -> connect
        connected                       -> write 1a 2b
        # 4a, 6f+a and 7a contend for a row that is under way. 2d belongs to a session that is under way.
        submit 3c 4a 2d 5- 6f+a 7a 8e   ->
        slow                            -> return 3c; return 5-; return 8e
        submit 3g                       -> return 3g
        submit 7c                       ->
        slow                            ->
        again 3c                        ->
        commits                         -> write 4a 6f+a 7a 7c 3c; answer 1a 2b
        ",
    );
}

#[test]
fn a_session_with_several_queued_units_stays() {
    script(
        Write,
        "
        submit 1a               -> connect
        connected               -> write 1a
        submit 2b 2c 3b         ->
        slow                    -> return 3b
        commits                 -> write 2b 2c; answer 1a
        ",
    );
}

#[test]
fn no_unit_moves_while_the_server_commits() {
    script(
        Write,
        "
        submit 1a               -> connect
        connected               -> write 1a
        submit 2b 2c            ->
        written, answered, xid 7, submit 3d, slow -> write 2b 2c
        ",
    );
}

#[test]
fn a_unit_cancelled_under_way_is_refused_if_its_batch_is_rolled_back() {
    script(
        Write,
        "
        submit 1a 2b 3c         -> connect
        connected               -> write 1a 2b 3c
        cancel 2                ->
        slow-at 2b              -> cancelled 2b; write 1a 3c
        cancel 3                ->
        fails-at 1a             -> cancelled 3c; alone 1a
        submit 4d               -> write 4d
        cancel 4                ->
        commits                 -> answer 4d
        ",
    );
    script(
        Write,
        "
        submit 1a 2b            -> connect
        connected               -> write 1a 2b
        cancel 2                ->
        lost                    -> connect
        cancel 1                ->
        connected               -> cancelled 1a 2b
        ",
    );
    script(
        Write,
        "
        submit 1a 1b 2c         -> connect
        connected               -> write 1a 1b 2c
        cancel 1                ->
        blocks-at 1b            -> cancelled 1a; alone 1b blocking b; write 2c
        ",
    );
    script(
        Write,
        "
        submit 1a 1b 2c                     -> connect
        connected                           -> write 1a 1b 2c
        cancel 1, written, answered 3, error ->
        ready                               -> cancelled 1a; alone 1b; alone 2c
        ",
    );
}

const A: Key = Key { table: 1, hash: 1 };
const B: Key = Key { table: 1, hash: 2 };
const C: Key = Key { table: 1, hash: 3 };

fn add(row: Key, n: i64) -> Statement {
    Add { row, n }
}

/// One gateway with two lanes of each kind, and a session for each list. All sessions use the first lane.
fn world(sessions: &[&[Statement]]) -> World {
    let mut world = World::default();
    let gateway = world.add_gateway(2);
    for units in sessions {
        let session = world.add_session(gateway, units.len());
        for statement in *units {
            world.add_unit(plain(session, *statement));
        }
    }
    world
}

/// At every step the batch is slow or a session cancels. Some steps later a statement takes too long or the
/// connection is cut.
fn every_step(lane: usize, sessions: &[&[Statement]]) -> Tally {
    let firsts: Vec<_> =
        std::iter::once(BatchFault::Slow).chain((0..sessions.len()).map(BatchFault::Cancel)).collect();
    let seconds = [BatchFault::Stall, BatchFault::Cut];
    let mut tally = Tally::default();
    for schedule in [Schedule::Eager(1), Schedule::Eager(sessions.len()), Schedule::Lazy(sessions.len())] {
        let mut calm = world(sessions);
        assert_eq!(
            schedule::run_and_check(&mut calm, schedule.clone(), &mut faults::None),
            Vec::<String>::new()
        );
        let pairs = firsts.iter().flat_map(|first| seconds.iter().map(move |second| (*first, *second)));
        for (step, (first, second)) in
            (0..calm.steps).flat_map(|step| pairs.clone().map(move |pair| (step, pair)))
        {
            for behind in [0, 1, 3, 6] {
                let troubles = [(step, first), (step + behind, second)];
                let mut troubles = BatchFaults { lane, troubles: &troubles };
                let mut world = world(sessions);
                let wrong = schedule::run_and_check(&mut world, schedule.clone(), &mut troubles);
                assert!(wrong.is_empty(), "{schedule:?}, {troubles:?}: {wrong:#?}");
                tally.add(&world.history);
            }
        }
    }
    tally
}

#[test]
fn writes_with_two_faults_at_every_step() {
    let tally =
        every_step(0, &[&[add(A, -3), add(B, 1)], &[add(A, -3)], &[add(B, 5), add(A, 1)], &[add(C, 1)]]);
    tally.require(&[
        "moved on",
        "too slow",
        "answered: ready",
        "again: failed",
        "Refused(Cancelled)",
        "Refused(Cancelled): failed",
        "Refused(Cancelled): not all sent",
        "Refused(OutcomeUnknown): no id",
    ]);
}

#[test]
fn a_slow_statement_with_two_faults_at_every_step() {
    let slow = Slow { row: A, n: -3 };
    let tally = every_step(0, &[&[add(A, -3), slow, add(B, 1)], &[add(A, 1)], &[add(C, 5)]]);
    tally.require(&["moved on", "too slow", "answered alone", "Refused(Cancelled): failed"]);
}

#[test]
fn reads_with_two_faults_at_every_step() {
    let read = Read { row: A };
    let tally = every_step(2, &[&[read, read], &[read], &[add(A, 1), read], &[Read { row: C }]]);
    tally.require(&["moved on", "too slow", "Refused(Cancelled): failed", "Refused(Cancelled): reads only"]);
    tally.require_none("Refused(OutcomeUnknown)");
}
