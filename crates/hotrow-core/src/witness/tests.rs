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

const BASE: u64 = 1 << 61 | 4_711;
const OTHER_BASE: u64 = 1 << 61 | 77_000_000;

/// A server whose mark had the value `found` when a connection with this secret number took it.
fn with_mark(server: Server, name: &str, base: u64, found: u64, start: u64) -> Server {
    Server {
        mark: Some(Mark { name: name.to_owned(), backend: String::new(), base, found, start }),
        ..server
    }
}

/// The server that got the transaction: its connection has set the mark to its own secret number.
fn marked() -> Server {
    with_mark(with_log("1", 500, None, 70), "m", BASE, 0, BASE)
}

#[test]
fn a_mark_proves_which_ids_were_logged() {
    let before = marked();
    let crashed = |name, found| with_mark(with_log("2", 600, Some(90), 91), name, OTHER_BASE, found, found);
    let continuity = |doubt, now: &Server| Continuity::for_doubt(doubt, Some(&before), Some(now));
    let unmarked = Continuity::SameCluster { first_id: Some(90) };
    for (doubt, found, expected) in [
        (Doubt::Id(80), BASE + 79, unmarked),
        (Doubt::Id(80), BASE + 80, Continuity::Logged),
        (Doubt::Id(80), BASE + 85, Continuity::Logged),
        (Doubt::Id(80), BASE + 80 + limits::MARK_IDS_AHEAD_MAX, Continuity::Logged),
        (Doubt::Id(80), BASE + 81 + limits::MARK_IDS_AHEAD_MAX, unmarked),
        (Doubt::IdAfter(Some(80)), BASE + 80, Continuity::NotLogged),
        // It can be the batch's own ID, or the ID of the next batch.
        (Doubt::IdAfter(Some(80)), BASE + 81, unmarked),
        (Doubt::IdAfter(Some(80)), BASE, unmarked),
        (Doubt::IdAfter(None), BASE, Continuity::NotLogged),
        (Doubt::IdAfter(None), BASE + 1, unmarked),
    ] {
        assert_eq!(continuity(doubt, &crashed("m", found)), expected, "{doubt:?}, {found}");
        assert_eq!(continuity(doubt, &crashed("other", found)), unmarked, "{doubt:?}, {found}");
        let none = Server { mark: None, ..crashed("m", found) };
        assert_eq!(continuity(doubt, &none), unmarked, "{doubt:?}, {found}");
    }
    // A standby was promoted.
    let promoted = |found| with_mark(server("2", Some("c")), "m", OTHER_BASE, found, found);
    assert_eq!(continuity(Doubt::IdAfter(None), &promoted(BASE)), Continuity::NotLogged);
    assert_eq!(continuity(Doubt::Id(80), &promoted(BASE)), SAME_CLUSTER);
    assert_eq!(continuity(Doubt::Id(60), &promoted(BASE + 60)), Continuity::Logged);
    // The same life has its whole state in memory. The status of a known ID is enough, and an unknown ID can
    // only be the marked one.
    let same_life = |found| with_mark(before.clone(), "m", OTHER_BASE, found, found);
    assert_eq!(continuity(Doubt::Id(80), &same_life(BASE)), Continuity::SameLife);
    assert_eq!(continuity(Doubt::IdAfter(None), &same_life(BASE)), Continuity::NotLogged);
    assert_eq!(continuity(Doubt::IdAfter(None), &same_life(BASE + 61)), Continuity::SameLife);
    let elsewhere = with_mark(server("2", Some("d")), "m", OTHER_BASE, BASE + 99, BASE + 99);
    assert_eq!(continuity(Doubt::Id(80), &elsewhere), Continuity::None);
}

/// The values that a restored dump, another connection, an old gateway or a script can bring, for a batch with or
/// without an ID: bare IDs below, at and above it, values of another connection, and the ends of the range.
#[test]
fn a_value_that_the_connection_has_not_set_proves_nothing() {
    let before = marked();
    let unmarked = Continuity::SameCluster { first_id: Some(90) };
    let others = [OTHER_BASE, OTHER_BASE + 79, OTHER_BASE + 80, OTHER_BASE + 85];
    let bare =
        [0, 1, 60, 79, 80, 81, 85, 90, 5_000, 1 << 32, (1 << 61) - 1, 1 << 62, i64::MAX as u64, u64::MAX];
    for found in bare.into_iter().chain(others) {
        let now = with_mark(with_log("2", 600, Some(90), 91), "m", OTHER_BASE, found, OTHER_BASE);
        for doubt in [Doubt::Id(80), Doubt::IdAfter(Some(80)), Doubt::IdAfter(None)] {
            let continuity = Continuity::for_doubt(doubt, Some(&before), Some(&now));
            assert_eq!(continuity, unmarked, "{doubt:?}, {found}");
        }
    }
}

#[test]
fn a_connection_keeps_its_predecessors_value_and_replaces_every_other() {
    let first = Mark::taken("m/1".to_owned(), String::new(), 5_000, BASE, None);
    assert_eq!((first.start, first.sequence()), (BASE, "m"));
    let start = |found, earlier: &Mark| {
        Mark::taken("m/1".to_owned(), String::new(), found, OTHER_BASE, Some(earlier)).start
    };
    // The earlier connection has set it, or has sent no batch.
    assert_eq!((start(BASE + 80, &first), start(BASE, &first)), (BASE + 80, BASE));
    let second = Mark { base: OTHER_BASE, found: BASE + 80, start: BASE + 80, ..first.clone() };
    assert_eq!((start(BASE + 80, &second), start(OTHER_BASE + 85, &second)), (BASE + 80, OTHER_BASE + 85));
    // Dumps, scripts, old gateways and other marks.
    for found in [0, 1, 80, 5_000, BASE - 1, BASE + limits::MARK_ID_MAX] {
        assert_eq!(start(found, &first), OTHER_BASE, "{found}");
    }
    let of_another = Mark { name: "m/2".to_owned(), ..first };
    assert_eq!(start(BASE + 80, &of_another), OTHER_BASE);
}

#[test]
fn a_secret_number_leaves_room_for_ids_and_is_not_printed() {
    for random in [0, 1 << 32, u64::MAX] {
        let base = Mark::base(random);
        assert!((1 << 61..1 << 62).contains(&base) && base + limits::MARK_ID_MAX < i64::MAX as u64);
    }
    let printed = format!("{:?}", marked());
    assert!(printed.contains("\"m\"") && !printed.contains(&BASE.to_string()), "{printed}");
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
