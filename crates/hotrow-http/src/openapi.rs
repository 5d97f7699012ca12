//! Assembles the OpenAPI document: the operations that the manifests declare, the schemas in the folders of the areas, and
//! `openapi.json` beside this file.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hotrow_sql::{Function, Operation, functions};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The document's head, and the parts that belong to no area.
const BASE: &str = include_str!("openapi.json");

/// The components of each area.
const PARTS: [&str; 4] = [
    include_str!("counters/openapi.json"),
    include_str!("sales/openapi.json"),
    include_str!("queues/openapi.json"),
    include_str!("feeds/openapi.json"),
];

type Components<'d> = BTreeMap<&'d str, BTreeMap<&'d str, &'d RawValue>>;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document<'d> {
    openapi: &'d str,
    info: Value,
    servers: Value,
    security: Value,
    paths: BTreeMap<&'d str, Value>,
    #[serde(borrow)]
    components: Components<'d>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part<'d> {
    /// The query parameters of a function's operation.
    #[serde(borrow)]
    queries: BTreeMap<&'d str, Vec<Value>>,
    #[serde(borrow)]
    components: Components<'d>,
}

/// The whole document, with its paths and components in alphabetical order.
pub fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        let mut document: Document<'_> = serde_json::from_str(BASE).expect("openapi.json is compiled in");
        let mut queries = BTreeMap::new();
        for part in PARTS {
            let part: Part<'_> = serde_json::from_str(part).expect("each area's openapi.json is compiled in");
            queries.extend(part.queries);
            for (kind, members) in part.components {
                let all = document.components.entry(kind).or_default();
                for (name, value) in members {
                    assert!(all.insert(name, value).is_none(), "two parts of the document declare {name}");
                }
            }
        }
        for function in functions() {
            let Some(operation) = function.http.at() else { continue };
            let (method, path) = operation.method_and_path();
            let query = queries.remove(function.name.as_str()).unwrap_or_default();
            let described = describe(function, operation, query, &document.components);
            document.paths.entry(path).or_insert_with(|| json!({}))[method.to_lowercase()] = described;
        }
        serde_json::to_string_pretty(&document).expect("all of it was JSON")
    });
    &DOCUMENT
}

/// The description of an operation.
fn describe(
    function: &Function,
    operation: &Operation,
    query: Vec<Value>,
    components: &Components<'_>,
) -> Value {
    let to = |kind: &str, name: &str| json!({"$ref": format!("#/components/{kind}/{name}")});
    let mut parameters: Vec<_> =
        operation.names().map(|name| to("parameters", in_path(name, components))).collect();
    if function.has_request_id() {
        parameters.push(to("parameters", "IdempotencyKey"));
    }
    parameters.extend(query);
    let id = operation.id.clone().unwrap_or_else(|| camel_case(&function.name));
    let mut described = json!({
        "operationId": id,
        "tags": [operation.tag.as_deref().unwrap_or(function.area)],
        "summary": operation.summary,
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {"application/json": {"schema": to("schemas", &operation.answer)}}
            },
            "4XX": to("responses", "Refused"),
            "5XX": to("responses", "NotNow")
        }
    });
    if let Some(description) = &operation.description {
        described["description"] = json!(description);
    }
    if !parameters.is_empty() {
        described["parameters"] = json!(parameters);
    }
    if let Some(name) = &operation.body {
        let mut content = json!({"schema": to("schemas", name)});
        if let Some(example) = &operation.example {
            content["example"] = serde_json::from_str(example).expect("the manifests are compiled in");
        }
        let required = schema(name)["required"].as_array().is_some_and(|fields| !fields.is_empty());
        described["requestBody"] = json!({"required": required, "content": {"application/json": content}});
    }
    described
}

/// The component that describes a parameter of paths.
fn in_path<'d>(name: &str, components: &Components<'d>) -> &'d str {
    let mut all = components["parameters"].iter().map(|(component, text)| (*component, read(text)));
    let found = all.find(|(_, parameter)| parameter["name"] == name && parameter["in"] == "path");
    found.unwrap_or_else(|| panic!("no openapi.json describes the parameter {name} of paths")).0
}

/// A schema of an area.
pub fn schema(name: &str) -> &'static Value {
    static SCHEMAS: LazyLock<BTreeMap<&str, Value>> = LazyLock::new(|| {
        let parts =
            PARTS.iter().map(|part| serde_json::from_str::<Part<'_>>(part).expect("it is compiled in"));
        let schemas = parts.filter_map(|mut part| part.components.remove("schemas")).flatten();
        schemas.map(|(name, text)| (name, read(text))).collect()
    });
    SCHEMAS.get(name).unwrap_or_else(|| panic!("no area's openapi.json has the schema {name}"))
}

fn read(text: &RawValue) -> Value {
    serde_json::from_str(text.get()).expect("it was read as JSON before")
}

/// `create_sale` becomes `createSale`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| all + &word[..1].to_uppercase() + &word[1..])
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    #[test]
    fn the_parts_make_one_document() {
        let document: Value = serde_json::from_str(super::document()).unwrap();
        assert_eq!(document["openapi"], "3.1.0");
        for member in [
            "/paths/~1health~1live/get",
            "/paths/~1v1~1queues/get",
            "/components/schemas/Problem",
            "/components/schemas/NewSale",
        ] {
            assert!(document.pointer(member).is_some(), "{member}");
        }
        assert_eq!(document["paths"]["/v1/sales/{item}"]["put"]["operationId"], "createSale");
    }
}
