//! The clients that the server cannot tell apart: one user, one database, one set of startup settings. They share
//! lanes, held connections and knowledge about statements.

pub mod databases;
pub mod directory;
pub mod identity;
mod judge;
mod lanes;
pub mod listener;
mod lock_holders;
mod logins;
mod nodes;
pub mod pools;
mod reach;
mod replicas;
pub mod shadow;
pub mod waiting;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use hotrow_auth::Credential;
use hotrow_connect::lock::Lock;
use hotrow_connect::login::Login;
use hotrow_core::admission::{ReportedSettings, ServerSettings};
use hotrow_core::classify::{Alters, Packing};
use hotrow_core::limits;
use hotrow_core::pack_mode::PackMode;
use hotrow_lane::affinity::LaneId;
use hotrow_lane::lane::Unit;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::AbortHandle;

use crate::config::Config;
use crate::lane::{Detail, Envelope, LaneContext, LaneSnapshot, OwnServer, ToLane, Work as _};
use crate::metrics::METRICS;
use crate::server::database::DatabaseState;
use crate::server::held::{self, HeldConnection, HeldConnections, Startup};
use crate::server::permits::Permit;
use crate::statements::Statement;
use identity::Identity;
use judge::Judge;
use lanes::Lanes;
use listener::Listeners;
use nodes::Nodes;
use pools::Usage;
use replicas::PoolReplicas;
use shadow::PoolShadow;
use waiting::WaitingCalls;

#[derive(Debug)]
pub struct Pool {
    /// Its number.
    pub id: u64,
    /// The user, database and settings of its clients.
    pub identity: Identity,
    /// The state that its lanes share.
    pub context: Arc<LaneContext>,
    lanes: Lanes,
    /// The nodes of its database, if that is distributed.
    nodes: Nodes,
    /// The replicas of its server.
    pub replicas: PoolReplicas,
    /// Calls that found nothing and wait.
    pub waiting: Arc<WaitingCalls>,
    held: Arc<HeldConnections>,
    /// When the server last admitted the user, and the catalog's epoch at that time.
    logged_in: Lock<(Instant, u64)>,
    /// A client was admitted without a connection that proves its login.
    unproven: Notify,
    /// Held while a connection is made as a check.
    logging_in: tokio::sync::Mutex<()>,
    /// Makes verdicts about statements.
    judge: Judge,
    /// Its permit is held while a node is asked about a statement.
    asks_early: Arc<Semaphore>,
    clients: AtomicUsize,
    /// The units that are passed through in shadow mode.
    shadow: PoolShadow,
    /// The number of its users.
    pub usage: Usage,
    /// The tasks that run as long as it is open.
    tasks: OnceLock<Vec<AbortHandle>>,
}

/// A client of a pool until it is dropped.
#[derive(Debug)]
pub struct Member(Arc<Pool>);

static IDS: AtomicU64 = AtomicU64::new(NO_POOL + 1);

/// The number of a pool that has no connections.
const NO_POOL: u64 = 0;

impl Pool {
    /// Logs in once to check the login and to query the server's settings, and starts the lanes' tasks.
    pub async fn open(
        config: Arc<Config>,
        held: Arc<HeldConnections>,
        database: Arc<DatabaseState>,
        identity: Identity,
        credential: Credential,
        listeners: Arc<Listeners>,
    ) -> Result<Arc<Self>, held::Error> {
        let login = Login::new(identity.user(), credential);
        let startup =
            Startup { parameters: identity.parameters(), settings: identity.settings(), login: &login };
        let mut connection = held.take(&config, &database, NO_POOL, startup, "hotrow").await?;
        let server = connection.upstream.server_settings().await?;
        let pool = Pool::start(config, held, database, identity, login, server, listeners);
        connection.moved(pool.id, &pool.context.login);
        pool.give_back(connection);
        Ok(pool)
    }

