//! The distribution of a hotrow schema that is in use: counters, sales and queues are moved with their history, requests and
//! leases, and feeds with their followers, posts on their way and unread messages, also while clients call. And what the commands
//! about a distributed hotrow schema say: the comparison of its functions.

use std::process::{Child, Output, Stdio};
use std::thread;

use hotrow_testkit::line::{Line, until};
use hotrow_testkit::{Original, distribute, hotrow, migrate};

use crate::client::value;
use crate::distributed::{NODES, SHARDS, connect, verify};

/// A cluster whose pack is on the coordinator only.
static INSTALLED: Original = Original::new(|| {
    let cluster = NODES.copy()?.into_cluster();
    migrate(&cluster.coordinator.url());
    Some(cluster)
});

/// Rows of every kind, with requests that are repeated later.
const DATA: &str = "
    update hotrow.setting set snapshot_every = 10, history_retention = '0';
    select hotrow.create_counter('led' || n, min => -100, max => 1000), hotrow.create_counter('log' || n, 'log')
        from generate_series(1, 6) n;
    select hotrow.increment('led' || n, i), hotrow.increment('log' || n, i)
        from generate_series(1, 6) n, generate_series(1, 20) i;
    select hotrow.rotate_history();
    select hotrow.drain('led1'), hotrow.drain('log1', '00000000-0000-0000-0000-00000000000d');
    select hotrow.increment('led2', 3, '00000000-0000-0000-0000-000000000001');
    select hotrow.increment('led3', -1000, '00000000-0000-0000-0000-000000000002');
    select hotrow.create_sale('phone' || n, 10, 2, hold => '1 hour'), hotrow.create_sale('pen' || n, 10)
        from generate_series(1, 6) n;
    select hotrow.confirm(r.reservation_id) from generate_series(1, 6) n, hotrow.reserve('phone' || n, 'ann', 2, gen_random_uuid()) r;
    select hotrow.reserve('phone1', 'eve', 1, '00000000-0000-0000-0000-000000000003');
    select hotrow.reserve('phone1', 'eve', 9, '00000000-0000-0000-0000-000000000004');
    select hotrow.restock('pen2', 5, '00000000-0000-0000-0000-000000000005');
    select hotrow.reserve_all(array['phone2', 'pen2'], '{1,1}', 'joe', '00000000-0000-0000-0000-000000000006');
    select hotrow.reserve_all(array['pen3', 'pen3'], '{1,1}', 'joe', '00000000-0000-0000-0000-000000000007');
    select hotrow.create_queue('jobs' || n, max_attempts => 1) from generate_series(1, 6) n;
    select hotrow.drop_queue('jobs6');
    select hotrow.enqueue('jobs' || n, gen_random_uuid(), null, case when i % 2 = 0 then 'g' end, null,
        case when i > 18 then now() + interval '1 hour' end, i % 3) from generate_series(1, 5) n, generate_series(1, 20) i;
    select hotrow.rotate_queues();
    select hotrow.complete('jobs' || n, t.receipt) from generate_series(1, 5) n, hotrow.take('jobs' || n, 2) t;
    select hotrow.fail('jobs1', receipt) from hotrow.take('jobs1', 1);
    create table receipt as select n, t.receipt from generate_series(1, 5) n, hotrow.take('jobs' || n, 3, '1 hour') t;
    select hotrow.follow(1, 9), hotrow.follow(2, 9), hotrow.post(9, 'x'), hotrow.push(1, 3, 'y', null, '00000000-0000-0000-0000-000000000008')";

/// Everything that clients can read, and the recorded answers of requests.
const READS: [&str; 9] = [
    "select string_agg(c::text, ' ' order by n) from generate_series(1, 6) n, hotrow.counter('led' || n) c",
    "select string_agg(c::text, ' ' order by n) from generate_series(1, 6) n, hotrow.counter('log' || n) c",
    "select string_agg(s::text, ' ' order by n) from generate_series(1, 6) n, hotrow.sale('phone' || n) s",
    "select string_agg(s::text, ' ' order by n) from generate_series(1, 6) n, hotrow.sale('pen' || n) s",
    "select string_agg(concat_ws(',', s.depth, s.ready, s.in_flight, s.processed, s.dead, s.enqueued, s.oldest), ' ' order by n)
         from generate_series(1, 5) n, hotrow.queue_stats('jobs' || n) s",
    "select hotrow.increment('led2', 3, '00000000-0000-0000-0000-000000000001')::text
         || hotrow.increment('led3', -1000, '00000000-0000-0000-0000-000000000002')
         || hotrow.drain('log1', '00000000-0000-0000-0000-00000000000d')
         || hotrow.restock('pen2', 5, '00000000-0000-0000-0000-000000000005')
         || hotrow.reserve_all(array['pen3', 'pen3'], '{1,1}', 'joe', '00000000-0000-0000-0000-000000000007')",
    "select hotrow.reserve('phone1', 'eve', 1, '00000000-0000-0000-0000-000000000003')::text
         || hotrow.reserve('phone1', 'eve', 9, '00000000-0000-0000-0000-000000000004')",
    "select hotrow.push(1, 3, 'y', null, '00000000-0000-0000-0000-000000000008')::text",
    "select string_agg(p::text, ' ') from hotrow.peek(1, 9) p",
];

