//! Statements and portals by name: parsed, described, closed, parsed anew, taken, unknown, unnamed; in all the orders that
//! the protocol allows.

use hotrow_testkit::raw::{bind, close, describe, execute, frame, parse, query, sync};

use crate::stage::{READ, Stage, UPDATE, once, step};

#[tokio::test]
async fn everything_that_may_stand_around_an_execute() {
    let stage = Stage::new().await;
    let one = [Some("1")];
    stage
        .same(
            "Parse alone",
            &[step![parse("s", UPDATE), sync()], step![bind("", "s", &one), execute("", 0), sync()]],
        )
        .await;
    stage.same("Parse and Describe", &[step![parse("s", READ), describe(b'S', "s"), sync()]]).await;
    stage
        .same("Describe of what is there", &[step![parse("s", READ), sync(), describe(b'S', "s"), sync()]])
        .await;
    stage
        .same(
            "Describe of both",
            &[step![
                parse("s", UPDATE),
                describe(b'S', "s"),
                bind("", "s", &one),
                describe(b'P', ""),
                execute("", 0),
                sync(),
            ]],
        )
        .await;
    stage.same("Bind without Execute", &[step![parse("s", UPDATE), bind("", "s", &one), sync()]]).await;
    stage
        .same("Bind and Describe", &[step![parse("", READ), bind("", "", &one), describe(b'P', ""), sync()]])
        .await;
    stage
        .same(
            "Close before and behind",
            &[step![
                close(b'S', "old"),
                parse("s", UPDATE),
                bind("", "s", &one),
                execute("", 0),
                close(b'P', ""),
                close(b'S', "s"),
                sync(),
                bind("", "s", &one),
                execute("", 0),
                sync(),
            ]],
        )
        .await;
    stage
        .same(
            "Close of nothing",
            &[step![close(b'S', "nobody"), close(b'P', "nobody"), close(b'S', ""), sync()]],
        )
        .await;
    stage
        .same(
            "Close, then the name anew",
            &[
                step![
                    parse("s", UPDATE),
                    close(b'S', "s"),
                    parse("s", READ),
                    bind("", "s", &one),
                    execute("", 0),
                    sync(),
                ],
                step![bind("", "s", &one), execute("", 0), sync()],
            ],
        )
        .await;
    stage.same("the empty query", &[step![once("", &[]), query(""), once(" -- nothing", &[])]]).await;
    stage
        .same(
            "no rows come back",
            &[step![
                once("update t set n = n + 1 where id = $1", &one),
                once("delete from t where id = $1", &one),
            ]],
        )
        .await;
    stage
        .same(
            "Execute twice",
            &[step![parse("", UPDATE), bind("", "", &one), execute("", 0), execute("", 0), sync()]],
        )
        .await;
    stage
        .same(
            "Execute of nothing",
            &[step![execute("", 0), sync(), execute("nobody", 0), sync(), describe(b'P', ""), sync()]],
        )
        .await;
    let binary = frame(b'B', &[&b"\0\0\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x02\0\x01\0\x01"[..]].concat());
    stage.same("binary in and out", &[step![parse("", UPDATE), binary, execute("", 0), sync()]]).await;
    stage
        .same(
            "a wrong number of values",
            &[step![
                parse("", UPDATE),
                bind("", "", &[]),
                execute("", 0),
                sync(),
                once(UPDATE, &[Some("1"), Some("2")]),
            ]],
        )
        .await;
    stage.same("NULL as the key", &[step![once(UPDATE, &[None]), once(READ, &[None])]]).await;
    stage
        .same(
            "text that can't be parsed",
            &[step![
                once("updat t", &[]),
                once(UPDATE, &one),
                query("updat t"),
                once("update t set n = $1 where id = $7", &[]),
            ]],
        )
        .await;
    stage
        .same("two commands in a Parse", &[step![once("select 1; select 2", &[]), once(UPDATE, &one)]])
        .await;
}

