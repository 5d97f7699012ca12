//! Statements that insert several rows, in VALUES or in arrays: packed with the answers of a direct connection, and locked
//! ahead row by row after an outsider's lock.

use futures_util::future::join_all;
use hotrow_core::limits;
use hotrow_testkit::connect;
use hotrow_testkit::raw::{query, tags};
use tokio_postgres::types::{ToSql, Type};

use crate::stage::{Stage, once};

const ADD: &str = "on conflict (id) do update set n = t.n + excluded.n returning id, t.n, label";

#[tokio::test]
async fn rows_in_bulk_are_packed() {
    let stage = Stage::new().await;
    let steps = [
        query(&format!(
            "insert into t (id, n, label) values (11, 1, default), (3, 2, default), (2, 3, null) {ADD}"
        )),
        query(&format!("insert into t (id, n) values (9, 1), (20, 2), (1, 3) {ADD}")),
        once(
            &format!("insert into t (id, n, label) values ($1, $2, 'x'), ($3, 1 + 1, upper($4)) {ADD}"),
            &[Some("5"), Some("1"), Some("30"), Some("y")],
        ),
        query("insert into t values (4, 1, 'a'), (40, 1, 'b') on conflict do nothing returning *"),
        query("insert into t values (51, 1, 'a'), (50, 1, 'b') returning id"),
        once(
            &format!("insert into t (id, n) select * from unnest($1::int[], $2::int[]) {ADD}"),
            &[Some("{7,60,2}"), Some("{1,2,3}")],
        ),
        once(
            "insert into t (label, id, n) select 'z', a.i, 1 from unnest($1::int[]) as a(i) on conflict do nothing",
            &[Some("{8, 61}")],
        ),
        once(&format!("insert into t (id, n) select unnest($1::int[]), 2 {ADD}"), &[Some("{}")]),
        once(&format!("insert into t (id, n) select unnest($1::int[]), 2 {ADD}"), &[None]),
        query(&format!(
            "begin; insert into t (id, n) values (6, 1), (5, 1) {ADD}; delete from t where id = 11; commit"
        )),
    ];
    stage.same("rows in bulk", &steps).await;
    assert_eq!(stage.packed(), 11, "everything, and the last query");
}

#[tokio::test]
async fn a_failing_row_fails_its_own_statement_only() {
    let stage = Stage::new().await;
    let steps = [
        query(&format!("insert into t (id, n) values (3, 2), (3, 4) {ADD}")),
        once(
            &format!("insert into t (id, n) select * from unnest($1::int[], $2::int[]) {ADD}"),
            &[Some("{7,1,7}"), Some("{1,2,3}")],
        ),
        query("insert into t (id, n) values (77, 1), (3, 4)"),
        query(&format!("insert into t (id, n) values (78, 1), (3, 100) {ADD}")),
        query(&format!("insert into t (id, n) values (78, 1), (null, 1) {ADD}")),
        // The shorter array is filled up with NULL.
        once(
            &format!("insert into t (id, n) select * from unnest($1::int[], $2::int[]) {ADD}"),
            &[Some("{79,1}"), Some("{1}")],
        ),
        query(&format!("insert into t (id, n) values (4, 1), (80, 1) {ADD}")),
    ];
    stage.same("failing rows", &steps).await;
    assert_eq!(stage.packed(), 2, "the last two");
    assert_eq!(stage.gateway.metric("failed_units_total"), 6, "each ran alone");
}

#[tokio::test]
async fn arrays_that_are_too_long_or_unreadable_are_passed_through() {
    let stage = Stage::new().await;
    let long = |value: &str| format!("{{{}}}", vec![value; limits::UNIT_ROWS_MAX + 1].join(","));
    let upsert = "insert into t (id, n) select * from unnest($1::int[], $2::int[]) on conflict do nothing";
    let labels = "insert into t (id, n, label) select a, 1, b from unnest($1::int[], $2::text[]) t(a, b) \
        where false";
    let steps = [
        once(upsert, &[Some(&long("70")), Some("{1}")]),
        once(upsert, &[Some("{71}"), Some(&long("1"))]),
        once(upsert, &[Some("{{1,72},{3,73}}"), Some("{1,2,3,4}")]),
        once(upsert, &[Some("[2:3]={1,74}"), Some("{1,2}")]),
        once(upsert, &[Some("{1,"), Some("{1,2}")]),
        once(labels, &[Some("{1}"), Some("{a}")]),
        once(&upsert.replace("on con", "order by 1 on con"), &[Some("{75}"), Some("{1}")]),
    ];
    stage.same("unusual arrays", &steps).await;
    assert_eq!(stage.packed(), 2, "the last array and the last query");
}

/// Only the array of a key has to be read. Of others, the elements are counted.
#[tokio::test]
async fn escaped_texts_in_arrays_are_packed() {
    let stage = Stage::new().await;
    let upsert = "insert into t (id, n, label) select a, 1, b from unnest($1::int[], $2::text[]) as x(a, b) \
        on conflict (id) do update set label = excluded.label returning *";
    let labels = r#"{"{\"k\": [1, \"a,b\"]}","back\\slash",NULL}"#;
    stage.same("escaped", &[once(upsert, &[Some("{1,2,70}"), Some(labels)])]).await;
    assert_eq!(stage.packed(), 2);
}

/// A function that hides PostgreSQL's own is called, also if it comes after the statement was judged.
#[tokio::test]
async fn a_function_that_hides_unnest_is_called() {
    let stage = Stage::new().await;
    let insert = once(
        "insert into t (id, n) select unnest($1::int[]), 1 on conflict do nothing returning id",
        &[Some("{70,71}")],
    );
    let steps = [
        query("drop function if exists unnest(int[])"),
        insert.clone(),
        query("create function unnest(int[]) returns setof int language sql as 'select 99'"),
        query("set search_path = public, pg_catalog"),
        query("set search_path to default"),
        insert.clone(),
        query("set search_path = pg_temp, pg_catalog"),
        query("reset search_path"),
        query("drop function unnest(int[])"),
        insert,
    ];
    stage.same("hidden", &steps).await;
}

/// After a batch with such units has met a lock, batches lock their rows first, with the values of the rows. A lock with a
/// wrong value would fail.
#[tokio::test]
async fn rows_in_bulk_are_locked_ahead_in_every_format() {
    let stage = Stage::with(&["--lanes", "1", "--lane-lock-timeout-ms", "2000"]).await;
    let by_values =
        "insert into t (id, n) values ($1, 1), ($2, 1) on conflict (id) do update set n = t.n + 1";
    let by_arrays = "insert into t (id, n) select unnest($1), 1 on conflict (id) do update set n = t.n + 1";
    let round = async || {
        let rounds = (1..=6_i32).map(async |first| {
            let client = connect(&stage.config()).await;
            let values: [&(dyn ToSql + Sync); 2] = [&first, &(first + 2)];
            assert_eq!(client.execute(by_values, &values).await.unwrap(), 2);
            let array = vec![first + 3, first];
            let binary = client.query_typed(by_arrays, &[(&array, Type::INT4_ARRAY)]).await;
            assert!(binary.unwrap().is_empty());
            let text = format!(
                "insert into t (id, n) values ({}, 1), ({first}, 1) on conflict (id) do update set n = t.n + 1",
                first + 1
            );
            assert_eq!(tags(&stage.raw(stage.gateway.port()).await.query(&text).await), "CZ");
        });
        join_all(rounds).await;
    };
    stage.locks_ahead(round).await;
}
