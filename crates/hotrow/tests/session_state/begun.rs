//! Transactions whose statements arrive one by one: BEGIN needs no connection, and transactions that begin with work on
//! the same row wait in the gateway for each other.

use std::time::Instant;

use hotrow_core::limits;
use hotrow_testkit::raw::{Message, Raw, bind, close, describe, execute, parse, query, sync, tags};
use hotrow_testkit::{rows, server, sqlstate, until, value};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use crate::{Stage, UPDATE};

/// The gateway's login to the stage's schema, for the server's view of its transactions.
const OPEN: &str = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'begun' and xact_start is not null";
const BLOCKED: &str = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'begun' and wait_event_type = 'Lock'";

/// A stage whose server looks for deadlocks after this time.
async fn stage(deadlock_timeout: &str) -> Stage {
    let stage = Stage::alone(&[]).await;
    let set = format!("alter database {} set deadlock_timeout = '{deadlock_timeout}'", stage.database);
    stage.direct.batch_execute(&set).await.unwrap();
    stage
}

async fn client(stage: &Stage) -> Client {
    stage.named("begun").await
}

async fn begin(stage: &Stage) -> Client {
    let client = client(stage).await;
    client.batch_execute("begin").await.unwrap();
    client
}

/// A transaction that has updated the hot row to this value.
async fn at_work(stage: &Stage, expected: i32) -> Client {
    let client = begin(stage).await;
    assert_eq!(value(&client, UPDATE).await, expected.to_string());
    client
}

/// The same, and a transaction that waits for it at the server. More of them wait in the gateway.
async fn contended(stage: &Stage, expected: i32) -> (Client, Update) {
    let first = at_work(stage, expected).await;
    let second = update(begin(stage).await);
    blocked(stage, 1).await;
    (first, second)
}

/// Updates the hot row in the background. Returns the row's new value.
fn update(client: Client) -> Update {
    first(client, UPDATE)
}

/// Runs a transaction's first statement in the background.
fn first(client: Client, sql: &'static str) -> Update {
    tokio::spawn(async move {
        let updated = rows(&client, sql).await.map(|rows| rows[0][0].clone().unwrap());
        (client, updated)
    })
}

type Update = JoinHandle<(Client, Result<String, tokio_postgres::Error>)>;

/// Commits each of these transactions as soon as it has updated the row. Returns the values, sorted: the server may
/// prefer a transaction that has just arrived to one that waits.
async fn committed(tasks: Vec<Update>) -> Vec<i32> {
    let commits = tasks.into_iter().map(|task| async {
        let (client, updated) = task.await.unwrap();
        client.batch_execute("commit").await.unwrap();
        updated.unwrap().parse().unwrap()
    });
    let mut values = futures_util::future::join_all(commits).await;
    values.sort_unstable();
    values
}

async fn waits(stage: &Stage, count: u64) {
    until("transactions wait in the gateway", async || stage.gateway.metric("row_waits") == count).await;
}

/// Waits until this many of the stage's transactions wait for a lock at the server.
async fn blocked(stage: &Stage, count: usize) {
    until("transactions wait at the server", async || {
        value(&stage.direct, BLOCKED).await == count.to_string()
    })
    .await;
}

#[tokio::test]
async fn a_transaction_without_statements_needs_no_connection() {
    let stage = Stage::alone(&["--held-connections-max", "1"]).await;
    let others = [begin(&stage).await, begin(&stage).await];
    let client = client(&stage).await;
    for (begin, end) in [
        ("begin", "commit"),
        ("begin work isolation level repeatable read, read only", "end"),
        ("start transaction not deferrable", "rollback"),
        ("begin isolation level serializable", "commit"),
        ("start transaction read write, isolation level serializable", "rollback"),
    ] {
        client.batch_execute(begin).await.unwrap();
        assert_eq!(value(&stage.direct, OPEN).await, "0", "{begin}");
        client.batch_execute(end).await.unwrap();
    }
    client.batch_execute("begin isolation level repeatable read read only").await.unwrap();
    assert_eq!(value(&client, "show transaction_isolation").await, "repeatable read");
    assert_eq!(value(&client, "show transaction_read_only").await, "on");
    assert_eq!(sqlstate(&client.simple_query(UPDATE).await.unwrap_err()), "25006");
    client.batch_execute("rollback").await.unwrap();
    for other in others {
        assert_eq!(value(&other, "select count(*) from t").await, "2");
        other.batch_execute("commit").await.unwrap();
    }
}

