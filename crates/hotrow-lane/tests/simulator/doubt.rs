//! Tests a lost connection: before, during and after a commit, with one batch and with two under way.

use hotrow_lane::lane::LaneKind::{Read, Write};

use super::notation::script;

#[test]
fn a_batch_that_was_not_sent_completely_runs_again() {
    script(
        Write,
        "
        submit 1a 2b                    -> connect
        connected                       -> write 1a 2b
        answered, lost                  -> connect
        submit 3a                       ->
        connected                       -> write 1a 3a 2b
        commits                         -> answer 1a 3a 2b
        ",
    );
}

#[test]
fn the_outcome_of_a_sent_batch_without_an_id_is_asked_for_with_the_last_id_of_the_connection() {
    for (outcome, due) in [("unknown", "unknown 1a 2b; write 1a2"), ("aborted", "write 1a 1a2 2b")] {
        script(
            Write,
            &format!(
                "
                submit 1a 2b                    -> connect
                connected                       -> write 1a 2b
                written, answered 2, lost       -> connect
                submit 1a2                      ->
                connected                       -> resolve any
                {outcome}                       -> {due}
                "
            ),
        );
        script(
            Write,
            &format!(
                "
                submit 3a                       -> connect
                connected                       -> write 3a
                commits                         -> answer 3a
                submit 4a                       -> write 4a
                written, answered, xid none, ready -> answer 4a
                submit 1a 2b                    -> write 1a
                written, answered, lost         -> connect
                # The next connection is lost as well. The facts about the first connection still count.
                connected                       -> resolve after 7
                lost                            -> connect
                connected                       -> resolve after 7
                {outcome}                       -> {}
                ",
                if outcome == "unknown" { "unknown 1a; write 2b" } else { "write 1a 2b" }
            ),
        );
    }
}

#[test]
fn the_last_id_of_an_earlier_connection_is_not_used_for_the_next_one() {
    script(
        Write,
        "
        submit 1a                       -> connect
        connected                       -> write 1a
        commits                         -> answer 1a
        lost, submit 2a                 -> connect
        connected                       -> write 2a
        written, lost                   -> connect
        connected                       -> resolve any
        ",
    );
}

#[test]
fn the_outcome_of_a_batch_with_an_id_is_asked_for() {
    for (outcome, due) in [
        ("committed", "answer 1a 2b; write 3a"),
        ("aborted", "write 1a 3a 2b"),
        ("unknown", "unknown 1a 2b; write 3a"),
    ] {
        script(
            Write,
            &format!(
                "
                submit 1a 2b                        -> connect
                connected                           -> write 1a 2b
                written, answered 2, xid 7, lost    -> connect
                submit 3a                           ->
                connected                           -> resolve 7
                # In progress: nothing is sent in the meantime.
                submit 4b                           ->
                cancel 4                            -> cancelled 4b
                {outcome}                           -> {due}
                "
            ),
        );
    }
}

#[test]
fn a_batch_that_has_written_nothing_is_answered() {
    script(
        Write,
        "
        submit 1a                           -> connect
        connected                           -> write 1a
        written, answered, xid none, lost   -> connect
        connected                           -> answer 1a
        ",
    );
}

#[test]
fn changes_that_the_servers_transaction_does_not_have_are_never_acknowledged_and_never_run_again() {
    script(
        Write,
        "
        submit 1a 2b                        -> connect
        connected                           -> write 1a 2b
        # One of the two has changed a row.
        written, answered, changed, xid none, lost -> connect
        submit 3a                           ->
        connected                           -> unknown 1a 2b; write 3a
        written, changed, xid none          ->
        submit 4a                           -> write 4a
        ready                               -> elsewhere 3a
        written, changed, xid none, lost    -> connect
        give-up                             -> unknown 4a
        # With an ID, the server knows the outcome.
        submit 5a                           -> connect
        connected                           -> write 5a
        written, changed, xid 7, lost       -> connect
        connected                           -> resolve 7
        committed                           -> answer 5a
        ",
    );
}

#[test]
fn a_call_that_hides_its_changes_is_acknowledged_only_after_the_commit() {
    script(
        Write,
        "
        submit 1a                           -> connect
        connected                           -> write 1a
        written, hidden, xid none, ready    -> answer 1a
        submit 2a                           -> write 2a
        written, hidden, xid none, lost     -> connect
        connected                           -> unknown 2a
        ",
    );
}

