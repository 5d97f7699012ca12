//! Messages in orders that no driver sends, to the server and to the gateway: the answers must be the same, byte for
//! byte. A script is a list of steps; a step is sent in one go, and answered by so many ReadyForQuery.

use tokio_postgres::Client;

use crate::support::raw::{
    Message, Raw, bind, close, describe, execute, flush, frame, parse, query, startup, sync, tags,
};
use crate::support::{Gateway, new_schema, server, value};

const RESET: &str = "drop table if exists r; truncate t; insert into t select id, 0, 'row ' || id from generate_series(1, 9) id";
const UPDATE: &str = "update t set n = n + 1 where id = $1 returning id, n";
const READ: &str = "select n, label from t where id = $1";

/// A table in a schema of its own, and a gateway in front of it.
struct Stage {
    gateway: Gateway,
    schema: String,
    direct: Client,
}

impl Stage {
    async fn new() -> Self {
        let (schema, direct) = new_schema().await;
        let table = "create table t (id int primary key, n int not null check (n < 100), label text)";
        direct.batch_execute(table).await.unwrap();
        Self { gateway: Gateway::start(&[]), schema, direct }
    }

    async fn raw(&self, port: u16) -> Raw {
        Raw::log_in(port, &[("options", &format!("-c search_path={}", self.schema))]).await
    }

    /// Runs the script directly and through the gateway; what was said, if it was the same.
    async fn same(&self, what: &str, script: &[(Vec<Vec<u8>>, usize)]) -> Vec<Message> {
        let mut said = Vec::new();
        for port in [server().port(), self.gateway.port()] {
            self.direct.batch_execute(RESET).await.unwrap();
            let mut raw = self.raw(port).await;
            let mut all = Vec::new();
            for (frames, readies) in script {
                raw.send(&frames.concat()).await;
                all.extend(raw.until_ready(*readies).await);
            }
            raw.send(&query("select 'still here'")).await;
            all.extend(raw.until_ready(1).await);
            let state = value(&self.direct, "select string_agg(t::text, ' ' order by id) from t").await;
            said.push((all, state));
        }
        let (through, directly) = (said.pop().unwrap(), said.pop().unwrap());
        assert_eq!(
            tags(&through.0),
            tags(&directly.0),
            "{what}: {:?} instead of {:?}",
            through.0,
            directly.0
        );
        for (through, directly) in through.0.iter().zip(&directly.0) {
            assert_eq!(through, directly, "{what}");
        }
        assert_eq!(through.1, directly.1, "{what}: what the table holds afterwards");
        through.0
    }

    fn packed(&self) -> u64 {
        self.gateway.metric("packed_units_total") + self.gateway.metric("packed_reads_total")
    }
}

/// One statement as most drivers send it.
fn once(text: &str, values: &[Option<&str>]) -> Vec<u8> {
    [parse("", text), bind("", "", values), describe(b'P', ""), execute("", 0), sync()].concat()
}

#[tokio::test]
async fn units_sent_without_waiting_are_answered_in_their_order() {
    let stage = Stage::new().await;
    let ids = ["1", "2", "1", "3", "1", "2", "9", "77"];
    let units = ids.iter().map(|id| once(UPDATE, &[Some(id)])).collect();
    stage.same("many units", &[(units, ids.len())]).await;
    let mixed = ids
        .iter()
        .flat_map(|id| [once(UPDATE, &[Some(id)]), once(READ, &[Some(id)]), query("select sum(n) from t")]);
    stage.same("reads, writes and others", &[(mixed.collect(), 3 * ids.len())]).await;
    assert!(stage.packed() > 8, "{}", stage.packed());

    let failing = ["1", "x", "2", "1", "99999999999"].iter().map(|id| once(UPDATE, &[Some(id)])).collect();
    stage.same("some fail", &[(failing, 5)]).await;
    let simple = (0..20)
        .map(|n| query(&format!("update t set n = n + {n} where id = {} returning n", 1 + n % 3)))
        .collect();
    stage.same("simple queries without waiting", &[(simple, 20)]).await;
    let over = (0..8).map(|_| query("update t set n = n + 30 where id = 1 returning n")).collect();
    let said = stage.same("simple queries of which some fail", &[(over, 8)]).await;
    assert_eq!(said.iter().filter(|message| message.tag == b'E').count(), 5);
    stage.same("Sync alone", &[(vec![sync(), sync(), sync()], 3)]).await;
    let syncs =
        vec![once(UPDATE, &[Some("1")]), sync(), once(UPDATE, &[Some("1")]), sync(), query(""), sync()];
    stage.same("Syncs in between", &[(syncs, 6)]).await;
}

