//! What the lanes to a PostgreSQL server share with the pool: the login, the statements and the server's settings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;
use hotrow_connect::login::Login;
use hotrow_core::admission::{ServerSettings, SessionDefaults};
use hotrow_core::limits;
use hotrow_core::pack_mode::{PACK_MODES, PackMode};
use hotrow_core::settings::Settings;
use tokio::sync::Notify;

use super::envelope::Packed;
use super::target::Target;
use crate::config::Config;
use crate::lane::shared::LaneShared;
use crate::metrics::Traffic;
use crate::server::database::DatabaseState;
use crate::statements::Statements;
use crate::traces::Traces;

/// Settings that a lane sets itself.
pub(super) const OWN: [&str; 2] = ["idle_session_timeout", "lock_timeout"];

const IN_SHADOW: &str = "packing is in shadow mode: units are counted, see SHOW SHADOW";

/// What the lanes of one pool to one server share.
#[derive(Debug)]
pub struct LaneContext {
    /// The startup parameters of the lanes' connections.
    pub parameters: Vec<(String, String)>,
    /// The settings that they get after the login.
    pub settings: Settings,
    /// The login at the server.
    pub login: Arc<Login>,
    /// The pool's statements.
    pub statements: Statements,
    pub database: Arc<DatabaseState>,
    /// The server that the lanes lead to.
    pub target: Box<dyn Target>,
    /// What does not depend on the kind of database.
    pub shared: LaneShared,
    /// Notified when the server's settings differ from the known ones.
    pub settings_changed: Notify,
    /// Where the spans of batches go, if batches are traced.
    pub traces: Option<Traces>,
    config: ArcSwap<Config>,
    /// The server's settings when it was last asked.
    server: ArcSwap<ServerSettings>,
    /// Whether a connection began under other settings than the known ones. They may have changed back before the server is
    /// asked again, and the connection would keep them.
    has_strange_connection: AtomicBool,
    /// Whether the server ends the statements of clients that have gone.
    ends_work_of_gone_clients: AtomicBool,
    /// An index of `PACK_MODES`.
    pack_mode: AtomicUsize,
}

impl LaneContext {
    /// For clients of this pool's identity, and a server with these settings.
    pub fn new(
        config: Arc<Config>,
        (parameters, settings): (&[(String, String)], &Settings),
        login: Arc<Login>,
        database: Arc<DatabaseState>,
        server: ServerSettings,
        traffic: Arc<Traffic>,
        target: Box<dyn Target>,
    ) -> Self {
        let context = LaneContext {
            parameters: parameters.to_vec(),
            settings: settings.without(&OWN),
            login,
            statements: Statements::default(),
            database,
            target,
            shared: LaneShared::new(config.lanes, traffic),
            settings_changed: Notify::new(),
            has_strange_connection: AtomicBool::new(false),
            traces: config.traces.clone(),
            config: ArcSwap::new(config),
            ends_work_of_gone_clients: AtomicBool::new(server.ends_statements_of_gone_clients()),
            server: ArcSwap::from_pointee(server),
            pack_mode: AtomicUsize::new(PackMode::Off as usize),
        };
        context.decide_packing();
        context
    }

    /// For lanes of the same clients to another server.
    pub fn to(&self, target: impl Target + 'static, config: Config, server: ServerSettings) -> Self {
        let (login, database) = (self.login.clone(), self.database.clone());
        let (clients, traffic) = ((&self.parameters[..], &self.settings), self.shared.traffic.clone());
        LaneContext::new(config.into(), clients, login, database, server, traffic, Box::new(target))
    }

