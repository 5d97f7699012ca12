//! The pack's upkeep: what a round does, who is at it, and who is not made to run other people's code.

use crate::script::{check, check_in};
use crate::server::{Database, Session};

/// As the gateway asks.
const ALLOWED: &str = include_str!("../../../hotrow-gateway/sql/upkeep_allowed.sql");

/// Calls until a round ends; how many calls that took.
fn round(session: &Session) -> usize {
    (1..100).find(|_| session.value("select hotrow.keep()") == "f").expect("a round ends")
}

#[test]
fn a_round_does_a_piece_of_everything_and_says_whether_there_is_more() {
    let (_database, session) = check(
        "keep() -> t
        create_sale('a', 9, hold => '1 hour') -> created
        reserve('a', 'ann', 2, '00000000-0000-4000-8000-000000000001') -> reserved #1 7
        push(1, 7, 'old', now() - interval '91 days') -> 1 ok
        push(3, 7, 'x', null, '00000000-0000-4000-8000-000000000002') -> 1 ok
        create_queue('q', retention => '0') -> created
        follow(1, 9) -> followed
        follow(2, 9) -> followed",
    );
    assert_eq!(round(&session), 5, "the rest of a round with nothing to do");
    session.run(
        "update hotrow.setting set feed_inline = 0, history_retention = '0';
        update hotrow.request set at = at - interval '400 days';
        update hotrow.reservation set expires_at = expires_at - interval '2 hours';
        update hotrow.sale set next_expiry = next_expiry - interval '2 hours'",
    );
    check_in(&session, "post(9, 'x') -> 1 ok");
    // A post has been brought to fewer than there may be: it looks again.
    assert_eq!(round(&session), 12);
    assert_eq!(session.value("select remaining, held from hotrow.sale('a')"), "9 0");
    assert_eq!(session.ask("select content from hotrow.consume(1)"), Ok(vec!["x".to_owned()]));
    assert_eq!(session.value("select count(*) from hotrow.fan_out"), "0");
    assert_eq!(session.value("select history_part from hotrow.setting"), "2");
    assert_eq!(session.value("select part from hotrow.queue_ring"), "3");
    assert_eq!(session.value("select count(*) from hotrow.request where command = 'push'"), "0");
    assert_eq!(session.value("select count(*) from hotrow.inbox_entry where content = 'old'"), "0");
}

#[test]
fn the_orders_of_the_last_queue_go_when_it_is_dropped() {
    let (_database, session) = check(
        "create_queue('q') -> created
        enqueue('q', '00000000-0000-0000-0000-000000000001') -> 1 enqueued
        enqueue('q', '00000000-0000-0000-0000-000000000002') -> 2 enqueued",
    );
    session.run("select hotrow.take('q', 1, null)");
    check_in(&session, "drop_queue('q') -> dropped");
    let rows =
        "select (select count(*) from hotrow.queue_order) + (select count(*) from hotrow.processed_order)";
    assert_eq!(session.value(rows), "3");
    for _ in 0..4 {
        round(&session);
    }
    assert_eq!(session.value(rows), "0");
    let part = session.value("select part from hotrow.queue_ring");
    round(&session);
    assert_eq!(session.value("select part from hotrow.queue_ring"), part, "there is nothing to forget");
}

#[test]
fn how_much_at_most_is_no_number_below_zero() {
    check(
        "forget_requests(-1) -> 22023
        forget_requests(null) -> 22004
        forget_requests(0) -> 0
        expire_holds(-1) -> 22023
        expire_holds(null) -> 22004
        expire_holds(0) -> 0
        fan_out(-1) -> 22023
        trim_feeds(-1) -> 22023",
    );
}

#[test]
fn one_is_at_it_and_what_fails_stops_nobody() {
    let database = Database::migrated();
    let (one, other) = (database.session("postgres"), database.session("postgres"));
    one.run("begin; select hotrow.keep()");
    check_in(&other, "keep() -> f");
    one.run("rollback; alter table hotrow.follow rename to gone");
    other.run("update hotrow.setting set feed_inline = 0");
    // What is wrong is said as a warning, and the round goes on.
    one.run("insert into hotrow.fan_out (author, post_id, marks, at) values (1, 1, false, now())");
    assert_eq!(round(&one), 6);
    one.run("alter table hotrow.gone rename to follow");
    assert_eq!(one.value("select count(*) from hotrow.fan_out"), "1");
    assert_eq!(round(&one), 6);
    assert_eq!(one.value("select count(*) from hotrow.fan_out"), "0");
}

#[test]
fn a_superuser_runs_no_upkeep_that_others_wrote() {
    let database = Database::migrated();
    let owner = database.session("postgres");
    assert_eq!(owner.value(ALLOWED), "t");
    assert_eq!(database.login("member", true).value(ALLOWED), "t");
    assert_eq!(database.login("stranger", false).value(ALLOWED), "f");
    let database = Database::empty();
    let owner = database.session("postgres");
    assert_eq!(owner.ask(ALLOWED), Ok(vec![]), "the pack is not there");
    let stranger = database.login("mallory", false);
    let name = stranger.value("select current_user");
    owner.run(&format!("create schema hotrow authorization {name}"));
    stranger.run("create function hotrow.keep() returns boolean language sql as 'select true'");
    assert_eq!(stranger.value(ALLOWED), "t");
    assert_eq!(owner.value(ALLOWED), "f");
    // Who owns the schema could put his own in a superuser's function's place.
    owner.run("alter function hotrow.keep() owner to postgres");
    assert_eq!(owner.value(ALLOWED), "f");
}