#[tokio::test]
async fn statements_up_to_one_sync_are_one_transaction() {
    let stage = Stage::new().await;
    let step = |id: &str| [bind("", "s", &[Some(id)]), execute("", 0)].concat();
    let good = vec![parse("s", UPDATE), step("1"), step("2"), step("1"), sync()];
    stage.same("several", &[(good, 1)]).await;
    let bad = vec![parse("s", UPDATE), step("1"), step("x"), step("2"), sync(), step("3"), sync()];
    let said = stage.same("one fails", &[(bad, 2)]).await;
    assert_eq!(tags(&said), "12DCEZ2DCZTDCZ");
    let mixed = vec![
        parse("s", UPDATE),
        step("1"),
        parse("", "select 1 / 0"),
        bind("", "", &[]),
        execute("", 0),
        step("2"),
        sync(),
    ];
    stage.same("another fails", &[(mixed, 1)]).await;
    let block = vec![
        (vec![once("begin", &[])], 1),
        (vec![parse("s", UPDATE), step("1"), sync(), step("x"), sync(), step("2"), sync()], 3),
        (vec![once("rollback", &[]), step("4"), sync()], 2),
    ];
    stage.same("in a transaction block that fails", &block).await;
    stage
        .same(
            "Query in the middle",
            &[(vec![parse("s", UPDATE), step("1"), query("select sum(n) from t"), step("2"), sync()], 2)],
        )
        .await;
    stage
        .same(
            "a failing Query in the middle",
            &[(vec![parse("s", UPDATE), step("1"), query("select 1 / 0"), step("2"), sync()], 2)],
        )
        .await;
}

#[tokio::test]
async fn everything_that_may_stand_around_an_execute() {
    let stage = Stage::new().await;
    let one = [Some("1")];
    stage
        .same(
            "Parse alone",
            &[(vec![parse("s", UPDATE), sync()], 1), (vec![bind("", "s", &one), execute("", 0), sync()], 1)],
        )
        .await;
    stage.same("Parse and Describe", &[(vec![parse("s", READ), describe(b'S', "s"), sync()], 1)]).await;
    stage
        .same(
            "Describe of what is there",
            &[(vec![parse("s", READ), sync(), describe(b'S', "s"), sync()], 2)],
        )
        .await;
    stage
        .same(
            "Describe of both",
            &[(
                vec![
                    parse("s", UPDATE),
                    describe(b'S', "s"),
                    bind("", "s", &one),
                    describe(b'P', ""),
                    execute("", 0),
                    sync(),
                ],
                1,
            )],
        )
        .await;
    stage.same("Bind without Execute", &[(vec![parse("s", UPDATE), bind("", "s", &one), sync()], 1)]).await;
    stage
        .same(
            "Bind and Describe",
            &[(vec![parse("", READ), bind("", "", &one), describe(b'P', ""), sync()], 1)],
        )
        .await;
    stage
        .same(
            "Close before and behind",
            &[(
                vec![
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
                ],
                2,
            )],
        )
        .await;
    stage
        .same(
            "Close of nothing",
            &[(vec![close(b'S', "nobody"), close(b'P', "nobody"), close(b'S', ""), sync()], 1)],
        )
        .await;
    stage
        .same(
            "Close, then the name anew",
            &[
                (
                    vec![
                        parse("s", UPDATE),
                        close(b'S', "s"),
                        parse("s", READ),
                        bind("", "s", &one),
                        execute("", 0),
                        sync(),
                    ],
                    1,
                ),
                (vec![bind("", "s", &one), execute("", 0), sync()], 1),
            ],
        )
        .await;
    stage.same("the empty query", &[(vec![once("", &[]), query(""), once(" -- nothing", &[])], 3)]).await;
    stage
        .same(
            "no rows come back",
            &[(
                vec![
                    once("update t set n = n + 1 where id = $1", &one),
                    once("delete from t where id = $1", &one),
                ],
                2,
            )],
        )
        .await;
    stage
        .same(
            "Execute twice",
            &[(vec![parse("", UPDATE), bind("", "", &one), execute("", 0), execute("", 0), sync()], 1)],
        )
        .await;
    stage
        .same(
            "Execute of nothing",
            &[(vec![execute("", 0), sync(), execute("nobody", 0), sync(), describe(b'P', ""), sync()], 3)],
        )
        .await;
    let binary = frame(b'B', &[&b"\0\0\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x02\0\x01\0\x01"[..]].concat());
    stage.same("binary in and out", &[(vec![parse("", UPDATE), binary, execute("", 0), sync()], 1)]).await;
    stage
        .same(
            "a wrong number of values",
            &[(
                vec![
                    parse("", UPDATE),
                    bind("", "", &[]),
                    execute("", 0),
                    sync(),
                    once(UPDATE, &[Some("1"), Some("2")]),
                ],
                2,
            )],
        )
        .await;
    stage.same("NULL as the key", &[(vec![once(UPDATE, &[None]), once(READ, &[None])], 2)]).await;
    stage
        .same(
            "text that can't be parsed",
            &[(
                vec![
                    once("updat t", &[]),
                    once(UPDATE, &one),
                    query("updat t"),
                    once("update t set n = $1 where id = $7", &[]),
                ],
                4,
            )],
        )
        .await;
    stage
        .same("two commands in a Parse", &[(vec![once("select 1; select 2", &[]), once(UPDATE, &one)], 2)])
        .await;
}

