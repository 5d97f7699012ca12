//! A prepared statement keeps the types of its parameters, which the server has told the client, when its session goes on with
//! other settings and so on another connection.

use hotrow_testkit::raw::{Raw, describe, execute, frame, parse, query, sync};
use hotrow_testkit::{Gateway, new_database, value};

const UPDATE: &str = "update t set v = $1 where id = 1";

/// A Bind of the statement with an int4 in binary format.
fn bind_binary(number: i32) -> Vec<u8> {
    let mut body = b"\0s\0\0\x01\0\x01\0\x01\0\0\0\x04".to_vec();
    body.extend(number.to_be_bytes());
    body.extend(b"\0\0");
    frame(b'B', &body)
}

async fn send(client: &mut Raw, messages: &[Vec<u8>]) -> String {
    client.send(&messages.concat()).await;
    hotrow_testkit::raw::tags(&client.until_ready(1).await)
}

#[tokio::test]
async fn a_binary_value_is_read_as_the_type_that_the_client_was_told() {
    let (database, direct) = new_database().await;
    for (schema, of) in [("a", "int4"), ("b", "float4"), ("c", "int8")] {
        let table = format!(
            "create table {schema}.t (id int primary key, v {of}); insert into {schema}.t values (1)"
        );
        direct.batch_execute(&format!("create schema {schema}; {table}")).await.unwrap();
    }
    let gateway = Gateway::start(&[]);
    let parameters = [("user", "postgres"), ("database", &*database)];
    let mut client = Raw::login(gateway.port(), &parameters).await;
    send(&mut client, &[query("set search_path = a")]).await;
    assert_eq!(send(&mut client, &[parse("s", UPDATE), describe(b'S', "s"), sync()]).await, "1tnZ");
    for schema in ["b", "c", "a", "b"] {
        send(&mut client, &[query(&format!("set search_path = {schema}"))]).await;
        assert_eq!(send(&mut client, &[bind_binary(7), execute("", 0), sync()]).await, "2CZ");
        assert_eq!(value(&direct, &format!("select v from {schema}.t")).await, "7", "schema {schema}");
        direct.batch_execute(&format!("update {schema}.t set v = 0")).await.unwrap();
    }
    // The pool of the first schema has not taken over the statement of a session that came from another one.
    let mut other = Raw::login(gateway.port(), &parameters).await;
    send(&mut other, &[query("set search_path = c")]).await;
    assert_eq!(send(&mut other, &[parse("s", UPDATE), sync()]).await, "1Z");
    send(&mut other, &[query("set search_path = a")]).await;
    send(&mut other, &[query("set search_path = c")]).await;
    let mut eight = b"\0s\0\0\x01\0\x01\0\x01\0\0\0\x08".to_vec();
    eight.extend(9_i64.to_be_bytes());
    eight.extend(b"\0\0");
    assert_eq!(send(&mut other, &[frame(b'B', &eight), execute("", 0), sync()]).await, "2CZ");
    assert_eq!(value(&direct, "select v from c.t").await, "9");
}
