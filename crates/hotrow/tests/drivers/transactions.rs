//! Units of several statements, compared with a direct connection: the messages before one Sync, and BEGIN to COMMIT
//! sent together. Metrics show that they are packed if possible, because the answers do not show it.

use hotrow_testkit::raw::{Message, Raw, bind, close, describe, execute, parse, query, sync, tags};
use hotrow_testkit::{Gateway, rows, value};

use crate::stage::{READ, RESET, Stage, UPDATE, once, step};

/// One statement of several, as libpq's pipeline mode sends it.
fn part(text: &str, values: &[Option<&str>]) -> Vec<u8> {
    [parse("", text), bind("", "", values), describe(b'P', ""), execute("", 0)].concat()
}

fn update(id: &str) -> Vec<u8> {
    part(UPDATE, &[Some(id)])
}

/// Runs the steps both ways. Returns how many of their units the gateway packed, without the stage's own last query.
async fn packed(stage: &Stage, what: &str, steps: &[Vec<u8>]) -> u64 {
    let before = stage.packed();
    stage.same(what, steps).await;
    stage.packed() - before - 1
}

#[tokio::test]
async fn extended_queries_up_to_one_sync_are_one_unit() {
    let stage = Stage::new().await;
    let quiet = "update t set label = 'x' where id = $1";
    for (what, unit) in [
        ("two updates", step![update("1"), update("2"), sync()]),
        ("the same row twice", step![update("3"), update("3"), update("3"), sync()]),
        ("reads too", step![update("1"), part(READ, &[Some("1")]), part(quiet, &[Some("1")]), sync()]),
        ("reads only", step![part(READ, &[Some("1")]), part(READ, &[Some("2")]), sync()]),
        (
            "in a block",
            step![part("begin", &[]), update("1"), part(READ, &[Some("2")]), part("commit", &[]), sync()],
        ),
        (
            "other spellings",
            step![
                part("START TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE", &[]),
                update("1"),
                part("end work", &[]),
                sync()
            ],
        ),
        (
            "statements described",
            step![
                parse("b", "begin"),
                describe(b'S', "b"),
                bind("", "b", &[]),
                execute("", 0),
                parse("u", UPDATE),
                bind("", "u", &[Some("4")]),
                describe(b'S', "u"),
                execute("", 0),
                parse("", "commit"),
                bind("", "", &[]),
                describe(b'S', ""),
                execute("", 0),
                sync()
            ],
        ),
        (
            "names that come and go",
            step![
                parse("a", UPDATE),
                bind("", "a", &[Some("1")]),
                execute("", 0),
                close(b'S', "a"),
                parse("a", quiet),
                bind("", "a", &[Some("2")]),
                execute("", 1),
                close(b'P', ""),
                bind("", "a", &[Some("3")]),
                execute("", 0),
                sync(),
                bind("", "a", &[Some("4")]),
                execute("", 0),
                sync()
            ],
        ),
    ] {
        assert!(packed(&stage, what, &[unit]).await > 0, "{what} was not packed");
    }
}

#[tokio::test]
async fn simple_queries_of_several_statements_are_one_unit() {
    let stage = Stage::new().await;
    for text in [
        "update t set n = n + 1 where id = 1; update t set n = n + 2, label = 'a;b' where id = 2",
        "begin; update t set n = n + 1 where id = 1 returning n; select n, label from t where id = 1; commit",
        "BEGIN;\n -- a word; or two\n update t set label = 'x' where id = 3;; END;",
        "select n from t where id = 1; select n from t where id = 2;",
    ] {
        assert_eq!(packed(&stage, text, &[query(text)]).await, 1, "{text}");
    }
}

