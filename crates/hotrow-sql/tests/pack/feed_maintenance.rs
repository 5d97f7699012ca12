//! Fan-out and trimming of feeds: open transactions, extreme IDs, and age. Answers to readers are tested in `feeds.rs`.

use crate::script::{check, check_in};
use crate::server::{Database, Session};

/// A session whose statements fail instead of waiting long for a lock.
fn impatient(database: &Database) -> Session {
    let session = database.session("postgres");
    session.run("set statement_timeout = '20s'");
    session
}

fn contents(session: &Session, user: i64) -> Vec<String> {
    session.ask(&format!("select content from hotrow.consume({user}, 100)")).unwrap()
}

#[test]
fn a_message_that_is_not_old_stays_although_an_older_one_came_after_it() {
    let (_database, session) = check(
        "push(1, 9, 'fresh') -> 1 ok
        push(1, 8, 'old', now() - interval '91 days') -> 2 ok
        push(1, 9, 'fresh too') -> 3 ok
        push(1, 8, 'old too', now() - interval '91 days') -> 4 ok
        trim_feeds() -> 2 0
        unread(1) -> 2
        trim_feeds() -> 0 0",
    );
    assert_eq!(contents(&session, 1), ["fresh", "fresh too"]);
    check_in(&session, "unread(1) -> 0\npush(1, 9, 'next') -> 5 ok\nunread(1) -> 1");
    assert_eq!(contents(&session, 1), ["next"]);
}

/// Writers delete entries beyond `inbox_length`. If it is raised later, these entries do not count as unread.
#[test]
fn a_longer_inbox_does_not_count_messages_that_were_deleted_while_it_was_shorter() {
    let (_database, session) = check("follow(2, 9) -> followed");
    session.run(
        "update hotrow.setting set inbox_length = 64;
        select count(hotrow.push(1, 9, n::text)) from generate_series(1, 300) n;
        select * from hotrow.push_batch(array_fill(2, array[300]), array_fill(9, array[300]), array_fill('m'::text, array[300]))",
    );
    check_in(&session, "unread(1) -> 64\nunread(2) -> 64");
    session.run("update hotrow.setting set inbox_length = 1000");
    for user in [1, 2] {
        // The last deletion was at entry 256.
        let kept = session.value(&format!("select count(*) from hotrow.inbox_entry where user_id = {user}"));
        assert_eq!(kept, "108");
        assert_eq!(session.value(&format!("select hotrow.unread({user})")), kept);
        assert_eq!(session.value(&format!("select count(*) from hotrow.peek({user}, 1000)")), kept);
        let newest = format!("select count(*) from hotrow.consume({user}, 8, 'newest')");
        assert_eq!(session.value(&newest), "8");
        let first = format!("select count(*) from hotrow.consume({user}, 20)");
        assert_eq!(session.value(&first), "20");
        assert_eq!(session.value(&format!("select hotrow.unread({user})")), "80");
        assert_eq!(session.value(&format!("select hotrow.mark_read_up_to({user}, 300)")), "80");
    }
    // A shorter inbox takes effect at once, and what is not deleted yet comes back with a longer one.
    session.run("select count(hotrow.push(1, 9, n::text)) from generate_series(301, 400) n");
    session.run("update hotrow.setting set inbox_length = 64");
    check_in(&session, "unread(1) -> 64");
    session.run("update hotrow.setting set inbox_length = 1000");
    check_in(&session, "unread(1) -> 100");
    assert_eq!(session.value("select count(*) from hotrow.consume(1, 1000)"), "100");
}

