//! Feeds of a distributed hotrow schema: against their model, on every node, and under many clients while shards move and nodes
//! are killed. A post reaches its followers by fan-out only, so the model fans all posts out too. No gateway runs meanwhile,
//! because its maintenance fans out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Instant;

use hotrow_model::{FeedCommand, FeedLimits};
use hotrow_postgres::Cluster;
use hotrow_testkit::line::{Line, Until, until};
use hotrow_testkit::{Gateway, OwnCluster, PATIENCE};

use crate::client;
use crate::client::value;
use crate::distributed::{LANES, ONE_SHARD, SHARDED, SHARDS, connect, move_shard, verify};
use crate::feed_model::difference_among;
use crate::feeds::{self, AUTHORS, Feeds, INBOXES};
use crate::planted::{Fault, missed, seeds};
use crate::same_as_model::{SEEDS_OF_NODE, none_differs};

const SEEDS: u64 = 8;
const SEEDS_MAX: u64 = 100;
/// No post is delivered by the call that posts it, and no reader fetches posts.
const LIMITS: FeedLimits = FeedLimits { inline: 0, pull_above: usize::MAX, kept: 64 };

/// Gives all shards the limits of the model.
fn limit(line: &mut Line, shards: usize) {
    for shard in 0..shards {
        let limit = format!("update hotrow_shard_{shard}.setting set inbox_length = {}", LIMITS.kept);
        assert_eq!(line.query(&limit).error(), None);
    }
}

/// What a distributed hotrow schema does not know exactly: a request ID is known in the shard where it was used, and the
/// posts of one batch are not of the same time if their authors are in several shards.
struct Shards {
    line: Line,
    of_user: HashMap<i64, String>,
    of_request: HashMap<u128, String>,
}

impl Shards {
    fn new(port: u16) -> Self {
        Shards { line: connect(port), of_user: HashMap::new(), of_request: HashMap::new() }
    }

    fn of(&mut self, user: i64) -> String {
        let find = || value(&mut self.line, &format!("select hotrow.shard_of({user}::bigint)"));
        self.of_user.entry(user).or_insert_with(find).clone()
    }

    /// The calls that have the model's answers.
    fn choose(&mut self, mut commands: Vec<FeedCommand>) -> Vec<FeedCommand> {
        let mut of_posts = None;
        commands.retain(|command| {
            let (shard, request) = match command {
                FeedCommand::Post { author, request, .. } => {
                    let shard = self.of(*author);
                    if *of_posts.get_or_insert_with(|| shard.clone()) != shard {
                        return false;
                    }
                    (shard, request)
                }
                FeedCommand::Push { user, request, .. } => (self.of(*user), request),
                _ => return true,
            };
            let Some(request) = request else { return true };
            *self.of_request.entry(*request).or_insert_with(|| shard.clone()) == shard
        });
        commands
    }
}

#[test]
fn one_shard_of_feeds_gives_the_models_answers() {
    let Some(cluster) = ONE_SHARD.copy() else { return };
    let mut line = connect(cluster.coordinator.port());
    limit(&mut line, 1);
    none_differs(SEEDS, |seed| difference_among(&mut line, seed, LIMITS, |commands| commands));
    verify(&cluster);
}

#[test]
fn several_shards_of_feeds_give_the_models_answers_on_every_node() {
    let Some(cluster) = SHARDED.copy() else { return };
    limit(&mut connect(cluster.coordinator.port()), SHARDS);
    let workers = cluster.workers.iter().map(|worker| worker.port());
    let mut shards = Shards::new(cluster.coordinator.port());
    for (turn, port) in std::iter::once(cluster.coordinator.port()).chain(workers).enumerate() {
        let mut line = connect(port);
        none_differs(SEEDS / 2, |seed| {
            let seed = seed.wrapping_add(turn as u64 * SEEDS_OF_NODE);
            difference_among(&mut line, seed, LIMITS, |commands| shards.choose(commands))
        });
    }
    verify(&cluster);
}

