//! Detects connections that have been idle for too long: they send no request, or do not read their answers. Bytes alone, such
//! as HTTP/2 PINGs, do not count.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tokio::time::Instant;

use crate::bounds::Bounds;
use crate::room::ConnectionRoom;

/// The requests of one connection.
#[derive(Debug)]
pub struct Activity(Mutex<State>);

#[derive(Debug)]
struct State {
    under_way: usize,
    /// The time at which a request last began, made progress or ended.
    since: Instant,
}

/// A request that is under way until its answer is read.
struct UnderWay(Arc<Activity>);

impl Activity {
    /// The activity of a connection that has just been opened.
    pub fn new() -> Arc<Self> {
        Arc::new(Activity(Mutex::new(State { under_way: 0, since: Instant::now() })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(self: &Arc<Self>) -> UnderWay {
        let mut state = self.lock();
        state.under_way += 1;
        state.since = Instant::now();
        UnderWay(self.clone())
    }

    /// Returns when the connection has been idle for as long as these bounds allow.
    pub async fn idle(&self, bounds: Bounds) {
        loop {
            let deadline = {
                let state = self.lock();
                state.since + if state.under_way == 0 { bounds.headers } else { bounds.idle }
            };
            let now = Instant::now();
            if deadline <= now {
                return;
            }
            // A request that ends meanwhile brings the deadline closer, but never closer than this.
            tokio::time::sleep_until(deadline.min(now + bounds.headers)).await;
        }
    }
}

impl UnderWay {
    fn goes_on(&self) {
        self.0.lock().since = Instant::now();
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.under_way -= 1;
        state.since = Instant::now();
    }
}

/// The routes, for the requests of one connection.
pub struct Watched {
    router: Router,
    activity: Arc<Activity>,
    room: ConnectionRoom,
}

impl Watched {
    /// Records requests to these routes in `activity`.
    pub fn new(router: Router, activity: Arc<Activity>) -> Self {
        Watched { router, activity, room: ConnectionRoom::default() }
    }
}

impl Service<Request<Incoming>> for Watched {
    type Response = Response;
    type Error = std::convert::Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response, Self::Error>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.room.clone());
        let under_way = self.activity.begin();
        let answer = TowerToHyperService::new(self.router.clone()).call(request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    under_way.goes_on();
                    frame
                }))
            }))
        })
    }
}
