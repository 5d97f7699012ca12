//! Upstream connections that sessions hold for a while: found again, made, waited for, given back, closed when
//! nobody needs them. What goes over them is the session's business.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotrow_core::limits;
use hotrow_wire::frontend;

use crate::config::{Config, PoolTable};
use crate::lock::Lock;
use crate::metrics::{GaugeGuard, METRICS};
use crate::server::database::{DatabaseState, DatabaseUse};
use crate::server::login::Login;
use crate::server::permits::{Permit, Permits};
use crate::server::upstream::{self, Upstream};

/// The connections of all pools.
#[derive(Debug)]
pub struct HeldConnections {
    /// As many as may be in use at once.
    in_use: Permits,
    /// For the clients of those tables of the settings that set a limit.
    table_permits: Lock<Vec<(Arc<PoolTable>, Arc<Permits>)>>,
    /// For what is short, where the server is on this machine.
    turns: Permits,
    idle: Lock<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// By pool number; the one given back last is taken first.
    pools: BTreeMap<u64, Vec<(OpenConnection, Instant)>>,
    count: usize,
}

#[derive(Debug)]
struct OpenConnection {
    upstream: Box<Upstream>,
    application_name: Option<String>,
    /// The server was told to forget sequence values, and has not said that it did.
    is_discarding: bool,
    /// Which generation of connections it belongs to.
    generation: u64,
    _gauge: GaugeGuard,
}

/// A connection that was made to look at the server, and is closed after that.
#[derive(Debug)]
pub struct ProbeConnection {
    open: OpenConnection,
    _database_use: DatabaseUse,
}

/// A connection in somebody's hands. Dropped, it is closed; to be used again it has to be given back.
#[derive(Debug)]
pub struct HeldConnection {
    /// The connection.
    pub upstream: Box<Upstream>,
    /// Its backend may remember sequence values of the session.
    pub moved_sequence: bool,
    /// The name the server knows it by, where that is known.
    application_name: Option<String>,
    pool: u64,
    generation: u64,
    permits: UsePermits,
    /// Its place among those of the clients that a table of the settings limits.
    pub table_permit: Option<Permit>,
    _gauge: GaugeGuard,
}

/// What allows somebody to have a connection in hands.
#[derive(Debug)]
struct UsePermits {
    database_use: DatabaseUse,
    _permit: Permit,
    /// Its turn on the server's processors, where those are also the gateway's.
    turn: Option<Permit>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// All are in use.
    #[error("no upstream connection became free within {} ms", .0.as_millis())]
    AllInUse(Duration),
    /// All are in use that these clients may have.
    #[error("no upstream connection became free within {} ms of the {} of {}", .0.as_millis(), .1, .2)]
    TableConnectionsInUse(Duration, usize, String),
    /// Other clients wait for the user's log-in, and the server has not answered.
    #[error("the server has not let the user in within {} ms", .0.as_millis())]
    NoLogIn(Duration),
    /// The gateway was told to pause.
    #[error("the gateway was told to pause")]
    Paused,
    /// The server did not give one.
    #[error(transparent)]
    Upstream(#[from] upstream::Error),
}

impl HeldConnections {
    /// None yet.
    pub fn new(config: &Config) -> Self {
        HeldConnections {
            in_use: Permits::new(config.held_connections_max),
            table_permits: Lock::default(),
            turns: Permits::new((limits::HELD_TURNS_PER_CORE * cores()).min(limits::HELD_TURNS_MAX)),
            idle: Lock::default(),
        }
    }

    /// As many as another configuration allows.
    pub fn resize(&self, config: &Config) {
        self.in_use.resize(config.held_connections_max);
        let mut table_permits = self.table_permits.lock();
        table_permits.retain(|(table, _)| config.tables.iter().any(|other| other.is_for_same(table)));
    }

    /// Whether less than half of the connections are in use.
    pub fn has_room(&self) -> bool {
        2 * self.in_use.in_use() < self.in_use.limit()
    }

    /// A connection of this pool, with this application name, once the gate of its database is open.
    pub async fn take(
        &self,
        config: &Config,
        database: &Arc<DatabaseState>,
        pool: u64,
        parameters: &[(String, String)],
        login: &Login,
        application_name: &str,
    ) -> Result<HeldConnection, Error> {
        let permits = self.acquire_permits(config, database).await?;
        while let Some(mut open) = self.take_idle(pool, application_name, &permits) {
            if open.finish_discard().await.is_ok() && open.rename(application_name).await.is_ok() {
                return Ok(open.into_held(pool, permits));
            }
        }
        self.make_room();
        let mut open =
            OpenConnection::connect(config, parameters, login, permits.database_use.generation()).await?;
        open.rename(application_name).await?;
        Ok(open.into_held(pool, permits))
    }

    /// The same, if nothing has to be waited for.
    pub fn try_take(
        &self,
        config: &Config,
        database: &Arc<DatabaseState>,
        pool: u64,
        application_name: &str,
    ) -> Option<HeldConnection> {
        let turn = match config.upstream.hosts.are_local {
            true => Some(self.turns.try_acquire()?),
            false => None,
        };
        let permits =
            UsePermits { database_use: database.try_enter()?, _permit: self.in_use.try_acquire()?, turn };
        let open = self.take_idle(pool, application_name, &permits)?;
        if open.application_name.as_deref() == Some(application_name) && !open.is_discarding {
            return Some(open.into_held(pool, permits));
        }
        self.put_idle(pool, open);
        None
    }

