//! The functions of feeds in a distributed hotrow schema that need several shards: an author and the followers can be in
//! different ones. Their text is in `sql/citus/feed_calls.sql`. This module asks no server.

use super::dispatch::Dispatcher;
use crate::head::Head;

/// Statements that create functions in place of those of the migrations.
const CALLS: &str = include_str!("../../sql/citus/feed_calls.sql");

/// Functions of the migrations that a shard does not have, because they need several shards.
pub(super) const NOT_IN_A_SHARD: [&str; 11] = [
    "follow",
    "follow_batch",
    "unfollow",
    "unfollow_batch",
    "purge_posts",
    "fan_out",
    "bring",
    "bring_left",
    "bring_next",
    "lock_free",
    "add_ranking",
];

/// The functions that clients call.
pub fn calls() -> Vec<Dispatcher> {
    let mut all: Vec<_> = CALLS.split("\ncreate or replace function hotrow.").skip(1).map(call).collect();
    // Rankings run on every node. The function that clients call runs only on the coordinator, which can change the others.
    all.push(Head::of("add_ranking").with_own_body());
    all
}

fn call(text: &str) -> Dispatcher {
    let name = text.split('(').next().unwrap_or_default();
    let body = text.split("$$").nth(1).unwrap_or_default();
    Head::of(name).with_body(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{Distribute, functions};

    #[test]
    fn every_function_that_needs_several_shards_has_a_text_with_its_head() {
        let calls = calls();
        let mut names: Vec<_> = calls.iter().map(|call| call.name.as_str()).collect();
        names.sort_unstable();
        let mut wanted = vec!["add_ranking"];
        for function in functions() {
            if function.distribute == Some(Distribute::Written) {
                wanted.push(&function.name);
                wanted.extend(function.merge.as_ref().map(|merge| merge.batch.as_str()));
            }
        }
        wanted.sort_unstable();
        assert_eq!(
            names, wanted,
            "add the text of each function with distribute = \"written\" and of its batch function, and no other, to \
             crates/hotrow-sql/sql/citus/feed_calls.sql"
        );
        for call in &calls[..calls.len() - 1] {
            assert!(CALLS.contains(call.text.trim_end()), "{} has another head in the migrations", call.name);
        }
    }

    #[test]
    fn a_ranking_is_shared_after_it_is_registered() {
        let call = Head::of("add_ranking").with_own_body();
        assert!(call.body.contains("\nbegin\n    perform hotrow.check_coordinator('add_ranking');\n"));
        let insert = call.body.find("insert into hotrow.ranking").unwrap();
        assert!(call.body.find("perform hotrow.share_ranking").unwrap() > insert, "{}", call.body);
    }
}
