//! The gateway as a whole: listens, lets clients in up to a limit, and stops without losing what is under way.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use hotrow_auth::Credential;
use hotrow_core::limits;
use hotrow_wire::backend::Problem;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::authentication::{self, Authentication};
use crate::config::{Config, Listen};
use crate::control::Controls;
use crate::gates::Gates;
use crate::handshake::{send_away, serve_client};
use crate::held::{self, HeldConnections};
use crate::metrics::METRICS;
use crate::net::{self, Address, ReadHalf, WriteHalf};
use crate::orders::{Order, Orders};
use crate::peer::Peer;
use crate::places::Places;
use crate::pool::{Identity, Member, Pool};
use crate::pools::{Full, InUse, Pools};
use crate::session::stopping;
use crate::sockets::{Heirloom, Listener, Sockets};
use crate::stop::{Stage, Stop};
use crate::upkeep;

/// What all clients share.
pub struct Shared {
    config: ArcSwap<Config>,
    held: Arc<HeldConnections>,
    pools: Pools,
    /// Held while a client is let into a pool.
    joining: Mutex<()>,
    /// For cancel requests.
    pub controls: Controls,
    sessions: AtomicU64,
    clients: Places,
    stop: Arc<Stop>,
    /// Who may come in.
    pub authentication: Authentication,
    /// What PAUSE has shut.
    pub gates: Gates,
    /// What the console asks of the program.
    pub orders: Orders,
    /// Wakes the console's sessions when the gateway stops.
    leave: Notify,
}

/// Why a client gets no pool.
#[derive(Debug)]
pub enum NoPool {
    /// All that there may be are in use.
    Full(Full),
    /// It could not be opened.
    Error(held::Error),
}

/// Why the gateway can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Who may come in.
    #[error(transparent)]
    Authentication(#[from] authentication::Error),
}

/// Why it can't listen.
#[derive(Debug, thiserror::Error)]
#[error("can't listen on {address}: {error}; is another program there? choose another address with --listen")]
pub struct ListenError {
    address: Address,
    error: io::Error,
}

enum Door {
    Tcp(Listener<TcpListener>),
    Unix(Listener<UnixListener>, PathBuf),
}

/// A gateway that accepts clients.
pub struct Gateway {
    shared: Arc<Shared>,
    addresses: Vec<Address>,
    doors: Vec<(Arc<Door>, JoinHandle<()>)>,
}

impl Gateway {
    /// Listens on all addresses and serves clients in the background.
    pub async fn start(config: Config, sockets: &mut Sockets) -> Result<Self, StartError> {
        let shared = Arc::new(Shared {
            authentication: Authentication::new(&config)?,
            held: Arc::new(HeldConnections::new(&config)),
            clients: Places::new(config.clients_max),
            config: ArcSwap::from_pointee(config),
            pools: Pools::default(),
            joining: Mutex::default(),
            controls: Controls::default(),
            sessions: AtomicU64::new(0),
            stop: Arc::default(),
            gates: Gates::default(),
            orders: Orders::default(),
            leave: Notify::new(),
        });
        let (mut addresses, mut doors) = (Vec::new(), Vec::new());
        for listen in &shared.config.load().listen {
            let (door, address) = open(listen, sockets).await?;
            addresses.push(address);
            doors.push(Arc::new(door));
        }
        let accept = |door: Arc<Door>| (door.clone(), tokio::spawn(accept(shared.clone(), door)));
        let doors = doors.into_iter().map(accept).collect();
        tokio::spawn(close_unused(shared.clone()));
        tokio::spawn(upkeep::run(shared.clone()));
        Ok(Gateway { shared, addresses, doors })
    }

    /// Where clients connect.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// A way to become a client from inside the process.
    pub fn inside(&self) -> Inside {
        Inside { shared: self.shared.clone() }
    }