    /// Starts the lanes' tasks of a pool whose connections find these settings at the server.
    pub fn start(
        config: Arc<Config>,
        held: Arc<HeldConnections>,
        database: Arc<DatabaseState>,
        identity: Identity,
        login: Login,
        server: ServerSettings,
        listeners: Arc<Listeners>,
    ) -> Arc<Self> {
        let id = IDS.fetch_add(1, Relaxed);
        let logged_in = Lock::new((Instant::now(), database.catalog_epoch()));
        let startup = (identity.parameters(), identity.settings());
        let traffic = METRICS.traffic.of(identity.database(), identity.user());
        let (login, target) = (Arc::new(login), Box::new(OwnServer));
        let context = LaneContext::new(config, startup, login, database, server, traffic, target);
        tracing::info!(
            pool = id,
            clients = identity.describe(),
            unpackable = context.unpackable(),
            "pool opened"
        );
        let context = Arc::new(context);
        let pool = Arc::new(Pool {
            id,
            identity,
            lanes: Lanes::start(context.clone()),
            nodes: Nodes::default(),
            replicas: PoolReplicas::new(&context.config()),
            context,
            waiting: Arc::default(),
            held,
            logged_in,
            unproven: Notify::new(),
            logging_in: tokio::sync::Mutex::default(),
            judge: Judge::default(),
            asks_early: Arc::new(Semaphore::new(1)),
            clients: AtomicUsize::new(0),
            shadow: PoolShadow::default(),
            usage: Usage::default(),
            tasks: OnceLock::new(),
        });
        let tasks = vec![
            tokio::spawn(waiting::listen(pool.clone(), listeners)).abort_handle(),
            tokio::spawn(judge::run(pool.clone())).abort_handle(),
            tokio::spawn(logins::follow_logins(pool.clone())).abort_handle(),
            tokio::spawn(logins::follow_settings(pool.clone())).abort_handle(),
        ];
        pool.tasks.set(tasks).expect("a pool is opened once");
        pool
    }

    /// Ends its tasks.
    pub fn end(&self) {
        self.tasks.get().into_iter().flatten().for_each(AbortHandle::abort);
        self.lanes.end();
        self.nodes.all().iter().for_each(|node| node.lanes.end());
        self.replicas.end();
        self.close_idle();
    }

    /// Whether the clients use UTF-8, according to the server.
    pub fn speaks_utf8(&self) -> bool {
        self.reports("client_encoding", "UTF8")
    }

    /// Whether the database uses UTF-8.
    pub fn is_utf8_database(&self) -> bool {
        self.reports("server_encoding", "UTF8")
    }

    /// Whether the server was a primary when the pool last logged in. It stays one as long as it runs.
    pub fn is_primary(&self) -> bool {
        self.reports("in_hot_standby", "off")
    }

    fn reports(&self, wanted: &str, value: &str) -> bool {
        let server = self.context.server();
        server.parameters.iter().any(|(name, present)| name == wanted && present == value)
    }

    /// Whether statements of these clients can be packed.
    pub fn packs(&self) -> bool {
        self.context.packs()
    }

    /// What happens with units of these clients that can be packed.
    pub fn pack_mode(&self) -> PackMode {
        self.context.pack_mode()
    }

    /// The configuration in force. It may change while the caller waits.
    pub fn config(&self) -> arc_swap::Guard<Arc<Config>> {
        self.context.config()
    }

    /// Puts another configuration in force. Facts of the catalog are queried again.
    pub fn reload(&self, config: &Config) {
        let config = config.of(self.identity.route(), self.identity.database(), self.identity.user());
        self.nodes.all().iter().for_each(|node| node.set_config(&config));
        self.replicas.set_config(&config);
        self.context.set_config(config);
        self.catalog_changed(Alters::Anything);
    }

    /// The server's settings when it was last asked.
    pub fn server_settings(&self) -> Arc<ServerSettings> {
        arc_swap::Guard::into_inner(self.context.server())
    }

    /// The settings if they are newer than those that the client was told.
    pub fn newer_settings(&self, reported: &ReportedSettings) -> Option<Arc<ServerSettings>> {
        let server = self.context.server();
        reported.are_outdated_by(&server).then(|| arc_swap::Guard::into_inner(server))
    }

