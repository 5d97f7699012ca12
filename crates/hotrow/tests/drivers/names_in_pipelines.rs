//! Names of statements and portals in messages that are sent in one go, some of which fail.

use hotrow_testkit::raw::{bind, close, describe, execute, parse, query, sync};

use crate::stage::{Stage, UPDATE, step};

const ONE: &[Option<&str>] = &[Some("1")];

fn run(name: &str, values: &[Option<&str>]) -> Vec<u8> {
    step![bind("", name, values), execute("", 0), sync()]
}

/// Fails and skips what is behind it up to the Sync.
fn fails() -> Vec<u8> {
    execute("nobody", 0)
}

#[tokio::test]
async fn what_an_error_skips_has_no_effect_on_names() {
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
    stage.same("the same again and again", &[step![unit, unit, run("s", ONE), unit, run("s", ONE)]]).await;
    let unnamed = step![parse("", "select 1"), sync(), parse("", "wrong"), sync(), run("", &[])];
    stage.same("an unnamed Parse that fails takes the one before it away", &[unnamed]).await;
}

#[tokio::test]
async fn units_that_fail_before_the_gateway_prepares_what_they_name() {
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
async fn errors_come_in_the_order_of_the_server() {
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

#[tokio::test]
async fn prepare_and_deallocate_by_text_know_the_names_of_the_protocol() {
    let stage = Stage::new().await;
    let prepared = step![parse("s", "select 1"), sync()];
    let extended = |text| step![parse("", text), bind("", "", &[]), execute("", 0), sync()];
    let ask = || step![query("deallocate s"), run("s", &[])];
    for (what, steps) in [
        ("PREPARE of a name that the protocol has", vec![query("prepare s as select 5"), run("s", &[])]),
        ("the same by extended query", vec![extended("prepare s as select 5"), run("s", &[])]),
        (
            "the same, and the name is free again",
            vec![
                query("prepare s as select 5"),
                step![close(b'S', "s"), sync()],
                query("prepare s as select 6"),
                query("execute s"),
            ],
        ),
        ("DEALLOCATE", vec![ask(), ask()]),
        ("DEALLOCATE by extended query", vec![extended("deallocate s"), ask()]),
        (
            "DEALLOCATE twice in one go",
            vec![step![extended("deallocate s"), extended("deallocate s"), ask()]],
        ),
        (
            "DEALLOCATE in a failed transaction",
            vec![
                query("begin"),
                query("select 1 / 0"),
                query("deallocate s"),
                extended("deallocate s"),
                query("rollback"),
                run("s", &[]),
            ],
        ),
        (
            "DEALLOCATE in a transaction that is rolled back",
            vec![query("begin"), query("deallocate s"), query("rollback"), run("s", &[])],
        ),
        (
            "DEALLOCATE behind an error",
            vec![step![
                fails(),
                parse("", "deallocate s"),
                bind("", "", &[]),
                execute("", 0),
                sync(),
                run("s", &[])
            ]],
        ),
        (
            "DEALLOCATE, and the name anew, in one unit",
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
            "DEALLOCATE ALL, and the name anew, in one go",
            vec![step![query("deallocate all"), parse("s", "select 2"), sync(), run("s", &[])]],
        ),
        (
            "DEALLOCATE ALL, and the name anew, in one unit",
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
    ] {
        let steps: Vec<Vec<u8>> = std::iter::once(prepared.clone()).chain(steps).collect();
        stage.same(what, &steps).await;
        let held: Vec<Vec<u8>> =
            std::iter::once(query("select count(*) from t; listen x")).chain(steps).collect();
        stage.same(what, &held).await;
    }
}

#[tokio::test]
async fn no_query_behind_a_failed_pipeline_waits_for_ever() {
    let stage = Stage::new().await;
    let failing = step![parse("", "select 1 / 0"), bind("", "", &[]), execute("", 0)];
    for last in
        ["deallocate all", "discard all", "reset all", "unlisten *", "set hotrow.pack = on", "deallocate x"]
    {
        let unit = step![failing, query("select 1"), query(last), sync()];
        stage.same_but_readies(last, &[unit], 1).await;
    }
}