const FAULTS: [Fault; 11] = [
    ("hotrow_shard_0.write_copies", "last[w.slot] - entries[w.slot] + w.nth", "last[w.slot] - w.nth + 1"),
    ("hotrow_shard_0.begin_following", "u.user_id, a.last_post\n", "u.user_id, a.last_post - 1\n"),
    ("hotrow_shard_0.begin_following", "order by p.post_id desc limit", "order by p.post_id limit"),
    ("hotrow_shard_0.purge_copies", "and e.post_id is not null", ""),
    ("hotrow_shard_0.purge_copies", ", taken = settled.taken", ""),
    ("hotrow_shard_0.take_chunk", "f.since_post < job.post_id and not f.muted", "not f.muted"),
    ("hotrow_shard_0.take_chunk", "f.since_post < job.post_id and not f.muted", "f.since_post < job.post_id"),
    ("hotrow_shard_0.take_chunk", "next_user = looked.last + 1", "next_user = looked.last"),
    ("hotrow_shard_0.end_turn", "set at = clock_timestamp()", "set at = t.at"),
    ("end_following", "w.place <= w.backfill", "w.place < w.backfill"),
    ("fan_out", "order by u.at, u.author", "order by u.author"),
];

#[test]
fn every_fault_planted_in_distributed_feeds_is_noticed() {
    let Some(cluster) = ONE_SHARD.copy() else { return };
    let mut line = connect(cluster.coordinator.port());
    limit(&mut line, 1);
    let missed = missed(&mut line, &FAULTS, |line, index| {
        let noticed = seeds(index, SEEDS_MAX).any(|seed| {
            let found = difference_among(line, seed, LIMITS, |commands| commands);
            found.is_some()
        });
        // Removes pending posts of the run that noticed the fault.
        for table in ["fan_out", "fan_out_turn"] {
            assert_eq!(line.query(&format!("truncate hotrow_shard_0.{table}")).error(), None);
        }
        noticed
    });
    assert_eq!(missed, [], "no run noticed these");
}

/// Users that follow and unfollow the first author all the time.
const FICKLE: [i64; 2] = [2001, 2002];
const KILLS: usize = 3;
const MOVES: usize = 3;

/// A cluster in which all users follow both authors.
fn prepared() -> Option<OwnCluster> {
    let cluster = SHARDED.copy()?;
    let mut line = connect(cluster.coordinator.port());
    for shard in 0..SHARDS {
        let long = format!("update hotrow_shard_{shard}.setting set inbox_length = 100000");
        assert_eq!(line.query(&long).error(), None);
    }
    for author in AUTHORS {
        for inbox in 0..INBOXES {
            value(&mut line, &format!("select hotrow.follow({inbox}, {author})"));
        }
    }
    let spread = "select count(distinct hotrow.shard_of(u)) from unnest(array[0, 1, 2, 3, 4, 5]::bigint[]) u";
    assert_ne!(value(&mut line, spread), "1", "all inboxes are in one shard");
    Some(cluster)
}

/// The posts of the first author in an inbox, in the order of the entries.
const POSTS: &str = "select coalesce(string_agg(p.post_id::text, ' ' order by p.entry_id), '')
    from hotrow.past(USER, null, 1000) p where p.from_user = AUTHOR and p.post_id is not null";

fn posts(line: &mut Line, user: i64) -> Vec<usize> {
    let query = POSTS.replace("USER", &user.to_string()).replace("AUTHOR", &AUTHORS[0].to_string());
    value(line, &query).split_whitespace().map(|post| post.parse().unwrap()).collect()
}

/// The answer of a call that is repeated until it is answered.
fn insist(port: u16, line: &mut Line, call: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "{call} was not answered");
        let answer = line.query(call);
        if answer.whole && answer.error().is_none() {
            return answer.rows().remove(0).remove(0).unwrap_or_default();
        }
        if !answer.whole
            && let Some(next) = client::connect(port)
        {
            *line = next;
        }
    }
}

