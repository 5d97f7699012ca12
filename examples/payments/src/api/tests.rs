//! Tests that the OpenAPI document has exactly the paths and methods that the service serves.

use std::collections::BTreeSet;

use serde_json::Value;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The routes in the source of the router: `.route("/path", post(one).get(another))`.
fn served() -> BTreeSet<(String, &'static str)> {
    let (_, router) = include_str!("mod.rs").split_once("Router::new()").unwrap();
    let (router, _) = router.split_once("fallback").unwrap();
    let routes = router.split(".route(").skip(1).map(|route| {
        let (path, handlers) = route.trim_start().strip_prefix('"').unwrap().split_once('"').unwrap();
        let methods = METHODS.into_iter().filter(|method| {
            let call = format!("{method}(");
            handlers.match_indices(&call).any(|(at, _)| !handlers[..at].ends_with(char::is_alphanumeric))
        });
        methods.map(|method| (path.to_owned(), method)).collect::<Vec<_>>()
    });
    routes.flatten().collect()
}

#[test]
fn the_document_has_every_route_and_no_other() {
    let document: Value = serde_json::from_str(include_str!("../../openapi.json")).unwrap();
    let mut documented = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for name in operations.as_object().unwrap().keys() {
            let method = METHODS.into_iter().find(|method| method == name).expect(name);
            documented.insert((path.clone(), method));
        }
    }
    assert!(documented.len() > 10);
    assert_eq!(served(), documented);
}