    /// Goes on with another configuration, on new connections, and believes nothing any more that the catalogue has
    /// said, merge rules included. The server and the addresses stay what they were.
    pub fn reload(&self, config: Config) {
        self.shared.reload(config);
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let (config, auth) = (shared.config(), shared.clone());
            let read = move || match auth.authentication.reload(&config) {
                Ok(()) => tracing::info!("reloaded: who may come in"),
                Err(error) => {
                    tracing::error!(
                        "who may come in is not reloaded, what was in force stays in force: {error}"
                    )
                }
            };
            let _ = tokio::task::spawn_blocking(read).await; // it has said what is wrong
            shared.reconnect(None).await
        });
    }

    /// The next thing that an operator asks of the program.
    pub async fn order(&self) -> Order {
        self.shared.orders.next().await
    }

    /// The listening sockets, for the gateway that takes over.
    pub fn heirlooms(&self) -> io::Result<Vec<Heirloom>> {
        self.doors.iter().map(|(door, _)| door.heirloom()).collect()
    }

    /// Stops: new clients are sent away, those that are there leave when what they have under way is answered.
    /// False if some did not within the time allowed.
    pub async fn stop(self) -> bool {
        for (door, accepting) in &self.doors {
            // Who comes now waits for whoever accepts next on a socket that the service manager keeps.
            if door.is_kept() {
                accepting.abort();
            }
        }
        let patience = self.shared.config.load().drain_timeout;
        let clean = self.shared.drain(Stage::Leaving, patience).await;
        for (door, _) in &self.doors {
            if let Door::Unix(listener, path) = &**door
                && !listener.kept
            {
                let _ = std::fs::remove_file(path);
            }
        }
        clean
    }

    /// Stops because another gateway has taken over the sockets: nobody is accepted from now on, those that are there may
    /// go on for half of the time allowed unless they are silent, and then leave as for [`stop`](Self::stop).
    pub async fn hand_over(self) -> bool {
        for (door, accepting) in self.doors {
            accepting.abort();
            drop(door);
        }
        let half = self.shared.config.load().drain_timeout / 2;
        self.shared.drain(Stage::Handed, half).await || self.shared.drain(Stage::Leaving, half).await
    }
}

impl Door {
    fn is_kept(&self) -> bool {
        match self {
            Door::Tcp(listener) => listener.kept,
            Door::Unix(listener, _) => listener.kept,
        }
    }

    fn heirloom(&self) -> io::Result<Heirloom> {
        match self {
            Door::Tcp(listener) => listener.heirloom(),
            Door::Unix(listener, _) => listener.heirloom(),
        }
    }
}

/// Makes clients inside the process. To the gateway they are like those of a Unix socket.
#[derive(Clone)]
pub struct Inside {
    shared: Arc<Shared>,
}

impl Inside {
    /// The client's end of a new connection.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let (client, ours) = UnixStream::pair()?;
        let peer = Peer { inside: true, ..Peer::default() };
        admit(&self.shared, net::unix_halves(ours), peer);
        Ok(client)
    }
}

async fn open(listen: &Listen, sockets: &mut Sockets) -> Result<(Door, Address), ListenError> {
    match listen {
        Listen::Tcp(wanted) => {
            let asked = Address::Tcp(wanted.ip().to_string(), wanted.port());
            let listener =
                sockets.tcp(*wanted).await.map_err(|error| ListenError { address: asked, error })?;
            let port = listener.socket.local_addr().map_or(wanted.port(), |address| address.port());
            Ok((Door::Tcp(listener), Address::Tcp(wanted.ip().to_string(), port)))
        }
        Listen::Unix(path) => {
            let address = Address::Unix(path.clone());
            let failed = |error| ListenError { address: address.clone(), error };
            let listener = sockets.unix(path).await.map_err(failed)?;
            Ok((Door::Unix(listener, path.clone()), address))
        }
    }
}

