//! Planted situations on a private server. The doctor names each of them.
//!
//! Each situation runs once for three seconds. With `HOTROW_DOCTOR_SECONDS=10`, each runs five times for ten seconds.
//! `HOTROW_DOCTOR_RECORD=FILE` writes a recording for the tests of the diagnosis.

#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod hostile;
mod planted;

use std::collections::BTreeSet;
use std::time::Duration;

use hotrow_doctor::diagnosis::findings::Finding;
use hotrow_doctor::diagnosis::findings::Situation;
use planted::{Planted, pause};

hotrow_testkit::shared_server!();

/// Commits take at least two milliseconds on any disk, so that what waits for them can be seen.
const SLOW_COMMITS: &str = "commit_delay = 2000; commit_siblings = 0";

const ITEMS: &str = "create table item (id int primary key, stock int not null) with (fillfactor = 50);
    insert into item select n, 0 from generate_series(1, 1000) n; vacuum analyze item";

const UPDATE: &str = "update item set stock = stock - 1 where id = $1";

#[test]
fn a_hot_row_by_primary_key() {
    Planted::new(ITEMS)
        .clients(24, async |_, client| {
            let update = client.prepare(UPDATE).await?;
            loop {
                client.execute(&update, &[&7]).await?;
            }
        })
        .must_be_named(Situation::HotRow, |report| {
            assert_eq!((report.row(0), report.hot_rows[0].share > 0.9), ("item (id = 7)".to_owned(), true));
            assert!(report.summary[2].starts_with("No single session is stuck"), "{}", report.summary[2]);
            let statement = &report.statements[0];
            assert_eq!((statement.verdict.as_str(), statement.interactive), ("packed", 0.0), "{statement:?}");
            assert!(report.prediction.high > 1.3, "{:?}", report.prediction);
        });
}

