//! The gateway as a whole: listens, admits clients up to a limit, and stops without losing work that is under way.

mod capacity;
mod handshake;
mod maintenance;
mod opening;
mod rivals;
pub mod sockets;
mod startup;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hotrow_connect::net::{self, Address, ReadHalf, WriteHalf};
use hotrow_wire::backend::Problem;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::task::JoinHandle;

use crate::authentication;
use crate::config::{Config, Listen};
use crate::front::handshake::serve_client;
use crate::front::opening::send_away;
use crate::front::sockets::{InheritedSocket, Listener, Sockets};
use crate::metrics::{METRICS, RefusalReason};
use crate::net::peer::Peer;
use crate::operator::view::{self, Totals, Values, View};
use crate::session::problems::stopping;
use crate::shared::Shared;
use crate::shared::requests::OperatorRequest;
use hotrow_core::session::Stage;
use hotrow_wire::SqlState;

/// Why the gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The authentication settings.
    #[error(transparent)]
    Authentication(#[from] authentication::Error),
}

/// Why the gateway cannot listen.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot listen on {address}: {error}; stop the program that uses the address, or choose another address with --listen"
)]
pub struct ListenError {
    address: Address,
    error: io::Error,
}

enum ListeningSocket {
    Tcp(Listener<TcpListener>),
    Unix(Listener<UnixListener>, PathBuf),
}

/// A gateway that accepts clients.
pub struct Gateway {
    shared: Arc<Shared>,
    addresses: Vec<Address>,
    listening: Vec<(Arc<ListeningSocket>, JoinHandle<()>)>,
}

impl Gateway {
    /// Listens on all addresses and serves clients in the background. `served` is what the previous gateway has handed over, if
    /// there was one.
    pub async fn start(config: Config, sockets: &mut Sockets, served: &str) -> Result<Self, StartError> {
        config.routes.take_over(served);
        let shared = Arc::new(Shared::new(config)?);
        let (mut addresses, mut listening) = (Vec::new(), Vec::new());
        for listen in &shared.config().listen {
            let (socket, address) = open(listen, sockets).await?;
            addresses.push(address);
            listening.push(Arc::new(socket));
        }
        let accept =
            |socket: Arc<ListeningSocket>| (socket.clone(), tokio::spawn(accept(shared.clone(), socket)));
        let listening = listening.into_iter().map(accept).collect();
        tokio::spawn(close_unused(shared.clone()));
        tokio::spawn(maintenance::run(shared.clone()));
        tokio::spawn(rivals::run(shared.clone()));
        Ok(Gateway { shared, addresses, listening })
    }

    /// Reads the files that the configuration names and checks it, as a start does. Listens nowhere, and asks no server.
    pub fn check(config: &Config) -> Result<(), StartError> {
        authentication::Authentication::new(config)?;
        Ok(())
    }

    /// Where clients connect.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Connects clients from inside the process.
    pub fn internal_clients(&self) -> InternalClients {
        InternalClients { shared: self.shared.clone() }
    }

    /// Puts another configuration in force, and replaces connections and facts of the catalog, including merge rules.
    /// The server and the addresses stay as they were. If hba_file or users_file has an error, nothing changes.
    pub async fn reload(&self, config: Config) -> Result<(), authentication::Error> {
        let config = Config { listen: self.shared.config().listen.clone(), ..config };
        let shared = self.shared.clone();
        let read = move || shared.authentication.read(&config).map(|lists| (lists, config));
        let read = tokio::task::spawn_blocking(read).await.expect("the files are read without a panic");
        let (lists, config) = read?;
        self.shared.reload(config);
        self.shared.authentication.replace(lists);
        tracing::info!("reloaded: the access file and users_file");
        let shared = self.shared.clone();
        tokio::spawn(async move { shared.reconnect(None).await });
        Ok(())
    }

    /// The operator's next request to the program.
    pub async fn next_request(&self) -> OperatorRequest {
        self.shared.operator_requests.next().await
    }

    /// The listening sockets, for the gateway that takes over.
    pub fn inheritable_sockets(&self) -> io::Result<Vec<InheritedSocket>> {
        self.listening.iter().map(|(socket, _)| socket.inheritable()).collect()
    }

    /// The hosts that have served, for the gateway that takes over.
    pub fn served(&self) -> String {
        self.shared.config().routes.hand_over()
    }

