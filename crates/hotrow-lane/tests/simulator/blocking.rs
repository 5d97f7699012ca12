//! Tests rows that outsiders have locked: which units wait for them, which do not, and that order is kept.

use hotrow_lane::lane::LaneKind::Write;

use super::notation::script;

#[test]
fn a_blocked_key_waits_and_other_keys_continue() {
    script(
        Write,
        "
        submit 1a 2b 3a             -> connect
        connected                   -> write 1a 3a 2b
        submit 4a 5b                ->
        blocks-at 1a                -> alone 1a blocking a; write 2b 5b
        submit 6a 7b                ->
        commits                     -> write 7b; answer 2b 5b
        commits                     -> answer 7b
        done 1a, unblocked a        -> write 3a 4a 6a
        commits                     -> answer 3a 4a 6a
        ",
    );
}

#[test]
fn parked_units_of_an_impatient_session_leave_in_order() {
    script(
        Write,
        "
        submit 1a                   -> connect
        connected                   -> write 1a
        submit 2a 2a2 3a 4a         ->
        blocks-at 1a                -> alone 1a blocking a
        impatient 3                 -> alone 3a
        impatient 3                 ->
        impatient 2                 -> alone 2a; return 2a2
        submit 5a 6b                -> write 6b
        # The other units are not parked.
        impatient 1, impatient 6    ->
        commits                     -> answer 6b
        done 1a, unblocked a        -> write 4a 5a
        ",
    );
}

#[test]
fn many_blocked_rows_mean_a_locked_table() {
    script(
        Write,
        "
        submit 1a 2b 3c 4d 5e 6f 7B     -> connect
        connected                       -> write 1a 2b 3c 4d 5e 6f 7B
        blocks-at 1a                    -> alone 1a blocking a; write 2b 3c 4d 5e 6f 7B
        blocks-at 2b                    -> alone 2b blocking b; write 3c 4d 5e 6f 7B
        blocks-at 3c                    -> alone 3c blocking c; write 4d 5e 6f 7B
        blocks-at 4d                    -> alone 4d blocking d; write 5e 6f 7B
        # From now on, all of table 1 is blocked. Table 2 continues.
        blocks-at 5e                    -> alone 5e blocking *; write 7B
        submit 8g 9A 10a                ->
        commits                         -> write 9A; answer 7B
        commits                         -> answer 9A
        unblocked a                     -> write 10a
        commits                         -> answer 10a
        unblocked *                     -> write 6f 8g
        ",
    );
}

#[test]
fn a_key_that_is_blocked_twice_is_one_blocked_key() {
    script(
        Write,
        "
        submit 1a 2b 3c 4d      -> connect
        connected               -> write 1a 2b 3c 4d
        submit 5..36d           -> write 5..36d
        blocks-at 1a            -> alone 1a blocking a
        submit 40b 41c          ->
        blocks-at 5d            -> alone 5d blocking d; write 2b 40b 3c 41c
        blocks-at 2b            -> alone 2b blocking b; write 3c 41c
        blocks-at 3c            -> alone 3c blocking c
        unblocked d             -> write 6..36d 4d
        blocks-at 6d            -> alone 6d blocking d
        submit 50e              -> write 50e
        ",
    );
}

/// Workers that skip locked rows: what blocks one of them is not what the others take.
#[test]
fn a_unit_that_takes_any_row_holds_up_no_other() {
    script(
        Write,
        "
        submit 1..6a^               -> connect
        connected                   -> write 1..6a^
        blocks-at 1a^               -> alone 1a^; write 2..6a^
        blocks-at 2a^               -> alone 2a^; write 3..6a^
        blocks-at 3a^               -> alone 3a^; write 4..6a^
        blocks-at 4a^               -> alone 4a^; write 5a^ 6a^
        blocks-at 5a^               -> alone 5a^; write 6a^
        submit 7a 8a^               ->
        commits                     -> write 7a 8a^; answer 6a^
        # A unit of a row holds up those of the row.
        blocks-at 7a                -> alone 7a blocking a; write 8a^
        submit 9a                   ->
        commits                     -> answer 8a^
        unblocked a                 -> write 9a
        ",
    );
}

#[test]
fn units_that_take_any_row_wait_for_a_locked_table() {
    script(
        Write,
        "
        submit 1a^ 2a^ 3A           -> connect
        connected                   -> write 1a^ 2a^ 3A
        table-blocks-at 1a^         -> alone 1a^ blocking *; write 3A
        submit 4a^ 5b               ->
        commits                     -> answer 3A
        unblocked *                 -> write 2a^ 4a^ 5b
        ",
    );
}

