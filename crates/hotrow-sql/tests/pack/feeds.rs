//! Feeds, call by call: answers, refusals, waits between sessions, and rollbacks.

use crate::script::{check, check_in};
use crate::server::Database;

#[test]
fn errors_of_invalid_calls_name_the_mistake() {
    let (_database, session) = check(
        "follow(1, 1) -> self
        follow(1, null) -> 22004
        follow(null, 1) -> 22004
        follow(1, 2, -1) -> 22023
        follow(1, 2, 1001) -> 22023
        unfollow(1, 2) -> not_following
        mute(1, 2) -> not_following
        push(1, 2, null) -> 22004
        push(null, 2, 'x') -> 22004
        push(1, null, 'x') -> 22004
        push(1, 2, repeat('x', 1000001)) -> 22023
        post(null, 'x') -> 22004
        post(1, null) -> 22004
        post(1, repeat('x', 1000001)) -> 22023
        consume(1) -> nothing
        consume(1, 0) -> nothing
        consume(1, -1) -> 22023
        consume(1, 1001) -> 22023
        consume(1, null) -> 22004
        consume(null) -> 22004
        consume(1, 1, 'best') -> 22023
        consume(1, 1, null) -> 22004
        peek(1, -1) -> 22023
        past(1, null, -1) -> 22023
        unread(1) -> 0
        unread(null) -> 22004
        mark_read_up_to(1, 5) -> 0
        mark_read_up_to(1, null) -> 22004
        fan_out(0) -> 22023
        fan_out(null) -> 22004
        trim_feeds(0) -> 22023
        push_batch('{1,2}', '{1}', '{x,y}') -> 22023
        push_batch('{}', '{}', '{}') -> nothing
        consume_batch('{1,2}', '{1}') -> 22023
        follow_batch('{1}', '{2}', '{1,2}') -> 22023
        add_ranking('oldest', 'pg_catalog.now()') -> 22023
        add_ranking('r', 'pg_catalog.nothing()') -> 22023
        add_ranking('r', 'pg_catalog.now()') -> 22023",
    );
    // A call that only reads leaves no row.
    assert_eq!(session.value("select count(*) from hotrow.reader"), "0");
    let (message, hint) = session.complaint("select hotrow.consume(1, -1)");
    assert!(message.contains("max") && hint.contains("0 to 1000"), "{message}; {hint}");
}

#[test]
fn a_repeated_end_of_a_mute_keeps_the_posts_on_their_way() {
    for settings in ["feed_inline = 1", "feed_inline = 1, feed_pull_above = 2"] {
        let (_database, session) =
            check("follow(11, 200) -> followed\nfollow(12, 200) -> followed\nfollow(13, 200) -> followed");
        session.run(&format!("update hotrow.setting set {settings}"));
        check_in(
            &session,
            "post(200, 'a') -> 1 ok
            post(200, 'b') -> 2 ok
            mute(11, 200, false) -> unmuted",
        );
        session.run("do $$ begin while hotrow.fan_out() > 0 loop end loop; end $$");
        for reader in [11, 12] {
            let posts = session.ask(&format!("select content from hotrow.consume({reader})")).unwrap();
            assert_eq!(posts, ["a", "b"], "{settings}, {reader}");
        }
    }
}

#[test]
fn a_registered_ranking_orders_unread_messages() {
    let (_database, session) =
        check("push(1, 7, 'a') -> 1 ok\npush(1, 8, 'ccc') -> 2 ok\npush(1, 9, 'bb') -> 3 ok");
    session.run(
        "create schema shop; create function shop.longest(bigint, bigint, timestamptz, text) returns double precision
        language sql as $$ select length($4)::double precision $$",
    );
    session.run("select hotrow.add_ranking('longest', 'shop.longest(bigint,bigint,timestamptz,text)')");
    let consume = "select entry_id, content from hotrow.consume(1, 2, 'longest')";
    assert_eq!(session.ask(consume), Ok(vec!["2 ccc".to_owned(), "3 bb".to_owned()]));
    assert_eq!(session.ask(consume), Ok(vec!["1 a".to_owned()]));
}

