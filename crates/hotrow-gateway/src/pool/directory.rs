//! All pools of the gateway, and what is needed to open one: the configuration, the held connections, the databases.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;
use hotrow_auth::Credential;
use hotrow_connect::lock::Lock;
use hotrow_connect::login::Login;
use hotrow_core::limits;
use hotrow_core::settings::Settings;

use crate::config::Config;
use crate::config::routes::Route;
use crate::pool::databases::Databases;
use crate::pool::identity::Identity;
use crate::pool::listener::Listeners;
use crate::pool::lock_holders::LockHolders;
use crate::pool::pools::{Full, PoolUse, Pools};
use crate::pool::{Member, Pool};
use crate::server::held::{self, HeldConnection, HeldConnections};

/// How often pools without clients are closed while a server waits for the end of sessions, and the time between.
const LEAVING_ROUNDS: usize = 10;
const LEAVING_EVERY: Duration = Duration::from_millis(400);

/// The pools.
pub struct Directory {
    config: ArcSwap<Config>,
    /// The connections of sessions, by the server's number.
    held: Lock<HashMap<u64, Arc<HeldConnections>>>,
    pools: Pools,
    /// Held while a client is admitted to a pool.
    joining: Lock<()>,
    /// How often more pools without clients are closed for a statement about a database. 0 if no task does it.
    rounds_of_leaving: AtomicUsize,
    /// The databases, and which of them are paused.
    pub databases: Databases,
    /// The listening connections.
    pub listeners: Arc<Listeners>,
    /// Answers about the holders of rows, for the console.
    pub lock_holders: LockHolders,
}

/// Why a client gets no pool.
#[derive(Debug)]
pub enum NoPool {
    /// All possible pools are in use.
    Full(Full),
    /// It could not be opened.
    Error(held::Error),
}

