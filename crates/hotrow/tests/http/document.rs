//! The OpenAPI document: it describes what is there, nothing else, and schemathesis finds no answer that it denies.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Api;
use crate::client::json;

const TOKEN: &str = "schemathesis-0123456789";

fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            document.pointer(reference.strip_prefix('#').unwrap()).expect("references lead somewhere")
        }
        None => value,
    }
}

/// All references of a document, wherever they stand.
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
async fn every_path_in_it_answers() {
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
            let concrete = path
                .replace("{counter}", "documented")
                .replace("{item}", "documented")
                .replace("{id}", "00000000-0000-0000-0000-000000000000");
            let body = match operation["operationId"].as_str().unwrap() {
                "createSale" => r#"{"stock": 1}"#,
                "reserve" => r#"{"buyer": "ann"}"#,
                "reserveAll" => r#"{"buyer": "ann", "items": [{"item": "documented"}]}"#,
                "restock" => r#"{"quantity": 1}"#,
                "extend" => r#"{"hold": 1}"#,
                _ => "",
            };
            if method == "get" && path == "/v1/sales/{item}" {
                api.ok("PUT", &concrete, r#"{"stock": 1}"#).await;
            }
            let answer = api.ok(&method.to_uppercase(), &concrete, body).await;
            let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
            let fields = &resolve(&document, schema)["properties"];
            if let Some(fields) = fields.as_object() {
                let named: Vec<_> = fields.keys().collect();
                assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), named, "{method} {path}");
            }
            let refused = json(api.port, "DELETE", &concrete, "").await;
            assert_eq!(refused.status, 405, "{path} is there for methods only that the document names");
        }
    }
    assert_eq!(operations, 15);
}

/// Where CI puts it, or on PATH.
fn schemathesis() -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/schemathesis/bin/schemathesis");
    if let Some(program) = std::env::var_os("SCHEMATHESIS") {
        return program.into();
    }
    if target.exists() { target } else { "schemathesis".into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn schemathesis_finds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    std::fs::write(&file, TOKEN).unwrap();
    let api = Api::start(&["--http-token-file", file.to_str().unwrap()]).await;
    let program = schemathesis();
    let there = Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success());
    assert!(
        there,
        "schemathesis is missing: python3 -m venv target/schemathesis && target/schemathesis/bin/pip install schemathesis"
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/schemathesis.sh");
    let url = format!("http://127.0.0.1:{}", api.port);
    let mut command = Command::new(script);
    command.args([&url, TOKEN]).env("SCHEMATHESIS", program).current_dir(folder.path());
    let output = tokio::task::block_in_place(|| command.output().unwrap());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!api.gateway.log().contains("panicked"));
}
