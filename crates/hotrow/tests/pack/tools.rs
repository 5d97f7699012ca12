//! `hotrow migrate`, `hotrow replay` and `hotrow verify` as an operator runs them. Never the answers of the functions.

use std::process::Output;
use std::sync::atomic::Ordering::Relaxed;

use hotrow_testkit::{config, connect, new_database, server, until, value};
use tokio_postgres::Client;

/// A database on the shared server.
struct Shop {
    name: String,
    client: Client,
}

impl Shop {
    async fn empty() -> Self {
        let (name, client) = new_database().await;
        Self { name, client }
    }

    async fn migrated() -> Self {
        let shop = Self::empty().await;
        shop.succeeds(&["migrate"]);
        shop
    }

    /// A database with data of every kind.
    async fn stocked() -> Self {
        let shop = Self::migrated().await;
        shop.run(
            "update hotrow.setting set snapshot_every = 10;
            select hotrow.create_counter('led', min => -100, max => 1000), hotrow.create_counter('log', 'log');
            select hotrow.increment('led', i), hotrow.increment('log', i) from generate_series(1, 20) i;
            select hotrow.drain('led'), hotrow.drain('log');
            select hotrow.increment_batch('{led,log,new}', '{7,8,9}', array[gen_random_uuid(), null, null]);
            select hotrow.create_sale('phone', 10, 2, hold => '1 hour'), hotrow.create_sale('pen', 10);
            select hotrow.confirm(reservation_id) from hotrow.reserve('phone', 'ann', 2, gen_random_uuid());
            select hotrow.cancel(reservation_id) from hotrow.reserve('phone', 'bob', 1);
            select hotrow.reserve('phone', 'eve', 2, gen_random_uuid()), hotrow.reserve('phone', 'eve');
            select hotrow.reserve_all('{phone,pen}', '{1,1}', 'joe', gen_random_uuid()), hotrow.restock('pen', 5);
            select hotrow.create_queue('jobs', max_attempts => 1);
            select hotrow.enqueue('jobs', gen_random_uuid(), null, case when i % 2 = 0 then 'g' end, null,
                case when i > 18 then now() + interval '1 hour' end, i % 3) from generate_series(1, 20) i;
            select hotrow.complete('jobs', receipt) from hotrow.take('jobs', 2);
            select hotrow.fail('jobs', receipt) from hotrow.take('jobs', 1);
            select hotrow.release('jobs', receipt) from hotrow.take('jobs', 1);
            select hotrow.take('jobs', 3, '1 hour');
            select hotrow.follow(1, 9), hotrow.follow(2, 9), hotrow.post(9, 'x'), hotrow.push(1, 3, 'y');
            select hotrow.consume(1, 1)",
        )
        .await;
        shop
    }

    async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    async fn value(&self, sql: &str) -> String {
        value(&self.client, sql).await
    }

    fn hotrow(&self, args: &[&str]) -> Output {
        let url = format!("postgres://postgres@127.0.0.1:{}/{}", server().port(), self.name);
        let mut command = hotrow_testkit::hotrow();
        command.args(args).args(["--upstream", &url]).output().unwrap()
    }