#[test]
fn a_commit_that_fails_because_of_another_server_may_have_changed_its_rows() {
    for (changes, outcome) in [
        ("hidden, xid none", "unknown 1a"),
        ("changed, xid 7", "unknown 1a"),
        ("answered, xid 7", "alone 1a"),
    ] {
        let begins = "submit 1a -> connect\n connected -> write 1a";
        script(Write, &format!("{begins}\n written, {changes}, uncertain, ready -> {outcome}"));
        let again = if outcome == "unknown 1a" { outcome } else { "write 1a" };
        script(
            Write,
            &format!("{begins}\n written, {changes}, uncertain, lost -> connect\n connected -> {again}"),
        );
    }
    script(
        Write,
        "
        submit 1a                           -> connect
        connected                           -> write 1a
        written, hidden, xid none, error, ready -> alone 1a
        ",
    );
}

#[test]
fn a_failed_batch_runs_again_after_a_lost_connection() {
    script(
        Write,
        "
        submit 1a 2b                        -> connect
        connected                           -> write 1a 2b
        written, answered, error, lost      -> connect
        connected                           -> write 1a 2b
        written, answered 2, xid 7, error, lost -> connect
        connected                           -> write 1a 2b
        ",
    );
}

#[test]
fn reads_run_again_and_are_never_in_doubt() {
    script(
        Read,
        "
        submit 1a 2b                        -> connect
        connected                           -> write 1a 2b
        written, answered 2, lost           -> connect
        connected                           -> write 1a 2b
        lost, give-up                       -> connect; not-sent 1a 2b
        ",
    );
}

#[test]
fn two_batches_are_resolved_in_order() {
    let begin = "
        submit 1a                           -> connect
        connected                           -> write 1a
        submit 2..33a                       -> write 2..33a
        ";
    for (events, then) in [
        // Both were sent. The second is as unknown as the first would be, whatever the outcome of the first.
        (
            "written, answered, xid 7, lost",
            "connected -> resolve 7\n committed -> answer 1a; resolve after 7\n unknown -> unknown 2..33a",
        ),
        (
            "written, answered, xid 7, lost",
            "connected -> resolve 7\n aborted -> resolve after 7\n aborted -> write 1..33a",
        ),
        ("written, answered, xid 7, lost", "give-up -> unknown 1a; unknown 2..33a"),
        (
            "written, lost",
            "connected -> resolve any\n unknown -> unknown 1a; resolve any\n unknown -> unknown 2..33a",
        ),
        (
            "written, answered, xid none, lost",
            "connected -> answer 1a; resolve any\n unknown -> unknown 2..33a",
        ),
        ("written, error, lost", "connected -> resolve any\n unknown -> unknown 2..33a; write 1a"),
        ("written, error, lost", "give-up -> unknown 2..33a; not-sent 1a"),
        // None was sent completely.
        ("lost", "connected -> write 1..33a"),
        ("lost", "give-up -> not-sent 1..33a"),
    ] {
        script(Write, &format!("{begin}\n{events} -> connect\n{then}"));
    }
    // The first is ready when the connection is lost.
    script(
        Write,
        &format!(
            "{begin}
            commits                         -> answer 1a
            answered 32, xid 8, lost        -> connect
            connected                       -> resolve 8
            committed                       -> answer 2..33a"
        ),
    );
}

#[test]
fn a_unit_that_will_run_again_can_be_cancelled_while_the_lane_asks_about_a_later_batch() {
    script(
        Write,
        "
        submit 1a                           -> connect
        connected                           -> write 1a
        written, answered                   ->
        submit 2..33a                       -> write 2..33a
        written, error, lost                -> connect
        connected                           -> resolve any
        cancel 1                            ->
        unknown                             -> unknown 2..33a; cancelled 1a
        ",
    );
}

#[test]
fn a_first_batch_with_an_id_and_a_second_that_was_not_sent_completely() {
    script(
        Write,
        "
        submit 1a                           -> connect
        connected                           -> write 1a
        written, answered                   ->
        submit 2..33a                       -> write 2..33a
        xid 7, lost                         -> connect
        submit 34a                          ->
        connected                           -> resolve 7
        committed                           -> answer 1a; write 2..34a
        ",
    );
}

#[test]
fn a_commit_stays_in_doubt_over_failed_attempts_and_further_losses() {
    script(
        Write,
        "
        submit 1a                           -> connect
        connected                           -> write 1a
        written, answered, xid 7, lost      -> connect
        no-connection                       -> connect
        no-connection                       -> connect
        connected                           -> resolve 7
        lost                                -> connect
        connected                           -> resolve 7
        committed                           -> answer 1a
        ",
    );
}

#[test]
fn giving_up_refuses_unsent_units_and_reports_unknown_outcomes() {
    script(
        Write,
        "
        submit 1a                           -> connect
        no-connection                       -> connect
        submit 2b                           ->
        give-up                             -> not-sent 1a 2b
        submit 3a                           -> connect
        connected                           -> write 3a
        written, answered, xid 7, lost      -> connect
        submit 4b                           ->
        give-up                             -> unknown 3a; not-sent 4b
        ",
    );
}
