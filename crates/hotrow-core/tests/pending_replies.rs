//! Tests that the work for one message on a held connection does not depend on the number of unanswered
//! messages.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hotrow_core::expect::{Expected, Message, Names, Preparation, PreparedStatements, Reply, RunEffects};

/// Sends `count` units, each with a statement of its own, and processes the replies.
fn run(count: u64) -> Duration {
    let begin = Instant::now();
    let (mut expected, mut names) = (Expected::default(), Names::new());
    let mut prepared = PreparedStatements::default();
    for statement in 0..count {
        let name = Bytes::from(format!("s{statement}"));
        let parse = Message::Parse(name, Box::new(statement), Some(Preparation::named(statement, 1)));
        for message in
            [parse, Message::Bind(Bytes::new(), None), Message::Execute(RunEffects::default()), Message::Sync]
        {
            expected.sent(message);
        }
        assert!(!expected.is_in_doubt(b"s") && expected.has_unit_under_way());
    }
    for _ in 0..count {
        for tag in b"12CZ" {
            assert_ne!(expected.received(&mut names, &mut prepared, *tag, b""), Reply::Unexpected);
        }
    }
    assert!(expected.is_settled());
    begin.elapsed()
}

#[test]
fn a_message_costs_the_same_regardless_of_pending_replies() {
    let least = |count| (0..5).map(|_| run(count)).min().expect("five runs");
    let (one, ten) = (least(2_000), least(20_000));
    assert!(ten < one * 40, "{one:?} for 2,000 units, {ten:?} for 20,000");
}