/// Feeds with posts of every kind of delivery. Author 10 has a post that one of three followers has got. Author 11 has become too
/// big for fan-out: two of five followers have got the post that tells them to fetch the next one.
const FEEDS: &str = "
    update hotrow.setting set feed_inline = 2, feed_pull_above = 4;
    create function public.longest(user_id bigint, from_user bigint, created_at timestamptz, content text)
        returns double precision language sql as 'select length(content)';
    select hotrow.add_ranking('longest', 'public.longest(bigint,bigint,timestamptz,text)');
    select hotrow.follow(1, 9), hotrow.follow(2, 9), hotrow.post(9, 'at once', '00000000-0000-0000-0000-000000000009');
    select hotrow.post(9, 'at once too'), hotrow.push(1, 3, 'a message of its own'), hotrow.mute(2, 9);
    select hotrow.follow(u, 10) from generate_series(1, 3) u;
    select hotrow.post(10, 'slow');
    select hotrow.fan_out(1);
    select hotrow.follow(u, 11) from generate_series(1, 5) u;
    select hotrow.post(11, 'the last brought');
    select hotrow.post(11, 'to be fetched');
    select hotrow.fan_out(1);
    select hotrow.fan_out(2);
    select hotrow.follow(6, 11, 1);
    select hotrow.post(11, 'to be fetched too');
    select hotrow.consume(1, 2)";

/// What each user has got in the end, by author.
const RECEIVED: &str = "select string_agg(p.content || case when p.consumed then '!' else '' end, ', ' order by p.from_user, p.entry_id)
    from hotrow.past(USER, null, 100) p";

#[test]
fn feeds_in_use_are_moved_and_every_post_arrives_once() {
    let Some(cluster) = INSTALLED.copy() else { return };
    let mut line = connect(cluster.coordinator.port());
    for statement in FEEDS.split(";\n") {
        assert_eq!(line.query(statement).error(), None, "{statement}");
    }
    let pending =
        "select concat_ws(' ', (select count(*) from hotrow.fan_out where author = 10), (select count(*) from
        hotrow.fan_out where author = 11), (select count(*) from hotrow.pull))";
    assert_eq!(value(&mut line, pending), "1 1 3", "the data are not those that this test is about");
    distribute(&cluster.coordinator.url(), SHARDS);
    let mut line = connect(cluster.coordinator.port());
    let mut worker = connect(cluster.workers[0].port());
    assert_eq!(
        value(&mut line, "select posts_queued from hotrow.feed_stats()"),
        "1",
        "only that of author 10"
    );
    let again = "select post_id from hotrow.post(9, 'at once', '00000000-0000-0000-0000-000000000009')";
    assert_eq!(value(&mut worker, again), "1");
    while value(&mut worker, "select hotrow.fan_out(2)") != "0" {}
    let all = "the last brought, to be fetched, to be fetched too";
    for (user, expected) in [
        (1, format!("a message of its own, at once!, at once too!, slow, {all}")),
        (2, format!("at once, at once too, slow, {all}")),
        (3, format!("slow, {all}")),
        (4, all.to_owned()),
        (5, all.to_owned()),
        (6, "to be fetched, to be fetched too".to_owned()),
    ] {
        assert_eq!(value(&mut line, &RECEIVED.replace("USER", &user.to_string())), expected, "user {user}");
        let unread = expected.split(", ").filter(|content| !content.ends_with('!')).count();
        assert_eq!(value(&mut worker, &format!("select hotrow.unread({user})")), unread.to_string());
    }
    // All of these authors' later posts are brought, and a mute from before is still one.
    for author in [9, 10, 11] {
        assert_eq!(line.query(&format!("select hotrow.post({author}, 'later')")).error(), None);
    }
    while value(&mut line, "select hotrow.fan_out()") != "0" {}
    let later = "select string_agg(u || ':' || (select count(*) from hotrow.past(u) p where p.content = 'later'), ' ' order by u)
        from generate_series(1, 6) u";
    assert_eq!(value(&mut worker, later), "1:3 2:2 3:2 4:1 5:1 6:1");
    verify(&cluster);
}