/// Directly, most of them fail, because they begin before another one has committed.
#[tokio::test]
async fn serializable_transactions_on_one_row_wait_before_they_begin_at_the_server() {
    const CLIENTS: i32 = 8;
    let stage = stage("60s").await;
    let transactions = (0..CLIENTS).map(|_| async {
        let client = client(&stage).await;
        let mut conflicts = 0;
        loop {
            client.batch_execute("begin isolation level serializable").await.unwrap();
            let done = match client.simple_query(UPDATE).await {
                Ok(_) => client.batch_execute("commit").await,
                Err(error) => Err(error),
            };
            let Err(error) = done else { return conflicts };
            assert_eq!(sqlstate(&error), "40001");
            client.batch_execute("rollback").await.unwrap();
            conflicts += 1;
        }
    });
    let conflicts: i32 = futures_util::future::join_all(transactions).await.iter().sum();
    assert_eq!(value(&stage.direct, "select n from t where id = 1").await, CLIENTS.to_string());
    assert_eq!(conflicts, 0);
}

#[tokio::test]
async fn the_switch_for_packing_is_shown_in_a_transaction_without_statements() {
    let stage = Stage::alone(&[]).await;
    let client = begin(&stage).await;
    for (set, shown) in [("on", "on"), ("off", "off"), ("on", "on")] {
        client.batch_execute(&format!("set hotrow.pack = {set}")).await.unwrap();
        assert_eq!(value(&client, "show hotrow.pack").await, shown);
    }
}

#[tokio::test]
async fn prepared_begins_count_among_a_sessions_statements() {
    const AT_ONCE: usize = 500;
    let stage = Stage::alone(&[]).await;
    let mut raw = Raw::login(stage.gateway.port(), &[("database", &stage.database)]).await;
    let transaction = |number: usize| {
        let name = format!("b{number}");
        [parse(&name, "begin"), bind("", &name, &[]), execute("", 0), sync(), query("commit")].concat()
    };
    for first in (0..limits::CLIENT_STATEMENTS_MAX).step_by(AT_ONCE) {
        let many: Vec<_> = (first..first + AT_ONCE).map(transaction).collect();
        raw.send(&many.concat()).await;
        assert_eq!(tags(&raw.until_ready(2 * AT_ONCE).await), "12CZCZ".repeat(AT_ONCE));
    }
    raw.send(&transaction(limits::CLIENT_STATEMENTS_MAX)).await;
    let end = raw.until_closed().await;
    assert_eq!((tags(&end).as_str(), end[0].field(b'C').as_deref()), ("E", Some("53400")));
}

#[tokio::test]
async fn a_refused_statement_fails_its_transaction() {
    let stage = Stage::alone(&["--held-connections-max", "1", "--held-wait-ms", "200"]).await;
    let (holder, client) = (begin(&stage).await, begin(&stage).await);
    assert_eq!(value(&holder, "select count(*) from t").await, "2");
    for (sql, code) in [("select count(*) from t", "53300"), ("select 1", "25P02"), (UPDATE, "25P02")] {
        assert_eq!(sqlstate(&client.simple_query(sql).await.unwrap_err()), code, "{sql}");
        assert_eq!(sqlstate(&client.query(sql, &[]).await.unwrap_err()), "25P02", "{sql}");
    }
    client.batch_execute("commit").await.unwrap();
    holder.batch_execute("commit").await.unwrap();
    assert!(stage.packs(&client).await, "the transaction is over, and nothing of it has run");
}