    /// The role that its connections begin with.
    pub fn first_role(&self) -> String {
        let server = self.context.server();
        server.defaults.as_ref().map(|defaults| defaults.role.clone()).unwrap_or_default()
    }

    /// How a statement is packed, if its verdict is one for the present state of the catalog. An earlier verdict says nothing about
    /// the state that a run leaves now.
    pub fn packing(&self, statement: &Statement) -> Option<Arc<Packing>> {
        statement.packing_in(self.catalog_epoch(), self.config().catalog_age)
    }

    /// Number of connected clients.
    pub fn clients(&self) -> usize {
        self.clients.load(Relaxed)
    }

    /// Number of lanes of each kind.
    pub fn lanes_count(&self) -> usize {
        self.lanes.count()
    }

    pub fn database_state(&self) -> &Arc<DatabaseState> {
        &self.context.database
    }

    /// The process IDs of the backends of its idle connections.
    pub fn idle_backends(&self) -> Vec<u32> {
        self.held.idle_backends(self.id)
    }

    /// Closes its idle connections, also those on which nodes and the primary are asked.
    pub fn close_idle(&self) {
        self.held.close_idle(self.id);
        self.judge.close();
        self.nodes.forget_questions();
        self.replicas.close_question();
    }

    /// Pauses the lanes; new units wait. Each receiver reports that a connection is closed.
    pub fn pause(&self) -> Vec<oneshot::Receiver<()>> {
        self.ask_lanes(ToLane::Pause)
    }

    /// Makes the lanes log in again. Each receiver reports that an old connection is closed.
    pub fn renew(&self) -> Vec<oneshot::Receiver<()>> {
        self.replicas.doubt_settings();
        self.ask_lanes(ToLane::Renew)
    }

    /// Sends every lane a message with a channel for the answer.
    fn ask_lanes<T>(&self, message: impl Fn(oneshot::Sender<T>) -> ToLane) -> Vec<oneshot::Receiver<T>> {
        let mut answers = self.lanes.ask(&message);
        answers.extend(self.nodes.all().iter().flat_map(|node| node.lanes.ask(&message)));
        answers.extend(self.replicas.all_lanes().flat_map(|lanes| lanes.ask(&message)));
        answers
    }

    /// Asks all lanes for their state.
    pub async fn lane_snapshots(&self, detail: Detail) -> Vec<LaneSnapshot> {
        let mut snapshots = Vec::new();
        for lane in self.ask_lanes(|answer| ToLane::Snapshot { detail, answer }) {
            snapshots.extend(lane.await);
        }
        snapshots
    }

    /// Resumes the lanes.
    pub fn resume(&self) {
        self.send_all(|| ToLane::Resume);
    }

    /// Queries again the settings of the server's role and database.
    pub async fn ask_again(&self) -> Result<(), held::Error> {
        let mut connection = self.take_own().await?;
        self.context.set_server(connection.upstream.server_settings().await?);
        self.give_back(connection);
        self.context.decide_packing();
        Ok(())
    }

    /// Gives a unit to its lane.
    pub fn submit(&self, lane: LaneId, session: u64, first: bool, mut sent: Envelope) {
        if sent.unit.claimed.may_wait {
            sent.notified = self.waiting.sends(&sent.unit);
        }
        let kind = sent.unit.kind();
        let claimed = std::mem::take(&mut sent.unit.claimed);
        let (has_waited, unmeasured) = (sent.deadline.is_some(), sent.is_unmeasured());
        let unit = Unit { has_waited, unmeasured, ..Unit::new(session, first, claimed, sent) };
        let node = lane.node.and_then(|id| self.nodes.get(id));
        let replica = lane.replica.and_then(|index| self.replicas.lanes(index));
        let lanes = node.as_ref().map(|node| &node.lanes).or(replica).unwrap_or(&self.lanes);
        lanes.submit(kind, lane.index, unit);
    }

    /// Sends every lane a message.
    pub fn send_all(&self, message: impl Fn() -> ToLane) {
        self.lanes.send_all(&message);
        self.nodes.all().iter().for_each(|node| node.lanes.send_all(&message));
        self.replicas.all_lanes().for_each(|lanes| lanes.send_all(&message));
    }

