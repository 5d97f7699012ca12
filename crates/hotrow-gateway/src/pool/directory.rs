//! All pools of the gateway, and what is needed to open one: the configuration, the held connections, the databases.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use hotrow_auth::Credential;
use hotrow_core::limits;
use hotrow_core::settings::Settings;

use crate::config::Config;
use crate::lock::Lock;
use crate::pool::databases::Databases;
use crate::pool::identity::Identity;
use crate::pool::listener::Listeners;
use crate::pool::pools::{Full, PoolUse, Pools};
use crate::pool::{Member, Pool, log_ins};
use crate::server::held::{self, HeldConnection, HeldConnections};
use crate::server::login::Login;

/// The pools.
pub struct Directory {
    config: ArcSwap<Config>,
    held: Arc<HeldConnections>,
    pools: Pools,
    /// Held while a client is admitted to a pool.
    joining: Lock<()>,
    /// The databases, and which of them are paused.
    pub databases: Databases,
    /// The connections that listen for clients.
    pub listeners: Listeners,
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
            held: Arc::new(HeldConnections::new(&config)),
            config: ArcSwap::from_pointee(config),
            pools: Pools::default(),
            joining: Lock::default(),
            databases: Databases::default(),
            listeners: Listeners::default(),
        }
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    /// Puts another configuration in force.
    pub fn set_config(&self, config: Config) {
        self.held.resize(&config);
        let config = Arc::new(config);
        self.config.store(config.clone());
        self.pools().iter().for_each(|pool| pool.reload(&config));
    }

    /// The open pools.
    pub fn pools(&self) -> Vec<Arc<Pool>> {
        self.pools.open()
    }

    /// Closes connections that have been unused for this long, and unused pools.
    pub fn close_unused(&self, age: Duration) {
        self.held.close_unused(age);
        self.pools.close_unused(Duration::from_millis(limits::POOL_IDLE_MS));
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
        let database = self.databases.of(identity.database());
        let opening = Pool::open(config, self.held.clone(), database, identity.clone(), credential.clone());
        let used = self.use_or_open(&identity, opening).await?;
        used.pool().context.login.renew(credential);
        used.pool().log_in().await.map_err(NoPool::Error)?;
        Ok(used)
    }

    /// The pool of a session of this pool that has changed its settings to these, on this connection. Nothing waits for
    /// another connection.
    pub async fn pool_with(
        &self,
        pool: &Pool,
        settings: Settings,
        held: &mut HeldConnection,
    ) -> Result<PoolUse, NoPool> {
        let identity = pool.identity.with_settings(settings);
        let opening = async {
            let server = log_ins::ask(&mut held.upstream).await?;
            let login = Login::new(identity.user(), pool.context.login.credential());
            let (config, database) = (self.config_of(&identity), pool.database_state().clone());
            Ok(Pool::start(config, self.held.clone(), database, identity.clone(), login, server))
        };
        self.use_or_open(&identity, opening).await
    }

    /// Uses the pool of this identity. If it is not open, `opening` opens it.
    async fn use_or_open(
        &self,
        identity: &Identity,
        opening: impl Future<Output = Result<Arc<Pool>, held::Error>>,
    ) -> Result<PoolUse, NoPool> {
        // It keeps the pool open until this function returns.
        let cell = self.pools.get(identity).map_err(NoPool::Full)?;
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
        Arc::new(self.config.load().of(identity.database(), identity.user()))
    }

    /// Adds the settings of the matching `[[pool]]` table for a client with these start-up parameters.
    pub fn put_settings(&self, parameters: &mut Vec<(String, String)>) {
        let identity = Identity::new(parameters);
        if let Some(table) = &self.config_of(&identity).table {
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
}
