//! Tests the refusal of units whose estimated wait is too long, and batches whose statements take too long.

use hotrow_lane::lane::LaneKind::Write;

use super::notation::script;

#[test]
fn a_unit_that_would_wait_too_long_is_refused_but_not_a_call_that_has_waited() {
    script(
        Write,
        "
        queue-wait 10                       ->
        submit 1a%1 2a%1 3a%1 4a%1          -> connect
        connected                           -> write 1a
        # Nothing is known yet about the lane's pace.
        submit 5a%1                         ->
        written, answered, executed 6000    ->
        # A unit takes 5 ms: the full batches that a new lane starts with count less and less.
        xid 7, ready                        -> write 2a; answer-slow 1a
        submit 6a%1                         -> full 6a
        submit 7a~%1                        ->
        queue-wait 30                       ->
        submit 6a%1                         ->
        ",
    );
}

#[test]
fn a_batch_after_which_no_unit_had_to_wait_does_not_count() {
    script(
        Write,
        "
        queue-wait 10                       ->
        submit 1a                           -> connect
        connected                           -> write 1a
        submit 2a 3a 4a                     ->
        written, answered, executed 6000    ->
        xid 7, ready                        -> write 2..4a; answer-slow 1a
        submit 5..9a                        ->
        ",
    );
}

#[test]
fn a_commit_that_takes_long_is_no_fault_of_the_statements() {
    script(
        Write,
        "
        submit 1a 2a                        -> connect
        connected                           -> write 1a 2a
        written, answered 2, executed 5000, xid 6 ->
        ready                               -> answer-slow 1a 2a
        submit 1a 2a                        -> write 1a
        submit 3a                           ->
        written, answered, xid 7            -> write 2a 3a
        took 5000                           ->
        ready                               -> answer 1a
        ",
    );
}
