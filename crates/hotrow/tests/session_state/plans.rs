//! What a lane's plans are made of: parameters where the client wrote literals.

use crate::Stage;
use crate::support::{rows, value};

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