#[test]
fn rankings_are_moved_and_shared_by_all_nodes() {
    let Some(cluster) = INSTALLED.copy() else { return };
    let mut line = connect(cluster.coordinator.port());
    for statement in FEEDS.split(";\n").take(3) {
        assert_eq!(line.query(statement).error(), None, "{statement}");
    }
    distribute(&cluster.coordinator.url(), SHARDS);
    let mut line = connect(cluster.coordinator.port());
    let shorter = "create function public.shortest(user_id bigint, from_user bigint, created_at timestamptz, content text)
        returns double precision language sql as 'select -length(content)'";
    let add = "select hotrow.add_ranking('shortest', 'public.shortest(bigint,bigint,timestamptz,text)')";
    for statement in [shorter, add, add] {
        assert_eq!(line.query(statement).error(), None, "{statement}");
    }
    let mut worker = connect(cluster.workers[1].port());
    let error = worker.query(add).error().unwrap();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("0A000", "hotrow.add_ranking was called on a worker")
    );
    for user in 1..=8 {
        for content in ["of three", "a", "the longest of three"] {
            assert_eq!(worker.query(&format!("select hotrow.push({user}, 9, '{content}')")).error(), None);
        }
        for line in [&mut line, &mut worker] {
            let first = |sort| format!("select content from hotrow.peek({user}, 1, '{sort}')");
            assert_eq!(value(line, &first("longest")), "the longest of three");
            assert_eq!(value(line, &first("shortest")), "a");
        }
    }
    // A repeated distribution keeps them.
    distribute(&cluster.coordinator.url(), SHARDS);
    let mut line = connect(cluster.coordinator.port());
    assert_eq!(value(&mut line, "select content from hotrow.consume(1, 1, 'shortest')"), "a");
}

fn reads(line: &mut Line) -> Vec<String> {
    READS.iter().map(|read| value(line, read)).collect()
}

#[test]
fn a_pack_in_use_is_moved_with_its_history_its_requests_and_its_leases() {
    let Some(cluster) = INSTALLED.copy() else { return };
    let mut line = connect(cluster.coordinator.port());
    assert_eq!(line.query(DATA).error(), None);
    let before = reads(&mut line);
    distribute(&cluster.coordinator.url(), SHARDS);
    let mut line = connect(cluster.coordinator.port());
    for (read, before) in READS.iter().zip(&before) {
        assert_eq!(value(&mut line, read), *before, "{read}");
    }
    let mut worker = connect(cluster.workers[0].port());
    for read in &READS[..4] {
        assert_eq!(value(&mut worker, read), value(&mut line, read), "{read} on a worker");
    }
    // Reservations and leases of the time before go on, and new rows meet no old ones.
    let confirm = "select status from hotrow.confirm('00000000-0000-0000-0000-000000000003')";
    assert_eq!(value(&mut line, confirm), "confirmed");
    let complete = "select count(*) from receipt r, hotrow.complete('jobs' || r.n, r.receipt) c where c.outcome = 'completed'";
    let completed = value(&mut line, complete);
    assert_eq!(completed, value(&mut line, "select count(*) from receipt"));
    for statement in [
        "select hotrow.increment('led' || n, 1), hotrow.increment('log' || n, 1) from generate_series(1, 6) n",
        "select hotrow.reserve('pen' || n, 'new', 1) from generate_series(1, 6) n",
        "select hotrow.create_queue('jobs6'), hotrow.create_queue('more')",
        "select hotrow.enqueue('jobs' || n, gen_random_uuid()) from generate_series(1, 6) n",
        "select hotrow.take('jobs' || n, 100) from generate_series(1, 6) n",
        "select hotrow.on_shards('rotate_history()')",
        "select hotrow.on_shards('rotate_queues()')",
    ] {
        assert_eq!(line.query(statement).error(), None, "{statement}");
    }
    // Items of one call can be in several shards now.
    let both = "select hotrow.reserve_all(array['phone2', 'pen2'], '{1,1}', 'joe', '00000000-0000-0000-0000-000000000006')";
    let code = line.query(both).error().map(|error| error.code);
    let is_one = value(&mut line, "select hotrow.shard_of('phone2') = hotrow.shard_of('pen2')");
    assert_eq!(code.as_deref(), (is_one == "f").then_some("0A000"));
    let replay =
        hotrow().args(["replay", "led2", "--upstream", &cluster.coordinator.url()]).output().unwrap();
    assert!(replay.status.success(), "{}", printed(&replay));
    verify(&cluster);
}

