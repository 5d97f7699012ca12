//! `GET /live`: the state of the gateway as server-sent events, one a second, for the operations page. The number of streams is
//! bounded, and all streams get the same events.

mod history;
mod sampler;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use crate::limits;
use axum::Extension;
use axum::Router;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use futures_util::stream::unfold;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::auth::Access;
use crate::clients::Clients;
use crate::problem::{Kind, Problem};

pub use history::Counters;
use sampler::Sampler;

/// The program whose state the page shows.
pub trait Source: Send + Sync + 'static {
    /// Facts that do not change while the program runs, for the first event of a stream.
    fn about(&self) -> Map<String, Value>;

    /// The gateway's numbers. Called once a second.
    fn counters(&self) -> Counters;

    /// The gateway's state. Called once a second while there are streams.
    fn state(&self) -> Pin<Box<dyn Future<Output = State> + Send + '_>>;
}

/// The state at one moment.
#[derive(Debug, Default)]
pub struct State {
    /// The fields of the event, in addition to the rates.
    pub fields: Map<String, Value>,
    /// WAL flushes of the server, if they are known.
    pub flushes_per_second: Option<f64>,
}

/// The streams.
pub struct Live {
    source: Arc<dyn Source>,
    sampler: Arc<Sampler>,
    room: Arc<Semaphore>,
}

impl Live {
    /// Samples from now on, for streams of these clients' server.
    pub fn start(source: Arc<dyn Source>, clients: &Clients) -> Arc<Self> {
        let sampler = Sampler::start(source.clone(), clients.stopping());
        let room = Arc::new(Semaphore::new(limits::LIVE_STREAMS_MAX));
        Arc::new(Live { source, sampler, room })
    }
}

/// The route of the stream.
pub fn routes(live: Arc<Live>) -> Router<Arc<Clients>> {
    Router::new().route("/live", get(stream).layer(Extension(live)))
}

/// One client's stream.
struct Stream {
    /// Events that are sent before the next one of the sampler.
    first: Option<Bytes>,
    events: watch::Receiver<Bytes>,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    _permit: OwnedSemaphorePermit,
}

/// `GET /live`
async fn stream(
    Shared(clients): Shared<Arc<Clients>>,
    Extension(live): Extension<Arc<Live>>,
    Extension(access): Extension<Access>,
) -> Result<Response, Problem> {
    let permit = live.room.clone().try_acquire_owned().map_err(|_| {
        let detail = format!("{} streams are open already", limits::LIVE_STREAMS_MAX);
        Problem::new(Kind::Busy, detail, "Close pages that are not needed, and repeat the request.")
    })?;
    let events = live.sampler.events();
    let mut about = live.source.about();
    about.insert("can_change".to_owned(), json!(access == Access::Full));
    let about = serde_json::to_vec(&about).map_err(|error| Problem::internal(&error))?;
    let first = [event("about", &about), event("history", &live.sampler.history().await)].concat();
    let stop = Box::pin(clients.stopping());
    let stream = Stream { first: Some(first.into()), events, stop, _permit: permit };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::from_stream(unfold(stream, next))).into_response())
}

/// The next part of a stream. The stream ends when the server is told to stop.
async fn next(mut stream: Stream) -> Option<(Result<Bytes, Infallible>, Stream)> {
    if let Some(first) = stream.first.take() {
        return Some((Ok(first), stream));
    }
    tokio::select! {
        changed = stream.events.changed() => changed.ok()?,
        () = &mut stream.stop => return None,
    }
    let state = event("state", &stream.events.borrow_and_update()).into();
    Some((Ok(state), stream))
}

/// An event. JSON has no line breaks, so one line holds its data.
fn event(name: &str, json: &[u8]) -> Vec<u8> {
    [b"event: ", name.as_bytes(), b"\ndata: ", json, b"\n\n"].concat()
}
