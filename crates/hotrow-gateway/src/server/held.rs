//! Connections to one server that sessions hold for a while: reused, made, waited for, given back, and closed when idle. The
//! session decides what is sent on them.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotrow_connect::config::UpstreamConfig;
use hotrow_connect::lock::Lock;
use hotrow_connect::login::Login;
use hotrow_connect::upstream::{self, Upstream};
use hotrow_core::limits;
use hotrow_core::notifications;
use hotrow_core::settings::Settings;
use hotrow_core::untrusted::literal;
use hotrow_wire::frontend;
use tokio::sync::Notify;

use crate::config::{Config, PoolTable};
use crate::metrics::{GaugeGuard, METRICS};
use crate::server::database::{DatabaseState, DatabaseUse};
use crate::server::permits::{Permit, Permits};

/// The connections of all pools of a server.
#[derive(Debug)]
pub struct HeldConnections {
    in_use: Permits,
    /// Permits for the clients of `[[pool]]` tables that set a limit.
    table_permits: Lock<Vec<(Arc<PoolTable>, Arc<Permits>)>>,
    /// Permits for short work if the server runs on this machine.
    processors: Permits,
    idle: Lock<Idle>,
    /// Each open connection that sessions can use has a clone.
    open: Arc<()>,
    /// A connection was given back, or closed.
    given_back: Notify,
}

#[derive(Debug, Default)]
struct Idle {
    /// By pool number. The connection given back last is taken first.
    pools: BTreeMap<u64, Vec<(Box<OpenConnection>, Instant)>>,
    count: usize,
}

#[derive(Debug)]
pub struct OpenConnection {
    pub upstream: Upstream,
    /// Its backend may remember sequence values of the session.
    pub moved_sequence: bool,
    /// It may listen to channels of the session.
    pub listens: bool,
    /// The client's name as the server stores it, if known.
    application_name: Option<String>,
    /// The command that discards state was sent and is not answered.
    is_discarding: bool,
    pool: u64,
    /// The generation of connections that it belongs to.
    generation: u64,
    /// The permits of its user.
    permits: Option<UsePermits>,
    /// Its user's permit of a `[[pool]]` table with a limit.
    pub table_permit: Option<Permit>,
    /// Counts it among the open connections of its server.
    is_one_of: Option<Arc<()>>,
    _gauge: GaugeGuard,
}

/// A connection that was made as a check, and is closed afterwards.
#[derive(Debug)]
pub struct ProbeConnection {
    open: Box<OpenConnection>,
    _database_use: DatabaseUse,
}

/// A connection that a session or the gateway itself uses. Dropping it closes it. To be reused it has to be given back.
#[derive(Debug)]
pub struct HeldConnection(Box<OpenConnection>);

impl Deref for HeldConnection {
    type Target = OpenConnection;

    fn deref(&self) -> &OpenConnection {
        &self.0
    }
}

impl DerefMut for HeldConnection {
    fn deref_mut(&mut self) -> &mut OpenConnection {
        &mut self.0
    }
}

/// The permits for using a connection.
#[derive(Debug)]
struct UsePermits {
    database_use: DatabaseUse,
    _permit: Permit,
    /// Its permit to use the server's processors, if the gateway shares them.
    processor: Option<Permit>,
}

/// What new connections of a pool begin with.
#[derive(Clone, Copy, Debug)]
pub struct Startup<'a> {
    /// The startup parameters.
    pub parameters: &'a [(String, String)],
    /// The settings that they get after the login.
    pub settings: &'a Settings,
    /// The login.
    pub login: &'a Login,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// All connections are in use.
    #[error("no upstream connection became free within {} ms", .0.as_millis())]
    AllInUse(Duration),
    /// All connections of the client's `[[pool]]` table are in use.
    #[error("none of the {} upstream connections of {} became free within {} ms", .1, .2, .0.as_millis())]
    TableConnectionsInUse(Duration, usize, String),
    /// Other clients wait for the user's login, and the server has not answered.
    #[error("the server did not complete the user's login within {} ms", .0.as_millis())]
    NoLogIn(Duration),
    /// An operator has paused the database.
    #[error("an operator has paused the database")]
    Paused,
    /// The server gave no connection.
    #[error(transparent)]
    Upstream(#[from] upstream::Error),
}

impl Error {
    /// Whether the caller has waited for a connection in vain.
    pub fn is_wait(&self) -> bool {
        match self {
            Error::Upstream(error) => error.is_full() || !matches!(error, upstream::Error::Refused { .. }),
            _ => true,
        }
    }
}