/// A user that follows and unfollows the first author: it has either all of the author's posts, each once and in order, or none.
fn follow_and_unfollow(port: u16, user: i64, over: &AtomicBool) -> usize {
    let (mut line, mut rounds) = (connect(port), 0);
    let author = AUTHORS[0];
    let is_whole = |posts: &[usize]| posts.iter().copied().eq(1..=posts.len());
    while !over.load(SeqCst) {
        insist(port, &mut line, &format!("select status from hotrow.follow({user}, {author}, 1000)"));
        let query = POSTS.replace("USER", &user.to_string()).replace("AUTHOR", &author.to_string());
        for _ in 0..3 {
            let found = insist(port, &mut line, &query);
            let found: Vec<usize> = found.split_whitespace().map(|post| post.parse().unwrap()).collect();
            assert!(is_whole(&found), "user {user} has the posts {found:?}");
        }
        let unfollow = format!("select status from hotrow.unfollow({user}, {author})");
        insist(port, &mut line, &unfollow);
        if !insist(port, &mut line, &query).is_empty() {
            // Citus answers before a node that has failed commits its part. A repeated call waits for this part.
            assert_eq!(insist(port, &mut line, &unfollow), "not_following");
            assert_eq!(insist(port, &mut line, &query), "", "user {user} does not follow");
        }
        rounds += 1;
    }
    insist(port, &mut line, &format!("select status from hotrow.follow({user}, {author}, 1000)"));
    rounds
}

/// Runs clients on these ports, and users that follow and unfollow, during `disturb`.
fn crowd(cluster: &Cluster, ports: &[u16], disturb: impl FnOnce(&Feeds)) {
    let direct = cluster.coordinator.port();
    let over = AtomicBool::new(false);
    let (feeds, rounds) = thread::scope(|scope| {
        let until = Until(&over);
        let over = &over;
        let fickle = FICKLE.map(|user| scope.spawn(move || follow_and_unfollow(direct, user, over)));
        let feeds = feeds::run(ports, 5, disturb);
        drop(until);
        (feeds, fickle.map(|user| user.join().unwrap()))
    });
    let mut line = connect(direct);
    while value(&mut line, "select hotrow.fan_out()") != "0" {}
    for server in &cluster.workers {
        let mut line = connect(server.port());
        // Citus commits the parts of failed nodes in its own time.
        until("no part is prepared", || value(&mut line, "select count(*) from pg_prepared_xacts") == "0");
    }
    assert_eq!(feeds::check(&feeds, direct), Ok(()));
    for user in FICKLE.into_iter().chain(0..INBOXES) {
        let found = posts(&mut line, user);
        assert!(found.iter().is_sorted(), "user {user} has the posts {found:?}");
    }
    for user in FICKLE {
        let last = value(
            &mut line,
            &format!(
                "select max(p.post_id) from hotrow.past(0, null, 1000) p where p.from_user = {}",
                AUTHORS[0]
            ),
        );
        assert_eq!(posts(&mut line, user).len().to_string(), last, "the author's posts are with user {user}");
    }
    println!("{rounds:?} times followed and unfollowed");
    assert!(rounds.iter().all(|rounds| *rounds > 3), "{rounds:?}");
    verify(cluster);
}

#[test]
fn every_message_of_distributed_feeds_is_consumed_once() {
    let Some(cluster) = prepared() else { return };
    let gateways =
        [&cluster.coordinator, &cluster.workers[0]].map(|server| Gateway::in_front_of(&server.url(), LANES));
    let ports =
        [gateways[0].port(), gateways[1].port(), cluster.workers[1].port(), cluster.coordinator.port()];
    crowd(&cluster, &ports, |_| {});
    let merged = gateways.iter().map(|gateway| gateway.metric("merged_units_total")).sum::<u64>();
    assert!(merged > 0, "no calls were merged");
}

#[test]
fn shards_of_feeds_that_move_lose_and_repeat_no_message() {
    let Some(cluster) = prepared() else { return };
    let gateway = Gateway::in_front_of(&cluster.coordinator.url(), LANES);
    let ports = [gateway.port(), gateway.port(), cluster.workers[1].port()];
    crowd(&cluster, &ports, |feeds| {
        let mut line = connect(cluster.coordinator.port());
        for number in 0..MOVES {
            move_shard(&cluster, &mut line, number);
            feeds.flow(20);
        }
    });
}

#[test]
fn nodes_killed_during_fan_out_lose_and_repeat_no_message() {
    let Some(cluster) = prepared() else { return };
    let gateways = [0, 1].map(|_| Gateway::in_front_of(&cluster.coordinator.url(), LANES));
    let ports = [gateways[0].port(), gateways[1].port(), cluster.coordinator.port()];
    crowd(&cluster, &ports, |feeds| {
        let servers = [&cluster.workers[0], &cluster.workers[1], &cluster.coordinator];
        for server in servers.into_iter().cycle().take(KILLS) {
            feeds.flow(40);
            server.kill_dash_nine().unwrap();
            server.restart().unwrap();
        }
    });
}