    fn succeeds(&self, args: &[&str]) -> String {
        let output = self.hotrow(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", printed(&output));
        printed(&output)
    }

    fn fails(&self, args: &[&str]) -> String {
        let output = self.hotrow(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", printed(&output));
        printed(&output)
    }
}

/// Standard output and standard error.
fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[tokio::test]
async fn migrate_installs_compares_and_prints_its_plan() {
    let shop = Shop::empty().await;
    assert_contains(&shop.fails(&["migrate", "--check"]), &["is not installed: run hotrow migrate"]);
    assert_contains(
        &shop.succeeds(&["migrate", "--dry-run"]),
        &["-- 0001_settings", "create table hotrow.counter ("],
    );
    assert_eq!(shop.value("select to_regnamespace('hotrow') is null").await, "t");
    for tool in ["replay", "verify"] {
        let args = if tool == "replay" { vec![tool, "a"] } else { vec![tool] };
        assert_contains(&shop.fails(&args), &["is not installed in this database: run hotrow migrate"]);
    }

    assert_contains(&shop.succeeds(&["migrate"]), &["installed 0001_settings", "can call the functions"]);
    assert_contains(&shop.succeeds(&["migrate", "--check"]), &["the hotrow schema matches"]);
    let other = shop.fails(&["migrate", "--check", "--role", "nobody"]);
    assert_contains(&other, &["the role nobody is missing", "run hotrow migrate: it creates the role"]);
    shop.run(
        "create or replace function hotrow.unread(user_id bigint) returns bigint language sql as 'select 1'",
    )
    .await;
    let changed = shop.fails(&["migrate", "--check"]);
    assert_contains(
        &changed,
        &["hotrow.unread is missing or is not what this program installs", "--dry-run"],
    );
    assert_contains(&shop.succeeds(&["migrate"]), &["everything was installed already"]);
    assert_contains(&shop.succeeds(&["migrate", "--dry-run"]), &["everything is installed"]);
    shop.run("insert into hotrow.migration (number, name) values (9999, 'from the future')").await;
    assert_contains(&shop.fails(&["migrate", "--check"]), &["newer"]);
    assert_contains(&shop.fails(&["migrate"]), &["use the newer program"]);
}

#[tokio::test]
async fn replay_rebuilds_any_value_of_either_strategy() {
    let shop = Shop::stocked().await;
    for (counter, kept) in [("led", "(ledger)"), ("log", "(command log)")] {
        let present = if counter == "led" { "value     7" } else { "value     8" };
        assert_contains(
            &shop.succeeds(&["replay", counter]),
            &[kept, "version   22", present, "22 commands", "row agrees"],
        );
        let past = shop.succeeds(&["replay", counter, "--at", "13"]);
        assert_contains(&past, &["version   13\n", "value     91\n", "time      20", "Z\n", "13 commands"]);
        assert_contains(&shop.succeeds(&["replay", counter, "--at", "21"]), &["value     0\n"]);
        assert_contains(
            &shop.succeeds(&["replay", counter, "--at", "0"]),
            &["value     0\n", "time      -\n", "0 commands"],
        );
        assert_contains(&shop.fails(&["replay", counter, "--at", "23"]), &["is at version 22"]);
    }
    assert_contains(&shop.succeeds(&["replay", "log"]), &["22 commands, 2 snapshots agreed"]);
    let nearest = shop.succeeds(&["replay", "log", "--at", "13", "--nearest"]);
    assert_contains(&nearest, &["value     91\n", "3 commands, 0 snapshots agreed"]);
    assert_contains(&shop.fails(&["replay", "nix"]), &["there is no counter nix"]);
}

#[tokio::test]
async fn replay_reports_where_a_shortened_history_begins() {
    let shop = Shop::stocked().await;
    shop.run("update hotrow.setting set history_retention = '0'").await;
    for _ in 0..7 {
        shop.run("select hotrow.rotate_history()").await;
    }
    shop.run("select hotrow.increment('led', i), hotrow.increment('log', i) from generate_series(1, 10) i")
        .await;
    assert_contains(&shop.succeeds(&["replay", "log", "--at", "1"]), &["value     1\n"]);
    shop.run("select hotrow.rotate_history()").await;
    assert_contains(&shop.fails(&["replay", "led", "--at", "22"]), &["begins at version 23"]);
    assert_contains(&shop.fails(&["replay", "log", "--at", "21"]), &["begins at version 22"]);
    assert_contains(&shop.succeeds(&["replay", "log", "--at", "22"]), &["value     8\n", "0 commands"]);
    assert_contains(&shop.succeeds(&["replay", "led", "--at", "24"]), &["value     10\n", "2 commands"]);
    let present = shop.succeeds(&["replay", "log"]);
    assert_contains(
        &present,
        &["version   32\n", "value     63\n", "10 commands, 1 snapshot agreed", "row agrees"],
    );
    shop.succeeds(&["verify"]);

    // A shortened history is never taken for a complete one, however often its ring rotates.
    for turn in 0..40 {
        shop.run("select hotrow.rotate_history()").await;
        if turn % 3 == 0 {
            shop.succeeds(&["verify"]);
        }
    }
    assert_contains(&shop.succeeds(&["replay", "log"]), &["value     63\n", "0 commands"]);
    assert_contains(&shop.succeeds(&["replay", "led"]), &["value     62\n", "0 commands"]);
    shop.succeeds(&["verify"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sound_data_are_verified_during_writes() {
    let shop = Shop::stocked().await;
    let sound = shop.succeeds(&["verify"]);
    for (what, count) in [
        ("counters", 3),
        ("commands", 45),
        ("snapshots", 2),
        ("sales", 2),
        ("reservations", 5),
        ("queues", 1),
        ("orders", 20),
        ("inboxes", 2),
        ("entries", 3),
        ("posts", 1),
    ] {
        assert_contains(&sound, &[&format!("{what:<14}{count:>12}\n")]);
    }
    assert_contains(&sound, &["All of it agrees."]);

    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let (name, stop) = (shop.name.clone(), std::sync::Arc::clone(&stop));
            tokio::spawn(async move {
                let client = connect(config(server().port()).dbname(&name)).await;
                let mut rounds = 0;
                while !stop.load(Relaxed) {
                    let work = format!(
                        "select hotrow.increment_batch('{{led,log,log,w{writer}}}', '{{1,2,3,4}}');
                        select hotrow.drain_batch('{{log,led}}');
                        select hotrow.restock('pen', 3), hotrow.reserve('pen', 'w{writer}', 2);
                        select hotrow.cancel(reservation_id) from hotrow.reserve('phone', 'w{writer}');
                        select hotrow.enqueue('jobs', gen_random_uuid(), null, 'g' || i, priority => i - {writer})
                        from generate_series(1, 3) i;
                        select hotrow.complete('jobs', receipt) from hotrow.take('jobs', 2);
                        select hotrow.post({writer}, 'x'), hotrow.follow(1, {writer});
                        select hotrow.consume(1, 2);
                        select hotrow.rotate_history()"
                    );
                    client.batch_execute(&work).await.unwrap();
                    rounds += 1;
                }
                rounds
            })
        })
        .collect();
    let written = |more: i64| format!("select version > {more} from hotrow.counter('log')");
    for more in [30, 60, 90] {
        until("the writers write", || async { shop.value(&written(more)).await == "t" }).await;
        let (name, shop) = (shop.name.clone(), &shop);
        let output = tokio::task::block_in_place(|| shop.hotrow(&["verify"]));
        assert_eq!(output.status.code(), Some(0), "{name}: {}", printed(&output));
    }
    stop.store(true, Relaxed);
    for writer in writers {
        assert!(writer.await.unwrap() > 0);
    }
    shop.succeeds(&["verify"]);
}

/// Damage to the counters of a stocked shop, and the text by which `hotrow verify` reports it.
const DAMAGED_COUNTERS: &[(&str, &str)] = &[
    (
        "update hotrow.ledger set value = value + 1 where counter = 'led' and version = 5",
        "counter led: version 5: the value is 15, the ledger says 16",
    ),
    (
        "update hotrow.ledger set returned = 1 where counter = 'led' and version = 21",
        "counter led: version 21: it returned 210, the ledger says 1",
    ),
    (
        "delete from hotrow.ledger where counter = 'led' and version = 1",
        "counter led: version 1: the command is missing",
    ),
    (
        "delete from hotrow.ledger where counter = 'led' and version between 6 and 8",
        "counter led: version 6: the commands up to version 8 are missing",
    ),
    (
        "delete from hotrow.ledger where counter = 'led' and version = 22",
        "counter led: version 21: the history ends here, the counter's row says version 22",
    ),
    (
        "update hotrow.counter set value = 8 where counter = 'led'",
        "counter led: version 22: the value is 7, the counter's row says 8",
    ),
    (
        "update hotrow.counter set max = 100 where counter = 'led'",
        "counter led: version 14: the value 105 is out of bounds",
    ),
    ("delete from hotrow.counter where counter = 'led'", "counter led: it has a history and no row"),
    (
        "delete from hotrow.log_entry where counter = 'log' and version = 15",
        "counter log: version 15: the command is missing",
    ),
    (
        "update hotrow.log_entry set amounts[1] = amounts[1] + 1 where counter = 'log' and version = 15",
        "counter log: version 20: the commands make 211, the snapshot says 210",
    ),
    (
        "update hotrow.snapshot set value = 0 where counter = 'log' and version = 10",
        "counter log: version 10: the commands make 55, the snapshot says 0",
    ),
    (
        "insert into hotrow.snapshot values ('log', 30, 8, clock_timestamp())",
        "counter log: version 23: the commands up to version 30 are missing",
    ),
];

/// The same for its sales.
const DAMAGED_SALES: &[(&str, &str)] = &[
    (
        "update hotrow.sale set stock = 4, remaining = 0 where item = 'phone'",
        "sale phone: oversold by 1: stock 4, held 3, confirmed 2",
    ),
    (
        "update hotrow.sale set remaining = remaining - 1 where item = 'phone'",
        "sale phone: remaining 4, held 3 and confirmed 2 do not add up to the stock 10",
    ),
    ("update hotrow.sale set next_expiry = null where item = 'phone'", "sale phone: a hold expires at"),
    (
        "update hotrow.buyer set quantity = 1 where buyer = 'ann'",
        "buyer ann of sale phone: the count is 1, and the sum of the reservations is 2",
    ),
    ("delete from hotrow.buyer where buyer = 'ann'", "buyer ann of sale phone: the count is 0"),
    (
        "update hotrow.sale set per_buyer = 1 where item = 'phone'",
        "buyer ann of sale phone: has reserved 2, and the limit is 1",
    ),
    ("delete from hotrow.sale where item = 'pen'", ": there is no sale pen"),
    (
        "delete from hotrow.reservation where buyer = 'eve'",
        "sale phone: remaining 5, held 1 and confirmed 2 do not add up to the stock 10",
    ),
    (
        "update hotrow.request set status = 'sold_out' where state = 'confirmed'",
        ": there is a reservation, and the answer is sold_out",
    ),
    (
        "update hotrow.request set state = null where status = 'reserved' and command = 'reserve'",
        "the answer is reserved, and there is no reservation",
    ),
    ("delete from hotrow.sale_due", "sale phone: a hold can expire at"),
];

/// The same for its queues and feeds.
const DAMAGED_QUEUES_AND_FEEDS: &[(&str, &str)] = &[
    (
        "delete from hotrow.queue_lease where first = 0 and taken_at is not null",
        "queue jobs, shard 0: 2 orders are in flight, and the recorded number is 3",
    ),
    (
        "update hotrow.queue_head set processed = processed + 1",
        "queue jobs, shard 0: 14 orders wait, and the recorded number is 13",
    ),
    ("update hotrow.queue_head set ready = ready + 1", "the recorded numbers are"),
    ("update hotrow.queue_head set next_due = 'infinity'", "queue jobs, shard 0: a lease ends at"),
    ("delete from hotrow.queue_dead", "queue jobs, shard 0: 0 orders are dead, and the recorded number is 1"),
    (
        "delete from hotrow.queue_order where id in (select id from hotrow.queue_dead)",
        "is dead, and its row is missing",
    ),
    (
        "insert into hotrow.queue_dead (queue, shard, line, attempt, id, place, rank, order_id, at)
        select queue, 0, line, 1, id, place, 0, order_id, now() from hotrow.queue_order
        join (select from_id from hotrow.queue_lease limit 1) l on id = from_id",
        "dead and ",
    ),
    ("delete from hotrow.queue_group", "group members are open"),
    ("update hotrow.inbox set last = 0", "inbox of user 1: the last entry is 2, and the inbox records 0"),
    ("update hotrow.author set followers = 3", "author 9: the count of followers is 3, and 2 users follow"),
    ("update hotrow.author set last_post = 0", "author 9: the last post is 1, and the author records 0"),
];

async fn all_are_found_and_named(damages: &[(&str, &str)]) {
    for &(damage, named) in damages {
        let shop = Shop::stocked().await;
        shop.run(damage).await;
        assert_contains(&shop.fails(&["verify"]), &["Wrong: ", named]);
        if let Some(counter) = named.strip_prefix("counter ").filter(|rest| rest.contains(": version")) {
            let (counter, difference) = counter.split_once(": ").unwrap();
            // A snapshot of a future version is after everything that is replayed.
            if !difference.contains("version 23") {
                assert_contains(&shop.fails(&["replay", counter]), &[difference]);
            }
        }
    }
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn every_kind_of_damage_to_counters_is_found_and_named() {
    all_are_found_and_named(DAMAGED_COUNTERS).await;
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn every_kind_of_damage_to_sales_is_found_and_named() {
    all_are_found_and_named(DAMAGED_SALES).await;
    let id = "select reservation_id from hotrow.reservation where buyer = 'joe' and item = 'phone'";
    let shop = Shop::stocked().await;
    let joe = shop.value(id).await;
    shop.run(&format!("delete from hotrow.reservation where reservation_id = '{joe}'")).await;
    assert_contains(
        &shop.fails(&["verify"]),
        &[&format!("the answer names reservation {joe}, which does not exist")],
    );
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn every_kind_of_damage_to_queues_and_feeds_is_found_and_named() {
    all_are_found_and_named(DAMAGED_QUEUES_AND_FEEDS).await;
}

#[tokio::test]
async fn a_long_list_is_shortened_and_counted() {
    let shop = Shop::migrated().await;
    shop.run("select hotrow.increment('c' || i) from generate_series(1, 30) i; update hotrow.counter set value = 2").await;
    assert_contains(&shop.fails(&["verify"]), &["Wrong: 30\n", "and 10 more\n"]);
}