#[tokio::test]
async fn units_that_are_not_one_transaction_of_packable_statements_are_passed_through() {
    let stage = Stage::new().await;
    for (what, unit) in [
        ("a block that stays open", step![part("begin", &[]), update("1"), sync(), once("rollback", &[])]),
        ("a rollback", step![part("begin", &[]), update("1"), part("rollback", &[]), sync()]),
        (
            "a stricter block",
            step![part("begin isolation level serializable", &[]), update("1"), part("commit", &[]), sync()],
        ),
        (
            "a statement after the block",
            step![part("begin", &[]), update("1"), part("commit", &[]), update("2"), sync()],
        ),
        ("an empty block", step![part("begin", &[]), part("commit", &[]), sync()]),
        (
            "a setting",
            step![
                part("begin", &[]),
                part("set local work_mem = '1MB'", &[]),
                update("1"),
                part("commit", &[]),
                sync()
            ],
        ),
        (
            "rows fetched one by one",
            step![parse("", READ), bind("", "", &[Some("1")]), execute("", 1), update("1"), sync()],
        ),
        (
            "a name that is taken",
            step![
                parse("a", UPDATE),
                bind("", "a", &[Some("1")]),
                execute("", 0),
                parse("a", UPDATE),
                bind("", "a", &[Some("1")]),
                execute("", 0),
                sync()
            ],
        ),
        (
            "a statement that was closed",
            step![
                parse("a", UPDATE),
                bind("", "a", &[Some("1")]),
                execute("", 0),
                close(b'S', "a"),
                bind("", "a", &[Some("1")]),
                execute("", 0),
                sync()
            ],
        ),
        ("text", query("begin; update t set n = n + 1 where id = 1")),
        ("text with a setting", query("set local work_mem = '1MB'; update t set n = n + 1 where id = 1")),
    ] {
        assert_eq!(packed(&stage, what, &[unit, query("rollback")]).await, 0, "{what} was packed");
    }
}

#[tokio::test]
async fn a_unit_that_fails_leaves_nothing_behind() {
    let stage = Stage::new().await;
    let over = "update t set n = n + 1000 where id = $1";
    let failing = |begin: &[u8], end: &[u8]| {
        step![begin.to_vec(), update("1"), part(over, &[Some("2")]), update("3"), end.to_vec(), sync()]
    };
    let replies = stage.same("implicit", &[failing(&[], &[]), once(READ, &[Some("1")])]).await;
    assert_eq!(tags(&replies[..9]), "12TDC12nE"); // the replies before the error stay, as on a direct connection
    let block = failing(&part("begin", &[]), &part("commit", &[]));
    stage.same("in a block", &[block.clone(), once(READ, &[Some("1")]), query("rollback")]).await;
    // After units that succeed and before others.
    let pipeline = step![once(UPDATE, &[Some("5")]), block, query("rollback"), once(UPDATE, &[Some("5")])];
    stage.same("among others", &[pipeline]).await;
    stage
        .same(
            "text",
            &[query("update t set n = n + 1 where id = 1; update t set n = 1000 where id = 1; select 1")],
        )
        .await;
    stage.same("a parameter of the wrong type", &[step![update("1"), update("x"), sync()]]).await;
}

#[tokio::test]
async fn names_keep_their_meaning_from_the_time_when_the_unit_arrived() {
    let stage = Stage::new().await;
    let fails = "update t set n = n + 1000 where id = $1 returning label";
    for name in ["", "s"] {
        let fine = |label: &str| format!("update t set label = '{label}' where id = $1 returning label");
        let run = |id: &str| [bind("", name, &[Some(id)]), execute("", 0), sync()].concat();
        let steps = [
            step![parse(name, &fine("first")), run("1")],
            // Sent together: the second unit fails in its lane and runs alone when the name has another meaning.
            step![
                run("2"),
                close(b'S', name),
                parse(name, fails),
                run("3"),
                close(b'S', name),
                parse(name, &fine("third")),
                run("4"),
                run("5")
            ],
            run("6"),
            // The unit runs alone after the name was closed.
            step![
                close(b'S', name),
                parse(name, fails),
                run("3"),
                close(b'S', name),
                parse("other", &fine("fourth")),
                bind("", "other", &[Some("7")]),
                execute("", 0),
                sync()
            ],
            run("6"),
        ];
        stage.same(&format!("the name {name:?}"), &steps).await;
    }
}