#[test]
fn calls_during_the_move_are_counted_once_or_refused() {
    let Some(cluster) = INSTALLED.copy() else { return };
    let port = cluster.coordinator.port();
    let mut line = connect(port);
    for statement in ["select hotrow.increment('hot', 1)", "select hotrow.create_sale('shoe', 100)"] {
        assert_eq!(line.query(statement).error(), None, "{statement}");
    }
    let reservation = value(&mut line, "select reservation_id from hotrow.reserve('shoe', 'ann', 1)");
    // The move waits for this transaction, and the calls after it wait for the move.
    let mut open = connect(port);
    assert_eq!(open.query("begin; select hotrow.increment('hot', 1)").error(), None);
    let arguments = ["migrate", "--distribute", "--shards", "4", "--upstream", &cluster.coordinator.url()];
    let mover = hotrow().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let waits = "select count(*) > 0 from pg_locks where not granted and mode = 'AccessExclusiveLock'";
    until("the move waits", || value(&mut line, waits) == "t");
    let calls = [
        "select hotrow.increment('hot', 1)".to_owned(),
        "select hotrow.increment('cold', 1)".to_owned(),
        "select hotrow.reserve('shoe', 'bob', 1)".to_owned(),
        format!("select hotrow.confirm('{reservation}')"),
        "select hotrow.create_queue('late')".to_owned(),
        "select hotrow.push(1, 2, 'late')".to_owned(),
        "select hotrow.post(2, 'late')".to_owned(),
        "select hotrow.follow(2, 1)".to_owned(),
    ];
    let late: Vec<_> =
        calls.iter().cloned().map(|call| thread::spawn(move || connect(port).query(&call).error())).collect();
    // Some of them use another table first, and wait only for the rest of the locks.
    let waits = "select count(distinct pid) from pg_locks where not granted";
    until("each call has ended or waits, as the move does", || {
        let waiting: usize = value(&mut line, waits).parse().unwrap();
        waiting > late.iter().filter(|call| !call.is_finished()).count()
    });
    assert_eq!(open.query("commit").error(), None);
    let moved = end(mover);
    assert!(moved.status.success(), "{}", printed(&moved));
    let errors: Vec<_> = late.into_iter().map(|call| call.join().unwrap()).collect();
    let mut line = connect(port);
    for (call, error) in calls.iter().zip(&errors) {
        let code = error.as_ref().map(|error| error.code.as_str());
        assert!(matches!(code, None | Some("55000" | "40P01")), "{call}: {error:?}");
    }
    let done = |place: usize| i64::from(errors[place].is_none());
    assert_eq!(
        value(&mut line, "select value from hotrow.counter('hot')"),
        (2 + done(0)).to_string(),
        "{errors:?}"
    );
    assert_eq!(
        value(&mut line, "select coalesce(max(value), 0) from hotrow.counter('cold')"),
        done(1).to_string()
    );
    assert_eq!(value(&mut line, "select remaining from hotrow.sale('shoe')"), (99 - done(2)).to_string());
    let status = value(&mut line, &format!("select status from hotrow.confirm('{reservation}')"));
    assert_eq!(status, "confirmed", "the first call or this one");
    assert_eq!(value(&mut line, "select count(*) from hotrow.list_queues()"), done(4).to_string());
    assert_eq!(value(&mut line, "select hotrow.unread(1)"), done(5).to_string());
    let posts = "select coalesce(max(p.post_id), 0) from hotrow.follow(3, 2) f, hotrow.past(3) p";
    assert_eq!(value(&mut line, posts), done(6).to_string());
    let followed = value(&mut line, "select status from hotrow.unfollow(2, 1)");
    assert_eq!(followed, if done(7) == 1 { "unfollowed" } else { "not_following" });
    println!("{errors:?}");
    verify(&cluster);
}

fn end(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_comparison_covers_the_shards_and_the_nodes() {
    let Some(cluster) = INSTALLED.copy() else { return };
    distribute(&cluster.coordinator.url(), SHARDS);
    let check = || {
        let check = ["migrate", "--check", "--upstream", &cluster.coordinator.url()];
        let output = hotrow().args(check).output().unwrap();
        (output.status.success(), printed(&output))
    };
    assert_eq!(check(), (true, "the hotrow schema matches this program\n".to_owned()));
    let change = "create or replace function hotrow_shard_2.refusal(present bigint, amount bigint, min bigint, max bigint)
        returns text language sql immutable as 'select null::text'";
    let mut line = connect(cluster.coordinator.port());
    assert_eq!(line.query(change).error(), None);
    let (fits, text) = check();
    assert!(
        !fits && text.contains("hotrow_shard_2.refusal is missing or is not what this program installs"),
        "{text}"
    );
    assert!(text.contains("run hotrow migrate --distribute"), "{text}");
    distribute(&cluster.coordinator.url(), SHARDS);
    assert!(check().0);
    // On one node only.
    let mut worker = connect(cluster.workers[1].port());
    let change = format!("set citus.enable_ddl_propagation = off; {change}");
    assert_eq!(worker.query(&change).error(), None);
    let (fits, text) = check();
    let node = format!("the node 127.0.0.1:{} has other functions", cluster.workers[1].port());
    assert!(!fits && text.contains(&node), "{text}");
    distribute(&cluster.coordinator.url(), SHARDS);
    assert!(check().0);
}
