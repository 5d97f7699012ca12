//! Times that RFC 3339 and JSON cannot express: they are answered nevertheless, and no message is lost.

use hotrow_testkit::connect;

use crate::Api;

/// The latest time that an answer can have.
const LAST: &str = "9999-12-30T22:00:00.999999999Z";

#[tokio::test(flavor = "multi_thread")]
async fn messages_with_far_times_are_consumed_and_answered() {
    let api = Api::start(&[]).await;
    let client = connect(&api.gateway.config()).await;
    let sql = "select hotrow.push(4242, 1, 'near'), hotrow.push(4242, 1, 'never', 'infinity'),
        hotrow.push(4242, 1, 'far', '20000-01-01'), hotrow.push(4242, 1, 'old', '0044-03-15 BC')";
    let pushed = client.batch_execute(sql).await;
    let expected = if pushed.is_ok() { 4 } else { 1 };
    if pushed.is_err() {
        client.batch_execute("select hotrow.push(4242, 1, 'near')").await.unwrap();
    }
    assert_eq!(api.ok("GET", "/v1/users/4242/inbox/unread", "").await["unread"], expected);
    let consumed = api.ok("POST", "/v1/users/4242/inbox/consume", "").await;
    assert_eq!(consumed["messages"].as_array().unwrap().len(), expected, "{consumed}");
    for message in consumed["messages"].as_array().unwrap() {
        match message["content"].as_str().unwrap() {
            "never" | "far" => assert_eq!(message["created_at"], LAST),
            "old" => assert_eq!(message["created_at"], "0000-01-01T00:00:00Z"),
            _ => {}
        }
    }
    assert_eq!(
        api.ok("GET", "/v1/users/4242/inbox", "").await["messages"].as_array().unwrap().len(),
        expected
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sales_and_orders_with_far_times_are_answered() {
    let api = Api::start(&[]).await;
    let client = connect(&api.gateway.config()).await;
    // A later version of the hotrow schema may reject such times. Then there is no answer to check.
    let far = "select hotrow.create_sale('far', 10, ends_at => '20000-01-01')";
    if client.batch_execute(far).await.is_ok() {
        assert_eq!(api.ok("GET", "/v1/sales/far", "").await["ends_at"], LAST);
    }
    client.batch_execute("select hotrow.create_sale('never', 10, ends_at => 'infinity')").await.unwrap();
    assert!(api.ok("GET", "/v1/sales/never", "").await["ends_at"].is_null(), "the sale never ends");
    client.batch_execute("select hotrow.create_queue('far')").await.unwrap();
    let far = "select hotrow.enqueue('far', gen_random_uuid(), not_before => '20000-01-01')";
    if client.batch_execute(far).await.is_ok() {
        let orders = api.ok("GET", "/v1/queues/far/orders?state=delayed", "").await;
        assert_eq!(orders["orders"].as_array().unwrap().len(), 1, "{orders}");
    }
}

/// A column of another type, which the answer could not express, is detected before the call runs.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn a_call_with_an_unexpected_result_type_is_not_executed() {
    let server = crate::private("httptypes").await;
    crate::migrate(&server.url());
    let client = connect(&hotrow_testkit::config(server.port())).await;
    let odd = "alter function hotrow.drain(text, uuid) rename to drained;
        create table done (name text);
        create function hotrow.drain(counter text, request_id uuid, out value money) language sql as $$
            insert into public.done values (counter); select 1::money $$";
    client.batch_execute(odd).await.unwrap();
    let api = Api::in_front_of(&server.url(), &[]);
    let reply = crate::client::json(api.port, "POST", "/v1/counters/odd/drain", "").await;
    assert_eq!((reply.status, reply.problem().as_str()), (503, "pack-missing"), "{reply:?}");
    assert_eq!(hotrow_testkit::value(&client, "select count(*) from done").await, "0");
}
