//! Plans of a lane, with parameters for the client's literals, and plans that are no longer valid.

use hotrow_testkit::raw::{Raw, bind, close, execute, frame, parse, sync, tags};
use hotrow_testkit::{rows, server, until, value};

use crate::Stage;

/// On a direct connection, the planner computes `10 / 0` before the row is looked for. A plan with parameters does not,
/// as for every prepared statement that runs for the sixth time.
#[tokio::test]
async fn an_invalid_literal_can_go_unnoticed_if_no_row_matches() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let wrong = "update t set n = 10 / 0 where id = 99 returning n";
    let direct = rows(&stage.direct, wrong).await.expect_err("the planner computes it");
    assert_eq!(direct.code().unwrap().code(), "22012");
    // The first five plans are made for their values, the sixth for any values.
    for _ in 0..8 {
        rows(&client, "update t set n = 10 / 5 where id = 99 returning n").await.unwrap();
    }
    assert!(rows(&client, wrong).await.unwrap().is_empty());
    let error =
        rows(&client, "update t set n = 10 / 0 where id = 1 returning n").await.expect_err("there is a row");
    assert_eq!(error.code().unwrap().code(), "22012");
    assert_eq!(value(&client, "select n from t where id = 1").await, "0");
}

/// The server would plan a sequential scan for a table of one page, and keep the plan while the table grows.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_lane_finds_the_row_of_a_small_table_by_its_index() {
    let stage = Stage::alone(&[]).await; // a batch that runs twice would scan the index more often
    stage.direct.batch_execute("analyze t").await.unwrap();
    let plan = rows(&stage.direct, "explain update t set n = n + 1 where id = 1").await.unwrap();
    assert!(format!("{plan:?}").contains("Seq Scan"), "directly: {plan:?}");
    let client = stage.client().await;
    for _ in 0..8 {
        rows(&client, "update t set n = n + 1 where id = 1").await.unwrap();
    }
    // Before version 15, an idle session does not report what it has counted. At its end, it does.
    let end = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'hotrow lane%'";
    rows(&stage.direct, end).await.unwrap();
    let scans = "select idx_scan from pg_stat_user_tables where relid = 't'::regclass";
    until("the lane's index scans are counted", async || value(&stage.direct, scans).await == "8").await;
}

/// A driver that requests a format for each column gives too few formats after the table gets another column. On a
/// direct connection it gets the error that the plan has changed, and prepares the statement again.
#[tokio::test]
async fn a_statement_whose_result_changes_is_rejected_as_by_the_server() {
    let stage = Stage::new(&[]).await;
    let options = format!("-c search_path={}", stage.schema);
    for (text, column) in
        [("select * from t where id = 1", "more"), ("select *, random() from t where id = 1", "most")]
    {
        let mut replies = Vec::new();
        for port in [server().port(), stage.gateway.port()] {
            let drop = format!("alter table t drop column if exists {column}");
            stage.direct.batch_execute(&drop).await.unwrap();
            let mut raw = Raw::login(port, &[("options", &options)]).await;
            let count = "select count(*) from information_schema.columns where table_name = 't' and table_schema = current_schema";
            let count: i64 = value(&stage.direct, count).await.parse().unwrap();
            let columns = count + i64::from(text.contains("random"));
            raw.send(&[parse("s", text), sync()].concat()).await;
            let mut all = raw.until_ready(1).await;
            let mut holders = Vec::new();
            for step in 0..3 {
                if step == 1 {
                    let add = format!("alter table t add column {column} int");
                    assert_eq!(
                        tags(&Raw::login(port, &[("options", &options)]).await.query(&add).await),
                        "CZ"
                    );
                }
                if step == 1 {
                    // Other clients now hold the connections on which the statement is prepared.
                    for _ in 0..3 {
                        let mut holder = Raw::login(port, &[("options", &options)]).await;
                        assert_eq!(tags(&holder.query("begin; select 1").await), "CTDCZ");
                        holders.push(holder);
                    }
                }
                if step == 2 {
                    raw.send(&[close(b'S', "s"), parse("s", text), sync()].concat()).await;
                    all.extend(raw.until_ready(1).await);
                }
                raw.send(
                    &[bind_columns("s", columns + i64::from(step == 2)), execute("", 0), sync()].concat(),
                )
                .await;
                all.extend(raw.until_ready(1).await);
            }
            let error = all.iter().find(|message| message.tag == b'E').unwrap();
            let fields = [b'C', b'M', b'R'].map(|field| error.field(field));
            replies.push((tags(&all), fields));
        }
        assert_eq!(replies[1], replies[0], "{text}");
        assert_eq!(replies[0].0, "1Z2DCZEZ31Z2DCZ");
    }
}

/// The wrong number of columns for a statement that was just prepared is the client's own mistake.
#[tokio::test]
async fn a_wrong_number_of_columns_is_reported_as_by_the_server() {
    let stage = Stage::new(&[]).await;
    let options = format!("-c search_path={}", stage.schema);
    for port in [server().port(), stage.gateway.port()] {
        let mut raw = Raw::login(port, &[("options", &options)]).await;
        raw.send(
            &[parse("s", "select n from t"), sync(), bind("", "s", &[]), execute("", 0), sync()].concat(),
        )
        .await;
        raw.until_ready(2).await;
        let wrong =
            [parse("", "select count(*) from t"), bind_columns("", 7), execute("", 0), sync()].concat();
        raw.send(&wrong).await;
        let replies = raw.until_ready(1).await;
        let error = replies.iter().find(|message| message.tag == b'E').unwrap();
        assert_eq!(error.field(b'C').as_deref(), Some("08P01"), "at port {port}: {error:?}");
    }
}

