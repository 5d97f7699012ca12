//! The hotrow schema's maintenance: the pieces of a round, concurrent sessions, and maintenance functions that another role
//! has replaced.

use crate::rules::trusts;
use crate::script::{check, check_in};
use crate::server::{Database, Session};

/// The first answer of the gateway's query before it calls the maintenance.
fn allowed() -> String {
    trusts("postgres", "keep", "")
}

/// Calls until a round ends. Returns the number of calls.
fn round(session: &Session) -> usize {
    (1..100).find(|_| session.value("select hotrow.keep()") == "f").expect("a round ends")
}

#[test]
fn a_round_does_a_piece_of_everything_and_returns_whether_there_is_more() {
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
    // The post was brought to fewer followers than the limit, so the round looks again.
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
fn dropping_the_last_queue_deletes_its_orders() {
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
    assert_eq!(session.value("select part from hotrow.queue_ring"), part, "there is nothing to delete");
}

#[test]
fn limits_that_are_negative_or_null_are_refused() {
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
#[ignore = "long: make test-all"]
fn a_transaction_left_open_after_its_maintenance_blocks_no_other_session() {
    let database = Database::migrated();
    let (member, other) = (database.login("member", true), database.session("postgres"));
    other.run("set statement_timeout = '20s'; update hotrow.setting set feed_inline = 0");
    check_in(
        &other,
        "follow(1, 9) -> followed\nfollow(2, 9) -> followed\ncreate_queue('q', retention => '1 day') -> created",
    );
    let work = "post(9, 'x') -> 1 ok
        push(1, 7, 'old', now() - interval '91 days') -> 1 ok
        push(3, 7, 'x', null, '00000000-0000-4000-8000-000000000002') -> 1 ok";
    for calls in 1..=6 {
        // The transaction holds the locks of its last piece, and of all pieces before it.
        other.run("update hotrow.setting set history_retention = '7 days'; update hotrow.queue set retention = '1 day'");
        member.run("begin");
        for _ in 0..calls {
            member.run("select hotrow.keep()");
        }
        check_in(&other, work);
        other.run(
            "update hotrow.setting set history_retention = '0'; update hotrow.queue set retention = '0'",
        );
        other.run("update hotrow.request set at = at - interval '400 days'");
        let parts = || {
            ["history_part from hotrow.setting", "part from hotrow.queue_ring"]
                .map(|part| other.value(&format!("select {part}")))
        };
        let before = parts();
        // Each call runs in a session of its own, as from a shell.
        for _ in 0..12 {
            database.session("postgres").run("select hotrow.keep()");
        }
        assert_eq!(other.value("select count(*) from hotrow.fan_out"), "0", "after {calls}");
        assert_eq!(other.value("select count(*) from hotrow.request"), "0", "after {calls}");
        assert_eq!(
            other.value("select count(*) from hotrow.inbox_entry where content = 'old'"),
            "0",
            "after {calls}"
        );
        assert!(parts().iter().zip(&before).all(|(part, before)| part != before), "after {calls}");
        member.run("rollback");
        other.run("delete from hotrow.inbox_entry; update hotrow.inbox set last = 0; delete from hotrow.reader; delete from hotrow.post;
            update hotrow.author set last_post = 0, forgotten_to = 0; update hotrow.follow set since_post = 0;
            insert into hotrow.reader (user_id) values (1), (2)");
    }
}

#[test]
fn a_failing_piece_does_not_stop_the_round() {
    let (_database, session) = check("push(1, 7, 'old', now() - interval '91 days') -> 1 ok");
    // A failing piece raises a warning, and the round goes on.
    session.run("alter table hotrow.fan_out_turn rename to gone");
    assert_eq!(round(&session), 6);
    assert_eq!(session.value("select count(*) from hotrow.inbox_entry"), "0");
    session.run("alter table hotrow.gone rename to fan_out_turn");
    assert_eq!(round(&session), 6);
    assert_eq!(session.value("select count(*) from hotrow.maintenance"), "1", "the places before are gone");
}

#[test]
fn maintenance_that_another_role_wrote_is_not_run() {
    let database = Database::migrated();
    let owner = database.session("postgres");
    assert_eq!(owner.value(&allowed()), "t");
    let member = database.login("member", true);
    assert_eq!(member.value(&allowed()), "t");
    assert_eq!(database.login("stranger", false).value(&allowed()), "f");
    // The function belongs to a role other than the schema's owner.
    let name = member.value("select current_user");
    owner.run(&format!(
        "grant create on schema hotrow to {name}; alter function hotrow.keep() owner to {name}"
    ));
    assert_eq!(
        (owner.value(&allowed()), database.login("other", true).value(&allowed())),
        ("f".to_owned(), "f".to_owned())
    );

    let database = Database::empty();
    let owner = database.session("postgres");
    assert_eq!(owner.value(&allowed()), "f", "the hotrow schema is not installed");
    let mallory = database.login("mallory", false);
    let other = database.login("other", false);
    let name = mallory.value("select current_user");
    owner.run(&format!("create schema hotrow authorization {name}"));
    mallory.run("create function hotrow.keep() returns boolean language sql as 'select true'");
    let answers = || [&mallory, &other, &owner].map(|session| session.value(&allowed())).join(" ");
    assert_eq!(answers(), "t f f", "the function is not the hotrow schema's");
    mallory.run("alter function hotrow.keep() security definer");
    assert_eq!(answers(), "t f f");
    // The schema's owner could replace a superuser's function.
    owner.run("alter function hotrow.keep() owner to postgres");
    assert_eq!(answers(), "f f f");
}