#[tokio::test]
async fn flush_brings_answers_before_the_sync() {
    let stage = Stage::new().await;
    for text in [READ, UPDATE] {
        let mut said = Vec::new();
        for port in [server().port(), stage.gateway.port()] {
            stage.direct.batch_execute(RESET).await.unwrap();
            let mut raw = stage.raw(port).await;
            let mut all = Vec::new();
            for (frames, count) in [
                (vec![parse("s", text), describe(b'S', "s"), flush()], 3),
                (vec![bind("", "s", &[Some("1")]), execute("", 1), flush()], 3),
                (vec![sync()], 1),
                (vec![flush(), bind("", "s", &[Some("1")]), execute("", 0), flush(), sync()], 4),
            ] {
                raw.send(&frames.concat()).await;
                for _ in 0..count {
                    all.push(raw.message().await.unwrap());
                }
            }
            said.push(all);
        }
        assert_eq!(said[1], said[0], "{text}");
    }
    stage.same("Flush alone", &[(vec![flush(), flush(), query("select 1")], 1)]).await;
}

#[tokio::test]
async fn portals_are_suspended_and_go_on() {
    let stage = Stage::new().await;
    let rows = "select * from generate_series(1, 5)";
    let pieces = vec![
        parse("", rows),
        bind("", "", &[]),
        execute("", 2),
        execute("", 2),
        execute("", 2),
        execute("", 2),
        sync(),
    ];
    assert_eq!(tags(&stage.same("pieces", &[(pieces, 1)]).await), "12DDsDDsDCCZTDCZ");
    let named = vec![
        (vec![query("begin")], 1),
        (
            vec![
                parse("s", rows),
                bind("a", "s", &[]),
                bind("b", "s", &[]),
                execute("a", 1),
                execute("b", 3),
                sync(),
            ],
            1,
        ),
        (
            vec![
                execute("a", 2),
                describe(b'P', "b"),
                execute("b", 0),
                close(b'P', "a"),
                sync(),
                execute("a", 0),
                sync(),
            ],
            2,
        ),
        (vec![query("rollback")], 1),
    ];
    stage.same("named portals across Syncs of a transaction", &named).await;
    stage
        .same(
            "a named portal does not outlive its transaction",
            &[(
                vec![parse("", rows), bind("a", "", &[]), execute("a", 1), sync(), execute("a", 1), sync()],
                2,
            )],
        )
        .await;
    stage
        .same(
            "a row limit on a point read",
            &[(vec![parse("", READ), bind("", "", &[Some("1")]), execute("", 1), sync()], 1)],
        )
        .await;
    stage
        .same(
            "a row limit on an update",
            &[(
                vec![parse("", UPDATE), bind("", "", &[Some("1")]), execute("", 1), execute("", 1), sync()],
                1,
            )],
        )
        .await;
    stage
        .same(
            "a portal bound twice",
            &[(vec![parse("", rows), bind("a", "", &[]), bind("a", "", &[]), sync()], 1)],
        )
        .await;
}

