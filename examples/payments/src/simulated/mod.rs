//! Three payment gateways that misbehave to order, with books of their own to compare ours with. A program of its own;
//! the service meets it over HTTP only.

mod behaviour;
mod book;
mod desk;
mod webhooks;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use jiff::Timestamp;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::gateway::Simulated;
use crate::gateway::{Report, Wire};
use crate::program::{Error, say};
use crate::server::{asked_to_stop, serve};
use crate::settings;

use behaviour::Behaviour;
use book::Entry;
use desk::Desk;

/// Who gets no answer hangs up before that.
const FOREVER: Duration = Duration::from_secs(120);

type Desks = Arc<HashMap<&'static str, Arc<Desk>>>;

/// Runs until it is asked to stop.
pub async fn run() -> Result<(), Error> {
    let secrets = settings::gateway_secrets(Simulated::ALL.len())?;
    let folder = settings::text("BOOKS", "")?;
    let listen: std::net::SocketAddr = settings::or("LISTEN", "127.0.0.1:8091")?;
    let behaviour: Behaviour = settings::or("BEHAVIOUR", "{}")?;
    let mut desks = HashMap::new();
    for ((name, _), secret) in Simulated::ALL.into_iter().zip(secrets) {
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
    let stop = async {
        if asked_to_stop().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    serve(listener, router, stop).await;
    Ok(())
}

fn desk(desks: &Desks, name: &str) -> Result<Arc<Desk>, StatusCode> {
    desks.get(name).cloned().ok_or(StatusCode::NOT_FOUND)
}

/// Does what is ordered, answers, and tells it again by webhook; each of these only if it behaves.
async fn operate(
    State(desks): State<Desks>,
    Path(name): Path<String>,
    Json(wire): Json<Wire>,
) -> Result<Json<Report>, StatusCode> {
    let desk = desk(&desks, &name)?;
    if desk.behaviour().down {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    // What it has begun it finishes, whether its client waits or not.
    let done = tokio::spawn(async move { desk.operate(wire).await });
    match done.await {
        Ok(Some(report)) => Ok(Json(report)),
        Ok(None) => {
            tokio::time::sleep(FOREVER).await;
            Err(StatusCode::GATEWAY_TIMEOUT)
        }
        Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

async fn status(
    State(desks): State<Desks>,
    Path((name, reference)): Path<(String, Uuid)>,
) -> Result<Json<Report>, StatusCode> {
    let desk = desk(&desks, &name)?;
    if desk.behaviour().down {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    // The clock first: what comes after it and is late will be refused.
    let now = Timestamp::now();
    let entry = desk.entry(reference);
    Ok(Json(entry.map_or(Report { outcome: None, code: None, known: false, now }, |entry| entry.report(now))))
}

async fn behave(
    State(desks): State<Desks>,
    Path(name): Path<String>,
    Json(behaviour): Json<Behaviour>,
) -> Result<(), StatusCode> {
    desk(&desks, &name)?.behave(behaviour);
    Ok(())
}

async fn book(State(desks): State<Desks>, Path(name): Path<String>) -> Result<Json<Vec<Entry>>, StatusCode> {
    Ok(Json(desk(&desks, &name)?.entries()))
}
