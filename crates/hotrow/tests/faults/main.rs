//! Promises 1, 5 and 7 under load while things die, stop, fill up, break off or crowd in: what is acknowledged is there
//! exactly once, what is refused is not, and what can't be known is said to be unknown. The tests are in the modules; here
//! is only what they share.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the lints' exception for tests stops at #[test]"
)]

mod checker;
mod crashes;
mod crowd;
mod cut_lanes;
mod disk;
mod failover;
mod idle;
mod load;
mod lost_ids;
mod marathon;
mod marks;
mod pauses;
mod restart;

use hotrow_testkit::line::Line;
use load::{Book, Fate, TABLES};

hotrow_testkit::shared_server!();

const CLIENTS: u64 = 16;
/// What clients may be told when the server crashes. 08007: a commit was under way. 57P03: not sent. 08006, 57P01,
/// 57P02: what was passed through.
const CRASH: [&str; 9] = [
    "ERROR 08007",
    "ERROR 57P03",
    "FATAL 57P03",
    "FATAL 08006",
    "FATAL 57P01",
    "FATAL 57P02",
    "at log-in: FATAL 57P03",
    "at prepare: ERROR 57P03",
    "at prepare: FATAL",
];

/// A schema with the load's tables.
fn prepare(port: u16, schema: &str) -> Line {
    let mut direct = Line::connect(port, schema).unwrap().expect("the server takes us");
    let made = direct.query(&format!("create schema {schema}; {TABLES}"));
    assert_eq!(made.error(), None);
    direct
}

fn summary(test: &str, book: &Book) {
    println!(
        "{test}: {} acknowledged, {} failed, {} unknown; {:#?}",
        book.count(Fate::Acknowledged),
        book.count(Fate::Failed),
        book.count(Fate::Unknown),
        book.errors
    );
}