#[tokio::test]
async fn names_that_are_taken_or_unknown() {
    let stage = Stage::new().await;
    let one = [Some("1")];
    let said = stage
        .same(
            "a name twice",
            &[(
                vec![
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
                ],
                3,
            )],
        )
        .await;
    let error = said.iter().find(|message| message.tag == b'E').unwrap();
    assert_eq!(error.field(b'C').unwrap(), "42P05");
    assert_eq!(error.field(b'M').unwrap(), "prepared statement \"s\" already exists");
    stage
        .same(
            "a name twice, passed through",
            &[
                (
                    vec![
                        query("begin"),
                        parse("s", UPDATE),
                        sync(),
                        parse("s", UPDATE),
                        sync(),
                        query("rollback"),
                    ],
                    4,
                ),
                (vec![bind("", "s", &one), execute("", 0), sync()], 1),
            ],
        )
        .await;
    stage
        .same(
            "a name twice in one unit",
            &[(
                vec![
                    parse("s", UPDATE),
                    parse("s", UPDATE),
                    sync(),
                    bind("", "s", &one),
                    execute("", 0),
                    sync(),
                ],
                2,
            )],
        )
        .await;
    let said = stage
        .same(
            "a name that nobody gave",
            &[(
                vec![
                    bind("", "nobody", &one),
                    execute("", 0),
                    sync(),
                    describe(b'S', "nobody"),
                    sync(),
                    bind("", "", &[]),
                    sync(),
                ],
                3,
            )],
        )
        .await;
    assert_eq!(said[0].field(b'C').unwrap(), "26000");
    stage
        .same(
            "a name whose Parse has failed",
            &[(
                vec![
                    parse("s", "updat t"),
                    sync(),
                    bind("", "s", &[]),
                    execute("", 0),
                    sync(),
                    parse("s", UPDATE),
                    bind("", "s", &one),
                    execute("", 0),
                    sync(),
                ],
                3,
            )],
        )
        .await;
    stage
        .same(
            "a Parse skipped behind an error",
            &[(
                vec![
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
                ],
                4,
            )],
        )
        .await;
    stage
        .same(
            "a name whose first use fails",
            &[(
                vec![
                    parse("s", UPDATE),
                    bind("", "s", &[Some("x")]),
                    execute("", 0),
                    sync(),
                    bind("", "s", &one),
                    execute("", 0),
                    sync(),
                ],
                2,
            )],
        )
        .await;
    stage
        .same(
            "a table that is not there yet",
            &[(
                vec![
                    parse("s", "update r set a = 1 where id = 1"),
                    bind("", "s", &[]),
                    execute("", 0),
                    sync(),
                    parse("s", UPDATE),
                    bind("", "s", &one),
                    execute("", 0),
                    sync(),
                ],
                2,
            )],
        )
        .await;
    stage
        .same(
            "PREPARE, EXECUTE and DEALLOCATE by text",
            &[(
                vec![
                    query("prepare s as select 1"),
                    bind("", "s", &[]),
                    execute("", 0),
                    sync(),
                    query("execute s"),
                    query("deallocate s"),
                    query("execute s"),
                ],
                5,
            )],
        )
        .await;
    stage
        .same(
            "DEALLOCATE of a statement that was parsed",
            &[(
                vec![
                    parse("s", UPDATE),
                    sync(),
                    query("deallocate s"),
                    bind("", "s", &one),
                    execute("", 0),
                    sync(),
                    query("deallocate nobody"),
                    query("deallocate all"),
                ],
                5,
            )],
        )
        .await;
}

#[tokio::test]
async fn the_unnamed_statement_lives_until_the_next_one() {
    let stage = Stage::new().await;
    let one = [Some("1")];
    let again = || vec![bind("", "", &one), execute("", 0), sync()];
    stage.same("used again", &[(vec![parse("", UPDATE), sync()], 1), (again(), 1), (again(), 1)]).await;
    let between = vec![once(UPDATE, &one), once(READ, &one), [again(), again()].concat().concat()];
    stage.same("the last one counts", &[(between, 4)]).await;
    stage
        .same(
            "after a commit of something else",
            &[
                (vec![parse("", UPDATE), sync(), query("begin")], 2),
                ([again(), vec![query("commit")], again()].concat(), 3),
            ],
        )
        .await;
    stage
        .same(
            "a simple query takes it away",
            &[(vec![parse("", UPDATE), sync(), query("select 1")], 2), (again(), 1)],
        )
        .await;
    stage
        .same(
            "a simple update takes it away",
            &[
                (vec![parse("", UPDATE), sync(), query("update t set n = n + 1 where id = 2")], 2),
                (again(), 1),
            ],
        )
        .await;
    stage
        .same("Close takes it away", &[(vec![parse("", UPDATE), close(b'S', ""), sync()], 1), (again(), 1)])
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
            let said = raw.until_ready(1).await;
            negotiated.push(said[0].clone());
            assert_eq!(tags(&raw.query("select 1").await), "TDCZ");
        }
        assert_eq!(negotiated[0].tag, b'v');
        assert_eq!(negotiated[1], negotiated[0], "{version:x} {parameters:?}");
    }
}

#[tokio::test]
async fn the_greeting_is_the_servers() {
    let stage = Stage::new().await;
    let parameters = [("application_name", "greeter"), ("DateStyle", "German"), ("TimeZone", "Asia/Tokyo")];
    let (_, mut directly) = Raw::log_in_with(server().port(), &parameters).await;
    let (mut raw, mut through) = Raw::log_in_with(stage.gateway.port(), &parameters).await;
    for greeting in [&mut directly, &mut through] {
        greeting.retain(|message| message.tag != b'K');
        greeting.sort_by_key(|message| (message.tag, message.body.clone()));
    }
    assert_eq!(through, directly);
    let said = raw
        .query("select date '2024-01-31', current_setting('TimeZone'), current_setting('application_name')")
        .await;
    let values: Vec<_> =
        said[1].values().into_iter().map(|value| String::from_utf8(value.unwrap()).unwrap()).collect();
    assert_eq!(values, ["31.01.2024", "Asia/Tokyo", "greeter"]);
}
