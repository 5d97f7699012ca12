//! The OpenAPI document describes the answers of the API exactly.

use hotrow_sql::functions;
use serde_json::Value;

use crate::Api;
use crate::client::json;

const ORDER: &str = r#"{"order_id": "00000000-0000-0000-0000-000000000000"}"#;

fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            document.pointer(reference.strip_prefix('#').unwrap()).expect("references have a target")
        }
        None => value,
    }
}

/// All references in a document.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_path_answers() {
    let api = Api::start(&[]).await;
    let document = api.ok("GET", "/openapi.json", "").await;
    assert_eq!(document["openapi"], "3.1.0");
    let mut all = Vec::new();
    references(&document, &mut all);
    assert!(all.iter().all(|reference| document.pointer(&reference[1..]).is_some()), "{all:?}");
    let mut operations = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            operations += 1;
            if operation["responses"]["200"]["content"]["text/event-stream"].is_object() {
                continue; // a stream that does not end, see `live`
            }
            let concrete = path
                .replace("{counter}", "documented")
                .replace("{item}", "documented")
                .replace("{user}", "77")
                .replace("{queue}", "documented")
                .replace("{receipt}", "16384")
                .replace("{order_id}", "00000000-0000-0000-0000-000000000000")
                .replace("{id}", "00000000-0000-0000-0000-000000000000");
            assert!(!concrete.contains('{'), "{path}: replace its parameter above, in {}", file!());
            let example = &operation["requestBody"]["content"]["application/json"]["example"];
            let body = if example.is_null() { String::new() } else { example.to_string() };
            if path.starts_with("/v1/queues/") {
                api.ok("PUT", "/v1/queues/documented", "").await;
                api.ok("POST", "/v1/queues/documented/orders", ORDER).await;
            }
            if method == "get" && path == "/v1/sales/{item}" {
                api.ok("PUT", &concrete, r#"{"stock": 1}"#).await;
            }
            let method = method.to_uppercase();
            let reply = json(api.port, &method, &concrete, &body).await;
            assert_eq!(
                reply.status,
                200,
                "{method} {path} refuses the body {body:?}; correct its `example` in crates/hotrow-sql/sql/*/functions.toml, or \
                 prepare the state that it needs in {}: {reply:?}",
                file!()
            );
            assert_eq!(reply.header("content-type"), "application/json", "{method} {path}");
            let answer = reply.json();
            let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
            let fields = &resolve(&document, schema)["properties"];
            if let Some(fields) = fields.as_object() {
                let named: Vec<_> = fields.keys().collect();
                assert_eq!(
                    answer.as_object().unwrap().keys().collect::<Vec<_>>(),
                    named,
                    "the answer of {method} {path} has other fields than its schema; correct the schema in \
                     crates/hotrow-http/src/*/openapi.json or the columns of the SQL"
                );
            }
            let refused = json(api.port, "PATCH", &concrete, "").await;
            assert_eq!(refused.status, 405, "{path} accepts only methods that the document names");
        }
    }
    // Each function with a route has an operation, and so have the two health checks, the document and the stream.
    let routed = functions().iter().filter(|function| function.http.at().is_some());
    assert_eq!(operations, routed.count() + 4);
}
