//! The answer of each path for a valid request: the columns of its function.

use serde_json::{Value, json};

use crate::client::{Reply, send};
use crate::{Api, client};

#[tokio::test(flavor = "multi_thread")]
async fn a_counter_is_created_incremented_and_drained() {
    let api = Api::start(&[]).await;
    let path = "/v1/counters/life";
    assert_eq!(api.ok("GET", path, "").await, json!({"value": 0, "version": 0}));
    assert_eq!(api.ok("PUT", path, "{\"max\": 9}").await, json!({"status": "created"}));
    assert_eq!(api.ok("PUT", path, "{\"max\": 9, \"min\": null}").await, json!({"status": "exists"}));
    assert_eq!(api.ok("PUT", path, "{\"strategy\": \"log\"}").await, json!({"status": "differs"}));
    let increment = format!("{path}/increment");
    assert_eq!(api.ok("POST", &increment, "").await, json!({"value": 1, "version": 1, "status": "ok"}));
    let body = "{\"amount\": 8}";
    assert_eq!(api.ok("POST", &increment, body).await, json!({"value": 9, "version": 2, "status": "ok"}));
    let refused = json!({"value": 9, "version": 2, "status": "out_of_bounds"});
    assert_eq!(api.ok("POST", &increment, "{\"amount\": 1}").await, refused);
    let drained = json!({"value": 9, "version": 3, "status": "ok"});
    assert_eq!(api.ok("POST", &format!("{path}/drain"), "").await, drained);
    assert_eq!(api.ok("GET", path, "").await, json!({"value": 0, "version": 3}));
}