/// 16 clients set three rows in transactions, in one of two orders. Returns the first error.
async fn set_rows(stage: &Stage, ports: [u16; 2], orders: [[&'static str; 3]; 2]) -> Result<(), Message> {
    let schema = value(&stage.direct, "select current_schema()").await;
    let mut running = Vec::new();
    for client in 0..16 {
        let (port, ids, schema) = (ports[client % 2], orders[client % 3 % 2], schema.clone());
        running.push(tokio::spawn(async move {
            let mut raw = Raw::login(port, &[("options", &format!("-c search_path={schema}"))]).await;
            for round in 0..25 {
                let text = "update t set label = $1 where id = $2 returning n";
                let label = format!("{client}.{round}");
                let parts = ids.map(|id| part(text, &[Some(label.as_str()), Some(id)]));
                raw.send(&step![part("begin", &[]), parts.concat(), part("commit", &[]), sync()]).await;
                let replies = raw.until_ready(1).await;
                if let Some(error) = replies.iter().find(|reply| reply.tag == b'E') {
                    return Err(error.clone());
                }
                assert_eq!(tags(&replies), "12nC12TDC12TDC12TDC12nCZ", "{replies:?}");
            }
            Ok(())
        }));
    }
    let mut first = Ok(());
    for task in running {
        first = first.and(task.await.unwrap());
    }
    // Each transaction set all three rows, so all have the label of the last transaction.
    let labels = rows(&stage.direct, "select distinct label from t where id <= 3").await.unwrap();
    assert_eq!(labels.len(), 1, "{labels:?}");
    first
}

/// One gateway prevents deadlocks between transactions that lock rows in different orders. On a busy machine a lane can be
/// slow. Then units run outside of lanes, as ordinary transactions, and can deadlock.
#[tokio::test]
async fn transactions_on_the_same_rows_run_one_after_the_other() {
    let mut busy = Vec::new();
    for _ in 0..3 {
        let stage = Stage::new().await;
        stage.direct.batch_execute(RESET).await.unwrap();
        let port = stage.gateway.port();
        let outcome = set_rows(&stage, [port, port], [["1", "2", "3"], ["3", "2", "1"]]).await;
        if outcome.is_ok() && stage.packed() > 300 {
            return;
        }
        let outside = ["blocked", "failed", "slow", "passed_through"];
        let outside = outside.map(|why| stage.gateway.metric(&format!("{why}_units_total")));
        assert_ne!(outside, [0; 4], "all units have run in lanes: {outcome:?}");
        if let Err(error) = &outcome {
            assert_eq!(error.field(b'C').as_deref(), Some("40P01"), "{error:?}");
        }
        busy.push(outcome);
    }
    panic!("many units have run outside of lanes: {busy:?}");
}

/// Two gateways need one order, as direct clients do.
#[tokio::test]
async fn transactions_of_two_gateways_on_the_same_rows_run_one_after_the_other() {
    let stage = Stage::with(&["--lane-lock-timeout-ms", "100"]).await;
    stage.direct.batch_execute(RESET).await.unwrap();
    let other = Gateway::start(&[]);
    let ports = [stage.gateway.port(), other.port()];
    set_rows(&stage, ports, [["1", "2", "3"]; 2]).await.unwrap();
    assert!(stage.packed() > 0 && other.metric("packed_units_total") > 0);
}

#[tokio::test]
async fn two_gateways_and_an_outsider_on_one_row_lose_nothing() {
    // With two gateways, the lanes' lock timeout has to be less than the server's deadlock_timeout.
    let stage = Stage::with(&["--lane-lock-timeout-ms", "100"]).await;
    let table = "create table c (id int primary key, n int not null); insert into c select i, 0 from generate_series(0, 8) i";
    stage.direct.batch_execute(table).await.unwrap();
    let other = Gateway::start(&[]);
    let schema = value(&stage.direct, "select current_schema()").await;
    let mut running = Vec::new();
    // Each client locks one of eight rows and then the row that all share. In a batch, the next client's lock of one of
    // the eight follows the lock of the shared row.
    for client in 0..32 {
        let port = if client % 2 == 0 { stage.gateway.port() } else { other.port() };
        let schema = schema.clone();
        running.push(tokio::spawn(async move {
            let mut raw = Raw::login(port, &[("options", &format!("-c search_path={schema}"))]).await;
            for round in 0..20 {
                let own = (1 + (client + round) % 8).to_string();
                let parts =
                    [own.as_str(), "0"].map(|id| part("update c set n = n + 1 where id = $1", &[Some(id)]));
                raw.send(&step![part("begin", &[]), parts.concat(), part("commit", &[]), sync()]).await;
                let replies = raw.until_ready(1).await;
                assert_eq!(tags(&replies), "12nC12nC12nC12nCZ", "{replies:?}");
            }
        }));
    }
    // A direct client locks the shared row repeatedly, for less than the lanes' lock timeout: the batches of both
    // gateways queue for it.
    let held = "begin; update c set n = n where id = 0; select pg_sleep(0.03); rollback";
    while !running.iter().all(|task| task.is_finished()) {
        stage.direct.batch_execute(held).await.unwrap();
    }
    for task in running {
        task.await.unwrap();
    }
    let counted = value(
        &stage.direct,
        "select sum(n) filter (where id > 0) || ' ' || sum(n) filter (where id = 0) from c",
    );
    assert_eq!(counted.await, "640 640");
    assert!(stage.packed() > 0 && other.metric("packed_units_total") > 0);
}
