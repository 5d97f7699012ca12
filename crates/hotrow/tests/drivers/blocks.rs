//! Transactions whose BEGIN, statements and COMMIT are separate messages, sent together: compared with a direct
//! connection, and checked for being packed.

use hotrow_testkit::raw::{bind, close, describe, execute, parse, query, sync};

use crate::stage::{READ, Stage, UPDATE, once, step};

fn update(id: &str) -> Vec<u8> {
    once(UPDATE, &[Some(id)])
}

/// Runs the steps both ways. Returns how many units the gateway packed, including the stage's own last query.
async fn packed(stage: &Stage, what: &str, steps: &[Vec<u8>]) -> u64 {
    let before = stage.packed();
    stage.same(what, steps).await;
    stage.packed() - before
}

/// Runs the cases and asserts that only the stage's own last query of each was packed.
async fn passed_through<const N: usize>(stage: &Stage, cases: [(&str, Vec<Vec<u8>>); N]) {
    for (what, steps) in cases {
        assert_eq!(packed(stage, what, &steps).await, 1, "{what}: only the stage's last query is packed");
    }
}

#[tokio::test]
async fn a_transaction_that_arrived_completely_is_one_unit() {
    let stage = Stage::new().await;
    let literal = "update t set n = n + 1, label = 'it''s' where id = 3 returning n";
    for (what, block) in [
        (
            "text only",
            step![query("begin"), query(literal), query("select n from t where id = 3"), query("commit")],
        ),
        ("extended queries", step![query("BEGIN"), update("1"), once(READ, &[Some("1")]), query("COMMIT")]),
        ("both", step![query("start transaction"), update("1"), query(literal), update("1"), query("end")]),
        (
            "several before one Sync",
            step![
                query("begin;"),
                parse("", UPDATE),
                bind("", "", &[Some("1")]),
                execute("", 0),
                parse("", READ),
                bind("", "", &[Some("1")]),
                describe(b'P', ""),
                execute("", 0),
                sync(),
                query("commit;")
            ],
        ),
    ] {
        assert_eq!(packed(&stage, what, &[block]).await, 2, "{what}");
    }
    let prepared = |id: &str| step![bind("", "u", &[Some(id)]), execute("", 0), sync()];
    let steps = [
        step![parse("u", UPDATE), sync()],
        // With other units before and after it.
        step![
            update("7"),
            query("begin"),
            prepared("7"),
            prepared("8"),
            query("commit"),
            prepared("7"),
            update("8")
        ],
        prepared("7"),
    ];
    assert_eq!(packed(&stage, "a prepared statement", &steps).await, 6);
}

#[tokio::test]
async fn an_incomplete_or_unpackable_transaction_is_passed_through() {
    let stage = Stage::new().await;
    let cases = [
        ("in two pieces", vec![step![query("begin"), update("1")], step![update("2"), query("commit")]]),
        ("without its end", vec![step![query("begin"), update("1"), update("2")], query("rollback")]),
        ("rolled back", vec![step![query("begin"), update("1"), query("rollback")]]),
        ("an empty block", vec![step![query("begin"), query("commit")]]),
        ("begun twice", vec![step![query("begin"), query("begin"), query("commit")]]),
        (
            "a setting",
            vec![step![query("begin"), query("set local work_mem = '1MB'"), update("1"), query("commit")]],
        ),
        ("stricter", vec![step![query("begin isolation level serializable"), update("1"), query("commit")]]),
        ("an empty query", vec![step![query("begin"), query(""), query("commit")]]),
        (
            "a transaction in it",
            vec![step![
                query("begin"),
                parse("", "begin"),
                bind("", "", &[]),
                execute("", 0),
                parse("", UPDATE),
                bind("", "", &[Some("1")]),
                execute("", 0),
                parse("", "commit"),
                bind("", "", &[]),
                execute("", 0),
                sync(),
                query("commit")
            ]],
        ),
        ("only a Sync", vec![step![query("begin"), sync(), query("commit")]]),
        (
            "two statements in a text",
            vec![step![query("begin; update t set n = 5 where id = 1"), update("1"), query("commit")]],
        ),
    ];
    passed_through(&stage, cases).await;
}

#[tokio::test]
async fn a_transaction_that_changes_or_lacks_names_is_passed_through() {
    let stage = Stage::new().await;
    let cases = [
        (
            "a name that is new",
            vec![step![
                query("begin"),
                parse("a", UPDATE),
                sync(),
                bind("", "a", &[Some("1")]),
                execute("", 0),
                sync(),
                query("commit")
            ]],
        ),
        (
            "a name that is gone",
            vec![
                parse("", UPDATE).into_iter().chain(sync()).collect(),
                step![query("begin"), bind("", "", &[Some("1")]), execute("", 0), sync(), query("commit")],
            ],
        ),
        (
            "closed in the block",
            vec![
                step![parse("c", UPDATE), sync()],
                step![
                    query("begin"),
                    bind("", "c", &[Some("1")]),
                    execute("", 0),
                    close(b'S', "c"),
                    sync(),
                    query("commit")
                ],
                step![bind("", "c", &[Some("1")]), execute("", 0), sync()],
            ],
        ),
    ];
    passed_through(&stage, cases).await;
}

#[tokio::test]
async fn a_transaction_that_fails_is_answered_message_by_message() {
    let stage = Stage::new().await;
    let over = |id: &str| once("update t set n = n + 1000 where id = $1", &[Some(id)]);
    let block = step![query("begin"), update("1"), over("2"), update("3"), query("commit")];
    stage.same("in the middle", &[block.clone(), once(READ, &[Some("1")])]).await;
    stage.same("among others", &[step![update("5"), block.clone(), update("5"), block, update("6")]]).await;
    let text = "update t set n = 1000 where id = 4";
    stage
        .same("text", &[step![query("begin"), update("4"), query(text), query("select 1"), query("commit")]])
        .await;
    stage
        .same("a wrong parameter", &[step![query("begin"), update("x"), update("1"), query("commit")]])
        .await;
    // Prepared statements keep their names if the transaction fails. The text is a new one, because a text that failed
    // in a lane is not sent to lanes again for some time.
    let text = "update t set n = 1000, label = 'x' where id = 4";
    let prepared = step![bind("", "u", &[Some("9")]), execute("", 0), sync()];
    let steps = [
        step![parse("u", UPDATE), sync()],
        step![query("begin"), prepared.clone(), query(text), query("commit"), prepared.clone()],
        prepared,
    ];
    let failed = stage.gateway.metric("failed_units_total");
    stage.same("names", &steps).await;
    assert!(stage.gateway.metric("failed_units_total") > failed, "the transaction ran in a lane first");
}