#[tokio::test(flavor = "multi_thread")]
async fn integers_are_exact_and_names_may_have_any_characters() {
    let api = Api::start(&[]).await;
    for name in ["a%2Fb", "%C3%A9t%C3%A9", "100%25", "%3B%20drop%20table%20x%3B", "..%2f..", &"n".repeat(500)]
    {
        let path = format!("/v1/counters/{name}/increment");
        for (amount, value) in [(i64::MAX, i64::MAX), (-1, i64::MAX - 1), (-i64::MAX, -1)] {
            let answer = api.ok("POST", &path, &format!("{{\"amount\": {amount}}}")).await;
            assert_eq!(answer["value"], value, "{name}");
        }
        let overflow = api.ok("POST", &path, &format!("{{\"amount\": {}}}", i64::MIN)).await;
        assert_eq!(overflow, json!({"value": -1, "version": 3, "status": "overflow"}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_is_created_reserved_confirmed_and_restocked() {
    let api = Api::start(&[]).await;
    let path = "/v1/sales/phone";
    let unknown = client::json(api.port, "GET", path, "").await;
    assert_eq!((unknown.status, unknown.problem().as_str()), (404, "not-found"));
    let new = r#"{"stock": 5, "per_buyer": 3, "starts_at": "2020-01-01T01:00:00+01:00",
        "ends_at": "2099-12-31T23:59:59.5Z", "hold": 90.5}"#;
    assert_eq!(api.ok("PUT", path, new).await, json!({"status": "created"}));
    assert_eq!(api.ok("PUT", path, new).await, json!({"status": "exists"}));
    let reserve = format!("{path}/reservations");
    let first = api.ok("POST", &reserve, r#"{"buyer": "ann", "quantity": 3}"#).await;
    assert_eq!((&first["status"], &first["remaining"]), (&json!("reserved"), &json!(2)));
    let refused = api.ok("POST", &reserve, r#"{"buyer": "ann"}"#).await;
    assert_eq!(refused, json!({"status": "limit_reached", "reservation_id": null, "remaining": 2}));
    assert_eq!(api.ok("POST", &reserve, r#"{"buyer": "bob", "quantity": 3}"#).await["status"], "sold_out");
    let second = api.ok("POST", &reserve, r#"{"buyer": "bob", "quantity": 2}"#).await;
    let id = |reserved: &Value| format!("/v1/reservations/{}", reserved["reservation_id"].as_str().unwrap());

    let extended = api.ok("POST", &format!("{}/extend", id(&first)), "{\"hold\": 600}").await;
    assert_eq!(extended["status"], "extended");
    assert!(extended["expires_at"].as_str().unwrap().ends_with('Z'));
    for _ in 0..2 {
        let confirmed = api.ok("POST", &format!("{}/confirm", id(&first)), "").await;
        assert_eq!(confirmed, json!({"status": "confirmed"}));
        let cancelled = api.ok("POST", &format!("{}/cancel", id(&second)), "").await;
        assert_eq!(cancelled, json!({"status": "cancelled"}));
    }
    assert_eq!(
        api.ok("POST", &format!("{path}/restock"), "{\"quantity\": 10}").await,
        json!({"status": "restocked", "remaining": 12})
    );
    assert_eq!(
        api.ok("GET", path, "").await,
        json!({"item": "phone", "remaining": 12, "held": 0, "sold": 3, "per_buyer": 3,
            "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2099-12-31T23:59:59.5Z", "hold": 90.5})
    );
    let unknown = "/v1/reservations/00000000-0000-0000-0000-000000000000/confirm";
    assert_eq!(api.ok("POST", unknown, "").await, json!({"status": "unknown_reservation"}));
    let nothing = api.ok("POST", "/v1/sales/nothing/reservations", r#"{"buyer": "ann"}"#).await;
    assert_eq!(nothing, json!({"status": "unknown_item", "reservation_id": null, "remaining": null}));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_items_are_reserved_together_or_not_at_all() {
    let api = Api::start(&[]).await;
    for item in ["cup", "plate"] {
        api.ok("PUT", &format!("/v1/sales/{item}"), "{\"stock\": 2}").await;
    }
    let path = "/v1/reservations";
    let both = r#"{"buyer": "ann", "items": [{"item": "plate", "quantity": 2}, {"item": "cup"}]}"#;
    let reserved = api.ok("POST", path, both).await;
    assert_eq!((&reserved["status"], &reserved["refused_item"]), (&json!("reserved"), &Value::Null));
    assert_eq!(reserved["reservation_ids"].as_array().unwrap().len(), 2);
    let refused = api.ok("POST", path, both).await;
    assert_eq!(refused, json!({"status": "sold_out", "reservation_ids": null, "refused_item": "plate"}));
    assert_eq!(
        api.ok("GET", "/v1/sales/cup", "").await["remaining"],
        1,
        "no item of a rejected reservation is taken"
    );
}

async fn with_key(api: &Api, key: &str, path: &str, body: &str) -> Reply {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    send(api.port, "POST", path, &headers, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_gets_the_same_answer() {
    let api = Api::start(&[]).await;
    let (path, key) = ("/v1/counters/keyed/increment", "0193e1a0-7b1c-7e2a-9d3f-5c4b6a798081");
    let first = with_key(&api, key, path, "{\"amount\": 5}").await;
    assert_eq!(first.json(), json!({"value": 5, "version": 1, "status": "ok"}));
    api.ok("POST", path, "").await;
    let again = with_key(&api, &format!("\"{key}\""), path, "{\"amount\": 5}").await;
    assert_eq!((again.status, again.text), (200, first.text));
    for (path, body) in [(path, "{\"amount\": 6}"), ("/v1/counters/keyed/drain", "")] {
        let other = with_key(&api, key, path, body).await;
        assert_eq!((other.status, other.problem().as_str()), (422, "refused-argument"), "{other:?}");
        assert_eq!(other.json()["sqlstate"], "22023");
    }
    assert_eq!(api.ok("GET", "/v1/counters/keyed", "").await, json!({"value": 6, "version": 2}));
    let path = "/v1/sales/keyed/reservations";
    let (key, body) = ("0193e1a0-7b1c-7e2a-9d3f-5c4b6a798082", r#"{"buyer": "ann"}"#);
    assert_eq!(with_key(&api, key, path, body).await.json()["status"], "unknown_item");
    api.ok("PUT", "/v1/sales/keyed", "{\"stock\": 1}").await;
    let again = with_key(&api, key, path, body).await;
    assert_eq!(again.json()["status"], "unknown_item", "rejections are recorded too");
    let key = "0193e1a0-7b1c-7e2a-9d3f-5c4b6a798083";
    for _ in 0..2 {
        let restocked = with_key(&api, key, "/v1/sales/keyed/restock", "{\"quantity\": 4}").await;
        assert_eq!(restocked.json(), json!({"status": "restocked", "remaining": 5}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_is_filled_consumed_and_read() {
    let api = Api::start(&[]).await;
    let (ann, bob) = ("/v1/users/-501", "/v1/users/502");
    let status = |status: &str| json!({ "status": status });
    assert_eq!(api.ok("POST", &format!("{ann}/follow"), r#"{"followee": -501}"#).await, status("self"));
    let followee = r#"{"followee": 502}"#;
    assert_eq!(api.ok("POST", &format!("{ann}/follow"), followee).await, status("followed"));
    let posted = json!({"post_id": 1, "status": "ok"});
    assert_eq!(api.ok("POST", &format!("{bob}/posts"), r#"{"content": "hello"}"#).await, posted);
    let push = r#"{"from_user": 9, "content": "psst", "created_at": "2020-01-01T01:00:00+01:00"}"#;
    let pushed = json!({"entry_id": 2, "status": "ok"});
    assert_eq!(api.ok("POST", &format!("{ann}/inbox"), push).await, pushed);
    assert_eq!(api.ok("GET", &format!("{ann}/inbox/unread"), "").await, json!({"unread": 2}));
    let next = api.ok("GET", &format!("{ann}/inbox/next?max=1&sort=newest"), "").await;
    let pushed = json!({"entry_id": 2, "from_user": 9, "post_id": null, "created_at": "2020-01-01T00:00:00Z", "content": "psst"});
    assert_eq!(next, json!({ "messages": [pushed] }));
    let consume = format!("{ann}/inbox/consume");
    let first = api.ok("POST", &consume, r#"{"max": 1}"#).await;
    let first =
        first["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect::<Vec<_>>();
    assert_eq!(first, [&json!("hello")]);
    assert_eq!(api.ok("POST", &format!("{ann}/inbox/read"), r#"{"up_to": 7}"#).await, json!({"marked": 1}));
    assert_eq!(api.ok("POST", &consume, "").await, json!({ "messages": [] }));
    let page = api.ok("GET", &format!("{ann}/inbox?before=2"), "").await;
    assert_eq!(
        (&page["messages"][0]["entry_id"], &page["messages"][0]["consumed"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(api.ok("POST", &format!("{ann}/mute"), followee).await, status("muted"));
    assert_eq!(api.ok("POST", &format!("{ann}/unfollow"), followee).await, status("unfollowed"));
    for (method, path, body, status) in [
        ("POST", consume.as_str(), r#"{"max": -1}"#, 422),
        ("POST", consume.as_str(), r#"{"sort": "best"}"#, 422),
        ("GET", "/v1/users/ann/inbox", "", 400),
        ("GET", "/v1/users/1/inbox?max=many", "", 400),
        ("GET", "/v1/users/1/inbox?limit=1", "", 400),
    ] {
        let refused = client::json(api.port, method, path, body).await;
        assert_eq!(refused.status, status, "{path} {body}: {refused:?}");
    }
}
