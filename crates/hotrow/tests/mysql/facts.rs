//! The gateway's own questions about tables do not grow with its clients.

use std::sync::Barrier;
use std::thread;

use hotrow_testkit::Gateway;

use crate::lanes::{SELL, shop};
use crate::{PACKING, root, url};

/// A session that misses the facts about a table waits for another one that reads them. If each read them, sessions in large
/// numbers would take longer to read than facts are valid, and read forever.
#[test]
fn sessions_that_begin_together_read_the_facts_about_a_table_once() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let mut direct = root(server.port());
    direct.ok("set global log_output = 'TABLE'");
    direct.ok("set global general_log = 1");
    const CLIENTS: usize = 32;
    let begin = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = root(gateway.port());
                begin.wait();
                assert_eq!(client.ok(SELL).affected, 1);
            });
        }
    });
    direct.ok("set global general_log = 0");
    let reads = "select count(*) from mysql.general_log where argument like 'select hotrow.definition(%'";
    let reads: usize = direct.value(reads).parse().unwrap();
    // They are read again when they are too old, on a slow machine.
    assert!((1..CLIENTS / 4).contains(&reads), "{reads} reads for {CLIENTS} clients");
}
