//! Statements and portals by name: parsed, described, closed, parsed again, taken, unknown, unnamed, in all orders that
//! the protocol allows.

use hotrow_testkit::raw::{bind, close, describe, execute, frame, parse, query, sync, tags};

use crate::stage::{READ, Stage, UPDATE, once, step};

#[tokio::test]
async fn names_are_parsed_and_described_around_an_execute() {
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
        .same(
            "Describe of an existing statement",
            &[step![parse("s", READ), sync(), describe(b'S', "s"), sync()]],
        )
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
}

#[tokio::test]
async fn closed_names_can_be_used_again() {
    let stage = Stage::new().await;
    let one = [Some("1")];
    stage
        .same(
            "Close before and after",
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
            "Close, then the name again",
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
}

#[tokio::test]
async fn executes_may_have_no_statement_no_rows_or_wrong_values() {
    let stage = Stage::new().await;
    let one = [Some("1")];
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
            "text that cannot be parsed",
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
async fn a_name_that_is_taken_is_rejected() {
    let stage = Stage::new().await;
    let one = [Some("1")];
    let replies = stage
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
    let error = replies.iter().find(|message| message.tag == b'E').unwrap();
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
}

#[tokio::test]
async fn a_name_without_a_successful_parse_is_unknown() {
    let stage = Stage::new().await;
    let one = [Some("1")];
    let replies = stage
        .same(
            "an unknown name",
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
    assert_eq!(replies[0].field(b'C').unwrap(), "26000");
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
            "a Parse skipped after an error",
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
}

#[tokio::test]
async fn a_name_whose_first_use_fails_keeps_its_meaning() {
    let stage = Stage::new().await;
    let one = [Some("1")];
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
            "a table that does not exist",
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
}

#[tokio::test]
async fn prepare_and_deallocate_by_text_and_the_protocol_share_names() {
    let stage = Stage::new().await;
    let one = [Some("1")];
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
    // The held connection still has the unnamed statement that was passed through.
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
    // Sent together and one by one, in a transaction, because all of them need the same connection.
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

/// The gateway gives its statements such names on the server's connections.
#[tokio::test]
async fn names_like_the_gateways_belong_to_their_client() {
    let stage = Stage::new().await;
    let mut steps = Vec::new();
    for number in 1..40 {
        let name = format!("hotrow_{number}");
        steps.extend([
            step![describe(b'S', &name), sync()],
            step![bind("", &name, &[]), sync()],
            step![query(&format!("deallocate {name}"))],
            step![close(b'S', &name), sync()],
            step![parse(&name, "select 1"), parse(&name, "select 2"), sync()],
            step![bind("", &name, &[]), execute("", 0), sync()],
            step![query(&format!("deallocate {name}"))],
        ]);
    }
    stage.same("names like hotrow_1", &steps).await;
}

#[tokio::test]
async fn no_client_removes_another_clients_statement_by_the_gateways_name() {
    let stage = Stage::new().await;
    let port = stage.gateway.port();
    let [mut one, mut other] = [stage.raw(port).await, stage.raw(port).await];
    one.send(&[parse("s", "select pg_backend_pid() is null"), sync()].concat()).await;
    one.until_ready(1).await;
    for number in 1..60 {
        for text in [format!("deallocate hotrow_{number}"), format!("select 1; deallocate hotrow_{number}")] {
            other.query(&text).await;
            one.send(&[bind("", "s", &[]), execute("", 0), sync()].concat()).await;
            assert_eq!(tags(&one.until_ready(1).await), "2DCZ", "after {text}");
        }
    }
}
