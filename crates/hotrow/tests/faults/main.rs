//! Promises 1, 5 and 7 under load while processes crash, stop, run out of room, lose connections or get many clients:
//! an acknowledged unit is applied exactly once, a rejected unit is not applied, and an outcome that cannot be
//! determined is reported as unknown. The modules contain the tests, and this file contains the code that they share.
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
mod fleet;
mod generations;
mod idle;
mod load;
mod lost_ids;
mod marathon;
mod marks;
mod old_primary;
mod pauses;
mod restart;

use hotrow_testkit::line::Line;
use load::{Outcome, Records, TABLES};

hotrow_testkit::shared_server!();

const CLIENTS: u64 = 16;
/// Errors that clients may get if the server crashes. 08007: during a commit. 57P03: not sent. 08006, 57P01, 57P02: on
/// connections of sessions.
const CRASH: [&str; 9] = [
    "ERROR 08007",
    "ERROR 57P03",
    "FATAL 57P03",
    "FATAL 08006",
    "FATAL 57P01",
    "FATAL 57P02",
    "at login: FATAL 57P03",
    "at prepare: ERROR 57P03",
    "at prepare: FATAL",
];

/// A schema with the load's tables.
fn prepare(port: u16, schema: &str) -> Line {
    let mut direct = Line::connect(port, schema).unwrap().expect("the server accepts the login");
    let made = direct.query(&format!("create schema {schema}; {TABLES}"));
    assert_eq!(made.error(), None);
    direct
}

fn summary(test: &str, records: &Records) {
    println!(
        "{test}: {} acknowledged, {} failed, {} unknown; {:#?}",
        records.count(Outcome::Acknowledged),
        records.count(Outcome::Failed),
        records.count(Outcome::Unknown),
        records.errors
    );
}