impl Directory {
    /// Without open pools.
    pub fn new(config: Config) -> Self {
        Directory {
            held: Lock::default(),
            config: ArcSwap::from_pointee(config),
            pools: Pools::default(),
            joining: Lock::default(),
            rounds_of_leaving: AtomicUsize::default(),
            databases: Databases::default(),
            listeners: Arc::default(),
            lock_holders: LockHolders::default(),
        }
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    /// Puts another configuration in force. Pools of removed or changed databases serve the clients that they have.
    pub fn set_config(&self, config: Config) {
        let config = Arc::new(config);
        self.config.store(config.clone());
        self.held.lock().values().for_each(|held| held.resize(&config));
        self.pools.close_removed(&config.routes);
        self.pools().iter().for_each(|pool| pool.reload(&config));
        let is_needed = |id: &u64, held: &Arc<HeldConnections>| {
            config.routes.has_server(*id) || Arc::strong_count(held) > 1
        };
        self.held.lock().retain(|id, held| is_needed(id, held));
    }

    /// The connections of a server. Each server has bounds of its own, so sessions that wait for one server do not keep
    /// other sessions from another.
    fn held_of(&self, route: &Route) -> Arc<HeldConnections> {
        let config = self.config.load();
        let new = || Arc::new(HeldConnections::new(&config));
        self.held.lock().entry(route.server.id).or_insert_with(new).clone()
    }

    /// The open pools.
    pub fn pools(&self) -> Vec<Arc<Pool>> {
        self.pools.open()
    }

    /// Closes connections that have been unused for this long, and unused pools.
    pub fn close_unused(&self, age: Duration) {
        for held in self.held.lock().values() {
            held.close_unused(age);
        }
        self.pools.close_unused(Duration::from_millis(limits::POOL_IDLE_MS));
    }

    /// Closes the pools without clients, now and for the next seconds: a server waits up to five seconds until the other
    /// sessions of a database have ended, and a client that has just disconnected may still be counted here.
    pub fn leave_unused_databases(self: &Arc<Self>) {
        if self.rounds_of_leaving.swap(LEAVING_ROUNDS, Relaxed) > 0 {
            return; // a task does it already
        }
        let directory = self.clone();
        tokio::spawn(async move {
            loop {
                directory.pools.close_unused(Duration::ZERO);
                directory.listeners.leave_unused();
                tokio::time::sleep(LEAVING_EVERY).await;
                if directory.rounds_of_leaving.fetch_sub(1, Relaxed) == 1 {
                    break;
                }
            }
        });
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
        let config = self.config_of(&identity);
        let (route, held) = (identity.route(), self.held_of(identity.route()));
        let database = self.databases.of(route, identity.database());
        let opening =
            Pool::open(config, held, database, identity.clone(), credential.clone(), self.listeners.clone());
        let used = self.use_or_open(&identity, 0, opening).await?;
        used.pool().context.login.renew(credential);
        used.pool().login().await.map_err(NoPool::Error)?;
        Ok(used)
    }

    /// The pool of a session of this pool that has changed its settings to these, on this connection, after this number of other
    /// changes. Nothing waits for another connection.
    pub async fn pool_with(
        &self,
        pool: &Pool,
        settings: Settings,
        moves: usize,
        held: &mut HeldConnection,
    ) -> Result<PoolUse, NoPool> {
        let identity = pool.identity.with_settings(settings);
        let opening = async {
            let server = held.upstream.server_settings().await?;
            let login = Login::like(&pool.context.login);
            let (config, database) = (self.config_of(&identity), pool.database_state().clone());
            let held = self.held_of(identity.route());
            let listeners = self.listeners.clone();
            Ok(Pool::start(config, held, database, identity.clone(), login, server, listeners))
        };
        let used = self.use_or_open(&identity, moves, opening).await?;
        used.pool().context.login.renew_from(&pool.context.login);
        used.pool().login_soon();
        Ok(used)
    }

    /// The pool of a session of this pool that changes its settings to these, and holds no connection. None if that pool is
    /// not open, or its user can no longer log in.
    pub async fn enter(&self, pool: &Pool, settings: Settings) -> Option<PoolUse> {
        let used = self.open_pool_with(pool, settings)?;
        used.pool().context.login.renew_from(&pool.context.login);
        Box::pin(used.pool().login()).await.ok()?;
        Some(used)
    }

    /// The pool of this pool's clients with other settings, if it is open.
    pub fn open_pool_with(&self, pool: &Pool, settings: Settings) -> Option<PoolUse> {
        self.pools.find(&pool.identity.with_settings(settings))
    }

    /// Uses the pool of this identity. If it is not open, `opening` opens it.
    async fn use_or_open(
        &self,
        identity: &Identity,
        moves: usize,
        opening: impl Future<Output = Result<Arc<Pool>, held::Error>>,
    ) -> Result<PoolUse, NoPool> {
        // It keeps the pool open until this function returns.
        let cell = self.pools.get(identity, moves).map_err(NoPool::Full)?;
        match cell.get_or_try_init(|| opening).await {
            Ok(pool) => {
                // A task that paused or resumed the database meanwhile may not have seen this pool yet.
                if pool.database_state().is_paused() {
                    drop(pool.pause());
                    if !pool.database_state().is_paused() {
                        pool.resume();
                    }
                }
                Ok(PoolUse::of(pool))
            }
            Err(error) => {
                self.pools.forget_unopened(identity);
                Err(NoPool::Error(error))
            }
        }
    }

    fn config_of(&self, identity: &Identity) -> Arc<Config> {
        Arc::new(self.config.load().of(identity.route(), identity.database(), identity.user()))
    }

    /// The identity of a client with these startup parameters, with the settings of the matching `[[pool]]` table.
    pub fn identity(&self, route: Arc<Route>, parameters: &[(String, String)]) -> Identity {
        let identity = Identity::new(route, parameters);
        match &self.config_of(&identity).table {
            Some(table) => identity.with_table(table),
            None => identity,
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
}
