//! Statements that name several rows by a list of keys: packed with the answers of a direct connection, and locked ahead
//! one by one after an outsider's lock.

use futures_util::future::join_all;
use hotrow_core::limits;
use hotrow_testkit::connect;
use hotrow_testkit::raw::{query, tags};
use tokio_postgres::types::{ToSql, Type};

use crate::stage::{Stage, once, step};

#[tokio::test]
async fn statements_with_lists_of_keys_are_packed() {
    let stage = Stage::new().await;
    let steps = [
        query("update t set n = n + 1 where id in (3, 1, null, 3) returning id, n"),
        query("update t set n = n + 1 where id = any('{2,9,77}') and n < 5"),
        once("delete from t where id = any($1) returning id", &[Some("{5, 6,NULL}")]),
        once("update t set n = n + 1 where id in ($1, $2) returning id, n", &[Some("1"), None]),
        once("select id, n from t where id = any($1) order by id", &[Some("{1,2,3,4,5}")]),
        once("select id from t where id = any($1)", &[None]),
        query("select n, id from t where id in (7, 8) order by 2 desc"),
        step![
            once("update t set n = n + 10 where id in ($1, $2)", &[Some("1"), Some("2")]),
            once("select sum(n) from t", &[])
        ],
        query(
            "begin; update t set n = n + 1 where id in (1, 2); delete from t where id = any('{3}'); commit",
        ),
    ];
    stage.same("lists of keys", &steps).await;
    assert_eq!(stage.packed(), 10, "everything but the sum, and the last query");
}

#[tokio::test]
async fn a_list_that_is_too_long_or_unreadable_is_passed_through() {
    let stage = Stage::new().await;
    let long = format!("{{{}}}", vec!["4"; limits::UNIT_ROWS_MAX + 1].join(","));
    let update = "update t set n = n + 1 where id = any($1) returning id, n";
    let steps = [
        once(update, &[Some(&long)]),
        once(update, &[Some("[2:3]={1,2}")]),
        once(update, &[Some("{{1,2},{3,4}}")]),
        once(update, &[Some("{1,")]),
        step![once(update, &[Some("{8}")]), once(update, &[Some(&long)])],
        query(&format!("update t set n = n + 1 where id in ({})", &long[1..long.len() - 1])),
    ];
    stage.same("unusual lists", &steps).await;
    assert_eq!(stage.packed(), 2, "the short array and the last query");
}

/// After a batch with such units has met a lock, batches lock their rows first, with the values of the lists. A lock with
/// a wrong value would fail.
#[tokio::test]
async fn rows_of_lists_are_locked_ahead_in_every_format() {
    let stage = Stage::with(&["--lanes", "1", "--lane-lock-timeout-ms", "2000"]).await;
    let by_array = "update t set n = n + 1 where id = any($1) returning id";
    let by_list = "update t set n = n + 1 where id in ($1, $2)";
    let round = async || {
        let rounds = (1..=6_i32).map(async |first| {
            let client = connect(&stage.config()).await;
            let values: [&(dyn ToSql + Sync); 2] = [&first, &(first + 2)];
            assert_eq!(client.execute(by_list, &values).await.unwrap(), 2);
            let array = vec![first + 3, first];
            assert_eq!(client.query_typed(by_array, &[(&array, Type::INT4_ARRAY)]).await.unwrap().len(), 2);
            let text = format!("update t set n = n + 1 where id = any('{{{}, {first}}}')", first + 1);
            assert_eq!(tags(&stage.raw(stage.gateway.port()).await.query(&text).await), "CZ");
        });
        join_all(rounds).await;
    };
    stage.locks_ahead(round).await;
}

/// Each row has room in a lane, and all rows together do not.
#[tokio::test]
async fn a_large_answer_of_many_rows_is_that_of_a_direct_connection() {
    let stage = Stage::new().await;
    let widen =
        format!("update t set label = repeat('x', {}) where id < 9", limits::READ_ROW_BYTES_MAX - 1_000);
    let read = once("select * from t where id = any($1) order by id", &[Some("{1,2,3,4,5,6,7,8,9}")]);
    let replies = stage.same("large rows", &[query(&widen), read.clone(), read]).await;
    assert_eq!(tags(&replies).matches('D').count(), 19, "nine rows, twice, and the last query");
    assert_eq!(stage.packed(), 2, "the first read, which then ran alone, and the last query");
}
