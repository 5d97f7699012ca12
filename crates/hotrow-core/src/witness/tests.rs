//! Tables of trusted outcomes for each relation between two servers and each possible answer.

use super::*;

fn server(life: &str, cluster: Option<&str>) -> Server {
    Server {
        life: life.to_owned(),
        cluster: cluster.map(str::to_owned),
        log: None,
        mark: None,
        has_parts: false,
    }
}

fn with_log(life: &str, checkpoint: u64, first_id: Option<u64>, next_id: u64) -> Server {
    Server { log: Some(Log { checkpoint, first_id, next_id }), ..server(life, Some("c")) }
}

const SAME_CLUSTER: Continuity = Continuity::SameCluster { first_id: None };

#[test]
fn the_relation_between_two_servers() {
    let before = server("1", Some("c"));
    let continuity = |now: Server| Continuity::between(Some(&before), Some(&now));
    assert_eq!(continuity(before.clone()), Continuity::SameLife);
    assert_eq!(continuity(server("2", Some("c"))), SAME_CLUSTER);
    assert_eq!(continuity(server("2", Some("d"))), Continuity::None);
    assert_eq!(continuity(server("1", Some("d"))), Continuity::None);
    assert_eq!(continuity(server("2", None)), Continuity::None);
    let unknown = server("1", None);
    assert_eq!(Continuity::between(Some(&unknown), Some(&unknown)), Continuity::SameLife);
    assert_eq!(Continuity::between(Some(&unknown), Some(&server("2", None))), Continuity::None);
    assert_eq!(Continuity::between(None, Some(&before)), Continuity::None);
    assert_eq!(Continuity::between(None, None), Continuity::None);
}

#[test]
fn the_first_id_of_a_life_counts_only_if_the_life_began_after_the_connection() {
    let before = with_log("1", 500, None, 70);
    for (now, first_id) in [
        (with_log("2", 600, Some(90), 91), Some(90)),
        // An ordinary checkpoint has replaced the one that began the life, or a standby was promoted.
        (with_log("2", 600, None, 91), None),
        // The server's processes restarted, but its life did not change.
        (with_log("2", 500, Some(60), 91), None),
        // Restored from a backup.
        (with_log("2", 400, Some(60), 61), None),
        (server("2", Some("c")), None),
    ] {
        assert_eq!(
            Continuity::between(Some(&before), Some(&now)),
            Continuity::SameCluster { first_id },
            "{now:?}"
        );
    }
    let now = with_log("2", 600, Some(90), 91);
    assert_eq!(Continuity::between(Some(&server("1", Some("c"))), Some(&now)), SAME_CLUSTER);
    assert_eq!(Continuity::between(Some(&Server { cluster: None, ..before }), Some(&now)), Continuity::None);
}

#[test]
fn only_proven_outcomes_are_trusted() {
    let (yes, no, unknown) = (Some(Outcome::Committed), Some(Outcome::Aborted), Some(Outcome::Unknown));
    // The query is about ID 7. Two lives assign 7 and 8 as their first ID.
    let lost = Continuity::SameCluster { first_id: Some(7) };
    let below = Continuity::SameCluster { first_id: Some(8) };
    for (status, same_life, same_cluster, lost_id, below_first, none) in [
        (XactStatus::Committed, yes, unknown, no, unknown, unknown),
        (XactStatus::Aborted, no, no, no, no, unknown),
        (XactStatus::NotGivenOut, no, no, no, no, unknown),
        (XactStatus::Forgotten, unknown, unknown, no, unknown, unknown),
        (XactStatus::InProgress, None, None, no, None, None),
        (XactStatus::InRecovery, None, None, None, None, None),
    ] {
        assert_eq!(believe(7, status, Continuity::SameLife), same_life, "{status:?}");
        assert_eq!(believe(7, status, SAME_CLUSTER), same_cluster, "{status:?}");
        assert_eq!(believe(7, status, lost), lost_id, "{status:?}");
        assert_eq!(believe(7, status, below), below_first, "{status:?}");
        assert_eq!(believe(7, status, Continuity::None), none, "{status:?}");
    }
    assert_eq!(believe_none_committed(true), Outcome::Aborted);
    assert_eq!(believe_none_committed(false), Outcome::Unknown);
}

