//! The state that all clients of the gateway share: the configuration in force, the pools, the sessions' handles, and
//! the progress of a stop.

pub mod requests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;
use hotrow_auth::Credential;
use hotrow_core::limits;
use tokio::sync::Notify;

use crate::authentication::{self, Authentication};
use crate::config::Config;
use crate::lock::Lock;
use crate::pool::databases::Databases;
use crate::pool::identity::Identity;
use crate::pool::pools::{Full, PoolUse, Pools};
use crate::pool::{Member, Pool};
use crate::server::held::{self, HeldConnections};
use crate::server::permits::{Permit, Permits};
use crate::session::control::Controls;
use crate::session::stop::{Stage, Stop};
use requests::OperatorRequests;

/// The state that all clients share.
pub struct Shared {
    config: ArcSwap<Config>,
    held: Arc<HeldConnections>,
    pools: Pools,
    /// Held while a client is admitted to a pool.
    joining: Lock<()>,
    /// For cancel requests.
    pub controls: Controls,
    sessions: AtomicU64,
    clients: Permits,
    stop: Arc<Stop>,
    /// Which clients can connect.
    pub authentication: Authentication,
    /// The databases, and which of them are paused.
    pub databases: Databases,
    /// Requests of the console to the program.
    pub operator_requests: OperatorRequests,
    /// Wakes the console's sessions when the gateway stops.
    leave: Notify,
}

/// Why a client gets no pool.
#[derive(Debug)]
pub enum NoPool {
    /// All possible pools are in use.
    Full(Full),
    /// It could not be opened.
    Error(held::Error),
}

impl Shared {
    /// Without open pools.
    pub fn new(config: Config) -> Result<Self, authentication::Error> {
        Ok(Shared {
            authentication: Authentication::new(&config)?,
            held: Arc::new(HeldConnections::new(&config)),
            clients: Permits::new(config.clients_max),
            config: ArcSwap::from_pointee(config),
            pools: Pools::default(),
            joining: Lock::default(),
            controls: Controls::default(),
            sessions: AtomicU64::new(0),
            stop: Arc::default(),
            databases: Databases::default(),
            operator_requests: OperatorRequests::default(),
            leave: Notify::new(),
        })
    }

    /// Puts another configuration in force. The server and the addresses stay as they were.
    pub fn reload(&self, config: Config) {
        let before = self.config.load_full();
        let mut upstream = before.upstream.clone();
        upstream.tls = upstream.tls.map(|tls| tls.renewed(config.upstream.tls.as_ref()));
        let mut config = Config { upstream, listen: before.listen.clone(), ..config };
        for one in config.shown.iter_mut().filter(|one| one.needs_restart) {
            let same = before.shown.iter().find(|other| other.name == one.name);
            same.into_iter().for_each(|same| one.value.clone_from(&same.value));
        }
        self.clients.resize(config.clients_max);
        self.held.resize(&config);
        let config = Arc::new(config);
        self.config.store(config.clone());
        self.pools().iter().for_each(|pool| pool.reload(&config));
    }

    /// A permit for one more client, if one is free.
    pub fn try_enter(&self) -> Option<Permit> {
        self.clients.try_acquire()
    }

    /// Closes connections that have been unused for this long, and unused pools.
    pub fn close_unused(&self, age: Duration) {
        self.held.close_unused(age);
        self.authentication.close_unused(age);
        self.pools.close_unused(Duration::from_millis(limits::POOL_IDLE_MS));
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    /// The open pools.
    pub fn pools(&self) -> Vec<Arc<Pool>> {
        self.pools.open()
    }

    /// The pool of these clients, which is opened if necessary.
    pub async fn pool(&self, identity: Identity, credential: Credential) -> Result<PoolUse, NoPool> {
        if let Some(others) = identity.without_utf8() {
            let used = self.pool_of(others, credential.clone()).await?;
            if used.pool().speaks_utf8() {
                return Ok(used);
            }
        }
        self.pool_of(identity, credential).await
    }

    async fn pool_of(&self, identity: Identity, credential: Credential) -> Result<PoolUse, NoPool> {
        let database = self.databases.of(identity.database());
        let cell = self.pools.get(&identity).map_err(NoPool::Full)?;
        let opened = cell
            .get_or_try_init(|| {
                let config = Arc::new(self.config.load().of(identity.database(), identity.user()));
                Pool::open(config, self.held.clone(), database.clone(), identity.clone(), credential.clone())
            })
            .await;
        match opened {
            Ok(pool) => {
                pool.context.login.renew(credential);
                // A task that paused or resumed the database meanwhile may not have seen this pool yet.
                if database.is_paused() {
                    drop(pool.pause());
                    if !database.is_paused() {
                        pool.resume();
                    }
                }
                // before the cell is dropped, which keeps the pool open until then
                let used = PoolUse::of(pool);
                pool.log_in().await.map_err(NoPool::Error)?;
                Ok(used)
            }
            Err(error) => {
                self.pools.forget_unopened(&identity);
                Err(NoPool::Error(error))
            }
        }
    }

    /// Adds the settings of the matching `[[pool]]` table for a client with these start-up parameters.
    pub fn put_settings(&self, parameters: &mut Vec<(String, String)>) {
        let identity = Identity::new(parameters);
        if let Some(table) = &self.config.load().of(identity.database(), identity.user()).table {
            table.put_settings(parameters);
        }
    }

    /// Admits one more client to a pool, unless its `[[pool]]` table's limit is reached: then returns the limit and the
    /// table.
    pub fn join(&self, pool: &Arc<Pool>) -> Result<Member, (usize, String)> {
        let _one_at_a_time = self.joining.lock();
        let config = pool.config();
        if let Some(table) = &config.table
            && let Some(most) = table.clients_max
        {
            let same = |other: &&Arc<Pool>| {
                other.config().table.as_ref().is_some_and(|other| other.is_for_same(table))
            };
            let clients: usize = self.pools().iter().filter(same).map(|pool| pool.clients()).sum();
            if clients >= most.get() {
                return Err((most.get(), table.describe()));
            }
        }
        Ok(Member::of(pool))
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
