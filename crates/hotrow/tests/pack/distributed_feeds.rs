//! Feeds of a distributed schema pack against their model, on every node. A post reaches its followers by fan-out only, so the
//! model fans all posts out too. No gateway runs meanwhile, because its upkeep fans out.

use std::collections::HashMap;

use hotrow_model::{FeedCommand, FeedLimits};
use hotrow_testkit::line::Line;

use crate::distributed::{cluster, connect, value, verify};
use crate::feed_model::difference_among;
use crate::same_as_model::none_differs;

const SEEDS: u64 = 40;
const SHARDS: usize = 4;
/// No post is delivered by the call that posts it, and no reader fetches posts.
const LIMITS: FeedLimits = FeedLimits { inline: 0, pull_above: usize::MAX, kept: 64 };

/// Gives all shards the limits of the model.
fn limit(line: &mut Line, shards: usize) {
    for shard in 0..shards {
        let limit = format!("update hotrow_shard_{shard}.setting set inbox_length = {}", LIMITS.kept);
        assert_eq!(line.query(&limit).error(), None);
    }
}

/// What a distributed pack does not know exactly: a request ID is known in the shard where it was used, and the posts of one
/// batch are not of the same time if their authors are in several shards.
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
    let Some(cluster) = cluster(1) else { return };
    let mut line = connect(cluster.coordinator.port());
    limit(&mut line, 1);
    none_differs(SEEDS, |seed| difference_among(&mut line, seed, LIMITS, |commands| commands));
    verify(&cluster);
}

#[test]
fn several_shards_of_feeds_give_the_models_answers_on_every_node() {
    let Some(cluster) = cluster(SHARDS) else { return };
    limit(&mut connect(cluster.coordinator.port()), SHARDS);
    let workers = cluster.workers.iter().map(|worker| worker.port());
    let mut shards = Shards::new(cluster.coordinator.port());
    for (turn, port) in std::iter::once(cluster.coordinator.port()).chain(workers).enumerate() {
        let mut line = connect(port);
        none_differs(SEEDS / 2, |seed| {
            // A given seed has other users on each node.
            let seed = seed.wrapping_add(turn as u64);
            difference_among(&mut line, seed, LIMITS, |commands| shards.choose(commands))
        });
    }
    verify(&cluster);
}
