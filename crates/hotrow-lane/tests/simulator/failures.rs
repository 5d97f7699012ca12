//! Tests failing units: the result of the unit, of its batch, and of later units of its session.

use hotrow_lane::lane::LaneKind::{Read, Write};
use hotrow_lane::limits;

use super::notation::script;

#[test]
fn a_poison_unit_leaves_and_the_others_run_again() {
    for (culprit, others) in [("1a", "2b 3c"), ("2b", "1a 3c"), ("3c", "1a 2b")] {
        script(
            Write,
            &format!(
                "
                submit 1a 2b 3c     -> connect
                connected           -> write 1a 2b 3c
                submit 4a           ->
                fails-at {culprit}  -> alone {culprit}; write {again}
                commits             -> answer {again}
                ",
                again = if culprit == "1a" { format!("4a {others}") } else { others.replace("1a", "1a 4a") },
            ),
        );
    }
}

#[test]
fn a_failed_batch_is_not_answered_in_part() {
    script(
        Write,
        "
        submit 1a 2b 3c                 -> connect
        connected                       -> write 1a 2b 3c
        written, answered 2, error      ->
        ready                           -> alone 3c; write 1a 2b
        ",
    );
}

#[test]
fn later_units_of_a_session_wait_for_its_failed_unit() {
    script(
        Write,
        "
        submit 1a 1b 1c 2b              -> connect
        connected                       -> write 1a 1b 2b 1c
        submit 1d                       ->
        fails-at 1b                     -> alone 1b; return 1c; return 1d; write 1a 2b
        # The session has submitted 1e before it received the returned units.
        submit 1e                       -> return 1e
        commits                         -> answer 1a 2b
        done 1b, again 1c               -> write 1c
        commits                         -> answer 1c
        again 1d                        -> write 1d
        commits                         -> answer 1d
        again 1e                        -> write 1e
        submit 1f                       ->
        commits                         -> write 1f; answer 1e
        ",
    );
}

#[test]
fn all_units_leave_a_replica_that_is_behind_and_nothing_is_answered() {
    script(
        Read,
        "
        submit 1a 2b            -> connect
        connected               -> write 1a 2b
        submit 1c 3d            ->
        behind                  ->
        ready                   -> return 1a; return 2b; return 1c; write 3d
        # The session has submitted 2e before it received the returned unit.
        submit 2e               -> return 2e
        answered, ready         -> answer 3d
        again 1a                -> write 1a
        ",
    );
}

#[test]
fn a_cancelled_unit_is_refused_when_the_others_leave_a_replica_that_is_behind() {
    script(
        Read,
        "
        submit 1a 2b            -> connect
        connected               -> write 1a 2b
        cancel 2                ->
        behind                  ->
        ready                   -> cancelled 2b; return 1a
        ",
    );
}

#[test]
fn a_lane_forgets_ended_sessions() {
    script(
        Write,
        "
        submit 1a 1b            -> connect
        connected               -> write 1a 1b
        fails-at 1a             -> alone 1a; return 1b
        submit 1c               -> return 1c
        gone 1                  ->
        # The number is used again only to show what the lane remembers.
        submit 1d               -> write 1d
        ",
    );
}

#[test]
fn a_failure_at_the_commit_runs_each_unit_alone() {
    script(
        Write,
        "
        submit 1a 2b 2c                         -> connect
        connected                               -> write 1a 2b 2c
        submit 2d 3d                            ->
        written, answered 3, xid 7, error       ->
        ready                                   -> alone 1a; alone 2b; return 2d; alone 2c; write 3d
        ",
    );
}

#[test]
fn a_failure_does_not_affect_the_next_batch() {
    script(
        Write,
        "
        submit 1a               -> connect
        connected               -> write 1a
        submit 2..33a           -> write 2..33a
        fails-at 1a             -> alone 1a
        submit 34a              ->
        fails-at 5a             -> alone 5a; write 2..4a 6..34a
        commits                 -> answer 2..4a 6..34a
        ",
    );
}

