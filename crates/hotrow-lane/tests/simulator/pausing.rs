//! Tests PAUSE and RESUME: work under way is finished, the connection is closed, and new units wait without
//! being lost.

use hotrow_lane::lane::LaneKind;

use super::notation::script;

#[test]
fn work_under_way_is_finished_and_new_units_wait() {
    script(
        LaneKind::Write,
        "submit 1a      -> connect
         connected      -> write 1a
         submit 2a      ->
         pause          ->
         submit 3a      ->
         commits        -> disconnect; answer 1a
         rests          ->
         submit 4a      ->
         resume         -> connect
         connected      -> write 2..4a
         commits        -> answer 2..4a",
    );
}

#[test]
fn an_idle_lane_rests_immediately_with_or_without_a_connection() {
    script(
        LaneKind::Write,
        "pause          ->
         rests          ->
         resume         ->
         submit 1a      -> connect
         connected      -> write 1a
         commits        -> answer 1a
         pause          -> disconnect
         rests          ->
         resume         ->
         submit 2a      -> connect",
    );
}

#[test]
fn a_connection_that_is_being_opened_is_closed_or_not_opened() {
    script(
        LaneKind::Write,
        "submit 1a      -> connect
         pause          ->
         connected      -> disconnect
         rests          ->
         resume         -> connect
         pause          ->
         no-connection  ->
         rests          ->
         resume         -> connect
         connected      -> write 1a",
    );
}

#[test]
fn a_commit_in_doubt_is_resolved_before_the_lane_rests() {
    script(
        LaneKind::Write,
        "submit 1a      -> connect
         connected      -> write 1a
         written, answered, xid 7 ->
         pause          ->
         submit 2a      ->
         lost           -> connect
         no-connection  -> connect
         connected      -> resolve 7
         committed      -> answer 1a; disconnect
         rests          ->
         resume         -> connect",
    );
}

#[test]
fn failed_units_run_again_after_the_pause() {
    script(
        LaneKind::Write,
        "submit 1a 2b   -> connect
         connected      -> write 1a 2b
         pause          ->
         fails-at 1a    -> alone 1a; disconnect
         rests          ->
         resume         -> connect
         connected      -> write 2b",
    );
}

#[test]
fn units_that_have_waited_too_long_are_refused_and_others_continue_to_wait() {
    script(
        LaneKind::Write,
        "pause          ->
         submit 1..3a   ->
         expire 2       -> paused 1a 2a
         resume         -> connect
         connected      -> write 3a
         expire 3       ->
         submit 4a      ->
         expire 4       ->
         commits        -> write 4a; answer 3a",
    );
}
