//! Tests how calls become one call, and a failure of that call.

use hotrow_lane::lane::LaneKind::Write;

use super::notation::script;

#[test]
fn calls_of_one_group_are_one_call_across_keys() {
    script(
        Write,
        "
        submit 1b#1 2a#1 3b#1       -> connect
        connected                   -> write [2a 1b 3b]
        commits                     -> answer 2a 1b 3b
        # A single call is sent unchanged.
        submit 4a#1                 -> write 4a
        commits                     -> answer 4a
        ",
    );
}

#[test]
fn the_first_call_decides_which_group_of_a_key_space_a_batch_has() {
    script(
        Write,
        "
        submit 1a#1 2a#2 3b#1 4b#2  -> connect
        connected                   -> write [1a 3b]
        submit 5c#1                 ->
        commits                     -> write [2a 4b]; answer 1a 3b
        commits                     -> write 5c; answer 2a 4b
        commits                     -> answer 5c
        # Another key space and ordinary tables are not affected.
        submit 1A#1 2A#1 3a#2 4a#2 5-  -> write 1A
        commits                     -> write 5- [3a 4a] 2A; answer 1A
        commits                     -> answer 5- 3a 4a 2A
        ",
    );
}

#[test]
fn an_unmerged_call_waits_for_merged_calls_of_its_space() {
    script(
        Write,
        "
        submit 1a#1 2b#0 3a#1       -> connect
        connected                   -> write [1a 3a]
        commits                     -> write 2b; answer 1a 3a
        submit 4a#0 5b#0            ->
        commits                     -> write 4a 5b; answer 2b
        ",
    );
}

#[test]
fn a_merged_call_is_bounded() {
    script(
        Write,
        "
        submit 1..6a#1              -> connect
        connected                   -> write [1..4a]
        commits                     -> write [5a 6a]; answer 1..4a
        ",
    );
}

#[test]
fn a_sessions_calls_keep_their_order() {
    script(
        Write,
        "
        submit 1b#1 1a#1 2a#1       -> connect
        connected                   -> write [2a 1b]
        commits                     -> write 1a; answer 2a 1b
        ",
    );
}

#[test]
fn a_failed_merged_call_runs_again_call_by_call() {
    script(
        Write,
        "
        submit 1a#1 2b#1 3c#1 4A    -> connect
        connected                   -> write [1a 2b 3c] 4A
        fails-at 2b                 -> write 1a 2b 3c 4A
        # Calls that arrive meanwhile can be merged again.
        submit 5a#1 6a#1            ->
        fails-at 2b                 -> alone 2b; write 1a 3c 4A
        commits                     -> write [5a 6a]; answer 1a 3c 4A
        ",
    );
}

#[test]
fn after_an_outsiders_lock_the_calls_of_a_merged_call_run_one_by_one() {
    script(
        Write,
        "
        submit 1a#1 2b#1 3c#1       -> connect
        connected                   -> write [1a 2b 3c]
        blocks-at 1a                -> write 1a 2b 3c
        blocks-at 2b                -> alone 2b blocking b; write 1a 3c
        submit 4b#1 5a#1            ->
        commits                     -> write 5a; answer 1a 3c
        done 2b, unblocked b        ->
        commits                     -> write 4b; answer 5a
        ",
    );
}

#[test]
fn after_a_failed_commit_each_call_runs_alone() {
    script(
        Write,
        "
        submit 1a#1 2b#1            -> connect
        connected                   -> write [1a 2b]
        written, answered           ->
        xid 7, error, ready         -> alone 1a; alone 2b
        ",
    );
}