#[test]
fn a_unit_that_terminates_every_connection_runs_alone() {
    script(
        Read,
        "
        submit 1a 2b 2c         -> connect
        connected               -> write 1a 2b 2c
        lost                    -> connect
        submit 2d 3d            ->
        connected               -> write 1a 2b 2c 2d 3d
        written, lost           -> connect
        connected               -> write 1a 2b 2c 2d 3d
        written, answered, lost -> connect
        connected               -> alone 1a; alone 2b; return 2c; return 2d; write 3d
        ",
    );
}

#[test]
fn a_unit_is_not_starved_by_neighbours_that_fail_repeatedly() {
    let mut text = "submit 1..18a 19b -> connect\nconnected -> write 1..18a 19b\n".to_owned();
    for culprit in 1..=16 {
        let rest = if culprit == 16 { "17a 18a".to_owned() } else { format!("{}..18a", culprit + 1) };
        text.push_str(&format!("fails-at {culprit}a -> alone {culprit}a; write {rest} 19b\n"));
    }
    text.push_str("fails-at 17a -> alone 18a; alone 19b; alone 17a\n");
    script(Write, &text);
}

#[test]
fn a_batch_whose_tables_may_have_changed_runs_again_as_a_whole() {
    for kind in [Write, Read] {
        script(
            kind,
            "
            submit 1a 2b                    -> connect
            connected                       -> write 1a 2b
            submit 3a                       ->
            stale                           -> write 1a 3a 2b
            commits                         -> answer 1a 3a 2b
            ",
        );
    }
}

#[test]
fn units_whose_tables_have_changed_run_alone_and_have_not_failed() {
    for kind in [Write, Read] {
        script(
            kind,
            "
            submit 1a 2b                    -> connect
            connected                       -> write 1a 2b
            submit 3a                       ->
            outdated                        -> outdated 1a; outdated 2b; write 3a
            commits                         -> answer 3a
            ",
        );
    }
}

#[test]
fn units_whose_tables_change_repeatedly_run_alone() {
    let again = "stale -> write 1a 2b\n".repeat(limits::UNIT_RERUNS_MAX.into());
    script(
        Write,
        &format!(
            "
            submit 1a 2b                    -> connect
            connected                       -> write 1a 2b
            {again}
            stale                           -> alone 1a; alone 2b
            "
        ),
    );
}

#[test]
fn a_unit_that_fails_without_the_others_runs_alone_after_their_commit() {
    script(
        Write,
        "
        submit 1a& 2b& 3c&              -> connect
        connected                       -> write 1a& 2b& 3c&
        submit 2d                       ->
        leaves 2b&, commits             -> alone 2b&; return 2d; answer 1a& 3c&
        done 2b&, again 2d              -> write 2d
        ",
    );
}

#[test]
fn units_that_hit_one_lock_without_the_others_wait_for_the_first_of_them() {
    script(
        Write,
        "
        submit 1a& 2a& 3a& 4b&          -> connect
        connected                       -> write 1..3a& 4b&
        submit 5a&                      ->
        answered, leaves-blocked 2a&, leaves-blocked 3a&, answered 3, xid 7, ready -> alone 2a& blocking a; answer 1a& 4b&
        unblocked a                     -> write 5a& 3a&
        commits                         -> answer 5a& 3a&
        ",
    );
}

#[test]
fn in_a_batch_that_is_rolled_back_no_unit_leaves() {
    script(
        Write,
        "
        submit 1a& 2b&                  -> connect
        connected                       -> write 1a& 2b&
        leaves 1a&, answered, error, ready -> alone 2b&; write 1a&
        commits                         -> answer 1a&
        ",
    );
}

#[test]
fn a_unit_leaves_a_batch_that_is_found_committed() {
    script(
        Write,
        "
        submit 1a& 2b& 3c&              -> connect
        connected                       -> write 1a& 2b& 3c&
        leaves 1a&, answered 3, xid 7, written, lost -> connect
        cancel 1                        ->
        connected                       -> resolve 7
        committed                       -> cancelled 1a&; answer 2b& 3c&
        ",
    );
}

#[test]
fn later_units_of_a_session_are_not_in_the_batch_of_a_unit_that_may_fail_alone() {
    script(
        Write,
        "
        submit 1a& 1b 2c                -> connect
        connected                       -> write 1a& 2c
        leaves 1a&, commits             -> alone 1a&; return 1b; answer 2c
        ",
    );
}