    /// Stops the gateway. New clients are rejected. Connected clients leave when their units are answered. False if
    /// some did not leave in time.
    pub async fn stop(self) -> bool {
        for (socket, accepting) in &self.listening {
            // On a socket that the service manager keeps, new clients wait for the next process that accepts.
            if socket.is_kept() {
                accepting.abort();
            }
        }
        let patience = self.shared.config().drain_timeout;
        let clean = self.shared.drain(Stage::Leaving, patience).await;
        for (socket, _) in &self.listening {
            if let ListeningSocket::Unix(listener, path) = &**socket
                && !listener.kept
            {
                let _ = std::fs::remove_file(path);
            }
        }
        clean
    }

    /// Stops because another gateway has taken over the sockets. It accepts no more clients. Connected clients that are
    /// not silent may continue for half of the time allowed. Then they leave as for [`stop`](Self::stop).
    pub async fn hand_over(self) -> bool {
        for (socket, accepting) in self.listening {
            accepting.abort();
            drop(socket);
        }
        let half = self.shared.config().drain_timeout / 2;
        self.shared.drain(Stage::TakenOver, half).await || self.shared.drain(Stage::Leaving, half).await
    }
}

impl ListeningSocket {
    fn is_kept(&self) -> bool {
        match self {
            ListeningSocket::Tcp(listener) => listener.kept,
            ListeningSocket::Unix(listener, _) => listener.kept,
        }
    }

    fn inheritable(&self) -> io::Result<InheritedSocket> {
        match self {
            ListeningSocket::Tcp(listener) => listener.inheritable(),
            ListeningSocket::Unix(listener, _) => listener.inheritable(),
        }
    }
}

/// Connects clients from inside the process. The gateway treats them like clients of a Unix socket.
#[derive(Clone)]
pub struct InternalClients {
    shared: Arc<Shared>,
}

impl InternalClients {
    /// The gateway's numbers since its start. Cheap enough for every second.
    pub fn totals(&self) -> Totals {
        Totals::now()
    }

    /// The state of the gateway, for a page.
    pub async fn view(&self, values: Values) -> View {
        view::view(&self.shared, values).await
    }

    /// The client's end of a new connection.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let (client, ours) = UnixStream::pair()?;
        let peer = Peer { internal: true, ..Peer::default() };
        admit(&self.shared, net::unix_halves(ours), peer);
        Ok(client)
    }
}

async fn open(listen: &Listen, sockets: &mut Sockets) -> Result<(ListeningSocket, Address), ListenError> {
    match listen {
        Listen::Tcp(wanted) => {
            let asked = Address::Tcp(wanted.ip().to_string(), wanted.port());
            let listener =
                sockets.tcp(*wanted).await.map_err(|error| ListenError { address: asked, error })?;
            let port = listener.socket.local_addr().map_or(wanted.port(), |address| address.port());
            Ok((ListeningSocket::Tcp(listener), Address::Tcp(wanted.ip().to_string(), port)))
        }
        Listen::Unix(path) => {
            let address = Address::Unix(path.clone());
            let failed = |error| ListenError { address: address.clone(), error };
            let listener = sockets.unix(path).await.map_err(failed)?;
            Ok((ListeningSocket::Unix(listener, path.clone()), address))
        }
    }
}

async fn accept(shared: Arc<Shared>, socket: Arc<ListeningSocket>) {
    loop {
        let accepted = match &*socket {
            ListeningSocket::Tcp(listener) => listener.socket.accept().await.map(|(stream, address)| {
                (net::tcp_halves(stream), Peer { address: Some(address), ..Peer::default() })
            }),
            ListeningSocket::Unix(listener, _) => {
                listener.socket.accept().await.map(|(stream, _)| (net::unix_halves(stream), Peer::default()))
            }
        };
        match accepted {
            Ok((halves, peer)) => admit(&shared, halves, peer),
            Err(error) => {
                // The most likely cause is a lack of file descriptors. Clients may leave in the meantime.
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
    match shared.try_enter() {
        Some(permit) => {
            let shared = shared.clone();
            tokio::spawn(async move {
                serve_client(shared, read, write, peer).await;
                drop(permit);
            });
        }
        None => {
            METRICS.refusals.add(RefusalReason::TooManyClients, 1);
            let clients_max = shared.config().clients_max;
            tokio::spawn(async move {
                let message = format!("sorry, too many clients already: the gateway takes {clients_max}");
                send_away(
                    &write,
                    &Problem::fatal(
                        SqlState::TooManyConnections,
                        message,
                        "Disconnect clients, or raise clients_max.",
                    ),
                )
                .await;
            });
        }
    }
}

/// Closes upstream connections that have been unused for a while.
async fn close_unused(shared: Arc<Shared>) {
    loop {
        let age = shared.config().held_idle;
        // If a reload shortens the age, the new age takes effect within a second.
        tokio::time::sleep((age / 4).min(Duration::from_secs(1))).await;
        shared.close_unused(age);
    }
}
