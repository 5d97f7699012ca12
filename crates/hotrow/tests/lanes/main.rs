//! Statements that share lanes: with an outsider's locks, with slow statements, and against a serial order of direct
//! connections. The modules contain the tests.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod bulk;
mod deferred;
mod heads;
mod novelty;
mod outsiders;
mod same_as_direct;
mod slow;

use hotrow_testkit::line::Line;

hotrow_testkit::shared_server!();

/// A connection whose search path is this schema.
fn connect(port: u16, schema: &str) -> Line {
    let mut line =
        Line::connect(port, schema).unwrap().unwrap_or_else(|refusal| panic!("{:?}", refusal.error()));
    line.out.clear();
    line
}