/// The verdict about its statement and the statement itself both need a connection.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_refused_statement_has_waited_for_a_connection_once() {
    let stage = Stage::alone(&["--held-connections-max", "1", "--held-wait-ms", "5000"]).await;
    let (holder, client) = (begin(&stage).await, begin(&stage).await);
    assert_eq!(value(&holder, "select count(*) from t").await, "2");
    let since = Instant::now();
    assert_eq!(sqlstate(&client.simple_query("update t set n = 7 where id = 1").await.unwrap_err()), "53300");
    let waited = since.elapsed();
    assert!((4_500..9_500).contains(&waited.as_millis()), "{waited:?}: two waits take ten seconds");
}

#[tokio::test]
async fn a_statement_that_is_prepared_in_its_transaction_waits_for_its_turn() {
    let stage = stage("1min").await;
    let (first, second) = contended(&stage, 1).await;
    let mut tasks = vec![second];
    for count in 1..3 {
        let client = begin(&stage).await;
        let statement = client.prepare("update t set n = n + 1 where id = $1 returning n").await.unwrap();
        assert_eq!(value(&stage.direct, OPEN).await, "2", "the transaction has not begun at the server");
        tasks.push(tokio::spawn(async move {
            let updated = client.query_one(&statement, &[&1]).await;
            (client, updated.map(|row| row.get::<_, i32>(0).to_string()))
        }));
        waits(&stage, count).await;
    }
    first.batch_execute("commit").await.unwrap();
    assert_eq!(committed(tasks).await, [2, 3, 4]);

    let failed = begin(&stage).await;
    assert_eq!(sqlstate(&failed.prepare("select nothing from t").await.unwrap_err()), "42703");
    assert_eq!(sqlstate(&failed.prepare("select 1").await.unwrap_err()), "25P02");
    assert_eq!(sqlstate(&failed.simple_query(UPDATE).await.unwrap_err()), "25P02");
    failed.batch_execute("commit").await.unwrap();
    assert!(stage.packs(&failed).await, "nothing of the transaction has run");
}

/// After a description has failed, only the server knows the error of each later message.
#[tokio::test]
async fn a_transaction_that_fails_before_it_begins_reports_the_errors_of_the_server() {
    let stage = Stage::alone(&[]).await;
    let options = format!("-c search_path={}", stage.schema);
    let startup = [("database", stage.database.as_str()), ("options", options.as_str())];
    let answer = |message: &Message| match message.tag {
        b'E' => message.field(b'C').unwrap(),
        tag => char::from(tag).to_string(),
    };
    let mut answers = Vec::new();
    for port in [server().port(), stage.gateway.port()] {
        let mut raw = Raw::login(port, &startup).await;
        let mut codes = Vec::new();
        for step in [
            query("begin"),
            [describe(b'S', "missing"), sync()].concat(),
            [parse("s", "not sql"), sync()].concat(),
            [parse("s", UPDATE), sync()].concat(),
            [bind("", "missing", &[]), sync()].concat(),
            [execute("missing", 0), sync()].concat(),
            [close(b'S', "missing"), sync()].concat(),
            query("rollback to nothing"),
            query(""),
            query("commit"),
            query(UPDATE),
        ] {
            raw.send(&step).await;
            codes.push(raw.until_ready(1).await.iter().map(answer).collect::<Vec<_>>().join(" "));
        }
        answers.push(codes);
    }
    assert_eq!(answers[1][..10], answers[0][..10]);
    assert_eq!(answers[1][2..5], ["42601 Z", "25P02 Z", "26000 Z"]);
    assert_eq!(value(&stage.direct, "select n from t where id = 1").await, "2", "each update has run once");
}

#[tokio::test]
async fn transactions_of_one_row_wait_in_the_gateway() {
    let stage = stage("1min").await;
    let (first, second) = contended(&stage, 1).await;
    let third = update(begin(&stage).await);
    waits(&stage, 1).await;
    let fourth = update(begin(&stage).await);
    waits(&stage, 2).await;
    assert_eq!(value(&stage.direct, OPEN).await, "2", "the others have not reached the server");
    let other = begin(&stage).await;
    assert_eq!(value(&other, "update t set n = n + 1 where id = 2 returning n").await, "1", "another row");
    other.batch_execute("commit").await.unwrap();

    // The next statements of an open transaction never wait.
    assert_eq!(value(&first, UPDATE).await, "2");
    first.batch_execute("commit").await.unwrap();
    assert_eq!(committed(vec![second, third, fourth]).await, [3, 4, 5]);
    assert_eq!(stage.gateway.metric("row_waits"), 0);
}