#[test]
fn a_batch_without_an_id_is_searched_between_its_connections_last_id_and_the_new_life() {
    let before = with_log("1", 500, None, 70);
    let ask = |doubt, continuity| question(doubt, Some(&before), continuity);
    let crashed = |first| Continuity::SameCluster { first_id: Some(first) };
    assert_eq!(ask(Doubt::Id(7), Continuity::None), Question::Status(7));
    for (last, first, ids) in
        [(None, 90, 70..90), (Some(80), 90, 81..90), (Some(89), 90, 90..90), (Some(95), 90, 90..90)]
    {
        assert_eq!(ask(Doubt::IdAfter(last), crashed(first)), Question::AnyCommitted(ids));
    }
    let far = 70 + limits::DOUBT_IDS_MAX;
    assert_eq!(ask(Doubt::IdAfter(None), crashed(far)), Question::AnyCommitted(70..far));
    assert_eq!(ask(Doubt::IdAfter(None), crashed(far + 1)), Question::Nothing(Outcome::Unknown));
    // While the old life may continue, so may the batch.
    for continuity in [Continuity::SameLife, SAME_CLUSTER, Continuity::None] {
        assert_eq!(ask(Doubt::IdAfter(Some(80)), continuity), Question::Nothing(Outcome::Unknown));
    }
    assert_eq!(question(Doubt::IdAfter(Some(80)), None, crashed(90)), Question::Nothing(Outcome::Unknown));
}

fn with_mark(server: Server, name: &str, at: u64) -> Server {
    Server { mark: Some(Mark { name: name.to_owned(), at }), ..server }
}

#[test]
fn a_mark_proves_which_ids_were_logged() {
    let before = with_mark(with_log("1", 500, None, 70), "m", 60);
    let crashed = |name, at| with_mark(with_log("2", 600, Some(90), 91), name, at);
    let continuity = |doubt, now: &Server| Continuity::for_doubt(doubt, Some(&before), Some(now));
    let unmarked = Continuity::SameCluster { first_id: Some(90) };
    for (doubt, at, expected) in [
        // The client's role may have reset it.
        (Doubt::Id(80), 79, unmarked),
        (Doubt::Id(80), 80, Continuity::Logged),
        (Doubt::Id(80), 85, Continuity::Logged),
        (Doubt::IdAfter(Some(80)), 80, Continuity::NotLogged),
        // It can be the batch's own ID, or the ID of the next batch.
        (Doubt::IdAfter(Some(80)), 81, unmarked),
        (Doubt::IdAfter(Some(80)), 1, unmarked),
        (Doubt::IdAfter(None), 60, Continuity::NotLogged),
        (Doubt::IdAfter(None), 61, unmarked),
    ] {
        assert_eq!(continuity(doubt, &crashed("m", at)), expected, "{doubt:?}, {at}");
        assert_eq!(continuity(doubt, &crashed("other", at)), unmarked, "{doubt:?}, {at}");
        let none = Server { mark: None, ..crashed("m", at) };
        assert_eq!(continuity(doubt, &none), unmarked, "{doubt:?}, {at}");
    }
    // A standby was promoted.
    let now = with_mark(server("2", Some("c")), "m", 60);
    assert_eq!(continuity(Doubt::IdAfter(None), &now), Continuity::NotLogged);
    assert_eq!(continuity(Doubt::Id(80), &now), SAME_CLUSTER);
    assert_eq!(continuity(Doubt::Id(60), &now), Continuity::Logged);
    // The same life has its whole state in memory. The status of a known ID is enough, and an unknown ID can
    // only be the marked one.
    assert_eq!(continuity(Doubt::Id(80), &before), Continuity::SameLife);
    assert_eq!(continuity(Doubt::IdAfter(None), &before), Continuity::NotLogged);
    assert_eq!(continuity(Doubt::IdAfter(None), &with_mark(before.clone(), "m", 61)), Continuity::SameLife);
    assert_eq!(continuity(Doubt::Id(80), &with_mark(server("2", Some("d")), "m", 99)), Continuity::None);
}

#[test]
fn a_logged_id_is_trusted_like_one_of_the_same_life_and_an_unlogged_one_needs_no_query() {
    for (status, outcome) in [
        (XactStatus::Committed, Some(Outcome::Committed)),
        (XactStatus::Aborted, Some(Outcome::Aborted)),
        (XactStatus::Forgotten, Some(Outcome::Unknown)),
        (XactStatus::InProgress, None),
        (XactStatus::InRecovery, None),
    ] {
        assert_eq!(believe(7, status, Continuity::Logged), outcome, "{status:?}");
    }
    assert_eq!(question(Doubt::Id(7), None, Continuity::Logged), Question::Status(7));
    assert_eq!(
        question(Doubt::IdAfter(None), None, Continuity::NotLogged),
        Question::Nothing(Outcome::Aborted)
    );
}

#[test]
fn a_crash_can_leave_parts_of_a_transaction_on_other_servers() {
    let alone = server("1", Some("c"));
    let with_parts = Server { has_parts: true, ..alone.clone() };
    let crashed = Continuity::SameCluster { first_id: None };
    for (before, continuity, due) in [
        (Some(&alone), crashed, true),
        (Some(&with_parts), Continuity::SameLife, true),
        (Some(&with_parts), crashed, false),
        (Some(&with_parts), Continuity::NotLogged, false),
        (None, crashed, false),
    ] {
        assert_eq!(rolls_back_all(before, continuity), due, "{continuity:?}");
    }
}
