//! Sequences of messages that no driver sends: many units without waiting, many statements before one Sync, Flush,
//! portals, startup options. `names.rs` has the tests of names.

use hotrow_testkit::raw::{
    Raw, bind, close, describe, execute, flush, frame, parse, query, startup, sync, tags,
};
use hotrow_testkit::server;

use crate::stage::{READ, RESET, Stage, UPDATE, once, step};

#[tokio::test]
async fn units_sent_without_waiting_are_answered_in_order() {
    let stage = Stage::new().await;
    let ids = ["1", "2", "1", "3", "1", "2", "9", "77"];
    let units: Vec<u8> = ids.iter().flat_map(|id| once(UPDATE, &[Some(id)])).collect();
    stage.same("many units", &[units]).await;
    let mixed = ids
        .iter()
        .flat_map(|id| [once(UPDATE, &[Some(id)]), once(READ, &[Some(id)]), query("select sum(n) from t")]);
    stage.same("reads, writes and others", &[mixed.collect::<Vec<_>>().concat()]).await;
    assert!(stage.packed() > 8, "{}", stage.packed());

    let failing: Vec<_> =
        ["1", "x", "2", "1", "99999999999"].iter().map(|id| once(UPDATE, &[Some(id)])).collect();
    stage.same("some fail", &[failing.concat()]).await;
    let simple: Vec<_> = (0..20)
        .map(|n| query(&format!("update t set n = n + {n} where id = {} returning n", 1 + n % 3)))
        .collect();
    stage.same("simple queries without waiting", &[simple.concat()]).await;
    let over: Vec<_> = (0..8).map(|_| query("update t set n = n + 30 where id = 1 returning n")).collect();
    let replies = stage.same("simple queries of which some fail", &[over.concat()]).await;
    assert_eq!(replies.iter().filter(|message| message.tag == b'E').count(), 5);
    stage.same("Sync alone", &[step![sync(), sync(), sync()]]).await;
    let syncs =
        step![once(UPDATE, &[Some("1")]), sync(), once(UPDATE, &[Some("1")]), sync(), query(""), sync()];
    stage.same("Syncs in between", &[syncs]).await;
}

#[tokio::test]
async fn statements_up_to_one_sync_are_one_transaction() {
    let stage = Stage::new().await;
    let step = |id: &str| [bind("", "s", &[Some(id)]), execute("", 0)].concat();
    let good = step![parse("s", UPDATE), step("1"), step("2"), step("1"), sync()];
    stage.same("several", &[good]).await;
    let bad = step![parse("s", UPDATE), step("1"), step("x"), step("2"), sync(), step("3"), sync()];
    let replies = stage.same("one fails", &[bad]).await;
    assert_eq!(tags(&replies), "12DCEZ2DCZTDCZ");
    let mixed = step![
        parse("s", UPDATE),
        step("1"),
        parse("", "select 1 / 0"),
        bind("", "", &[]),
        execute("", 0),
        step("2"),
        sync(),
    ];
    stage.same("another fails", &[mixed]).await;
    let block = [
        step![once("begin", &[])],
        step![parse("s", UPDATE), step("1"), sync(), step("x"), sync(), step("2"), sync()],
        step![once("rollback", &[]), step("4"), sync()],
    ];
    stage.same("in a transaction block that fails", &block).await;
    stage
        .same(
            "Query in the middle",
            &[step![parse("s", UPDATE), step("1"), query("select sum(n) from t"), step("2"), sync()]],
        )
        .await;
    stage
        .same(
            "a failing Query in the middle",
            &[step![parse("s", UPDATE), step("1"), query("select 1 / 0"), step("2"), sync()]],
        )
        .await;
}

#[tokio::test]
async fn flush_returns_replies_before_the_sync() {
    let stage = Stage::new().await;
    for text in [READ, UPDATE] {
        let mut replies = Vec::new();
        for port in [server().port(), stage.gateway.port()] {
            stage.direct.batch_execute(RESET).await.unwrap();
            let mut raw = stage.raw(port).await;
            let mut all = Vec::new();
            for (frames, count) in [
                (step![parse("s", text), describe(b'S', "s"), flush()], 3),
                (step![bind("", "s", &[Some("1")]), execute("", 1), flush()], 3),
                (sync(), 1),
                (step![flush(), bind("", "s", &[Some("1")]), execute("", 0), flush(), sync()], 4),
            ] {
                raw.send(&frames).await;
                for _ in 0..count {
                    all.push(raw.message().await.unwrap());
                }
            }
            replies.push(all);
        }
        assert_eq!(replies[1], replies[0], "{text}");
    }
    stage.same("Flush alone", &[step![flush(), flush(), query("select 1")]]).await;
}