    /// A new connection, once the gate of its database is open. It takes no place among those in use, so that it need not wait
    /// for one: whoever makes it is to make one of a pool at a time.
    pub async fn probe(
        &self,
        config: &Config,
        database: &Arc<DatabaseState>,
        parameters: &[(String, String)],
        login: &Login,
    ) -> Result<ProbeConnection, Error> {
        let database_use = database.enter(config.server_wait).await.ok_or(Error::Paused)?;
        let open = OpenConnection::connect(config, parameters, login, database_use.generation()).await?;
        Ok(ProbeConnection { open, _database_use: database_use })
    }

    async fn acquire_permits(
        &self,
        config: &Config,
        database: &Arc<DatabaseState>,
    ) -> Result<UsePermits, Error> {
        let database_use = database.enter(config.server_wait).await.ok_or(Error::Paused)?;
        let permit = match self.in_use.try_acquire() {
            Some(permit) => permit,
            None => tokio::time::timeout(config.held_wait, self.in_use.acquire())
                .await
                .map_err(|_| Error::AllInUse(config.held_wait))?,
        };
        Ok(UsePermits { database_use, _permit: permit, turn: self.turn(config).await })
    }

    /// Many backends at once on the cores that they share with the gateway push each other out of caches: what is short
    /// is sooner done one after the other. Who has waited for a moment waits for something that is not short, and goes on.
    async fn turn(&self, config: &Config) -> Option<Permit> {
        if !config.upstream.hosts.are_local {
            return None;
        }
        match self.turns.try_acquire() {
            Some(turn) => Some(turn),
            None => {
                let moment = Duration::from_millis(limits::HELD_TURN_WAIT_MS);
                tokio::time::timeout(moment, self.turns.acquire()).await.ok()
            }
        }
    }

    /// A place among those of the clients that a table of the settings is for, where it limits them.
    pub async fn acquire_table_permit(&self, config: &Config) -> Result<Option<Permit>, Error> {
        let Some(table) = &config.table else { return Ok(None) };
        let Some(most) = table.held_connections_max else { return Ok(None) };
        let permits = self.permits_of_table(table, most.get());
        match tokio::time::timeout(config.held_wait, permits.acquire()).await {
            Ok(permit) => Ok(Some(permit)),
            Err(_) => Err(Error::TableConnectionsInUse(config.held_wait, most.get(), table.describe())),
        }
    }

    fn permits_of_table(&self, table: &Arc<PoolTable>, most: usize) -> Arc<Permits> {
        let mut tables = self.table_permits.lock();
        let Some((_, permits)) = tables.iter().find(|(other, _)| other.is_for_same(table)) else {
            let permits = Arc::new(Permits::new(most));
            tables.push((table.clone(), permits.clone()));
            return permits;
        };
        if permits.limit() != most {
            permits.resize(most);
        }
        permits.clone()
    }

    /// One that is not in use and can be used, if possible with this name.
    fn take_idle(&self, pool: u64, application_name: &str, permits: &UsePermits) -> Option<OpenConnection> {
        loop {
            let mut open = {
                let mut idle = self.idle.lock();
                let connections = idle.pools.get_mut(&pool)?;
                let same_name = connections
                    .iter()
                    .rposition(|(open, _)| open.application_name.as_deref() == Some(application_name));
                let index = same_name.or(connections.len().checked_sub(1))?;
                let (open, _) = connections.remove(index);
                idle.count -= 1;
                open
            };
            // Or else the server has closed it, or said something that nobody asked for.
            if (open.has_discarded() || open.is_discarding || open.upstream.is_quiet())
                && permits.database_use.may_reuse(open.generation)
            {
                return Some(open);
            }
        }
    }

    fn put_idle(&self, pool: u64, open: OpenConnection) {
        let mut idle = self.idle.lock();
        idle.pools.entry(pool).or_default().push((open, Instant::now()));
        idle.count += 1;
    }

    /// Open connections are in use or idle; those in use are at most the limit, so that one idle connection less
    /// makes room for a new one.
    fn make_room(&self) {
        let (in_use, open_max) = (self.in_use.in_use(), self.in_use.limit());
        let mut idle = self.idle.lock();
        if in_use + idle.count > open_max
            && let Some(connections) = idle.pools.values_mut().find(|connections| !connections.is_empty())
        {
            connections.remove(0);
            idle.count -= 1;
        }
    }

    /// Gives back a connection that nothing is left behind on.
    pub fn give_back(&self, held: HeldConnection) {
        let HeldConnection {
            upstream,
            moved_sequence,
            application_name,
            pool,
            generation,
            permits,
            table_permit: _,
            _gauge,
        } = held;
        if permits.database_use.may_reuse(generation) {
            let mut open =
                OpenConnection { upstream, application_name, is_discarding: false, generation, _gauge };
            if !moved_sequence || open.begin_discard() {
                self.put_idle(pool, open);
            }
        }
    }