#[test]
fn trimming_of_posts_stops_at_the_first_recent_post() {
    let (_database, session) =
        check("post(1, 'a') -> 1 ok\npost(1, 'b') -> 2 ok\npost(1, 'c') -> 3 ok\npost(1, 'd') -> 4 ok");
    session.run("update hotrow.post set at = at - interval '91 days' where post_id in (1, 3)");
    check_in(&session, "trim_feeds() -> 0 1");
    assert_eq!(session.value("select array_agg(content order by post_id) from hotrow.post"), "{b,c,d}");
    session.run("update hotrow.post set at = at - interval '91 days' where post_id = 2");
    check_in(&session, "trim_feeds() -> 0 2");
    assert_eq!(session.value("select array_agg(content order by post_id) from hotrow.post"), "{d}");
}

#[test]
fn a_transaction_that_holds_an_author_holds_up_no_other_author() {
    let database = Database::migrated();
    let (holder, other) = (database.session("postgres"), impatient(&database));
    other.run("update hotrow.setting set feed_inline = 0");
    check_in(
        &other,
        "follow(1, 8) -> followed
        follow(1, 9) -> followed
        post(8, 'held up') -> 1 ok
        post(9, 'not held up') -> 1 ok",
    );
    holder.run("begin; select hotrow.follow(99, 8)");
    check_in(&other, "fan_out() -> 1\nfan_out() -> 0");
    assert_eq!(contents(&other, 1), ["not held up"]);
    holder.run("rollback");
    check_in(&other, "fan_out() -> 1\nfan_out() -> 0");
    assert_eq!(contents(&other, 1), ["held up"]);
}

#[test]
fn a_transaction_that_holds_an_inbox_holds_up_no_other_follower() {
    let database = Database::migrated();
    let (holder, other) = (database.session("postgres"), impatient(&database));
    other.run("update hotrow.setting set feed_inline = 0");
    other.run(
        "select hotrow.follow_batch(array(select generate_series(1, 5)), array_fill(9::bigint, array[5]))",
    );
    check_in(&other, "post(9, 'a') -> 1 ok\npost(9, 'b') -> 2 ok");
    holder.run("begin; select hotrow.push(3, 7, 'x')");
    check_in(&other, "fan_out(2) -> 2\nfan_out(2) -> 2\nfan_out() -> 1\nfan_out() -> 5\nfan_out() -> 0");
    for user in [1, 2, 4, 5] {
        assert_eq!(contents(&other, user), ["a", "b"], "{user}");
    }
    check_in(&other, "post(9, 'c') -> 3 ok\nfan_out() -> 5\nfan_out() -> 0");
    holder.run("commit");
    check_in(&other, "fan_out() -> 3\nfan_out() -> 0\npost(9, 'd') -> 4 ok\nfan_out() -> 5");
    assert_eq!(contents(&other, 3), ["x", "a", "b", "c", "d"]);
    assert_eq!(contents(&other, 4), ["c", "d"]);
    assert_eq!(other.value("select count(*) from hotrow.fan_out"), "0");
}

#[test]
fn a_transaction_that_holds_a_reader_holds_up_no_other_follower_of_an_author_that_becomes_too_big() {
    let database = Database::migrated();
    let (holder, other) = (database.session("postgres"), impatient(&database));
    other.run("update hotrow.setting set feed_pull_above = 2");
    other.run(
        "select hotrow.follow_batch(array(select generate_series(1, 3)), array_fill(9::bigint, array[3]))",
    );
    check_in(&other, "push(2, 7, 'x') -> 1 ok\npost(9, 'a') -> 1 ok\npost(9, 'b') -> 2 ok");
    holder.run("begin; select hotrow.consume(2)");
    check_in(&other, "fan_out() -> 3\nfan_out() -> 0");
    assert_eq!(contents(&other, 1), ["a", "b"]);
    holder.run("commit");
    check_in(&other, "unread(2) -> 0\nfan_out() -> 1\nfan_out() -> 0\nunread(2) -> 2");
    assert_eq!(contents(&other, 2), ["a", "b"]);
}