#[tokio::test]
async fn names_that_are_taken_or_unknown() {
    let stage = Stage::new().await;
    let one = [Some("1")];
    let said = stage
        .same(
            "a name twice",
            &[step![
                parse("s", UPDATE),
                bind("", "s", &one),
                execute("", 0),
                sync(),
                parse("s", READ),
                bind("", "s", &one),
                execute("", 0),
                sync(),
                bind("", "s", &one),
                execute("", 0),
                sync(),
            ]],
        )
        .await;
    let error = said.iter().find(|message| message.tag == b'E').unwrap();
    assert_eq!(error.field(b'C').unwrap(), "42P05");
    assert_eq!(error.field(b'M').unwrap(), "prepared statement \"s\" already exists");
    stage
        .same(
            "a name twice, passed through",
            &[
                step![
                    query("begin"),
                    parse("s", UPDATE),
                    sync(),
                    parse("s", UPDATE),
                    sync(),
                    query("rollback"),
                ],
                step![bind("", "s", &one), execute("", 0), sync()],
            ],
        )
        .await;
    stage
        .same(
            "a name twice in one unit",
            &[step![
                parse("s", UPDATE),
                parse("s", UPDATE),
                sync(),
                bind("", "s", &one),
                execute("", 0),
                sync(),
            ]],
        )
        .await;
    let said = stage
        .same(
            "a name that nobody gave",
            &[step![
                bind("", "nobody", &one),
                execute("", 0),
                sync(),
                describe(b'S', "nobody"),
                sync(),
                bind("", "", &[]),
                sync(),
            ]],
        )
        .await;
    assert_eq!(said[0].field(b'C').unwrap(), "26000");
    stage
        .same(
            "a name whose Parse has failed",
            &[step![
                parse("s", "updat t"),
                sync(),
                bind("", "s", &[]),
                execute("", 0),
                sync(),
                parse("s", UPDATE),
                bind("", "s", &one),
                execute("", 0),
                sync(),
            ]],
        )
        .await;
    stage
        .same(
            "a Parse skipped behind an error",
            &[step![
                parse("", "updat t"),
                parse("s", UPDATE),
                sync(),
                bind("", "s", &one),
                execute("", 0),
                sync(),
                parse("s", UPDATE),
                sync(),
                bind("", "s", &one),
                execute("", 0),
                sync(),
            ]],
        )
        .await;
    stage
        .same(
            "a name whose first use fails",
            &[step![
                parse("s", UPDATE),
                bind("", "s", &[Some("x")]),
                execute("", 0),
                sync(),
                bind("", "s", &one),
                execute("", 0),
                sync(),
            ]],
        )
        .await;
    stage
        .same(
            "a table that is not there yet",
            &[step![
                parse("s", "update r set a = 1 where id = 1"),
                bind("", "s", &[]),
                execute("", 0),
                sync(),
                parse("s", UPDATE),
                bind("", "s", &one),
                execute("", 0),
                sync(),
            ]],
        )
        .await;
    stage
        .same(
            "PREPARE, EXECUTE and DEALLOCATE by text",
            &[step![
                query("prepare s as select 1"),
                bind("", "s", &[]),
                execute("", 0),
                sync(),
                query("execute s"),
                query("deallocate s"),
                query("execute s"),
            ]],
        )
        .await;
    stage
        .same(
            "DEALLOCATE of a statement that was parsed",
            &[step![
                parse("s", UPDATE),
                sync(),
                query("deallocate s"),
                bind("", "s", &one),
                execute("", 0),
                sync(),
                query("deallocate nobody"),
                query("deallocate all"),
            ]],
        )
        .await;
}

#[tokio::test]
async fn the_unnamed_statement_lives_until_the_next_one() {
    let stage = Stage::new().await;
    let one = [Some("1")];
    let again = || step![bind("", "", &one), execute("", 0), sync()];
    stage.same("used again", &[step![parse("", UPDATE), sync()], again(), again()]).await;
    let between = step![once(UPDATE, &one), once(READ, &one), again(), again()];
    stage.same("the last one counts", &[between]).await;
    stage
        .same(
            "after a commit of something else",
            &[step![parse("", UPDATE), sync(), query("begin")], step![again(), query("commit"), again()]],
        )
        .await;
    stage
        .same("a simple query takes it away", &[step![parse("", UPDATE), sync(), query("select 1")], again()])
        .await;
    stage
        .same(
            "a simple update takes it away",
            &[step![parse("", UPDATE), sync(), query("update t set n = n + 1 where id = 2")], again()],
        )
        .await;
    stage.same("Close takes it away", &[step![parse("", UPDATE), close(b'S', ""), sync()], again()]).await;
    let deallocate = step![
        parse("", UPDATE),
        parse("all", "deallocate all"),
        bind("", "all", &[]),
        execute("", 0),
        sync()
    ];
    stage.same("DEALLOCATE ALL leaves it", &[deallocate, again()]).await;
    // The connection still has the one that was passed through.
    let passed = once("select count(*) + $1::int from t", &one);
    let look = || step![describe(b'S', ""), sync()];
    let closed = step![close(b'S', ""), sync()];
    stage.same("closed while no connection is held", &[passed, closed, again(), look()]).await;
    stage.same("another client's", &[again()]).await;
    stage.same("another client's, looked at", &[look()]).await;
}

#[tokio::test]
async fn more_statements_than_an_upstream_connection_keeps() {
    let stage = Stage::new().await;
    // All at once and one by one, in a transaction, so that they meet on one connection.
    let name = |n: usize| format!("s{n}");
    let prepared: Vec<Vec<u8>> = (0..600)
        .map(|n| step![parse(&name(n), &format!("select {n} + id from t where id > 8")), sync()])
        .collect();
    let used = (0..600).step_by(7).map(|n| step![bind("", &name(n), &[]), execute("", 0), sync()]);
    let used: Vec<Vec<u8>> = used.collect();
    let steps =
        [vec![query("begin")], prepared[..300].to_vec(), vec![prepared[300..].concat()], used].concat();
    stage.same("many statements", &steps).await;
}
