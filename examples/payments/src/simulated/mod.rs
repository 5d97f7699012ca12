//! Three payment gateways with configurable failures, and with books to compare with the service's tables. They are a
//! separate program, which the service reaches over HTTP only.

mod behaviour;
mod book;
mod desk;
mod webhooks;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use jiff::Timestamp;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::gateway::{Gateway, Order, Report};
use crate::program::{Error, say};
use crate::server::{asked_to_stop, serve};
use crate::settings;

use behaviour::Behaviour;
use book::Entry;
use desk::Desk;

/// A client without an answer disconnects before this time.
const FOREVER: Duration = Duration::from_secs(120);

type Desks = Arc<HashMap<&'static str, Arc<Desk>>>;

type Answer<T> = Result<Json<T>, StatusCode>;

/// Runs until it is asked to stop.
pub async fn run() -> Result<(), Error> {
    let secrets = settings::gateway_secrets(Gateway::ALL.len())?;
    let folder = settings::text("BOOKS", "")?;
    let listen: std::net::SocketAddr = settings::or("LISTEN", "127.0.0.1:8091")?;
    let behaviour: Behaviour = settings::or("BEHAVIOUR", "{}")?;
    let mut desks = HashMap::new();
    for ((name, _), secret) in Gateway::ALL.into_iter().zip(secrets) {
        let file = (!folder.is_empty()).then(|| std::path::Path::new(&folder).join(format!("{name}.jsonl")));
        desks.insert(name, Arc::new(Desk::open(name, file, behaviour.clone(), secret)?));
    }
    let router = Router::new()
        .route("/{gateway}/operations", post(operate))
        .route("/{gateway}/operations/{reference}", get(status))
        .route("/{gateway}/behaviour", put(behave))
        .route("/{gateway}/book", get(book))
        .with_state(Arc::new(desks));
    let listener = TcpListener::bind(listen).await?;
    say(&format!("payment-gateways: listening on {}", listener.local_addr()?))?;
    serve(listener, router, asked_to_stop()).await;
    Ok(())
}

fn desk(desks: &Desks, name: &str) -> Result<Arc<Desk>, StatusCode> {
    desks.get(name).cloned().ok_or(StatusCode::NOT_FOUND)
}

/// The same, unless it is down.
fn running(desks: &Desks, name: &str) -> Result<Arc<Desk>, StatusCode> {
    let desk = desk(desks, name)?;
    if desk.behaviour().down { Err(StatusCode::SERVICE_UNAVAILABLE) } else { Ok(desk) }
}

/// Carries an order out, answers, and sends a webhook, each as far as its behaviour allows.
async fn operate(desks: State<Desks>, Path(name): Path<String>, Json(order): Json<Order>) -> Answer<Report> {
    let desk = running(&desks, &name)?;
    // It finishes the order even if its client does not wait.
    let done = tokio::spawn(async move { desk.operate(order).await });
    match done.await {
        Ok(Some(report)) => Ok(Json(report)),
        Ok(None) => {
            tokio::time::sleep(FOREVER).await;
            Err(StatusCode::GATEWAY_TIMEOUT)
        }
        Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

async fn status(desks: State<Desks>, Path((name, reference)): Path<(String, Uuid)>) -> Answer<Report> {
    let desk = running(&desks, &name)?;
    // The clock is read first: an order that comes later and is late will be refused.
    let now = Timestamp::now();
    let entry = desk.entry(reference);
    Ok(Json(entry.map_or(Report { outcome: None, code: None, known: false, now }, |entry| entry.report(now))))
}

async fn behave(
    desks: State<Desks>,
    Path(name): Path<String>,
    Json(behaviour): Json<Behaviour>,
) -> Result<(), StatusCode> {
    desk(&desks, &name)?.behave(behaviour);
    Ok(())
}

async fn book(desks: State<Desks>, Path(name): Path<String>) -> Answer<Vec<Entry>> {
    Ok(Json(desk(&desks, &name)?.entries()))
}