#[test]
fn a_user_that_unfollows_does_not_get_posts_that_a_locked_inbox_delayed() {
    let database = Database::migrated();
    let (holder, other) = (database.session("postgres"), impatient(&database));
    other.run("update hotrow.setting set feed_inline = 0");
    check_in(&other, "follow(1, 9) -> followed\nfollow(2, 9) -> followed\npost(9, 'a') -> 1 ok");
    holder.run("begin; select hotrow.push(1, 7, 'x')");
    check_in(&other, "fan_out() -> 2\nfan_out() -> 0");
    holder.run("commit");
    check_in(&other, "unfollow(1, 9) -> unfollowed\nfan_out() -> 0");
    assert_eq!(contents(&other, 1), ["x"]);
    assert_eq!(other.value("select count(*) from hotrow.fan_out"), "0");
}

#[test]
fn an_author_whose_posts_fail_does_not_hold_up_other_authors() {
    let (_database, session) =
        check("follow(1, 8) -> followed\nfollow(1, 9) -> followed\nfollow(2, 8) -> followed");
    session.run("update hotrow.setting set feed_inline = 0");
    check_in(&session, "post(8, 'a') -> 1 ok\npost(9, 'b') -> 1 ok");
    // An inbox whose next number exists already: another program has changed the tables.
    session.run("insert into hotrow.inbox_entry (user_id, number, from_user) values (2, 1, 7)");
    check_in(&session, "fan_out() -> 1\nfan_out() -> 0");
    assert_eq!(contents(&session, 1), ["b"]);
    session.run("delete from hotrow.inbox_entry where user_id = 2");
    check_in(&session, "fan_out() -> 2\nfan_out() -> 0");
}

#[test]
fn the_largest_and_the_smallest_id_work_like_any_other() {
    let (largest, smallest) = (i64::MAX, i64::MIN);
    let (_database, session) = check(&format!(
        "follow({largest}, 9) -> followed
        follow({smallest}, 9) -> followed
        follow(1, {largest}) -> followed
        push({smallest}, 7, 'old', now() - interval '91 days') -> 1 ok
        push({largest}, 7, 'old', now() - interval '91 days') -> 1 ok
        push(5, 7, 'old', now() - interval '91 days') -> 1 ok"
    ));
    session.run("update hotrow.setting set feed_inline = 0");
    check_in(
        &session,
        &format!(
            "post(9, 'a') -> 1 ok
            post({largest}, 'b') -> 1 ok
            fan_out(1) -> 1
            fan_out(1) -> 1
            fan_out(1) -> 1
            fan_out(1) -> 0
            trim_feeds(4) -> 3 0
            trim_feeds(4) -> 0 0"
        ),
    );
    // Each sweep looks at one more inbox, from the first to the last and again.
    for user in [smallest, 5, largest] {
        check_in(
            &session,
            &format!(
                "push({user}, 7, 'old', now() - interval '91 days') -> {}",
                if user == 5 { "2 ok" } else { "3 ok" }
            ),
        );
    }
    let trimmed: Vec<_> = (0..8).map(|_| session.value("select (hotrow.trim_feeds(1)).entries")).collect();
    assert_eq!(trimmed.iter().filter(|entries| *entries == "1").count(), 3, "{trimmed:?}");
    check_in(&session, "mark_read_up_to(5, 9223372036854775807) -> 0");
}

#[test]
fn posts_keep_their_order_when_their_author_becomes_too_big_for_fan_out() {
    let (_database, session) =
        check("follow(1, 9) -> followed\nfollow(2, 9) -> followed\nfollow(3, 9) -> followed");
    session.run("update hotrow.setting set feed_inline = 0, feed_pull_above = 2");
    check_in(
        &session,
        "post(9, 'a') -> 1 ok
        post(9, 'b') -> 2 ok
        fan_out(2) -> 2
        post(9, 'c') -> 3 ok
        follow(4, 9, 1) -> followed
        fan_out() -> 1
        post(9, 'd') -> 4 ok
        unread(1) -> 4
        unread(3) -> 4
        fan_out() -> 0",
    );
    for user in [1, 3] {
        assert_eq!(contents(&session, user), ["a", "b", "c", "d"], "{user}");
    }
    assert_eq!(contents(&session, 4), ["c", "d"]);
}