#[test]
fn a_ranking_does_not_change_after_its_registration() {
    let database = Database::migrated();
    let owner = database.session("postgres");
    let developer = database.login("developer", true);
    let name = developer.value("select current_user");
    owner.run(&format!("create schema shop authorization {name}"));
    let function = |body: &str| {
        format!(
            "create or replace function shop.\"the longest\"(bigint, bigint, timestamptz, text)
            returns double precision language plpgsql as $$ begin {body} end $$"
        )
    };
    let register =
        "select hotrow.add_ranking('by \"size\"', 'shop.\"the longest\"(bigint,bigint,timestamptz,text)')";
    check_in(&owner, "push(1, 7, 'a') -> 1 ok\npush(1, 8, 'ccc') -> 2 ok\npush(1, 9, 'bb') -> 3 ok");
    developer.run(&function("return length($4);"));
    owner.run(register);
    developer.run(&function(&format!("execute 'alter role {name} superuser'; return 1;")));
    let ranked = "select string_agg(content, ' ') from hotrow.peek(1, 3, 'by \"size\"')";
    assert_eq!(developer.value(ranked), "ccc bb a");
    assert_eq!(owner.value(&format!("select rolsuper from pg_roles where rolname = '{name}'")), "f");
    developer.run("drop function shop.\"the longest\"");
    assert_eq!(developer.value(ranked), "ccc bb a");
    // A role that can register a ranking can register it again. The copy runs with the rights of its caller, the schema's owner.
    developer.run(&function("return - length($4);"));
    developer.run("alter function shop.\"the longest\" security definer");
    owner.run(register);
    assert_eq!(developer.value(ranked), "a bb ccc");
    let open = "select count(*) from pg_proc where proname like 'ranking\\_%' and pronamespace = 'hotrow'::regnamespace
        and (prosecdef or has_function_privilege('public', oid, 'execute') or proowner <> 'postgres'::regrole)";
    assert_eq!(owner.value(open), "0");
}

#[test]
fn readers_and_writers_of_an_inbox_do_not_wait_for_each_other() {
    let database = Database::migrated();
    let (one, other) = (database.session("postgres"), database.session("postgres"));
    other.run("set statement_timeout = '20 s'");
    check_in(&one, "push(1, 7, 'a') -> 1 ok\npush(1, 7, 'b') -> 2 ok");
    one.run("begin; select hotrow.push(1, 7, 'c')");
    assert_eq!(other.value("select content from hotrow.consume(1, 1)"), "a");
    one.run("commit; begin; select hotrow.consume(1, 1)");
    check_in(&other, "push(1, 7, 'd') -> 4 ok\nunread(1) -> 3");
    one.run("commit");
    check_in(&other, "unread(1) -> 2");
}

#[test]
fn two_readers_of_an_inbox_get_different_messages() {
    let database = Database::migrated();
    let (one, other) = (database.session("postgres"), database.session("postgres"));
    check_in(&one, "push_batch('{1,1,1}', '{7,7,7}', '{a,b,c}') -> 1 ok | 2 ok | 3 ok");
    // Before the first session has committed, the second has no reader's row to lock.
    for answer in ["b", "c"] {
        one.run("begin; select hotrow.consume(1, 1)");
        let pid = other.value("select pg_backend_pid()");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| other.ask("select content from hotrow.peek(1, 1)"));
            one.until(&format!(
                "exists (select from pg_stat_activity where pid = {pid} and wait_event_type = 'Lock')"
            ));
            one.run("commit");
            assert_eq!(waits.join().unwrap(), Ok(vec![answer.to_owned()]));
        });
    }
}

#[test]
fn a_rolled_back_fan_out_leaves_nothing_and_is_repeated() {
    let database = Database::migrated();
    let (one, other) = (database.session("postgres"), database.session("postgres"));
    one.run("update hotrow.setting set feed_inline = 2");
    one.run(
        "select hotrow.follow_batch(array(select generate_series(1, 5)), array_fill(9::bigint, array[5]))",
    );
    check_in(&one, "post(9, 'x') -> 1 ok\npost(9, 'y') -> 2 ok\nfan_out(2) -> 2");
    one.run("begin");
    check_in(&one, "fan_out(2) -> 2");
    // Another session finds only posts that the first is busy with. The next post waits until the first session ends.
    check_in(&other, "fan_out(2) -> 0");
    one.run("rollback");
    check_in(
        &other,
        "fan_out(2) -> 2
        fan_out(2) -> 1
        fan_out(10) -> 5
        fan_out(10) -> 0",
    );
    for user in 1..=5 {
        let found = other.ask(&format!("select entry_id, content from hotrow.consume({user})"));
        assert_eq!(found, Ok(vec!["1 x".to_owned(), "2 y".to_owned()]));
    }
}

#[test]
fn posts_of_a_muted_author_never_arrive() {
    let database = Database::migrated();
    let session = database.session("postgres");
    session.run("update hotrow.setting set feed_inline = 0");
    check_in(
        &session,
        "follow(1, 2) -> followed
        follow(3, 2) -> followed
        post(2, 'on its way') -> 1 ok
        mute(1, 2) -> muted
        post(2, 'muted') -> 2 ok
        mute(1, 2, false) -> unmuted
        mute(3, 2, false) -> unmuted
        post(2, 'wanted') -> 3 ok
        fan_out() -> 1
        fan_out() -> 1
        fan_out() -> 2
        fan_out() -> 0",
    );
    let contents = |user| session.ask(&format!("select content from hotrow.consume({user})"));
    assert_eq!(contents(1), Ok(vec!["wanted".to_owned()]));
    let all = ["on its way", "muted", "wanted"].map(str::to_owned);
    assert_eq!(contents(3), Ok(all.to_vec()), "this user did not mute the author and gets every post");
}

