//! Checks every answer that a test receives through `Caller` against openapi.json.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::Value;
use uuid::Uuid;

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../openapi.json")).unwrap());

/// Panics unless the document describes the answer. Requests that the document does not describe must be rejected.
pub fn check_answer(method: &str, path: &str, status: u16, body: &Value) {
    let what = format!("{method} {path}: {status} {body}");
    let problem = &DOCUMENT["components"]["schemas"]["Problem"];
    let Some(operation) = operation(method, path) else {
        assert!([404, 405].contains(&status), "not documented: {what}");
        return fits(problem, body).unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
    };
    let answer = &operation["responses"][status.to_string()];
    assert!(answer.is_object(), "a status that is not documented: {what}");
    let content = answer["content"].as_object().unwrap_or_else(|| panic!("no content is documented: {what}"));
    let schema = &content.values().next().unwrap()["schema"];
    fits(schema, body).unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
}

fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path: Vec<&str> = path.split('?').next()?.split('/').collect();
    let is_it = |template: &str| {
        let template: Vec<&str> = template.split('/').collect();
        let same = |(one, other): (&&str, &&str)| one.starts_with('{') || one == other;
        template.len() == path.len() && template.iter().zip(&path).all(same)
    };
    let (_, operations) = DOCUMENT["paths"].as_object()?.iter().find(|(template, _)| is_it(template))?;
    operations.get(method.to_lowercase())
}

/// Checks a value against a schema. It supports only the keywords that the document uses.
fn fits(schema: &Value, value: &Value) -> Result<(), String> {
    for (keyword, wanted) in schema.as_object().unwrap() {
        let fits = match keyword.as_str() {
            "$ref" => {
                let path = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                fits(DOCUMENT.pointer(path).unwrap(), value)?;
                true
            }
            "oneOf" => wanted.as_array().unwrap().iter().any(|one| fits(one, value).is_ok()),
            "type" => match wanted {
                Value::Array(all) => all.iter().any(|one| is_a(one, value)),
                one => is_a(one, value),
            },
            "enum" => wanted.as_array().unwrap().contains(value),
            "format" => value.as_str().is_none_or(|text| is_of(wanted, text)),
            "minLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 >= number(wanted)),
            "maxLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 <= number(wanted)),
            "pattern" => {
                assert_eq!(wanted, "^[A-Z]{3}$", "a pattern that is not supported");
                value
                    .as_str()
                    .is_none_or(|text| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase()))
            }
            "required" => {
                let there = |name: &Value| value.get(name.as_str().unwrap()).is_some();
                wanted.as_array().unwrap().iter().all(there)
            }
            "additionalProperties" => {
                assert_eq!(wanted, false);
                let known = |name: &String| schema["properties"].get(name).is_some();
                value.as_object().is_none_or(|members| members.keys().all(known))
            }
            "properties" => {
                for (name, schema) in wanted.as_object().unwrap() {
                    let member = value.get(name);
                    member.map_or(Ok(()), |member| {
                        fits(schema, member).map_err(|wrong| format!("{name}: {wrong}"))
                    })?;
                }
                true
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    fits(wanted, item)?;
                }
                true
            }
            "description" => true,
            keyword => panic!("{keyword} is not supported"),
        };
        if !fits {
            return Err(format!("{value} breaks {keyword} {wanted}"));
        }
    }
    Ok(())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn is_a(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        name => panic!("{name} is not supported"),
    }
}

fn is_of(format: &Value, text: &str) -> bool {
    match format.as_str().unwrap() {
        "uuid" => Uuid::parse_str(text).is_ok(),
        "date" => text.parse::<Date>().is_ok(),
        "date-time" => text.parse::<Timestamp>().is_ok(),
        format => panic!("{format} is not supported"),
    }
}

#[test]
fn an_answer_that_contradicts_the_document_is_detected() {
    let good = serde_json::json!({ "type": "t", "status": 404, "title": "t", "detail": "d" });
    let problem = &DOCUMENT["components"]["schemas"]["Problem"];
    assert_eq!(fits(problem, &good), Ok(()));
    for (name, bad) in [("status", serde_json::json!("404")), ("more", serde_json::json!(1))] {
        let mut wrong = good.clone();
        wrong[name] = bad;
        assert!(fits(problem, &wrong).is_err(), "{wrong}");
    }
    let mut short = good;
    short.as_object_mut().unwrap().remove("detail");
    assert!(fits(problem, &short).is_err());
    let attempt = serde_json::json!("created");
    assert!(
        fits(&DOCUMENT["components"]["schemas"]["Payment"]["properties"]["last_attempt"], &attempt).is_err()
    );
}