    /// Closes those of this pool that nobody uses.
    pub fn close_idle(&self, pool: u64) {
        let mut idle = self.idle.lock();
        let closed = idle.pools.remove(&pool).unwrap_or_default();
        idle.count -= closed.len();
    }

    /// Closes those that nobody has used for so long; how many are left.
    pub fn close_unused(&self, age: Duration) -> usize {
        let mut idle = self.idle.lock();
        for connections in idle.pools.values_mut() {
            connections.retain(|(_, since)| since.elapsed() < age);
        }
        idle.pools.retain(|_, connections| !connections.is_empty());
        idle.count = idle.pools.values().map(Vec::len).sum();
        idle.count
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Waits for a server that restarts or fails over: nothing was sent yet that could be lost.
pub async fn connect_with_retries(
    config: &Config,
    parameters: &[(String, String)],
    login: &Login,
) -> Result<Upstream, upstream::Error> {
    let since = Instant::now();
    let mut pause = Duration::from_millis(limits::RECONNECT_MIN_MS);
    loop {
        match Upstream::connect(&config.upstream, parameters, login, false).await {
            Err(error) if error.is_retryable() && since.elapsed() + pause < config.server_wait => {
                tracing::debug!(%error, "the server is away: trying again");
            }
            done => return done,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(limits::RECONNECT_MAX_MS));
    }
}

impl ProbeConnection {
    /// The connection.
    pub fn upstream(&mut self) -> &mut Upstream {
        &mut self.open.upstream
    }
}

impl OpenConnection {
    /// It begins without a client's name: RESET brings back the name of the log-in, which another client must not see.
    async fn connect(
        config: &Config,
        parameters: &[(String, String)],
        login: &Login,
        generation: u64,
    ) -> Result<Self, upstream::Error> {
        let upstream = connect_with_retries(config, parameters, login).await?;
        Ok(OpenConnection {
            application_name: upstream.at_log_in("application_name").map(str::to_owned),
            upstream: Box::new(upstream),
            is_discarding: false,
            generation,
            _gauge: METRICS.held_connections.enter(),
        })
    }

    async fn rename(&mut self, application_name: &str) -> Result<(), upstream::Error> {
        if self.application_name.as_deref() != Some(application_name) {
            self.application_name = set_name(&mut self.upstream, application_name).await?;
        }
        Ok(())
    }

    /// Tells the server to forget sequence values, without waiting for it; false if it can't be told.
    fn begin_discard(&mut self) -> bool {
        frontend::put_query(&mut self.upstream.output, include_str!("../../sql/discard_sequences.sql"));
        self.upstream.prepared.forget_unnamed(); // a simple query takes it away
        self.is_discarding = true;
        self.upstream
            .write
            .try_drain(&mut self.upstream.output)
            .is_ok_and(|_| self.upstream.output.is_empty())
    }

    /// Whether the server has said that it has forgotten them. Waits for nothing.
    fn has_discarded(&mut self) -> bool {
        if self.is_discarding && self.upstream.read_now() && self.upstream.skip_to_ready() {
            self.is_discarding = false;
            return self.upstream.is_quiet();
        }
        false
    }

    /// Waits until the server has forgotten them.
    async fn finish_discard(&mut self) -> Result<(), upstream::Error> {
        while self.is_discarding {
            self.upstream.read_some().await?;
            self.is_discarding = !self.upstream.skip_to_ready();
        }
        Ok(())
    }

    fn into_held(self, pool: u64, permits: UsePermits) -> HeldConnection {
        let OpenConnection { upstream, application_name, is_discarding: _, generation, _gauge } = self;
        HeldConnection {
            upstream,
            moved_sequence: false,
            application_name,
            pool,
            generation,
            permits,
            table_permit: None,
            _gauge,
        }
    }
}

/// Sets the client's name; the name as the server keeps it, which cuts long ones and replaces characters.
async fn set_name(upstream: &mut Upstream, name: &str) -> Result<Option<String>, upstream::Error> {
    let rows = upstream.query(include_str!("../../sql/set_application_name.sql"), &[name]).await?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
}

impl HeldConnection {
    /// It may be kept for long: it does not stand in the way of what is short.
    pub fn release_turn(&mut self) {
        self.permits.turn = None;
    }

    /// The server has said what the client's name is now.
    pub fn name_changed(&mut self, name: &str) {
        self.application_name = Some(name.to_owned());
    }

    /// The client's name was reset.
    pub fn forget_name(&mut self) {
        self.application_name = None;
    }

    /// The client's name, as the server keeps it.
    pub fn name(&self) -> &str {
        self.application_name.as_deref().unwrap_or_default()
    }

    /// The client's name where the client sets none.
    pub fn default_name(&self) -> &str {
        self.upstream.at_log_in("application_name").unwrap_or_default()
    }

    /// Gives the client its name back. Nothing may be under way.
    pub async fn rename(&mut self, name: &str) -> Result<(), upstream::Error> {
        self.application_name = set_name(&mut self.upstream, name).await?;
        Ok(())
    }
}