    /// A connection for a session to hold.
    pub async fn take(&self, application_name: &str) -> Result<HeldConnection, held::Error> {
        let config = self.config().clone();
        let table_permit = self.held.acquire_table_permit(&config).await?;
        let mut held = self.take_named(&config, application_name).await?;
        held.table_permit = table_permit;
        Ok(held)
    }

    /// The same if a connection is available at once, or with a turn that the session has waited for.
    pub fn try_take(&self, application_name: &str, turn: Option<Permit>) -> Option<HeldConnection> {
        let config = self.config();
        if config.table.as_ref().is_some_and(|table| table.held_connections_max.is_some()) {
            return None;
        }
        self.held.try_take(&config, self.database_state(), self.id, application_name, turn)
    }

    /// Waits for a moment for a permit to use the server's processors.
    pub async fn processor_permit(&self) -> Option<Permit> {
        self.held.processor_permit(&self.context.config()).await
    }

    /// The name of a client with this startup packet, as the server stores it.
    pub async fn client_name(&self, asked: Option<String>) -> Result<String, held::Error> {
        let Some(asked) = asked else {
            let server = self.context.server();
            let default = server.parameters.iter().find(|(name, _)| name == "application_name");
            return Ok(default.map(|(_, value)| value.clone()).unwrap_or_default());
        };
        let is_plain = asked.len() <= limits::IDENTIFIER_BYTES_MAX
            && asked.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if is_plain {
            return Ok(asked);
        }
        let held = self.take_named(&self.config().clone(), &asked).await?;
        let name = held.name().to_owned();
        self.give_back(held);
        Ok(name)
    }

    /// A connection for the gateway's own queries.
    async fn take_own(&self) -> Result<HeldConnection, held::Error> {
        self.take_named(&self.config().clone(), "hotrow").await
    }

    async fn take_named(
        &self,
        config: &Config,
        application_name: &str,
    ) -> Result<HeldConnection, held::Error> {
        let held =
            self.held.take(config, self.database_state(), self.id, self.startup(), application_name).await?;
        self.context.note_new_connection(&held.upstream.parameters);
        Ok(held)
    }

    /// What its new connections begin with.
    fn startup(&self) -> Startup<'_> {
        Startup {
            parameters: self.identity.parameters(),
            settings: self.identity.settings(),
            login: &self.context.login,
        }
    }

    /// Gives back a connection without left-over state.
    pub fn give_back(&self, held: HeldConnection) {
        self.held.give_back(held);
    }

    /// The catalog of the database may have changed: no pool of the database uses earlier facts any more.
    pub fn catalog_changed(&self, alters: Alters) {
        self.database_state().catalog_changed(alters);
    }

    /// The epoch of the catalog: how often it may have changed.
    pub fn catalog_epoch(&self) -> u64 {
        self.database_state().catalog_epoch()
    }

    /// Whether every unit with this statement is known to be passed through.
    pub fn passes(&self, statement: &Statement, now: Instant) -> bool {
        statement.passes(now, self.database_state().catalog_epoch(), self.config().catalog_age)
    }

    /// Asks about a statement, although no client waits for the answer: one question at a time, so that sessions which
    /// want a connection wait for one such question at most. If another one is under way, the statement's next run asks
    /// again.
    pub(crate) fn ask_early<F>(
        self: &Arc<Self>,
        statement: &Arc<Statement>,
        ask: impl FnOnce(Arc<Self>, Arc<Statement>) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Ok(permit) = self.asks_early.clone().try_acquire_owned() {
            let asked = ask(self.clone(), statement.clone());
            tokio::spawn(async move {
                asked.await;
                drop(permit);
            });
        }
    }
}

impl Member {
    /// Adds a client to this pool.
    pub fn of(pool: &Arc<Pool>) -> Self {
        pool.clients.fetch_add(1, Relaxed);
        Member(pool.clone())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Relaxed);
    }
}