#[test]
#[ignore = "long: make test-all"]
fn calls_that_the_server_counts() {
    let extension =
        r#"; create schema "The Statistics"; create extension pg_stat_statements schema "The Statistics""#;
    let preload = ("shared_preload_libraries", "pg_stat_statements");
    let planted = Planted::with_server(preload.0, preload.1, &format!("{ITEMS}{extension}"))
        .with_role("watcher", r#"create role watcher login in role pg_monitor; grant select on item to watcher; grant usage on schema "The Statistics" to watcher"#)
        .loads(24, UPDATE.to_owned());
    planted.examine(Situation::HotRow, |report| {
        let update = &report.statements[0];
        assert_eq!(
            (update.text.as_str(), update.counted),
            ("update item set stock = stock - ? where id = $1", true)
        );
        // The load began before the first counters and goes on after the last ones.
        let all: f64 = planted.value("select -stock from item where id = 7").parse().unwrap();
        let today = report.throughput.writes.unwrap() * report.seconds;
        assert!(update.calls > today / 2.0 && update.calls < all, "{} of {all}, {today}", update.calls);
        let others: Vec<_> = report.statements.iter().filter(|it| it.text.contains("pg_catalog")).collect();
        assert!(others.is_empty(), "the doctor's own statements: {others:?}");
        assert!(report.statements.iter().all(|it| it.counted), "{:?}", report.statements);
    });
}

#[test]
fn a_member_of_pg_monitor_that_cannot_read_the_table() {
    Planted::new(ITEMS)
        .with_role("watcher", "create role watcher login in role pg_monitor")
        .clients(24, async |_, client| {
            let update = client.prepare(UPDATE).await?;
            loop {
                client.execute(&update, &[&7]).await?;
            }
        })
        .must_be_named(Situation::HotRow, |report| {
            assert!(report.findings[0].text.contains("a row of item on page"), "{:?}", report.findings[0]);
            let grant = r#"grant select on "public"."item" to "watcher""#;
            let side = report.findings.iter().find(|finding| finding.next.starts_with(grant));
            assert!(side.is_some(), "{:?}", report.findings);
        });
}

#[test]
#[ignore = "long: make test-all"]
fn a_role_without_rights() {
    Planted::new(ITEMS)
        .with_role("stranger", "create role stranger login")
        .clients(24, async |_, client| {
            let update = client.prepare(UPDATE).await?;
            loop {
                client.execute(&update, &[&7]).await?;
            }
        })
        .must_be_named(Situation::Blind, |report| {
            assert_eq!(report.findings[0].next, r#"grant pg_monitor to "stranger""#);
            assert_eq!(
                report.findings[1].kind,
                Situation::HotRow,
                "the locks are visible: {:?}",
                report.findings
            );
        });
}

#[test]
#[ignore = "long: make test-all"]
fn a_hot_row_by_a_unique_text_key() {
    let accounts =
        "create table account (id int primary key, email text not null unique, balance int not null)
        with (fillfactor = 50);
        insert into account select n, 'user' || n || '@example.com', 0 from generate_series(1, 1000) n;
        vacuum analyze account";
    Planted::new(accounts)
        .clients(24, async |_, client| {
            let update = client.prepare("update account set balance = balance + 1 where email = $1").await?;
            loop {
                client.execute(&update, &[&"user7@example.com"]).await?;
            }
        })
        .must_be_named(Situation::HotRow, |report| {
            assert_eq!(report.row(0), "account (email = user7@example.com)")
        });
}

#[test]
#[ignore = "long: make test-all"]
fn two_hot_rows() {
    Planted::new(ITEMS)
        .clients(24, async |number, client| {
            let id = if number % 2 == 0 { 7 } else { 8 };
            loop {
                // Constants in the text, as drivers without parameters send them.
                client.batch_execute(&format!("update item set stock = stock - 1 where id = {id}")).await?;
            }
        })
        .must_be_named(Situation::HotRows, |report| {
            let mut rows = [report.row(0), report.row(1)];
            rows.sort();
            assert_eq!(rows, ["item (id = 7)", "item (id = 8)"]);
        });
}

#[test]
#[ignore = "long: make test-all"]
fn a_hot_page_of_a_small_table() {
    let slots = "create table slot (id int primary key, used int not null) with (fillfactor = 20);
        insert into slot select n, 0 from generate_series(1, 16) n; vacuum analyze slot";
    Planted::new(slots)
        .settings(SLOW_COMMITS)
        .clients(32, async |number, client| {
            let update = client.prepare("update slot set used = used + 1 where id = $1").await?;
            for turn in 0.. {
                let id = 1 + i32::try_from((number * 7 + turn * 5) % 16).expect("a small number");
                client.execute(&update, &[&id]).await?;
            }
            Ok(())
        })
        .must_be_named(Situation::HotPage, |report| {
            assert!(report.findings[0].text.contains("of the table slot"), "{}", report.findings[0].text);
        });
}

#[test]
#[ignore = "long: make test-all"]
fn a_hot_counter_in_interactive_transactions() {
    Planted::new(ITEMS)
        .clients(16, async |_, client| {
            loop {
                client.batch_execute("begin").await?;
                client.execute(UPDATE, &[&7]).await?;
                pause(Duration::from_millis(3)).await;
                client.batch_execute("commit").await?;
            }
        })
        .must_be_named(Situation::HotRowInTransactions, |report| {
            assert_eq!(report.row(0), "item (id = 7)");
            assert!(report.statements[0].interactive > 0.5, "{:?}", report.statements[0]);
            assert!(report.prediction.high < 2.0, "{:?}", report.prediction);
        });
}

#[test]
#[ignore = "long: make test-all"]
fn one_stuck_session() {
    let planted = Planted::new(ITEMS);
    let pid = planted.hold("begin; update item set stock = 0 where id = 7");
    planted
        .clients(8, async |_, client| {
            client.execute(UPDATE, &[&7]).await?;
            Ok(())
        })
        .must_be_named(Situation::StuckSession, |report| {
            let finding = &report.findings[0];
            assert!(finding.next.contains(&format!("pg_terminate_backend({pid})")), "{finding:?}");
            assert!(finding.text.contains("idle in its transaction"), "{finding:?}");
            assert_eq!(report.row(0), "item (id = 7)");
        });
}

/// The definition of the table's default cannot be read while the table is locked.
#[test]
#[ignore = "long: make test-all"]
fn a_table_that_is_locked() {
    let planted = Planted::new("create table item (id int primary key, stock int not null default 0)");
    planted.hold("begin; lock table item in access exclusive mode");
    let planted = planted.clients(8, async |_, client| {
        client.execute(UPDATE, &[&7]).await?;
        Ok(())
    });
    planted.examine(Situation::StuckSession, |report| {
        assert_eq!(report.statements[0].verdict, "unknown", "{:?}", report.statements[0]);
        assert!(report.findings.iter().any(|it| it.text.contains("item")), "{:?}", report.findings);
    });
}

#[test]
#[ignore = "long: make test-all"]
fn a_missing_index() {
    let orders = "create table orders (id int primary key, customer int not null, amount int not null);
        insert into orders select n, n % 1000, 1 from generate_series(1, 50000) n; vacuum analyze orders";
    Planted::new(orders)
        .clients(4, async |number, client| {
            let select = client.prepare("select sum(amount) from orders where customer = $1").await?;
            let customer = i32::try_from(number).expect("a small number");
            loop {
                client.query_one(&select, &[&customer]).await?;
            }
        })
        .must_be_named(Situation::MissingIndex, |report| {
            let finding = &report.findings[0];
            assert!(finding.text.contains("orders") && finding.text.contains("customer"), "{finding:?}");
            assert!(finding.next.ends_with("on \"public\".\"orders\" (\"customer\")"), "{finding:?}");
        });
}

#[test]
#[ignore = "long: make test-all"]
fn inserts_that_wait_for_the_log() {
    Planted::new("create table event (id bigint generated always as identity primary key, kind int)")
        .settings(SLOW_COMMITS)
        .clients(16, async |_, client| {
            let insert = client.prepare("insert into event (kind) values ($1)").await?;
            loop {
                client.execute(&insert, &[&1]).await?;
            }
        })
        .must_be_named(Situation::Flush, |report| {
            assert!(report.hot_rows.is_empty(), "{:?}", report.hot_rows);
            assert!(report.throughput.writes.is_some_and(|writes| writes > 100.0));
        });
}

#[test]
#[ignore = "long: make test-all"]
fn foreign_keys_that_wait_for_one_parent() {
    let tables = "create table parent (id int primary key, name text);
        create table child (id bigint generated always as identity primary key, parent int references parent);
        insert into parent select n, '' from generate_series(1, 100) n; vacuum analyze parent";
    Planted::new(tables)
        .clients(4, async |_, client| {
            loop {
                client.batch_execute("begin; select from parent where id = 1 for update").await?;
                pause(Duration::from_millis(10)).await;
                client.batch_execute("commit").await?;
            }
        })
        .clients(16, async |_, client| {
            let insert = client.prepare("insert into child (parent) values ($1)").await?;
            loop {
                client.execute(&insert, &[&1]).await?;
                pause(Duration::from_millis(10)).await;
            }
        })
        .must_be_named(Situation::ForeignKeyLocks, |report| {
            assert_eq!(report.row(0), "parent (id = 1)");
            assert!(report.findings[0].next.contains("FOR NO KEY UPDATE"));
        });
}

#[test]
#[ignore = "long: make test-all"]
fn a_queue_with_skip_locked() {
    let jobs = "create table job (id int primary key, state int not null);
        insert into job select n, 0 from generate_series(1, 50000) n; vacuum analyze job";
    Planted::new(jobs)
        .clients(8, async |_, client| {
            let take = "update job set state = 1 where id = (select id from job where state = 0 order by id
                for update skip locked limit 1)";
            let take = client.prepare(take).await?;
            loop {
                client.execute(&take, &[]).await?;
            }
        })
        .must_be_named(Situation::SkipLockedQueue, |report| {
            assert!(report.findings[0].next.contains("docs/queues.md"));
        });
}

#[test]
#[ignore = "long: make test-all"]
fn dead_rows_behind_a_long_snapshot() {
    let planted = Planted::new(ITEMS);
    let pid = planted.hold("begin isolation level repeatable read; select count(*) from item");
    planted
        .clients(6, async |number, client| {
            let update = client.prepare(UPDATE).await?;
            for turn in 0.. {
                let id = 1 + i32::try_from((number * 166 + turn * 7) % 1000).expect("a small number");
                client.execute(&update, &[&id]).await?;
            }
            Ok(())
        })
        .must_be_named(Situation::LongSnapshot, |report| {
            let finding = &report.findings[0];
            assert!(finding.text.contains("item"), "{finding:?}");
            assert!(finding.next.contains(&format!("pg_terminate_backend({pid})")), "{finding:?}");
        });
}

#[test]
#[ignore = "long: make test-all"]
fn nothing_wrong() {
    Planted::new(ITEMS)
        .clients(3, async |number, client| {
            let update = client.prepare(UPDATE).await?;
            for turn in 0.. {
                let id = 1 + i32::try_from((number * 333 + turn * 7) % 1000).expect("a small number");
                client.execute(&update, &[&id]).await?;
                pause(Duration::from_millis(50)).await;
            }
            Ok(())
        })
        .must_be_named(Situation::NothingWrong, |report| {
            assert!(report.hot_rows.is_empty(), "{:?}", report.hot_rows)
        });
}

#[test]
#[ignore = "long: make test-all"]
fn a_connection_that_ends_during_the_run() {
    let planted = Planted::new(ITEMS).loads(12, UPDATE.to_owned()).clients(1, async |_, client| {
        let doctor = "from pg_stat_activity where application_name = 'hotrow doctor'
            and datname = current_database()";
        // Each start of a query is a sample, a part of one or a probe. Ten probes come before the first sample.
        let mut starts = BTreeSet::new();
        while starts.len() < 40 {
            for row in client.query(&format!("select query_start::text {doctor}"), &[]).await? {
                starts.insert(row.get::<_, Option<String>>(0));
            }
            pause(Duration::from_millis(5)).await;
        }
        client.batch_execute(&format!("select pg_terminate_backend((select pid {doctor}))")).await
    });
    planted.examine_for(60, Situation::HotRow, |report| {
        assert_eq!(report.row(0), "item (id = 7)");
        let says = |finding: &Finding| finding.text.contains("closed the doctor's connection");
        assert!(report.findings.iter().any(says), "{:?}", report.findings);
        assert!(report.samples > 0 && report.throughput.commits.is_none(), "{:?}", report.throughput);
    });
}