/// The server's timer of `statement_timeout` starts with the first message that the server gets.
#[tokio::test]
async fn a_pause_between_the_messages_of_a_query_does_not_count_as_its_time() {
    let stage = Stage::new(&[]).await;
    let options = format!("-c search_path={} -c statement_timeout=1000", stage.schema);
    for (port, expected) in [(server().port(), "1EZ"), (stage.gateway.port(), "12DCZ")] {
        let mut raw = Raw::login(port, &[("options", &options)]).await;
        raw.send(&parse("", "select n from t where id = 1")).await;
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await; // longer than the timeout
        raw.send(&[bind("", "", &[]), execute("", 0), sync()].concat()).await;
        assert_eq!(tags(&raw.until_ready(1).await), expected, "at port {port}");
    }
}

/// Bind without values, with a format for each of `columns` columns.
fn bind_columns(statement: &str, columns: i64) -> Vec<u8> {
    let columns = u16::try_from(columns).unwrap();
    let formats = vec![0; 2 * usize::from(columns)];
    let body = [&[0], statement.as_bytes(), &[0, 0, 0, 0, 0], &columns.to_be_bytes(), &formats].concat();
    frame(b'B', &body)
}

/// A connection keeps a statement with the types that its parameters had when another session parsed it there. A client
/// that has parsed the same text since then gets the types from the time of its own Parse.
#[tokio::test]
async fn a_statement_has_the_types_of_the_time_when_its_client_parsed_it() {
    let stage = Stage::new(&[]).await;
    let options = format!("-c search_path={}", stage.schema);
    let insert = "insert into u values ((random() * 0)::int, $1)";
    let run = [bind("", "s", &[Some("007")]), execute("", 0), sync()].concat();
    for port in [server().port(), stage.gateway.port()] {
        stage.direct.batch_execute("drop table if exists u; create table u (id int, v int)").await.unwrap();
        let login = async || Raw::login(port, &[("options", &options)]).await;
        let (mut first, mut second) = (login().await, login().await);
        first.send(&[parse("s", insert), sync(), run.clone()].concat()).await;
        assert_eq!(tags(&first.until_ready(2).await), "1Z2CZ");
        // Another client holds the first connection while the second client parses.
        assert_eq!(tags(&first.query("begin; select 1").await), "CTDCZ");
        stage.direct.batch_execute("delete from u; alter table u alter column v type text").await.unwrap();
        second.send(&[parse("s", insert), sync()].concat()).await;
        assert_eq!(tags(&second.until_ready(1).await), "1Z");
        assert_eq!(tags(&first.query("rollback").await), "CZ");
        second.send(&run).await;
        assert_eq!(tags(&second.until_ready(1).await), "2CZ");
        assert_eq!(value(&stage.direct, "select string_agg(v, ' ') from u").await, "007", "at port {port}");
    }
}

/// PostgreSQL reads such a literal when it analyses a statement. The client causes that each time.
#[tokio::test]
async fn now_is_the_time_of_each_statement() {
    let stage = Stage::new(&[]).await;
    stage
        .direct
        .batch_execute("create table m (id int primary key, at timestamptz); insert into m values (1)")
        .await
        .unwrap();
    let client = stage.client().await;
    for update in [
        "update m set at = 'now' where id = $1 returning at::text",
        "update m set at = timestamptz 'now' where id = $1 returning at::text",
        "update m set at = E'n\\x6fw' where id = $1 returning at::text",
        "update m set at = $$now$$ where id = $1 returning at::text",
    ] {
        let mut times = Vec::new();
        for _ in 0..3 {
            let row =
                client.query_typed(update, &[(&1_i32, tokio_postgres::types::Type::INT4)]).await.unwrap();
            times.push(row[0].get::<_, String>(0));
            let text = update.replace("$1", "1");
            times.push(value(&client, &text).await);
        }
        assert!(times.is_sorted_by(|one, next| one < next), "{update}: {times:?}");
    }
}

/// The server reads the constant when it prepares the statement. The gateway prepares it later, and on each connection.
#[tokio::test]
async fn now_in_a_prepared_statement_is_a_time_between_its_parse_and_its_run() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let clock = "select clock_timestamp()::text";
    let begin = value(&stage.direct, clock).await;
    let statement = client.prepare("select timestamptz 'now'::text").await.unwrap();
    for _ in 0..4 {
        let read = client.query_one(&statement, &[]).await.unwrap().get::<_, String>(0);
        let between = format!("select '{read}'::timestamptz between '{begin}' and clock_timestamp()");
        assert_eq!(value(&stage.direct, &between).await, "t", "{read}, parsed after {begin}");
    }
}

/// A statement that is too long for the cache of statements, with a parameter whose type the client has not declared.
#[tokio::test]
async fn a_long_statement_is_prepared_once_on_a_connection() {
    let stage = Stage::new(&[]).await;
    let mut raw = Raw::login(stage.gateway.port(), &[]).await;
    let text = format!("select $1 + 1 -- {}", "x".repeat(200_000));
    raw.send(&[parse("long", &text), sync()].concat()).await;
    raw.until_ready(1).await;
    // Another client takes the connection on which the statement is prepared.
    let mut other = Raw::login(stage.gateway.port(), &[]).await;
    other.query("begin; select 1").await;
    raw.query("begin").await;
    for _ in 0..10 {
        raw.send(&[bind("", "long", &[Some("1")]), execute("", 0), sync()].concat()).await;
        assert_eq!(tags(&raw.until_ready(1).await), "2DCZ");
    }
    let prepared =
        raw.query("select count(*) from pg_prepared_statements where length(statement) > 100000").await;
    assert_eq!(prepared[1].values(), [Some(b"1".to_vec())]);
}
