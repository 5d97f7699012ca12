//! Functions with a merge rule: their calls, their rows, and calls that wait. The modules contain the tests, and this
//! file contains the code that they share.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod calls;
mod computed;
mod declared;
mod pairs;
mod rows;
mod together;
mod waiting;

use std::sync::Once;

use hotrow_testkit::line::Line;
use hotrow_testkit::{migrate, server};

hotrow_testkit::shared_server!();

/// Installs the hotrow schema on the server that the tests share.
fn migrate_once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| migrate(&server().url()));
}

fn connect(port: u16) -> Line {
    Line::connect(port, "public").unwrap().unwrap_or_else(|refusal| panic!("{:?}", refusal.error()))
}