impl HeldConnections {
    /// No connections yet.
    pub fn new(config: &Config) -> Self {
        HeldConnections {
            in_use: Permits::new(config.held_connections_max),
            table_permits: Lock::default(),
            processors: Permits::new((limits::HELD_TURNS_PER_CORE * cores()).min(limits::HELD_TURNS_MAX)),
            idle: Lock::default(),
            open: Arc::default(),
            given_back: Notify::new(),
        }
    }

    /// Applies the limits of another configuration.
    pub fn resize(&self, config: &Config) {
        self.in_use.resize(config.held_connections_max);
        let mut table_permits = self.table_permits.lock();
        table_permits.retain(|(table, _)| config.tables.iter().any(|other| other.is_for_same(table)));
    }

    /// A connection of this pool, with this application name, as soon as the database is not paused.
    pub async fn take(
        &self,
        config: &Config,
        database: &Arc<DatabaseState>,
        pool: u64,
        startup: Startup<'_>,
        application_name: &str,
    ) -> Result<HeldConnection, Error> {
        let permits = self.acquire_permits(config, database).await?;
        let deadline = Instant::now() + config.held_wait;
        let mut pause = Duration::from_millis(limits::RECONNECT_MIN_MS);
        loop {
            while let Some(mut open) = self.take_idle(pool, application_name, &permits) {
                if open.finish_discard().await.is_ok() && open.rename(application_name).await.is_ok() {
                    return Ok(open.into_held(pool, permits));
                }
            }
            self.make_room();
            match OpenConnection::connect(config, startup, permits.database_use.generation()).await {
                Ok(mut open) => {
                    open.rename(application_name).await?;
                    open.is_one_of = Some(self.open.clone());
                    return Ok(open.into_held(pool, permits));
                }
                Err(error) if error.is_full() && self.has_open() && Instant::now() + pause < deadline => {
                    self.wait_for_room(pool, pause).await;
                    pause = (pause * 2).min(Duration::from_millis(limits::RECONNECT_MAX_MS));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether the gateway has a connection of its own that can become free.
    fn has_open(&self) -> bool {
        Arc::strong_count(&self.open) > 1
    }

    /// The server gives no further connection. Waits until one is given back, or for this long: others may leave the server too.
    /// A connection of another pool that is not in use makes room.
    async fn wait_for_room(&self, pool: u64, pause: Duration) {
        self.close_idle_of_others(pool);
        let _ = tokio::time::timeout(pause, self.given_back.notified()).await;
    }

    fn close_idle_of_others(&self, pool: u64) {
        let mut idle = self.idle.lock();
        let mut others =
            idle.pools.iter_mut().filter(|(other, connections)| **other != pool && !connections.is_empty());
        if let Some((_, connections)) = others.next() {
            connections.remove(0);
            idle.count -= 1;
        }
    }

    /// The same if it needs no waiting, or only a processor permit that the caller has waited for.
    pub fn try_take(
        &self,
        config: &Config,
        database: &Arc<DatabaseState>,
        pool: u64,
        application_name: &str,
        waited: Option<Permit>,
    ) -> Option<HeldConnection> {
        let processor = match waited {
            None if config.upstream.hosts.are_local => Some(self.processors.try_acquire()?),
            waited => waited,
        };
        let permits = UsePermits {
            database_use: database.try_enter()?,
            _permit: self.in_use.try_acquire()?,
            processor,
        };
        let open = self.take_idle(pool, application_name, &permits)?;
        if open.application_name.as_deref() == Some(application_name) && !open.is_discarding {
            return Some(open.into_held(pool, permits));
        }
        self.put_idle(pool, open);
        None
    }

    /// A new connection, as soon as the database is not paused. It needs no permit, so it does not wait for one. The
    /// caller makes at most one per pool at a time.
    pub async fn probe(
        &self,
        config: &Config,
        database: &Arc<DatabaseState>,
        startup: Startup<'_>,
    ) -> Result<ProbeConnection, Error> {
        let database_use = database.enter(config.server_wait).await.ok_or(Error::Paused)?;
        let open = OpenConnection::connect(config, startup, database_use.generation()).await?;
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
        Ok(UsePermits { database_use, _permit: permit, processor: self.processor_permit(config).await })
    }

    /// Many backends at once evict each other from the caches of the cores that they share with the gateway. Short work
    /// is done sooner one after the other. A session that has waited for a moment waits for work that is not short, and
    /// continues without a permit.
    pub async fn processor_permit(&self, config: &Config) -> Option<Permit> {
        if !config.upstream.hosts.are_local {
            return None;
        }
        match self.processors.try_acquire() {
            Some(permit) => Some(permit),
            None => {
                let moment = Duration::from_millis(limits::HELD_TURN_WAIT_MS);
                tokio::time::timeout(moment, self.processors.acquire()).await.ok()
            }
        }
    }

    /// A permit of the client's `[[pool]]` table, if the table limits connections.
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

    /// An idle connection that can be used, with this name if possible.
    fn take_idle(
        &self,
        pool: u64,
        application_name: &str,
        permits: &UsePermits,
    ) -> Option<Box<OpenConnection>> {
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
            // Otherwise the server has closed the connection, or sent an unexpected message.
            if (open.has_discarded() || open.is_discarding || open.upstream.is_quiet())
                && permits.database_use.may_reuse(open.generation)
                && !open.upstream.is_left_behind()
            {
                return Some(open);
            }
        }
    }

    fn put_idle(&self, pool: u64, open: Box<OpenConnection>) {
        let mut idle = self.idle.lock();
        idle.pools.entry(pool).or_default().push((open, Instant::now()));
        idle.count += 1;
    }

    /// Open connections are in use or idle. Those in use are at most the limit, so closing one idle connection makes
    /// room for a new one.
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

    /// Takes back a connection without left-over state.
    pub fn give_back(&self, held: HeldConnection) {
        let mut open = held.0;
        open.table_permit = None;
        open.upstream.notifications.clear();
        let Some(permits) = open.permits.take() else { return };
        let keeps = std::mem::take(&mut open.moved_sequence) | std::mem::take(&mut open.listens);
        let may_reuse = permits.database_use.may_reuse(open.generation) && !open.upstream.is_left_behind();
        if may_reuse && (!keeps || open.begin_discard()) {
            self.put_idle(open.pool, open);
        }
        self.given_back.notify_one();
    }

    /// The process IDs of the backends of this pool's idle connections.
    pub fn idle_backends(&self, pool: u64) -> Vec<u32> {
        let idle = self.idle.lock();
        let connections = idle.pools.get(&pool).map(Vec::as_slice).unwrap_or_default();
        connections.iter().map(|(open, _)| open.upstream.process_id).collect()
    }

    /// Closes the idle connections of this pool.
    pub fn close_idle(&self, pool: u64) {
        let mut idle = self.idle.lock();
        let closed = idle.pools.remove(&pool).unwrap_or_default();
        idle.count -= closed.len();
    }

    /// Closes connections that have been idle for this long. Returns the number of idle connections left.
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

/// Connects, and retries while a server restarts or fails over: nothing was sent yet that could be lost.
pub async fn connect_with_retries(
    server: &UpstreamConfig,
    patience: Duration,
    parameters: &[(String, String)],
    login: &Login,
) -> Result<Upstream, upstream::Error> {
    let since = Instant::now();
    let mut pause = Duration::from_millis(limits::RECONNECT_MIN_MS);
    loop {
        match Upstream::connect(server, parameters, login, false).await {
            Err(error) if error.is_retryable() && since.elapsed() + pause < patience => {
                tracing::debug!(%error, "the server is unavailable: retrying");
            }
            done => return done,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(limits::RECONNECT_MAX_MS));
    }
}

impl ProbeConnection {
    pub fn upstream(&mut self) -> &mut Upstream {
        &mut self.open.upstream
    }
}

impl OpenConnection {
    /// The login has no client's name: RESET restores the name of the login, which another client must not see.
    async fn connect(
        config: &Config,
        Startup { parameters, settings, login }: Startup<'_>,
        generation: u64,
    ) -> Result<Box<Self>, upstream::Error> {
        let mut upstream =
            connect_with_retries(&config.upstream, config.server_wait, parameters, login).await?;
        let application_name = upstream.at_login("application_name").map(str::to_owned);
        if !settings.is_empty() {
            upstream.set_settings(settings, application_name.as_deref().unwrap_or_default()).await?;
        }
        Ok(Box::new(OpenConnection {
            upstream,
            moved_sequence: false,
            listens: false,
            application_name,
            is_discarding: false,
            pool: 0,
            generation,
            permits: None,
            table_permit: None,
            is_one_of: None,
            _gauge: METRICS.held_connections.enter(),
        }))
    }

    /// Whether the server's settings are not known to have changed since it was made.
    pub fn is_of_present_generation(&self) -> bool {
        self.permits.as_ref().is_some_and(|permits| permits.database_use.may_reuse(self.generation))
    }

    async fn rename(&mut self, application_name: &str) -> Result<(), upstream::Error> {
        if self.application_name.as_deref() != Some(application_name) {
            self.set_name(application_name).await?;
        }
        Ok(())
    }

    /// Sends the command that discards state without waiting for the answer. False if it cannot be sent.
    fn begin_discard(&mut self) -> bool {
        frontend::put_query(&mut self.upstream.output, include_str!("../../sql/discard.sql"));
        self.upstream.prepared.forget_unnamed(); // a simple query removes it
        self.is_discarding = true;
        self.upstream
            .write
            .try_drain(&mut self.upstream.output)
            .is_ok_and(|_| self.upstream.output.is_empty())
    }

    /// Whether the answer to that command is complete. Does not wait.
    fn has_discarded(&mut self) -> bool {
        if self.is_discarding && self.upstream.read_now() && self.upstream.skip_to_ready() {
            self.is_discarding = false;
            return self.upstream.is_quiet();
        }
        false
    }

    /// Waits for the answer to that command.
    async fn finish_discard(&mut self) -> Result<(), upstream::Error> {
        while self.is_discarding {
            self.upstream.read_some().await?;
            self.is_discarding = !self.upstream.skip_to_ready();
        }
        Ok(())
    }

    fn into_held(mut self: Box<Self>, pool: u64, permits: UsePermits) -> HeldConnection {
        self.pool = pool;
        self.permits = Some(permits);
        HeldConnection(self)
    }
}

/// Sets the client's name. Returns the name as the server stores it: cut if it is long, with some characters replaced.
async fn set_name(upstream: &mut Upstream, name: &str) -> Result<Option<String>, upstream::Error> {
    let rows = upstream.query(include_str!("../../sql/set_application_name.sql"), &[name]).await?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
}

impl OpenConnection {
    /// Gives its processor permit back, because the session may keep the connection for long.
    pub fn release_processor(&mut self) {
        if let Some(permits) = &mut self.permits {
            permits.processor = None;
        }
    }

    /// Notes a setting that the server has reported.
    pub fn setting_changed(&mut self, name: &str, value: &str) {
        match name {
            "application_name" => self.application_name = Some(value.to_owned()),
            _ => self.upstream.note_setting(name, value),
        }
    }

    /// The connection belongs to another pool of its database from now on, and counts for that pool's login.
    pub fn moved(&mut self, pool: u64, login: &Login) {
        self.pool = pool;
        self.upstream.counted = login.count();
    }

    /// Removes what the session has set, and sets these settings. The client's name stays.
    pub async fn set_settings(&mut self, settings: &Settings) -> Result<(), upstream::Error> {
        let name = self.application_name.as_deref().unwrap_or_default();
        self.upstream.set_settings(settings, name).await
    }

    /// The client's name as the server stores it.
    pub fn name(&self) -> &str {
        self.application_name.as_deref().unwrap_or_default()
    }

    /// The name of a client that sets none.
    pub fn default_name(&self) -> &str {
        self.upstream.at_login("application_name").unwrap_or_default()
    }

    /// Listens to these channels of the session too. Notifications that arrive by then are not kept.
    pub async fn listen<'a>(
        &mut self,
        channels: impl Iterator<Item = &'a str>,
    ) -> Result<(), upstream::Error> {
        self.listens = true;
        self.upstream.run_each(notifications::listen_each(channels)).await
    }

    /// Sets the client's name again, perhaps in its transaction, without a snapshot: the client may choose its isolation
    /// level next, or take its snapshot later.
    pub async fn restore_name(&mut self, name: &str) -> Result<(), upstream::Error> {
        // The encoding of the client decides where other characters end. The server stores none.
        if !name.is_ascii() {
            return self.set_name(name).await;
        }
        let set = format!("set application_name to {}", literal(name));
        self.upstream.run_each(std::iter::once(set)).await?;
        self.application_name = Some(name.to_owned());
        Ok(())
    }

    /// Sets the client's name again. Nothing may be under way.
    pub async fn set_name(&mut self, name: &str) -> Result<(), upstream::Error> {
        self.application_name = set_name(&mut self.upstream, name).await?;
        Ok(())
    }
}