#[tokio::test]
async fn portals_are_suspended_and_continued() {
    let stage = Stage::new().await;
    let rows = "select * from generate_series(1, 5)";
    let pieces = step![
        parse("", rows),
        bind("", "", &[]),
        execute("", 2),
        execute("", 2),
        execute("", 2),
        execute("", 2),
        sync(),
    ];
    assert_eq!(tags(&stage.same("pieces", &[pieces]).await), "12DDsDDsDCCZTDCZ");
    let named = [
        step![query("begin")],
        step![
            parse("s", rows),
            bind("a", "s", &[]),
            bind("b", "s", &[]),
            execute("a", 1),
            execute("b", 3),
            sync(),
        ],
        step![
            execute("a", 2),
            describe(b'P', "b"),
            execute("b", 0),
            close(b'P', "a"),
            sync(),
            execute("a", 0),
            sync(),
        ],
        step![query("rollback")],
    ];
    stage.same("named portals across Syncs of a transaction", &named).await;
    stage
        .same(
            "a named portal does not outlive its transaction",
            &[step![parse("", rows), bind("a", "", &[]), execute("a", 1), sync(), execute("a", 1), sync()]],
        )
        .await;
    stage
        .same(
            "a row limit on a point read",
            &[step![parse("", READ), bind("", "", &[Some("1")]), execute("", 1), sync()]],
        )
        .await;
    stage
        .same(
            "a row limit on an update",
            &[step![parse("", UPDATE), bind("", "", &[Some("1")]), execute("", 1), execute("", 1), sync()]],
        )
        .await;
    stage
        .same(
            "a portal bound twice",
            &[step![parse("", rows), bind("a", "", &[]), bind("a", "", &[]), sync()]],
        )
        .await;
}

#[tokio::test]
async fn newer_versions_and_options_are_negotiated() {
    let stage = Stage::new().await;
    let user = [("user", "postgres"), ("database", "postgres")];
    for (version, parameters) in [
        (0x0003_0002, vec![]),
        (0x0003_0001, vec![("_pq_.feature", "on"), ("_pq_.other", "")]),
        (0x0003_0000, vec![("_pq_.feature", "on")]),
    ] {
        let mut negotiated = Vec::new();
        for port in [server().port(), stage.gateway.port()] {
            let mut raw = Raw::open(port).await;
            raw.send(&startup(version, &[&user[..], &parameters].concat())).await;
            let replies = raw.until_ready(1).await;
            negotiated.push(replies[0].clone());
            assert_eq!(tags(&raw.query("select 1").await), "TDCZ");
        }
        let (direct, through) = (&negotiated[0], &negotiated[1]);
        assert_eq!((through.tag, &through.body[..4]), (b'v', &0x0003_0000_u32.to_be_bytes()[..]));
        // From PostgreSQL 18 on, the server accepts a newer version itself.
        if direct.tag == b'v' {
            assert_eq!(through.body[4..], direct.body[4..], "{version:x} {parameters:?}");
        } else {
            assert!(version > 0x0003_0000 && parameters.is_empty(), "{version:x}: {direct:?}");
        }
    }
}

#[tokio::test]
async fn startup_replies_are_those_of_the_server() {
    let stage = Stage::new().await;
    let parameters = [("application_name", "greeter"), ("DateStyle", "German"), ("TimeZone", "Asia/Tokyo")];
    let (_, mut directly) = Raw::login_with(server().port(), &parameters).await;
    let (mut raw, mut through) = Raw::login_with(stage.gateway.port(), &parameters).await;
    for greeting in [&mut directly, &mut through] {
        greeting.retain(|message| message.tag != b'K');
        greeting.sort_by_key(|message| (message.tag, message.body.clone()));
    }
    assert_eq!(through, directly);
    let replies = raw
        .query("select date '2024-01-31', current_setting('TimeZone'), current_setting('application_name')")
        .await;
    let values: Vec<_> =
        replies[1].values().into_iter().map(|value| String::from_utf8(value.unwrap()).unwrap()).collect();
    assert_eq!(values, ["31.01.2024", "Asia/Tokyo", "greeter"]);
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn more_units_than_the_session_queues_are_answered_too() {
    let stage = Stage::new().await;
    let many: Vec<u8> = (0..2_500)
        .flat_map(|n| {
            let id = (1 + n % 9).to_string();
            once(if n % 10 == 0 { UPDATE } else { READ }, &[Some(&id)])
        })
        .collect();
    stage.same("2,500 units", &[many]).await;
    assert!(stage.packed() >= 2_500, "{}", stage.packed());
}

#[tokio::test]
async fn functions_are_called_by_oid() {
    let stage = Stage::new().await;
    // abs(int4) has OID 1397. The call has no format codes, one value of two bytes of text, and a text result.
    let call = |value: &[u8]| {
        let body = [&1397_u32.to_be_bytes()[..], b"\0\0\0\x01\0\0\0\x02", value, b"\0\0"].concat();
        frame(b'F', &body)
    };
    stage.same("FunctionCall", &[step![call(b"-7"), call(b"xx")], call(b"-8")]).await;
    let mixed = step![once(UPDATE, &[Some("1")]), call(b"-9"), once(UPDATE, &[Some("1")])];
    stage.same("FunctionCall between others", &[mixed]).await;
}
