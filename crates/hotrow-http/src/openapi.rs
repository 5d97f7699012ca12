//! Assembles the OpenAPI document from `openapi.json` beside this file and the parts in the folders of the areas.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The document's head, and the parts that belong to no area.
const BASE: &str = include_str!("openapi.json");

/// The paths and components of each area.
const PARTS: [&str; 4] = [
    include_str!("counters/openapi.json"),
    include_str!("sales/openapi.json"),
    include_str!("queues/openapi.json"),
    include_str!("feeds/openapi.json"),
];

type Members<'d> = BTreeMap<&'d str, &'d RawValue>;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document<'d> {
    #[serde(borrow)]
    openapi: &'d RawValue,
    #[serde(borrow)]
    info: &'d RawValue,
    #[serde(borrow)]
    servers: &'d RawValue,
    #[serde(borrow)]
    security: &'d RawValue,
    #[serde(borrow)]
    paths: Members<'d>,
    #[serde(borrow)]
    components: BTreeMap<&'d str, Members<'d>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part<'d> {
    #[serde(borrow)]
    paths: Members<'d>,
    #[serde(borrow)]
    components: BTreeMap<&'d str, Members<'d>>,
}

/// The whole document, with its paths and components in alphabetical order.
pub fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        let mut document: Document<'_> = serde_json::from_str(BASE).expect("openapi.json is compiled in");
        for part in PARTS {
            let part: Part<'_> = serde_json::from_str(part).expect("each area's openapi.json is compiled in");
            add(&mut document.paths, part.paths);
            for (kind, members) in part.components {
                add(document.components.entry(kind).or_default(), members);
            }
        }
        serde_json::to_string_pretty(&document).expect("raw values are JSON already")
    });
    &DOCUMENT
}

fn add<'d>(all: &mut Members<'d>, some: Members<'d>) {
    for (name, value) in some {
        assert!(all.insert(name, value).is_none(), "two parts of the document declare {name}");
    }
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
    }
}
