//! Tests units that find nothing. Their sessions get them back, and no unit overtakes them.

use hotrow_lane::lane::LaneKind::Write;

use super::notation::script;

#[test]
fn one_call_waits_and_the_others_of_its_merged_call_are_answered() {
    script(
        Write,
        "
        submit 1a?#1 2a?#1 3a?#1    -> connect
        connected                   -> write [1..3a?]
        waits 2a?, commits          -> answer 1a? 3a?; waits 2a?
        ",
    );
}

#[test]
fn later_units_of_a_session_are_not_in_the_batch_of_a_unit_that_may_wait() {
    script(
        Write,
        "
        submit 1a?#1 1b 2c          -> connect
        connected                   -> write 1a? 2c
        # The call has found something, and the next one follows.
        commits                     -> write 1b; answer 1a? 2c
        commits                     -> answer 1b
        ",
    );
}

#[test]
fn later_units_of_a_session_go_back_with_a_waiting_unit() {
    script(
        Write,
        "
        submit 1a?#1 1b 2c          -> connect
        connected                   -> write 1a? 2c
        submit 3d                   ->
        waits 1a?, commits          -> return 1b; write 3d; answer 2c; waits 1a?
        submit 1e                   -> return 1e
        commits                     -> answer 3d
        # The call is repeated and answered. The returned units follow.
        again 1a?                   -> write 1a?
        commits                     -> answer 1a?
        again 1b                    -> write 1b
        commits                     -> answer 1b
        ",
    );
}

#[test]
fn a_unit_in_a_rolled_back_batch_does_not_wait() {
    script(
        Write,
        "
        submit 1a?#1 2b             -> connect
        connected                   -> write 1a? 2b
        answered, waits 1a?, error, ready  -> alone 2b; write 1a?
        commits                     -> answer 1a?
        ",
    );
}

#[test]
fn after_a_resolved_commit_the_session_waits_too() {
    script(
        Write,
        "
        submit 1a?#1 1b             -> connect
        connected                   -> write 1a?
        written, answered, waits 1a?, xid 7, lost  -> connect
        connected                   -> resolve 7
        committed                   -> return 1b; waits 1a?
        ",
    );
}