#[test]
fn a_push_repeated_with_another_time_is_not_a_retry() {
    let id = "'00000000-0000-0000-0000-000000000001'";
    let other = "'00000000-0000-0000-0000-000000000002'";
    let (_database, session) = check(&format!(
        "push(1, 2, 'x', '2026-01-01 00:00:00.5Z', {id}) -> 1 ok
        push(1, 2, 'x', '2026-01-01 00:00:00.5Z', {id}) -> 1 ok
        push(1, 2, 'x', '2026-01-01 02:00:00.5+02', {id}) -> 1 ok
        push(1, 2, 'x', '2026-01-01 00:00:00.6Z', {id}) -> 22023
        push(1, 2, 'x', null, {id}) -> 22023
        push(1, 2, 'x', null, {other}) -> 2 ok
        push(1, 2, 'x', null, {other}) -> 2 ok
        push(1, 2, 'x', '2026-01-01 00:00:00Z', {other}) -> 22023
        push(1, 2, 'x', 'infinity', {other}) -> 22023
        unread(1) -> 2"
    ));
    // The request matches in every time zone and date style.
    session.run("set timezone = 'Asia/Tokyo'; set datestyle = 'German'");
    check_in(&session, &format!("push(1, 2, 'x', '2026-01-01 00:00:00.5Z', {id}) -> 1 ok"));
}

#[test]
fn old_entries_and_posts_are_deleted_and_the_rest_stays() {
    let (_database, session) = check(
        "push(1, 7, 'old', now() - interval '91 days') -> 1 ok
        push(2, 7, 'old', now() - interval '91 days') -> 1 ok
        follow(1, 5) -> followed
        follow(3, 5) -> followed
        post(5, 'old') -> 1 ok
        push(1, 7, 'new') -> 3 ok
        post(5, 'new') -> 2 ok",
    );
    // A reference is as old as its post. If its post is deleted, it is older than any inbox keeps.
    session.run("update hotrow.post set at = at - interval '91 days' where post_id = 1");
    check_in(&session, "trim_feeds(1) -> 2 1");
    let past = session.ask("select entry_id, content, created_at is null from hotrow.past(3)");
    assert_eq!(past, Ok(vec!["2 new f".to_owned(), "1 - t".to_owned()]));
    check_in(
        &session,
        "trim_feeds(1) -> 1 0
        trim_feeds(1) -> 1 0
        trim_feeds(1) -> 0 0
        unread(1) -> 2
        unread(2) -> 0
        unread(3) -> 1
        push(2, 7, 'next') -> 2 ok
        unread(2) -> 1
        unfollow(1, 5) -> unfollowed
        unread(1) -> 1",
    );
}

#[test]
fn the_number_of_partitions_is_chosen_at_install() {
    let database = Database::empty();
    let mut session = database.session("postgres");
    session.run("set hotrow.feed_partitions = 3");
    session.migrate(hotrow_sql::DEFAULT_ROLE).unwrap();
    let parts = "select count(*) from pg_inherits where inhparent = 'hotrow.inbox'::regclass";
    assert_eq!(session.value(parts), "3");
    check_in(&session, "push(1, 2, 'x') -> 1 ok\npush(2, 2, 'x') -> 1 ok");
    let database = Database::empty();
    let mut session = database.session("postgres");
    session.run("set hotrow.feed_partitions = 'many'");
    assert!(session.migrate(hotrow_sql::DEFAULT_ROLE).is_err());
}

#[test]
fn members_can_call_feeds_but_not_read_their_tables() {
    let database = Database::migrated();
    let member = database.login("reader", true);
    check_in(
        &member,
        "push(1, 2, 'x') -> 1 ok
        push_batch('{1}', '{2}', '{y}') -> 2 ok
        follow(1, 3) -> followed
        mute(1, 3) -> muted
        unfollow(1, 3) -> unfollowed
        post(3, 'x') -> 1 ok
        fan_out() -> 0
        trim_feeds() -> 0 0
        unread(1) -> 2
        mark_read_up_to(1, 2) -> 2
        consume(1) -> nothing
        add_ranking('r', 'pg_catalog.now()') -> 42501
        write_entries('{1}', '{2}', null, null, '{x}', false) -> 42501
        trim_inboxes('{1}', '{2}') -> 42501",
    );
    for table in [
        "inbox",
        "inbox_0",
        "inbox_entry",
        "reader",
        "author",
        "post",
        "follow",
        "pull",
        "fan_out",
        "ranking",
    ] {
        assert_eq!(member.ask(&format!("select from hotrow.{table}")), Err("42501".to_owned()), "{table}");
    }
}
