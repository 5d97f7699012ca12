//! Names of statements and portals in messages that are sent together, some of which fail.

use hotrow_testkit::raw::{bind, close, describe, execute, parse, query, sync};

use crate::stage::{Stage, UPDATE, step};

const ONE: &[Option<&str>] = &[Some("1")];

fn run(name: &str, values: &[Option<&str>]) -> Vec<u8> {
    step![bind("", name, values), execute("", 0), sync()]
}

/// Fails and causes the server to skip the messages up to the Sync.
fn fails() -> Vec<u8> {
    execute("nobody", 0)
}

#[tokio::test]
async fn messages_skipped_after_an_error_have_no_effect_on_names() {
    let stage = Stage::new().await;
    let prepared = step![parse("s", UPDATE), sync()];
    let taken = step![parse("s", "select 1"), close(b'S', "s"), sync(), run("s", ONE)];
    stage.same("a taken name, and a Close that is skipped", &[prepared.clone(), taken]).await;
    let skipped = step![fails(), parse("s", "select 1"), sync()];
    let good = step![parse("s", "select 3"), run("s", &[])];
    stage.same("two Parse that are skipped, then a good one", &[step![skipped, skipped, good]]).await;
    let close_skipped = step![fails(), close(b'S', "s"), sync(), parse("s", "select 2"), run("s", &[])];
    stage.same("a Close that is skipped frees nothing", &[prepared.clone(), close_skipped]).await;
    let fails_at_execute = "update t set n = n / (n - n) where id = $1";
    let unit =
        step![parse("s", fails_at_execute), bind("", "s", ONE), execute("", 0), close(b'S', "s"), sync()];
    stage.same("a unit that fails when it is run", &[unit.clone(), run("s", ONE)]).await;
    stage.same("the same in one go", &[step![unit, run("s", ONE)]]).await;
    stage.same("the same repeatedly", &[step![unit, unit, run("s", ONE), unit, run("s", ONE)]]).await;
    let unnamed = step![parse("", "select 1"), sync(), parse("", "wrong"), sync(), run("", &[])];
    stage.same("an unnamed Parse that fails drops the earlier unnamed statement", &[unnamed]).await;
}

#[tokio::test]
async fn units_that_fail_before_the_gateway_prepares_their_statements() {
    let stage = Stage::new().await;
    let s = || run("s", &[]);
    let (bad, described) = (step![fails(), s()], step![fails(), describe(b'S', "s"), sync()]);
    let twice = step![parse("s", "select 1"), bind("", "s", &[]), sync()];
    for (what, units) in [
        ("one", step![bad, s()]),
        ("two", step![bad, bad, s()]),
        ("a Describe", step![bad, described, s()]),
        ("a name that is taken", step![twice, described, s()]),
        ("a name that is taken, and more", step![twice, bad, described, bad, s()]),
    ] {
        let prepared = step![parse("s", "select 7"), sync()];
        stage.same(what, &[prepared.clone(), units.clone()]).await;
        stage.same(what, &[query("begin"), prepared.clone(), query("commit"), units.clone()]).await;
        stage.same(what, &[step![prepared, units]]).await;
    }
}

#[tokio::test]
async fn errors_are_reported_in_the_order_of_the_server() {
    let stage = Stage::new().await;
    let prepared = step![parse("s", "select 1"), sync()];
    stage
        .same(
            "wrong text under a taken name",
            &[prepared.clone(), step![parse("s", "wrong"), sync(), run("s", &[])]],
        )
        .await;
    stage
        .same(
            "no such table under a taken name",
            &[prepared.clone(), step![parse("s", "select * from nowhere"), sync()]],
        )
        .await;
    let failed =
        step![query("begin"), query("select 1 / 0"), parse("s", "select 1"), sync(), query("rollback")];
    stage.same("a taken name in a failed transaction", &[prepared, failed, run("s", &[])]).await;
    let portal = step![
        parse("", "select 1"),
        bind("p", "", &[]),
        execute("p", 0),
        bind("p", "", &[]),
        execute("p", 0),
        sync()
    ];
    stage.same("a portal bound twice", &[portal]).await;
}

fn once(text: &str) -> Vec<u8> {
    step![parse("", text), bind("", "", &[]), execute("", 0), sync()]
}

