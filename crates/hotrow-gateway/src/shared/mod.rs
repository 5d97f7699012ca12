//! The state that all clients of the gateway share: the configuration in force, the pools, the sessions' handles, and
//! the progress of a stop.

pub mod requests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::authentication::{self, Authentication};
use crate::config::Config;
use crate::config::routes::Routes;
use crate::pool::Pool;
use crate::pool::directory::Directory;
use crate::server::permits::{Permit, Permits};
use crate::session::control::Controls;
use crate::session::stop::Stop;
use hotrow_core::session::Stage;
use requests::OperatorRequests;

/// The state that all clients share.
pub struct Shared {
    /// The configuration in force, and the pools.
    pub directory: Arc<Directory>,
    /// For cancel requests.
    pub controls: Controls,
    sessions: AtomicU64,
    /// When the gateway started.
    pub started: Instant,
    clients: Permits,
    stop: Arc<Stop>,
    /// Which clients can connect.
    pub authentication: Authentication,
    /// Requests of the console to the program.
    pub operator_requests: OperatorRequests,
    /// Wakes the console's sessions when the gateway stops.
    leave: Notify,
}

impl Shared {
    /// Without open pools.
    pub fn new(config: Config) -> Result<Self, authentication::Error> {
        Ok(Shared {
            authentication: Authentication::new(&config)?,
            clients: Permits::new(config.clients_max),
            directory: Arc::new(Directory::new(config)),
            controls: Controls::default(),
            sessions: AtomicU64::new(0),
            started: Instant::now(),
            stop: Arc::default(),
            operator_requests: OperatorRequests::default(),
            leave: Notify::new(),
        })
    }

    /// Puts another configuration in force. The addresses stay as they were, and so do `upstream` and `traces`.
    pub fn reload(&self, config: Config) {
        let before = self.config();
        let routes = Routes::clone(&config.routes).replacing(&before.routes);
        let server = routes.first().server.clone();
        let (upstream, replicas) = (server.upstream.clone(), server.replicas.clone());
        let (routes, listen, traces) = (Arc::new(routes), before.listen.clone(), before.traces.clone());
        let mut config = Config { upstream, replicas, routes, listen, traces, ..config };
        for one in config.shown.iter_mut().filter(|one| one.needs_restart) {
            let same = before.shown.iter().find(|other| other.name == one.name);
            same.into_iter().for_each(|same| one.value.clone_from(&same.value));
        }
        self.clients.resize(config.clients_max);
        self.directory.set_config(config);
    }

    /// A permit for one more client, if one is free.
    pub fn try_enter(&self) -> Option<Permit> {
        self.clients.try_acquire()
    }

    /// Number of connected clients, and the limit.
    pub fn client_count(&self) -> (usize, usize) {
        (self.clients.in_use(), self.clients.limit())
    }

    /// Closes connections that have been unused for this long, and unused pools.
    pub fn close_unused(&self, age: Duration) {
        self.directory.close_unused(age);
        self.authentication.close_unused(age);
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.directory.config()
    }

    /// The open pools.
    pub fn pools(&self) -> Vec<Arc<Pool>> {
        self.directory.pools()
    }

    /// Returns when clients have to leave.
    pub async fn leaving(&self) {
        let woken = self.leave.notified(); // registered before the check, so no notification is missed
        if self.stop.stage() == Stage::Serving {
            woken.await;
        }
    }

    /// A number for a new session.
    pub fn next_session(&self) -> u64 {
        self.sessions.fetch_add(1, Relaxed) + 1
    }

    /// The progress of the gateway's stop.
    pub fn stopping(&self) -> Arc<Stop> {
        self.stop.clone()
    }

    /// Whether new clients are rejected.
    pub fn is_stopping(&self) -> bool {
        self.stop.stage() == Stage::Leaving
    }

    /// Makes clients leave. False if some did not leave in time.
    pub async fn drain(&self, stage: Stage, patience: Duration) -> bool {
        self.stop.set(stage);
        self.controls.wake_all();
        self.leave.notify_waiters();
        tokio::time::timeout(patience, self.clients.all_released()).await.is_ok()
    }
}
