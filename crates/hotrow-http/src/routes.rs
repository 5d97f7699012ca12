//! The routes of the API, as the manifests declare them. Areas add the handlers of functions that need one, and `plain` adds all
//! others.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn;
use axum::routing::{MethodFilter, MethodRouter, on};
use hotrow_sql::{Function, functions};

use crate::clients::Clients;
use crate::input;

/// The methods, in the order in which the header Allow names those of a path.
const METHODS: [(&str, MethodFilter); 4] = [
    ("PUT", MethodFilter::PUT),
    ("POST", MethodFilter::POST),
    ("GET", MethodFilter::GET),
    ("DELETE", MethodFilter::DELETE),
];

/// The routes of functions, each with the place of its method.
#[derive(Default)]
pub struct Routes(Vec<(usize, &'static Function, MethodRouter<Arc<Clients>>)>);

impl Routes {
    /// Adds the route of a function.
    pub fn add<H, T>(mut self, function: &str, handler: H) -> Self
    where
        H: Handler<T, Arc<Clients>>,
        T: 'static,
    {
        let found = routed().find(|(it, ..)| it.name == function);
        let (function, method, _) =
            found.unwrap_or_else(|| panic!("the manifest of {function} has no route"));
        let place = METHODS.iter().position(|(name, _)| *name == method);
        let place = place.unwrap_or_else(|| panic!("{}: add {method} to METHODS", function.name));
        self.0.push((place, function, on(METHODS[place].1, handler)));
        self
    }

    /// The functions that have no route yet.
    pub fn missing(&self) -> Vec<&'static Function> {
        let is_added = |name: &str| self.0.iter().any(|(_, function, _)| function.name == name);
        routed().map(|(function, ..)| function).filter(|function| !is_added(&function.name)).collect()
    }

    /// The routes as one router. Requests to a path can carry an Idempotency-Key if one of its functions has a request ID. Otherwise
    /// they are refused if they carry one and change something.
    pub fn router(mut self) -> Router<Arc<Clients>> {
        self.0.sort_by_key(|(place, ..)| *place);
        let (mut with_key, mut without_key) = (Router::new(), Router::new());
        for (_, Function { http, .. }, route) in self.0 {
            let path = http.at().map_or("", |operation| operation.method_and_path().1);
            let mut of_path = routed().filter(|(.., other)| *other == path);
            if of_path.any(|(function, ..)| function.has_request_id()) {
                with_key = with_key.route(path, route);
            } else {
                without_key = without_key.route(path, route);
            }
        }
        with_key.merge(without_key.route_layer(from_fn(input::refuse_key)))
    }
}

/// The functions that have a route, with its method and path.
fn routed() -> impl Iterator<Item = (&'static Function, &'static str, &'static str)> {
    functions().iter().filter_map(|function| {
        let (method, path) = function.http.at()?.method_and_path();
        Some((function, method, path))
    })
}