/// Runs each case after a Parse of `s`, without and with a connection that the session holds.
async fn same_after_a_parse<const N: usize>(cases: [(&str, Vec<Vec<u8>>); N]) {
    let stage = Stage::new().await;
    let prepared = step![parse("s", "select 1"), sync()];
    for (what, steps) in cases {
        let steps: Vec<Vec<u8>> = std::iter::once(prepared.clone()).chain(steps).collect();
        stage.same(what, &steps).await;
        let held: Vec<Vec<u8>> =
            std::iter::once(query("select count(*) from t; listen x")).chain(steps).collect();
        stage.same(what, &held).await;
    }
}

#[tokio::test]
async fn prepare_by_text_knows_the_names_of_the_protocol() {
    same_after_a_parse([
        ("PREPARE of a name that the protocol has", vec![query("prepare s as select 5"), run("s", &[])]),
        ("the same by extended query", vec![once("prepare s as select 5"), run("s", &[])]),
        (
            "the same, and the name is free again",
            vec![
                query("prepare s as select 5"),
                step![close(b'S', "s"), sync()],
                query("prepare s as select 6"),
                query("execute s"),
            ],
        ),
        (
            "PREPARE first",
            vec![
                query("prepare other as select 5"),
                step![parse("other", "select 6"), sync()],
                step![parse("new", "select 6"), sync()],
                run("new", &[]),
                run("other", &[]),
            ],
        ),
        (
            "PREPARE first, and errors",
            vec![
                query("prepare other as select 5"),
                step![parse("other", "select 6"), parse("other", "select 7"), sync()],
                run("other", &[]),
            ],
        ),
    ])
    .await;
}

#[tokio::test]
async fn deallocate_by_text_knows_the_names_of_the_protocol() {
    let ask = || step![query("deallocate s"), run("s", &[])];
    same_after_a_parse([
        ("DEALLOCATE", vec![ask(), ask()]),
        ("DEALLOCATE by extended query", vec![once("deallocate s"), ask()]),
        ("DEALLOCATE twice in one go", vec![step![once("deallocate s"), once("deallocate s"), ask()]]),
        (
            "DEALLOCATE in a failed transaction",
            vec![
                query("begin"),
                query("select 1 / 0"),
                query("deallocate s"),
                once("deallocate s"),
                query("rollback"),
                run("s", &[]),
            ],
        ),
        (
            "DEALLOCATE in a transaction that is rolled back",
            vec![query("begin"), query("deallocate s"), query("rollback"), run("s", &[])],
        ),
        (
            "DEALLOCATE after an error",
            vec![step![
                fails(),
                parse("", "deallocate s"),
                bind("", "", &[]),
                execute("", 0),
                sync(),
                run("s", &[])
            ]],
        ),
    ])
    .await;
}

#[tokio::test]
async fn names_are_free_again_after_deallocate_and_discard() {
    same_after_a_parse([
        (
            "DEALLOCATE, and the name again, in one unit",
            vec![step![
                parse("", "deallocate s"),
                bind("", "", &[]),
                execute("", 0),
                parse("s", "select 2"),
                sync(),
                run("s", &[])
            ]],
        ),
        (
            "DEALLOCATE ALL, and the name again, in one go",
            vec![step![query("deallocate all"), parse("s", "select 2"), sync(), run("s", &[])]],
        ),
        (
            "DEALLOCATE ALL, and the name again, in one unit",
            vec![step![
                parse("", "deallocate all"),
                bind("", "", &[]),
                execute("", 0),
                parse("s", "select 2"),
                sync(),
                run("s", &[])
            ]],
        ),
        (
            "DISCARD ALL in one go with others",
            vec![step![query("discard all"), run("s", &[]), parse("s", "select 2"), sync()], run("s", &[])],
        ),
    ])
    .await;
}

#[tokio::test]
async fn no_query_after_a_failed_pipeline_waits_for_ever() {
    let stage = Stage::new().await;
    let failing = step![parse("", "select 1 / 0"), bind("", "", &[]), execute("", 0)];
    for last in
        ["deallocate all", "discard all", "reset all", "unlisten *", "set hotrow.pack = on", "deallocate x"]
    {
        let unit = step![failing, query("select 1"), query(last), sync()];
        stage.same_but_readies(last, &[unit], 1).await;
    }
}