#[tokio::test]
async fn a_select_that_locks_a_row_has_its_place_among_the_others() {
    let stage = stage("1min").await;
    let holder = begin(&stage).await;
    assert_eq!(value(&holder, "select n from t where id = 1 for no key update").await, "0");
    let mut tasks = vec![update(begin(&stage).await)];
    blocked(&stage, 1).await;
    let selects = [
        "select n from t where id = 1 for update",
        "select * from t where t.id = 1 order by id limit 1 for update of t",
        "select n from t as x where ((x.id = 1)) for no key update of x",
    ];
    for (number, sql) in selects.into_iter().enumerate() {
        tasks.push(first(begin(&stage).await, sql));
        waits(&stage, number as u64 + 1).await;
    }
    // These never wait at the server either.
    let impatient = begin(&stage).await;
    let nowait = impatient.simple_query("select n from t where id = 1 for update nowait").await;
    assert_eq!(sqlstate(&nowait.unwrap_err()), "55P03");
    impatient.batch_execute("rollback; begin").await.unwrap();
    let skips = rows(&impatient, "select n from t where id = 1 for update skip locked").await.unwrap();
    assert!(skips.is_empty());
    holder.batch_execute("commit").await.unwrap();
    committed(tasks).await;
}

#[tokio::test]
async fn a_transaction_that_ends_in_any_way_lets_the_next_one_work() {
    let stage = stage("1min").await;
    for round in 0..3 {
        let (first, second) = contended(&stage, 2 * round + 1).await;
        let third = update(begin(&stage).await);
        waits(&stage, 1).await;
        match round {
            0 => drop(first),
            1 => first.batch_execute("rollback").await.unwrap(),
            _ => {
                let terminate = "select pg_terminate_backend(pid) from pg_stat_activity
                    where datname = current_database() and application_name = 'begun'
                    and state = 'idle in transaction'";
                value(&stage.direct, terminate).await;
            }
        }
        assert_eq!(committed(vec![second, third]).await, [2 * round + 1, 2 * round + 2], "{round}");
    }
}