async fn accept(shared: Arc<Shared>, door: Arc<Door>) {
    loop {
        let accepted = match &*door {
            Door::Tcp(listener) => listener.socket.accept().await.map(|(stream, address)| {
                (net::tcp_halves(stream), Peer { address: Some(address), ..Peer::default() })
            }),
            Door::Unix(listener, _) => {
                listener.socket.accept().await.map(|(stream, _)| (net::unix_halves(stream), Peer::default()))
            }
        };
        match accepted {
            Ok((halves, peer)) => admit(&shared, halves, peer),
            Err(error) => {
                // Out of file descriptors, most likely: those that are there may leave in the meantime.
                tracing::error!(%error, "a client could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn admit(shared: &Arc<Shared>, (read, write): (ReadHalf, WriteHalf), peer: Peer) {
    if shared.is_stopping() {
        tokio::spawn(async move { send_away(&write, &stopping()).await });
        return;
    }
    match shared.clients.try_take() {
        Some(place) => {
            let shared = shared.clone();
            tokio::spawn(async move {
                serve_client(shared, read, write, peer).await;
                drop(place);
            });
        }
        None => {
            METRICS.refused.inc();
            let clients_max = shared.clients.count();
            tokio::spawn(async move {
                let message = format!("sorry, too many clients already: the gateway takes {clients_max}");
                send_away(
                    &write,
                    &Problem::fatal("53300", message, "Raise clients_max, or share connections."),
                )
                .await;
            });
        }
    }
}

/// Closes upstream connections that nobody has used for a while.
async fn close_unused(shared: Arc<Shared>) {
    loop {
        let age = shared.config.load().held_idle;
        // A shorter age after a reload does not wait for a longer one to pass.
        tokio::time::sleep((age / 4).min(Duration::from_secs(1))).await;
        shared.held.close_unused(age);
        shared.authentication.close_unused(age);
        shared.pools.close_unused(Duration::from_millis(limits::POOL_IDLE_MS));
    }
}

impl Shared {
    fn reload(&self, config: Config) {
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

    /// What the gateway runs with now.
    pub fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    /// The pools that are open.
    pub fn pools(&self) -> Vec<Arc<Pool>> {
        self.pools.open()
    }

    /// The pool of these clients, opened if it isn't yet.
    pub async fn pool(&self, identity: Identity, credential: Credential) -> Result<InUse, NoPool> {
        if let Some(others) = identity.without_utf8() {
            let used = self.pool_of(others, credential.clone()).await?;
            if used.pool().speaks_utf8() {
                return Ok(used);
            }
        }
        self.pool_of(identity, credential).await
    }

    async fn pool_of(&self, identity: Identity, credential: Credential) -> Result<InUse, NoPool> {
        let gate = self.gates.of(identity.database());
        let cell = self.pools.get(&identity).map_err(NoPool::Full)?;
        let opened = cell
            .get_or_try_init(|| {
                let config = Arc::new(self.config.load().of(identity.database(), identity.user()));
                Pool::open(config, self.held.clone(), gate.clone(), identity.clone(), credential.clone())
            })
            .await;
        match opened {
            Ok(pool) => {
                pool.login.renew(credential);
                // Whoever shut or opened the gate meanwhile may not have seen this pool yet.
                if gate.is_shut() {
                    drop(pool.pause());
                    if !gate.is_shut() {
                        pool.resume();
                    }
                }
                let used = InUse::of(pool); // before the cell is let go, which keeps the pool open until then
                pool.log_in().await.map_err(NoPool::Error)?;
                Ok(used)
            }
            Err(error) => {
                self.pools.forget_unopened(&identity);
                Err(NoPool::Error(error))
            }
        }
    }

    /// Adds the settings that a table of the configuration has for a client with these start-up parameters.
    pub fn put_settings(&self, parameters: &mut Vec<(String, String)>) {
        let identity = Identity::new(parameters);
        if let Some(table) = &self.config.load().of(identity.database(), identity.user()).table {
            table.put_settings(parameters);
        }
    }

    /// Lets one more client into a pool, unless the table of the settings that is in force there says no; then what
    /// it says.
    pub fn join(&self, pool: &Arc<Pool>) -> Result<Member, (usize, String)> {
        let _one_at_a_time = self.joining.lock().expect("nothing panics while it lets a client in");
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
        let woken = self.leave.notified(); // from here on, so that nothing is missed
        if self.stop.stage() == Stage::Serving {
            woken.await;
        }
    }

    /// A number for a new session.
    pub fn next_session(&self) -> u64 {
        self.sessions.fetch_add(1, Relaxed) + 1
    }

    /// How far the end of the gateway has come.
    pub fn stopping(&self) -> Arc<Stop> {
        self.stop.clone()
    }

    /// Whether new clients are sent away.
    pub fn is_stopping(&self) -> bool {
        self.stop.stage() == Stage::Leaving
    }

    /// Lets clients leave; false if some did not in time.
    async fn drain(&self, stage: Stage, patience: Duration) -> bool {
        self.stop.set(stage);
        self.controls.wake_all();
        self.leave.notify_waiters();
        tokio::time::timeout(patience, self.clients.all_free()).await.is_ok()
    }
}
