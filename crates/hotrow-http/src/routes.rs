//! The routes of the API, with a list of them that a test compares with the manifests of the pack's functions. Each area adds
//! its own routes.

use std::sync::Arc;

use crate::limits;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn;
use axum::routing::{MethodFilter, on};

use crate::clients::Clients;
use crate::input;

/// Routes, and the list of them.
#[derive(Default)]
pub struct Routes {
    with_key: Router<Arc<Clients>>,
    without_key: Router<Arc<Clients>>,
    /// The method and path of each route.
    pub list: Vec<String>,
}

impl Routes {
    /// Adds a path whose requests can carry an Idempotency-Key.
    pub fn with_key<H, T>(mut self, method: Method, path: &str, handler: H) -> Self
    where
        H: Handler<T, Arc<Clients>>,
        T: 'static,
    {
        let filter = self.note(method, path);
        self.with_key = self.with_key.route(path, on(filter, handler));
        self
    }

    /// Adds a path whose requests are refused if they carry an Idempotency-Key and change something.
    pub fn without_key<H, T>(mut self, method: Method, path: &str, handler: H) -> Self
    where
        H: Handler<T, Arc<Clients>>,
        T: 'static,
    {
        let filter = self.note(method, path);
        self.without_key = self.without_key.route(path, on(filter, handler));
        self
    }

    /// Adds a path like `without_key`, with the larger bound for bodies that hold many orders.
    pub fn without_key_large<H, T>(self, method: Method, path: &str, handler: H) -> Self
    where
        H: Handler<T, Arc<Clients>>,
        T: 'static,
    {
        let large = DefaultBodyLimit::max(limits::HTTP_BATCH_BYTES_MAX);
        self.without_key(method, path, handler.layer(large))
    }

    fn note(&mut self, method: Method, path: &str) -> MethodFilter {
        self.list.push(format!("{method} {path}"));
        MethodFilter::try_from(method).expect("the areas use methods that axum knows")
    }

    /// The routes as one router.
    pub fn router(self) -> Router<Arc<Clients>> {
        self.with_key.merge(self.without_key.route_layer(from_fn(input::refuse_key)))
    }
}
