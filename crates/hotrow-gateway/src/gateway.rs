//! The gateway as a whole: listens, lets clients in up to a limit, and stops without losing what is under way.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotrow_core::limits;
use hotrow_wire::backend::Problem;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::{OnceCell, Semaphore};

use crate::config::{Config, Listen};
use crate::control::Controls;
use crate::handshake::{send_away, serve_client};
use crate::held::{self, HeldConnections};
use crate::metrics::METRICS;
use crate::net::{self, Address, ReadHalf, WriteHalf};
use crate::pool::{Identity, Pool};
use crate::session::stopping;

/// What all clients share.
pub struct Shared {
    config: Arc<Config>,
    held: Arc<HeldConnections>,
    pools: Mutex<HashMap<Identity, Arc<OnceCell<Arc<Pool>>>>>,
    /// For cancel requests.
    pub controls: Controls,
    sessions: AtomicU64,
    clients: Arc<Semaphore>,
    stop: Arc<AtomicBool>,
}

/// Why the gateway can't start.
#[derive(Debug, thiserror::Error)]
#[error("can't listen on {address}: {error}; is another program there? choose another address with --listen")]
pub struct ListenError {
    address: Address,
    error: io::Error,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, std::path::PathBuf),
}

/// A gateway that accepts clients.
pub struct Gateway {
    shared: Arc<Shared>,
    addresses: Vec<Address>,
    sockets: Vec<std::path::PathBuf>,
}

impl Gateway {
    /// Listens on all addresses and serves clients in the background.
    pub async fn start(config: Config) -> Result<Self, ListenError> {
        let shared = Arc::new(Shared {
            held: Arc::new(HeldConnections::new(&config)),
            clients: Arc::new(Semaphore::new(config.clients_max)),
            config: Arc::new(config),
            pools: Mutex::default(),
            controls: Controls::default(),
            sessions: AtomicU64::new(0),
            stop: Arc::default(),
        });
        let (mut addresses, mut sockets, mut listeners) = (Vec::new(), Vec::new(), Vec::new());
        for listen in &shared.config.listen {
            let (listener, address) = bind(listen).await?;
            if let Listener::Unix(_, path) = &listener {
                sockets.push(path.clone());
            }
            addresses.push(address);
            listeners.push(listener);
        }
        for listener in listeners {
            tokio::spawn(accept(shared.clone(), listener));
        }
        tokio::spawn(close_unused(shared.clone()));
        Ok(Gateway { shared, addresses, sockets })
    }

    /// Where clients connect.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// A way to become a client from inside the process.
    pub fn inside(&self) -> Inside {
        Inside { shared: self.shared.clone() }
    }

    /// Believes nothing any more that the catalogue has said, merge rules included.
    pub fn reload(&self) {
        let pools = self.shared.pools.lock().expect("nothing panics while it holds the pools");
        pools.values().filter_map(|cell| cell.get()).for_each(|pool| pool.catalogue_changed());
    }

    /// Stops: new clients are sent away, those that are there leave when what they have under way is answered.
    /// False if some did not within the time allowed.
    pub async fn stop(self) -> bool {
        self.shared.stop.store(true, Relaxed);
        self.shared.controls.wake_all();
        let all = u32::try_from(self.shared.config.clients_max).unwrap_or(u32::MAX);
        let everyone_gone = self.shared.clients.acquire_many(all);
        let clean = tokio::time::timeout(self.shared.config.drain_timeout, everyone_gone).await.is_ok();
        for socket in &self.sockets {
            let _ = std::fs::remove_file(socket);
        }
        clean
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
        admit(&self.shared, net::unix_halves(ours));
        Ok(client)
    }
}

async fn bind(listen: &Listen) -> Result<(Listener, Address), ListenError> {
    match listen {
        Listen::Tcp(wanted) => {
            let asked = Address::Tcp(wanted.ip().to_string(), wanted.port());
            let listener = TcpListener::bind(wanted)
                .await
                .map_err(|error| ListenError { address: asked.clone(), error })?;
            let port = listener.local_addr().map_or(wanted.port(), |address| address.port());
            Ok((Listener::Tcp(listener), Address::Tcp(wanted.ip().to_string(), port)))
        }
        Listen::Unix(path) => {
            let address = Address::Unix(path.clone());
            // A socket that a killed gateway has left behind is in the way; one that answers is somebody's.
            let is_socket = std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
            if is_socket && UnixStream::connect(path).await.is_err() {
                let _ = std::fs::remove_file(path);
            }
            let listener =
                UnixListener::bind(path).map_err(|error| ListenError { address: address.clone(), error })?;
            Ok((Listener::Unix(listener, path.clone()), address))
        }
    }
}

async fn accept(shared: Arc<Shared>, listener: Listener) {
    loop {
        let accepted = match &listener {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| net::tcp_halves(stream)),
            Listener::Unix(listener, _) => {
                listener.accept().await.map(|(stream, _)| net::unix_halves(stream))
            }
        };
        match accepted {
            Ok(halves) => admit(&shared, halves),
            Err(error) => {
                // Out of file descriptors, most likely: those that are there may leave in the meantime.
                tracing::error!(%error, "a client could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn admit(shared: &Arc<Shared>, (read, write): (ReadHalf, WriteHalf)) {
    if shared.is_stopping() {
        tokio::spawn(async move { send_away(&write, &stopping()).await });
        return;
    }
    match shared.clients.clone().try_acquire_owned() {
        Ok(permit) => {
            let shared = shared.clone();
            tokio::spawn(async move {
                serve_client(shared, read, write).await;
                drop(permit);
            });
        }
        Err(_) => {
            METRICS.refused.inc();
            let clients_max = shared.config.clients_max;
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
        tokio::time::sleep(shared.config.held_idle / 4).await;
        shared.held.close_unused(shared.config.held_idle);
    }
}

impl Shared {
    /// The pool of these clients, opened if it isn't yet. None as an error means that there are too many pools.
    pub async fn pool(&self, identity: Identity) -> Result<Arc<Pool>, Option<held::Error>> {
        if let Some(others) = identity.without_utf8() {
            let pool = self.pool_of(others).await?;
            if pool.speaks_utf8() {
                return Ok(pool);
            }
        }
        self.pool_of(identity).await
    }

    async fn pool_of(&self, identity: Identity) -> Result<Arc<Pool>, Option<held::Error>> {
        let cell = {
            let mut pools = self.pools.lock().expect("nothing panics while it holds the pools");
            if pools.len() >= limits::POOLS_MAX && !pools.contains_key(&identity) {
                return Err(None);
            }
            pools.entry(identity.clone()).or_default().clone()
        };
        let opened = cell
            .get_or_try_init(|| Pool::open(self.config.clone(), self.held.clone(), identity.clone()))
            .await;
        match opened {
            Ok(pool) => Ok(pool.clone()),
            Err(error) => {
                let mut pools = self.pools.lock().expect("nothing panics while it holds the pools");
                if pools.get(&identity).is_some_and(|cell| !cell.initialized()) {
                    pools.remove(&identity);
                }
                Err(Some(error))
            }
        }
    }

    /// A number for a new session.
    pub fn next_session(&self) -> u64 {
        self.sessions.fetch_add(1, Relaxed) + 1
    }

    /// Becomes true when the gateway stops.
    pub fn stopping(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// Whether it does.
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Relaxed)
    }
}