#[test]
fn units_without_a_key_wait_for_each_other() {
    script(
        Write,
        "
        submit 1- 2- 3a             -> connect
        connected                   -> write 1- 2- 3a
        blocks-at 1-                -> alone 1- blocking -; write 3a
        commits                     -> answer 3a
        unblocked -                 -> write 2-
        ",
    );
}

#[test]
fn a_parked_unit_does_not_overtake_queued_units_of_its_session() {
    script(
        Write,
        "
        submit 1a 2c 3b             -> connect
        connected                   -> write 1a 3b 2c
        blocks-at 1a                -> alone 1a blocking a; write 3b 2c
        # 4b waits in the queue. 4a behind 4b is not parked, because it would return before 4b.
        submit 4b 4a                -> return 4a
        done 1a, unblocked a        ->
        commits                     -> write 4b; answer 3b 2c
        commits                     -> answer 4b
        again 4a                    -> write 4a
        ",
    );
}

#[test]
fn a_parked_unit_does_not_overtake_units_of_its_session_under_way() {
    script(
        Write,
        "
        submit 1a                   -> connect
        connected                   -> write 1a
        submit 2..33b               -> write 2..33b
        submit 2a                   ->
        blocks-at 1a                -> return 2a; alone 1a blocking a
        unblocked a                 ->
        fails-at 2b                 -> alone 2b; write 3..33b
        done 2b, again 2a           ->
        commits                     -> write 2a; answer 3..33b
        ",
    );
}

#[test]
fn a_session_is_parked_under_one_key_and_its_other_units_wait_for_it() {
    script(
        Write,
        "
        submit 1a 2b                -> connect
        connected                   -> write 1a 2b
        blocks-at 1a                -> alone 1a blocking a; write 2b
        blocks-at 2b                -> alone 2b blocking b
        submit 3a 3a2               ->
        submit 3b                   -> return 3b
        submit 3a3                  -> return 3a3
        unblocked b                 ->
        unblocked a                 -> write 3a 3a2
        commits                     -> answer 3a 3a2
        again 3b                    -> write 3b
        ",
    );
}

#[test]
fn queued_units_are_parked_in_their_sessions_order() {
    script(
        Write,
        "
        submit 1a                   -> connect
        connected                   -> write 1a
        submit 2a 2b 3b 3a 3c 4a    ->
        blocks-at 1a                -> return 2b; return 3a; return 3c; alone 1a blocking a; write 3b
        unblocked a                 ->
        commits                     -> write 2a 4a; answer 3b
        ",
    );
}

#[test]
fn a_blocked_unit_never_waits_for_one_that_waits_for_it() {
    // Four rows of the table are blocked when session 5 meets a fifth. Its earlier unit would be parked under
    // the key that the session has to release, and the session releases it only after that earlier unit is
    // done.
    script(
        Write,
        "
        submit 1a 2b 3c 4d 5e 5f    -> connect
        connected                   -> write 1a 2b 3c 4d 5e 5f
        blocks-at 1a                -> alone 1a blocking a; write 2b 3c 4d 5e 5f
        blocks-at 2b                -> alone 2b blocking b; write 3c 4d 5e 5f
        blocks-at 3c                -> alone 3c blocking c; write 4d 5e 5f
        blocks-at 4d                -> alone 4d blocking d; write 5e 5f
        blocks-at 5f                -> alone 5e; alone 5f blocking *
        ",
    );
    script(
        Write,
        "
        submit 1- 1-2 2-            -> connect
        connected                   -> write 1- 1-2 2-
        blocks-at 1-2               -> alone 1-; alone 1-2 blocking -
        done 1-, done 1-2           ->
        unblocked -                 -> write 2-
        ",
    );
}

#[test]
fn parked_units_can_be_cancelled_and_are_refused_like_others() {
    script(
        Write,
        "
        submit 1a                   -> connect
        connected                   -> write 1a
        blocks-at 1a                -> alone 1a blocking a
        submit 2a 3a 4a             ->
        cancel 3                    -> cancelled 3a
        lost                        ->
        submit 5b                   -> connect
        give-up                     -> not-sent 5b 2a 4a
        submit 6a                   ->
        unblocked a                 -> connect
        connected                   -> write 6a
        ",
    );
}
