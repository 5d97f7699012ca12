//! Statements are packed if enough of them are under way at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use hotrow_testkit::Gateway;
use hotrow_testkit::line::until;

use crate::lanes::{SELL, shop};
use crate::{root, url};

#[test]
fn one_client_runs_its_own_statements_and_a_crowd_shares_commits() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &["--pack", "true"]);
    let mut client = root(gateway.port());
    for _ in 0..10 {
        assert_eq!(client.ok(SELL).affected, 1);
    }
    let few = || gateway.metric("not_packed_total{reason=\"few_at_once\"}");
    let packed = || gateway.metric("packed_units_total");
    assert_eq!((few(), packed()), (10, 0));

    let mut holder = root(server.port());
    holder.ok("begin");
    holder.ok("update shop.item set sold = sold where id = 1");
    thread::scope(|scope| {
        // Each waits for the row, so all are under way at once.
        let sell = || assert_eq!(root(gateway.port()).ok(SELL).affected, 1);
        for _ in 0..3 {
            scope.spawn(sell);
        }
        until("three wait for the row on their own connections", || few() == 13);
        scope.spawn(sell);
        until("the fourth has met the lock in a lane", || gateway.metric("blocked_units_total") == 1);
        holder.ok("commit");
    });
    assert_eq!(holder.value("select sold from shop.item where id = 1"), "14");

    let sold = AtomicU64::new(14);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = root(gateway.port());
                while packed() == 0 {
                    sold.fetch_add(client.ok(SELL).affected, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(holder.value("select sold from shop.item where id = 1"), sold.into_inner().to_string());
}