#[tokio::test]
async fn an_abandoned_transaction_holds_nobody_in_the_gateway() {
    let stage = stage("1s").await;
    let first = at_work(&stage, 1).await;
    let mut tasks = Vec::new();
    for _ in 0..4 {
        tasks.push(update(begin(&stage).await));
    }
    // Nobody commits for the server's deadlock_timeout.
    blocked(&stage, 4).await;
    tasks.push(update(begin(&stage).await));
    blocked(&stage, 5).await;
    first.batch_execute("commit").await.unwrap();
    assert_eq!(committed(tasks).await, [2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn a_transaction_that_waits_in_the_gateway_can_be_cancelled() {
    let stage = stage("1min").await;
    let (first, second) = contended(&stage, 1).await;
    let third = begin(&stage).await;
    let token = third.cancel_token();
    let third = update(third);
    waits(&stage, 1).await;
    token.cancel_query(NoTls).await.unwrap();
    let (third, updated) = third.await.unwrap();
    assert_eq!(sqlstate(&updated.unwrap_err()), "57014");
    assert_eq!(sqlstate(&third.simple_query("select 1").await.unwrap_err()), "25P02");
    third.batch_execute("rollback").await.unwrap();
    first.batch_execute("commit").await.unwrap();
    let (second, updated) = second.await.unwrap();
    assert_eq!(updated.unwrap(), "2");
    second.batch_execute("commit").await.unwrap();
    assert!(stage.packs(&third).await);
}

#[tokio::test]
async fn a_transaction_that_was_cancelled_in_the_gateway_can_be_chained() {
    let stage = stage("1min").await;
    let _contended = contended(&stage, 1).await;
    let third = begin(&stage).await;
    let token = third.cancel_token();
    let third = update(third);
    waits(&stage, 1).await;
    token.cancel_query(NoTls).await.unwrap();
    let (third, _) = third.await.unwrap();
    third.batch_execute("commit and chain").await.unwrap();
    third.batch_execute("savepoint a").await.unwrap(); // only in a transaction
    third.batch_execute("rollback").await.unwrap();
}

/// Modes that a BEGIN names are lost if its transaction fails, and those that AND CHAIN has passed on are not.
#[tokio::test]
async fn chained_transactions_have_the_modes_that_they_have_directly() {
    let stage = stage("1min").await;
    let modes = "select concat(current_setting('transaction_isolation'), ' ', current_setting('transaction_read_only'))";
    for begin in [
        "begin",
        "begin read only",
        "begin isolation level serializable, read only",
        "begin isolation level repeatable read",
    ] {
        for before in ["", "commit and chain", "rollback and chain"] {
            for failing in ["", "select 1", "select 1 / 0"] {
                for chain in ["commit and chain", "rollback and chain"] {
                    let client = client(&stage).await;
                    let mut seen = Vec::new();
                    for on in [&stage.direct, &client] {
                        for sql in [begin, before, failing, chain] {
                            let _ = on.simple_query(sql).await; // some fail
                        }
                        seen.push(value(on, modes).await);
                        on.batch_execute("rollback").await.unwrap();
                    }
                    assert_eq!(seen[0], seen[1], "{begin}; {before}; {failing}; {chain}");
                }
            }
        }
    }
}

/// The server releases the locks of a transaction that fails, and of one that another follows by AND CHAIN.
#[tokio::test]
async fn a_transaction_without_locks_has_no_place() {
    for end in ["select 1 / 0", "commit and chain"] {
        let stage = stage("1min").await;
        let mut open = Vec::new();
        for _ in 0..4 {
            let client = begin(&stage).await;
            client.batch_execute(UPDATE).await.unwrap();
            let _ = client.batch_execute(end).await;
            open.push(client);
        }
        assert_eq!(stage.gateway.metric("row_waits"), 0, "{end}");
    }
}

/// A transaction that updates a row of its own, then the hot one.
async fn late(client: &Client, number: u32) {
    let own = format!("update others set n = n + 1 where id = {number}");
    for sql in ["begin", &own, UPDATE, "commit"] {
        client.batch_execute(sql).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn transactions_that_meet_on_a_row_later_wait_in_the_gateway() {
    let stage = stage("1min").await;
    let others = "create table others (id int primary key, n int); insert into others select generate_series(1, 99), 0";
    stage.direct.batch_execute(others).await.unwrap();
    let mut tasks = Vec::new();
    for number in 1..33 {
        let client = client(&stage).await;
        tasks.push(tokio::spawn(async move {
            for _ in 0..20 {
                late(&client, number).await;
            }
        }));
    }
    let mut most = 0;
    while tasks.iter().any(|task| !task.is_finished()) {
        most = most.max(stage.gateway.metric("row_waits"));
        tokio::task::yield_now().await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(value(&stage.direct, "select n from t where id = 1").await, "640");
    assert!(most > 0, "some have waited in the gateway");
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_timeout_is_kept_for_a_row_that_many_want() {
    let stage = stage("1min").await;
    let _first = at_work(&stage, 1).await;
    // The server's lock_timeout limits each lock: that of the place in the row's queue, and that of the transaction.
    for (setting, code, longest) in [("statement_timeout", "57014", 9_500), ("lock_timeout", "55P03", 14_500)]
    {
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let client = client(&stage).await;
            client.batch_execute(&format!("set {setting} = '5s'")).await.unwrap();
            client.batch_execute("begin").await.unwrap();
            tasks.push(update(client));
        }
        let since = Instant::now();
        for task in tasks {
            assert_eq!(sqlstate(&task.await.unwrap().1.unwrap_err()), code, "{setting}");
        }
        let waited = since.elapsed();
        assert!(
            (4_900..longest).contains(&waited.as_millis()),
            "{setting}: {waited:?}, a tenth more than directly"
        );
    }
}