#[test]
fn deleted_posts_do_not_count_as_unread() {
    let (_database, session) =
        check("follow(1, 9) -> followed\nfollow(2, 9) -> followed\nfollow(3, 9) -> followed");
    session.run("update hotrow.setting set feed_pull_above = 2");
    check_in(&session, "post(9, 'a') -> 1 ok\nfan_out() -> 3\npost(9, 'b') -> 2 ok\npost(9, 'c') -> 3 ok");
    check_in(&session, "post(9, 'd') -> 4 ok\nunread(1) -> 4");
    session.run("update hotrow.post set at = at - interval '91 days' where post_id <= 3");
    // Each call looks at one inbox, so the other inboxes still have references to the first post.
    check_in(&session, "trim_feeds(1) -> 1 3\nunread(1) -> 1\nunread(3) -> 2");
    assert_eq!(contents(&session, 3), ["-", "d"]);
    check_in(&session, "unread(3) -> 0\nunread(1) -> 1");
    assert_eq!(contents(&session, 1), ["d"]);
}

#[test]
fn transactions_that_hold_inboxes_and_readers_do_not_hold_up_trimming() {
    let database = Database::migrated();
    let (holder, other) = (database.session("postgres"), impatient(&database));
    for user in 1..=3 {
        check_in(
            &other,
            &format!(
                "push({user}, 7, 'old', now() - interval '91 days') -> 1 ok\npush({user}, 7, 'x') -> 2 ok"
            ),
        );
    }
    check_in(&other, "follow(3, 9) -> followed\npost(9, 'a') -> 1 ok\npost(9, 'b') -> 2 ok");
    other.run("select hotrow.peek(u) from generate_series(1, 3) u; update hotrow.post set at = at - interval '91 days' where post_id = 1");
    holder.run("begin; select hotrow.consume(1, 1), hotrow.push(2, 7, 'y'), hotrow.post(9, 'c')");
    check_in(&other, "trim_feeds() -> 3 0");
    holder.run("rollback; begin; select hotrow.trim_feeds()");
    check_in(&other, "push(2, 7, 'old', now() - interval '91 days') -> 3 ok\ntrim_feeds() -> 1 0");
    holder.run("rollback");
    check_in(&other, "trim_feeds() -> 1 1");
}

/// Muting locks the author and then the reader. A fan-out that has locked a reader for one author must not wait for the
/// next author.
#[test]
fn muting_and_fanning_out_do_not_wait_for_each_other() {
    let database = Database::migrated();
    let (fanning, muting) = (impatient(&database), impatient(&database));
    let watching = database.session("postgres");
    muting.run("update hotrow.setting set feed_inline = 0, feed_pull_above = 0");
    // No follower receives the first post any more, but the author's follower must still learn to fetch the next ones.
    check_in(
        &muting,
        "follow(1, 8) -> followed
        post(8, 'a') -> 1 ok
        mute(1, 8) -> muted
        mute(1, 8, false) -> unmuted
        follow(1, 9) -> followed
        follow(2, 9) -> followed
        post(9, 'b') -> 1 ok",
    );
    let pid = fanning.value("select pg_backend_pid()");
    muting.run("begin; select hotrow.mute(2, 9)");
    std::thread::scope(|scope| {
        let fans = scope.spawn(|| fanning.ask("select hotrow.fan_out(10)"));
        watching.until(&format!(
            "(select wait_event_type = 'Lock' or state = 'idle' and query ~ 'fan_out'
                from pg_stat_activity where pid = {pid})"
        ));
        let muted = muting.ask("select hotrow.mute(1, 9)");
        muting.run("commit");
        assert_eq!((muted, fans.join().unwrap().is_ok()), (Ok(vec!["muted".to_owned()]), true));
    });
}
