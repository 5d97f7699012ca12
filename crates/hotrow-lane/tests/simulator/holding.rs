//! Tests how a lane holds its next batch back after a slow commit.

use hotrow_lane::lane::LaneKind::Write;

use super::notation::script;

#[test]
fn after_a_slow_commit_the_next_batch_waits_for_the_answered_clients() {
    script(
        Write,
        "
        submit 1a 2a                -> connect
        connected                   -> write 1a 2a
        submit 3b                   ->
        written, answered 2, xid 7  ->
        took 12                     ->
        ready                       -> hold 1; answer 1a 2a
        submit 1a                   ->
        submit 2a                   -> write 1a 2a 3b
        # No second batch is sent: its clients would stay a group of their own.
        submit 4b 5b 6b             ->
        written, answered 3, xid 8  ->
        took 12                     ->
        ready                       -> hold 2; answer 1a 2a 3b
        # Any units count, not only those of the answered clients.
        submit 7b 8b 9b             -> write 4..9b
        # The end of an earlier hold does no harm.
        over                        ->
        commits                     -> hold 2; answer 4..9b
        ",
    );
}

#[test]
fn one_long_commit_among_short_ones_does_not_make_clients_wait() {
    script(
        Write,
        "
        submit 1a 2a                -> connect
        connected                   -> write 1a 2a
        written, answered 2, xid 7, took 12 ->
        ready                       -> hold 1; answer 1a 2a
        submit 1a                   ->
        submit 2a                   -> write 1a 2a
        # A disk that stops for some seconds.
        written, answered 2, xid 8, took 6000 ->
        ready                       -> hold 9; answer 1a 2a
        submit 1a                   ->
        submit 2a                   -> write 1a 2a
        written, answered 2, xid 9, took 12 ->
        ready                       -> hold 9; answer 1a 2a
        submit 1a                   ->
        submit 2a                   -> write 1a 2a
        # Disks that stop again and again are slow.
        written, answered 2, xid 10, took 6000 ->
        ready                       -> hold 1272; answer 1a 2a
        ",
    );
    script(
        Write,
        "
        submit 1a                   -> connect
        connected                   -> write 1a
        written, answered, xid 7, took 0 ->
        ready                       -> answer 1a
        submit 1a                   -> write 1a
        written, answered, xid 8, took 6000 ->
        ready                       -> answer 1a
        ",
    );
}

#[test]
fn a_client_alone_waits_for_nobody() {
    script(
        Write,
        "
        submit 1a                   -> connect
        connected                   -> write 1a
        written, answered, xid 7    ->
        took 12                     ->
        ready                       -> hold 1; answer 1a
        submit 1a                   -> write 1a
        written, answered, xid 8    ->
        took 12                     ->
        ready                       -> hold 2; answer 1a
        over                        ->
        submit 2a                   -> write 2a
        ",
    );
}

#[test]
fn a_hold_ends_in_time_and_the_next_ones_are_left_out() {
    script(
        Write,
        "
        submit 1a 2a                -> connect
        connected                   -> write 1a 2a
        submit 3b                   ->
        written, answered 2, xid 7, took 60 ->
        ready                       -> hold 7; answer 1a 2a
        submit 1a                   ->
        over                        -> write 1a 3b
        # One commit without a hold, in which a second batch is sent as usual.
        written, answered 2, xid 8  ->
        submit 4b                   ->
        submit 5b                   -> write 4b 5b
        ready                       -> answer 1a 3b
        # Another batch is under way, so nothing can be held back.
        submit 6b                   ->
        commits                     -> write 6b; answer 4b 5b
        submit 7b                   ->
        commits                     -> hold 7; answer 6b
        over                        -> write 7b
        # Two after the second hold in vain.
        commits                     -> answer 7b
        submit 8b                   -> write 8b
        commits                     -> answer 8b
        submit 9b                   -> write 9b
        commits                     -> hold 7; answer 9b
        ",
    );
}

#[test]
fn a_hold_is_in_vain_if_the_units_have_no_place_in_the_batch() {
    script(
        Write,
        "
        submit 1a%2 2a%2 3a%2       -> connect
        connected                   -> write 1a 2a
        written, answered 2, xid 7, took 60 ->
        submit 4a%2                 ->
        ready                       -> hold 7; answer 1a 2a
        submit 1a%2                 ->
        submit 2a%2                 -> write 3a 4a
        # From now on as if commits were short.
        written, answered 2, xid 8  -> write 1a 2a
        ",
    );
}

#[test]
fn a_lost_connection_or_a_pause_ends_a_hold() {
    script(
        Write,
        "
        submit 1a 2a                -> connect
        connected                   -> write 1a 2a
        submit 3b                   ->
        written, answered 2, xid 7, took 60 ->
        ready                       -> hold 7; answer 1a 2a
        lost                        -> connect
        connected                   -> write 3b
        commits                     -> hold 7; answer 3b
        pause                       -> disconnect
        submit 4b 5b                ->
        resume                      -> connect
        connected                   -> write 4b 5b
        ",
    );
}

#[test]
fn a_failed_batch_runs_again_at_once() {
    script(
        Write,
        "
        submit 1a 2a                -> connect
        connected                   -> write 1a 2a
        written, answered 2, xid 7, took 60 ->
        ready                       -> hold 7; answer 1a 2a
        submit 1a 2a                -> write 1a 2a
        fails-at 1a                 -> alone 1a; write 2a
        ",
    );
}
