//! What a lane's plans are made of: parameters where the client wrote literals; and plans that are no longer right.

use crate::Stage;
use crate::support::raw::{Raw, close, execute, frame, parse, sync, tags};
use crate::support::{rows, server, value};

/// Directly, the planner computes `10 / 0` before it looks for the row. A plan with parameters is not that eager, as
/// for every prepared statement that runs for the sixth time.
#[tokio::test]
async fn a_wrong_literal_may_go_unnoticed_where_no_row_matches() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let wrong = "update t set n = 10 / 0 where id = 99 returning n";
    let direct = rows(&stage.direct, wrong).await.expect_err("the planner has computed it");
    assert_eq!(direct.code().unwrap().code(), "22012");
    // Plans of the first executions are made for their values; the sixth is for any.
    for _ in 0..8 {
        rows(&client, "update t set n = 10 / 5 where id = 99 returning n").await.unwrap();
    }
    assert!(rows(&client, wrong).await.unwrap().is_empty());
    let error =
        rows(&client, "update t set n = 10 / 0 where id = 1 returning n").await.expect_err("there is a row");
    assert_eq!(error.code().unwrap().code(), "22012");
    assert_eq!(value(&client, "select n from t where id = 1").await, "0");
}

/// Drivers that ask for each column in a format of its own ask for too few when the table has got one more. Directly they
/// are told that the plan has changed, and prepare the statement anew.
#[tokio::test]
async fn a_statement_whose_result_changes_is_refused_as_the_server_does() {
    let stage = Stage::new(&[]).await;
    let options = format!("-c search_path={}", stage.schema);
    for (text, column) in
        [("select * from t where id = 1", "more"), ("select *, random() from t where id = 1", "most")]
    {
        let mut said = Vec::new();
        for port in [server().port(), stage.gateway.port()] {
            let drop = format!("alter table t drop column if exists {column}");
            stage.direct.batch_execute(&drop).await.unwrap();
            let mut raw = Raw::log_in(port, &[("options", &options)]).await;
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
                        tags(&Raw::log_in(port, &[("options", &options)]).await.query(&add).await),
                        "CZ"
                    );
                }
                if step == 1 {
                    // Connections on which the statement is prepared are in other hands now.
                    for _ in 0..3 {
                        let mut holder = Raw::log_in(port, &[("options", &options)]).await;
                        assert_eq!(tags(&holder.query("begin").await), "CZ");
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
            said.push((tags(&all), fields));
        }
        assert_eq!(said[1], said[0], "{text}");
        assert_eq!(said[0].0, "1Z2DCZEZ31Z2DCZ");
    }
}

/// Bind without values, with a format for each of so many columns.
fn bind_columns(statement: &str, columns: i64) -> Vec<u8> {
    let columns = u16::try_from(columns).unwrap();
    let formats = vec![0; 2 * usize::from(columns)];
    let body = [&[0], statement.as_bytes(), &[0, 0, 0, 0, 0], &columns.to_be_bytes(), &formats].concat();
    frame(b'B', &body)
}