    /// User and database at the server, as text for people.
    pub fn describe(&self) -> String {
        let get =
            |wanted| self.parameters.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value);
        format!("{}@{}", get("user"), get("database"))
    }

    /// The configuration in force. It may change while the caller waits.
    pub fn config(&self) -> arc_swap::Guard<Arc<Config>> {
        self.config.load()
    }

    /// Puts another configuration in force.
    pub fn set_config(&self, config: Config) {
        self.config.store(Arc::new(config));
        self.decide_packing();
    }

    /// The server's settings when it was last asked.
    pub fn server(&self) -> arc_swap::Guard<Arc<ServerSettings>> {
        self.server.load()
    }

    /// Whether the server ends the statements of clients that have gone.
    pub fn ends_work_of_gone_clients(&self) -> bool {
        self.ends_work_of_gone_clients.load(Relaxed)
    }

    /// Notes the server's settings.
    pub fn set_server(&self, server: ServerSettings) {
        self.ends_work_of_gone_clients.store(server.ends_statements_of_gone_clients(), Relaxed);
        self.server.store(Arc::new(server));
    }

    /// Whether statements of these clients can be packed.
    pub fn packs(&self) -> bool {
        self.pack_mode() >= PackMode::On
    }

    /// What happens with units of these clients that can be packed.
    pub fn pack_mode(&self) -> PackMode {
        PACK_MODES[self.pack_mode.load(Relaxed)]
    }

    /// Packs nothing until the server is asked again.
    pub fn stop_packing(&self) {
        self.pack_mode.store(PackMode::Off as usize, Relaxed);
    }

    /// Packs, or counts what would be packed, if the configuration and the server's settings allow it.
    pub fn decide_packing(&self) {
        let mode = match self.server.load().unpackable() {
            Some(_) => PackMode::Off,
            None => self.config().pack,
        };
        self.pack_mode.store(mode as usize, Relaxed);
    }

    /// Why statements of these clients cannot be packed, if so.
    pub fn unpackable(&self) -> Option<String> {
        let mode = self.config().pack;
        if mode == PackMode::Off {
            return Some("packing is switched off by the configuration".to_owned());
        }
        let in_shadow = || (mode == PackMode::Shadow).then(|| IN_SHADOW.to_owned());
        self.server.load().unpackable().or_else(in_shadow)
    }

    /// The server has sent these settings on a connection of the pool. If a value differs from the known one, the
    /// server's configuration or the role has changed. Nothing is packed until the server is asked again.
    pub fn note_settings(&self, said: &[(String, String)]) {
        if !said.is_empty() && self.server.load().contradicts(said) {
            self.doubt_settings();
        }
    }

    /// The same for the settings of a connection that has just been made.
    pub fn note_new_connection(&self, parameters: &[(String, String)]) {
        if self.server.load().contradicts(parameters) {
            self.has_strange_connection.store(true, Relaxed);
            self.doubt_settings();
        }
    }

    /// Whether a connection has begun under other settings than the known ones since the last call.
    pub fn take_strange_connection(&self) -> bool {
        self.has_strange_connection.swap(false, Relaxed)
    }

    /// Packs nothing, and asks the server again for its settings.
    pub fn doubt_settings(&self) {
        self.stop_packing();
        self.settings_changed.notify_one();
    }

    /// Longest wait of a statement in a lane for a lock. It is not longer than outside a lane.
    pub fn lock_timeout(&self) -> Duration {
        self.least_timeout(self.config().lane_lock_timeout, |defaults| defaults.lock_timeout)
    }

    /// Longest run of a statement in a lane. It is not longer than outside a lane. It is longer than the wait for a
    /// lock, so the server's error tells the two apart.
    pub fn statement_timeout(&self) -> Duration {
        let slow = Duration::from_millis(limits::LANE_SLOW_MS);
        self.least_timeout(self.lock_timeout() + slow, |defaults| defaults.statement_timeout)
    }

    /// The gateway's timeout, or the server's if it is shorter.
    fn least_timeout(&self, ours: Duration, theirs: fn(&SessionDefaults) -> Option<Duration>) -> Duration {
        let theirs = self.server.load().defaults.as_ref().and_then(theirs);
        theirs.map_or(ours, |theirs| ours.min(theirs))
    }

    /// The lane for a unit. If `only` is set, the session has units under way there, and no other lane will do.
    pub fn assign(&self, unit: &Packed, only: Option<usize>) -> Option<usize> {
        match unit.runs().any(|run| run.packing.is_declared) {
            true => self.shared.assign_apart(unit.kind(), unit.keys(), only),
            false => self.shared.assign(unit.kind(), unit.keys(), only),
        }
    }
}
