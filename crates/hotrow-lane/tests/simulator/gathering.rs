//! Tests how units are gathered into batches without faults: when a batch is sent, which units it has, and
//! their order.

use hotrow_lane::lane::LaneKind::Write;

use super::notation::script;

#[test]
fn an_idle_lane_sends_immediately_and_later_units_gather() {
    script(
        Write,
        "
        submit 1a           -> connect
        submit 2b           ->
        connected           -> write 1a 2b
        submit 3a 4b 5-     ->
        # The next batch is sent before the answers of the last.
        commits             -> write 5- 3a 4b; answer 1a 2b
        commits             -> answer 5- 3a 4b
        submit 6a           -> write 6a
        commits             -> answer 6a
        # Losing an idle connection does no harm: the next unit opens another.
        lost                ->
        submit 7a           -> connect
        ",
    );
}

#[test]
fn a_unit_with_a_reply_of_unknown_size_has_its_own_batch() {
    script(
        Write,
        "
        submit 1a 2b! 3c! 4d 4e -> connect
        connected               -> write 1a
        commits                 -> write 2b!; answer 1a
        commits                 -> write 3c!; answer 2b!
        commits                 -> write 4d 4e; answer 3c!
        # From now on the size is known for a and b.
        submit 1a! 2b! 3c! 5a   ->
        measured a              ->
        measured b              ->
        commits                 -> write 1a! 2b!; answer 4d 4e
        commits                 -> write 3c!; answer 1a! 2b!
        commits                 -> write 5a; answer 3c!
        commits                 -> answer 5a
        ",
    );
}

#[test]
fn nothing_is_answered_before_the_server_is_ready() {
    script(
        Write,
        "
        submit 1a 2b            -> connect
        connected               -> write 1a 2b
        written, answered 2     ->
        xid 7                   ->
        ready                   -> answer 1a 2b
        ",
    );
}

#[test]
fn a_batch_is_sorted_by_key_and_units_of_a_key_keep_their_order() {
    script(
        Write,
        "
        submit 1c 2B 3a 4c 5- 6A 7a 8-  -> connect
        connected                       -> write 5- 8- 3a 7a 1c 4c 6A 2B
        ",
    );
}

#[test]
fn a_session_whose_units_are_not_in_key_order_takes_two_batches() {
    script(
        Write,
        "
        submit 1b 1c 1a 1d 2a   -> connect
        connected               -> write 2a 1b 1c
        commits                 -> write 1a 1d; answer 2a 1b 1c
        commits                 -> answer 1a 1d
        # A unit without a key runs first in its batch, so such a unit behind a keyed one waits.
        submit 1a2 1- 1a3       -> write 1a2
        commits                 -> write 1- 1a3; answer 1a2
        ",
    );
}

#[test]
fn a_second_batch_is_sent_if_enough_units_wait() {
    script(
        Write,
        "
        submit 1a               -> connect
        connected               -> write 1a
        submit 2..32b           ->
        submit 33b              -> write 2..33b
        # Two batches are under way, so a third waits.
        submit 34..99c          ->
        commits                 -> write 34..99c; answer 1a
        commits                 -> answer 2..33b
        commits                 -> answer 34..99c
        ",
    );
}

#[test]
fn during_a_commit_a_second_batch_is_sent_if_as_many_units_wait_as_the_first_has() {
    script(
        Write,
        "
        submit 1a 2a                -> connect
        connected                   -> write 1a 2a
        submit 3b                   ->
        # The server has answered and commits. One unit waits: sending it now would make batches smaller.
        written, answered 2, xid 7  ->
        submit 4b                   -> write 3b 4b
        ready                       -> answer 1a 2a
        # Units that arrive while the statements run are gathered until the commit.
        submit 5a 6a 7a             ->
        written, answered 2, xid 8  -> write 5..7a
        # Two batches are under way, so a third waits.
        submit 8..11a               ->
        ready                       -> answer 3b 4b
        written, answered 3         ->
        xid 9                       -> write 8..11a
        ready                       -> answer 5..7a
        ",
    );
}

#[test]
fn during_a_large_commit_the_usual_number_for_a_second_batch_is_enough() {
    script(
        Write,
        "
        submit 1..40a               -> connect
        connected                   -> write 1..40a
        submit 41..71b              ->
        written, answered 40, xid 7 ->
        submit 72b                  -> write 41..72b
        ",
    );
}

#[test]
fn too_few_units_for_a_second_batch_are_tried_again_with_more() {
    script(
        Write,
        "
        submit 1a 2a                -> connect
        connected                   -> write 1a 2a
        # Units of sessions that are under way have to wait.
        submit 1a2 2a2 3b           ->
        written, answered 2, xid 7  ->
        submit 4b                   ->
        submit 5b                   -> write 3..5b
        ready                       -> answer 1a 2a
        # Before the commit there were too few as well, but there the minimum is 32.
        submit 3a2 6..36b           ->
        written, answered 3         ->
        xid 8                       -> write 1a2 2a2 6..36b
        ",
    );
}

#[test]
fn a_session_under_way_waits_for_its_units() {
    script(
        Write,
        "
        submit 1a                   -> connect
        connected                   -> write 1a
        submit 1a2 2..32b           ->
        # 32 units wait, and only 31 of them can be sent, which is not enough for a second batch.
        submit 33b                  ->
        submit 34..64b              -> write 2..64b
        commits                     -> answer 1a
        commits                     -> write 1a2; answer 2..64b
        ",
    );
}

#[test]
fn a_batch_is_bounded_by_units_bytes_and_versions_of_a_row() {
    script(
        Write,
        "
        submit 1..300-              -> connect
        connected                   -> write 1..256-
        commits                     -> write 257..300-; answer 1..256-
        commits                     -> answer 257..300-
        submit 1b                   -> write 1b
        submit 2..18-@65536         ->
        commits                     -> write 2..17-; answer 1b
        commits                     -> write 18-; answer 2..17-
        submit 1..5a%2 6b           ->
        commits                     -> write 1a 2a 6b; answer 18-
        commits                     -> write 3a 4a; answer 1a 2a 6b
        commits                     -> write 5a; answer 3a 4a
        ",
    );
}

#[test]
fn a_full_queue_refuses_units_immediately() {
    script(
        Write,
        "
        submit 1..10000a            -> connect
        submit 10001a               -> full 10001a
        cancel 1                    -> cancelled 1a
        submit 10002a               ->
        submit 10003a               -> full 10003a
        ",
    );
    script(
        Write,
        "
        submit 1..1024a@65536       -> connect
        submit 1025a                -> full 1025a
        ",
    );
}

#[test]
fn parked_units_count_too() {
    script(
        Write,
        "
        submit 1a                   -> connect
        connected                   -> write 1a
        blocks-at 1a                -> alone 1a blocking a
        submit 2..1025a@65536       ->
        submit 1026a                -> full 1026a
        submit 1027b                -> full 1027b
        cancel 2                    -> cancelled 2a
        submit 1028b                -> write 1028b
        ",
    );
}

#[test]
fn waiting_units_can_be_cancelled_and_running_ones_cannot() {
    script(
        Write,
        "
        submit 1a 2b                -> connect
        connected                   -> write 1a 2b
        submit 1a2 3c 3c2           ->
        cancel 1                    ->
        cancel 3                    -> cancelled 3c
        cancel 4                    ->
        commits                     -> write 1a2 3c2; answer 1a 2b
        ",
    );
}
