//! Units of several statements: what is sent before one Sync, and BEGIN to COMMIT in one go, against a direct
//! connection; and that they are packed where they can be, which the answers do not show.

use hotrow_testkit::raw::{Raw, bind, close, describe, execute, parse, query, sync, tags};
use hotrow_testkit::{rows, value};

use crate::stage::{READ, RESET, Stage, UPDATE, once, step};

/// One statement of several, as libpq's pipeline mode sends it.
fn part(text: &str, values: &[Option<&str>]) -> Vec<u8> {
    [parse("", text), bind("", "", values), describe(b'P', ""), execute("", 0)].concat()
}

fn update(id: &str) -> Vec<u8> {
    part(UPDATE, &[Some(id)])
}

/// Runs the steps both ways; how many of their units the gateway packed. The stage's own last query is one more.
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
            "other words for it",
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
async fn what_is_not_one_transaction_of_packable_statements_is_passed_through() {
    let stage = Stage::new().await;
    for (what, unit) in [
        ("a block that stays open", step![part("begin", &[]), update("1"), sync(), once("rollback", &[])]),
        ("a rollback", step![part("begin", &[]), update("1"), part("rollback", &[]), sync()]),
        (
            "a stricter block",
            step![part("begin isolation level serializable", &[]), update("1"), part("commit", &[]), sync()],
        ),
        (
            "more behind the block",
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
            "rows wanted one by one",
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
    let said = stage.same("implicit", &[failing(&[], &[]), once(READ, &[Some("1")])]).await;
    assert_eq!(tags(&said[..9]), "12TDC12nE"); // the answer to what was before stands, as directly
    let block = failing(&part("begin", &[]), &part("commit", &[]));
    stage.same("in a block", &[block.clone(), once(READ, &[Some("1")]), query("rollback")]).await;
    // Behind units that are fine, and in front of some.
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
async fn names_mean_what_they_meant_when_the_unit_came() {
    let stage = Stage::new().await;
    let fails = "update t set n = n + 1000 where id = $1 returning label";
    for name in ["", "s"] {
        let fine = |label: &str| format!("update t set label = '{label}' where id = $1 returning label");
        let run = |id: &str| [bind("", name, &[Some(id)]), execute("", 0), sync()].concat();
        let steps = [
            step![parse(name, &fine("first")), run("1")],
            // All at once: the second unit fails in its lane and runs alone when the name means something else.
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
            // It runs alone when the name means nothing any more.
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

#[tokio::test]
async fn transactions_on_the_same_rows_are_one_after_the_other() {
    let stage = Stage::new().await;
    stage.direct.batch_execute(RESET).await.unwrap();
    let other = hotrow_testkit::Gateway::start(&[]);
    // One gateway keeps the peace between transactions that take their rows in different orders; two need, as direct
    // clients do, one order.
    for (ports, orders) in [
        ([stage.gateway.port(), stage.gateway.port()], [["1", "2", "3"], ["3", "2", "1"]]),
        ([stage.gateway.port(), other.port()], [["1", "2", "3"], ["1", "2", "3"]]),
    ] {
        let schema = value(&stage.direct, "select current_schema()").await;
        let mut running = Vec::new();
        for client in 0..16 {
            let (port, ids, schema) = (ports[client % 2], orders[client % 3 % 2], schema.clone());
            running.push(tokio::spawn(async move {
                let mut raw = Raw::log_in(port, &[("options", &format!("-c search_path={schema}"))]).await;
                for round in 0..25 {
                    let text = "update t set label = $1 where id = $2 returning n";
                    let label = format!("{client}.{round}");
                    let parts = ids.map(|id| part(text, &[Some(label.as_str()), Some(id)]));
                    raw.send(&step![part("begin", &[]), parts.concat(), part("commit", &[]), sync()]).await;
                    let said = raw.until_ready(1).await;
                    assert_eq!(tags(&said), "12nC12TDC12TDC12TDC12nCZ", "{said:?}");
                }
            }));
        }
        for task in running {
            task.await.unwrap();
        }
        // Each transaction set all three rows: whoever was last, was last on all of them.
        let labels = rows(&stage.direct, "select distinct label from t where id <= 3").await.unwrap();
        assert_eq!(labels.len(), 1, "{labels:?}");
    }
    assert!(stage.packed() > 400 && other.metric("packed_units_total") > 0);
}

#[tokio::test]
async fn two_gateways_and_an_outsider_on_one_row_lose_nothing() {
    let stage = Stage::new().await;
    let table = "create table c (id int primary key, n int not null); insert into c select i, 0 from generate_series(0, 8) i";
    stage.direct.batch_execute(table).await.unwrap();
    let other = hotrow_testkit::Gateway::start(&[]);
    let schema = value(&stage.direct, "select current_schema()").await;
    let mut running = Vec::new();
    // Each takes a row of its few and then the one of all: in a batch the next one's few come behind that.
    for client in 0..32 {
        let port = if client % 2 == 0 { stage.gateway.port() } else { other.port() };
        let schema = schema.clone();
        running.push(tokio::spawn(async move {
            let mut raw = Raw::log_in(port, &[("options", &format!("-c search_path={schema}"))]).await;
            for round in 0..20 {
                let own = (1 + (client + round) % 8).to_string();
                let parts =
                    [own.as_str(), "0"].map(|id| part("update c set n = n + 1 where id = $1", &[Some(id)]));
                raw.send(&step![part("begin", &[]), parts.concat(), part("commit", &[]), sync()]).await;
                let said = raw.until_ready(1).await;
                assert_eq!(tags(&said), "12nC12nC12nC12nCZ", "{said:?}");
            }
        }));
    }
    // Somebody holds the one row again and again, shorter than a lane waits, so that both gateways' batches meet at it.
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
