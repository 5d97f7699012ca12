//! The gateway's front: it listens, admits a bounded number of clients, and stops when their transactions have ended.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use hotrow_core::limits::MAINTENANCE_MS;
use hotrow_gateway::metrics::{METRICS, RefusalReason};
use hotrow_mysql_client::own;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::client_side::accepted;
use crate::config::Config;
use crate::limits;
use crate::login::login;
use crate::packing::Pools;
use crate::refusal::Refusal;
use crate::session;

/// A running gateway.
pub struct Front {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    stops: watch::Sender<bool>,
}

struct Shared {
    config: Config,
    /// Held while a login is reset that has ended in disorder.
    aborted: Mutex<()>,
    /// A permit for each client.
    places: Arc<Semaphore>,
    /// The lanes, if statements are packed.
    pools: Option<Arc<Pools>>,
}

impl Front {
    /// Listens, and checks the gateway's own login at the server from time to time, without waiting for it.
    pub async fn start(config: Config) -> io::Result<Self> {
        let places = Arc::new(Semaphore::new(config.clients_max));
        let pools =
            config.pack_from.map(|from| Pools::new(config.upstream.clone(), config.server_wait, from));
        let pools = pools.map(Arc::new);
        let shared = Arc::new(Shared { config, places, pools, aborted: Mutex::default() });
        let (stops, stopping) = watch::channel(false);
        let mut addresses = Vec::new();
        for address in &shared.config.listen {
            let listener = TcpListener::bind(address).await.map_err(|error| {
                io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
            })?;
            addresses.push(listener.local_addr()?);
            tokio::spawn(accept(listener, shared.clone(), stopping.clone()));
        }
        tokio::spawn(watch(Arc::downgrade(&shared), stopping));
        Ok(Front { shared, addresses, stops })
    }

    /// The addresses, with the ports that the system has chosen.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Whether the server answers.
    pub fn health(&self) -> Health {
        Health(self.shared.clone())
    }

    /// Admits no more clients, and ends sessions when no transaction is open. False if some did not end in time.
    pub async fn stop(self) -> bool {
        self.stops.send_replace(true);
        let all = u32::try_from(self.shared.config.clients_max).unwrap_or(u32::MAX);
        timeout(self.shared.config.drain_timeout, self.shared.places.acquire_many(all)).await.is_ok()
    }
}

/// Whether the server answers, and the gateway's own user can log in.
#[derive(Clone)]
pub struct Health(Arc<Shared>);

impl Health {
    /// Connects and logs in. An error says what is wrong.
    pub async fn check(&self) -> Result<(), String> {
        let checked = self.0.check().await;
        checked.map(drop).map_err(|error| error.to_string())
    }
}

/// What is wrong with the server or with the gateway's own user.
#[derive(Debug, thiserror::Error)]
enum Unhealthy {
    #[error("the gateway's own user cannot log in: {0}")]
    Own(#[from] own::OwnError),
    #[error("the server does not answer within server_wait_ms")]
    Silent,
}

impl Shared {
    /// Connects and logs in as the gateway's own user. Returns the server's version.
    async fn check(self: &Arc<Self>) -> Result<String, Unhealthy> {
        let upstream = &self.config.upstream;
        let checked = async {
            let (server, greeting) = own::connect(upstream).await?;
            own::login_and_leave(server, &greeting, upstream).await?;
            Ok::<_, own::OwnError>(String::from_utf8_lossy(&greeting.version).into_owned())
        };
        let checked = timeout(self.config.server_wait, checked).await;
        let checked = checked.map_or(Err(Unhealthy::Silent), |checked| checked.map_err(Unhealthy::Own));
        // A server that refuses the login has answered.
        let is_up = matches!(
            checked,
            Ok(_) | Err(Unhealthy::Own(own::OwnError::Refused(_) | own::OwnError::Plugin(_)))
        );
        METRICS.servers.set(upstream.to_string(), self, is_up);
        checked
    }
}

/// Says in the log what is wrong with the server or with the gateway's own user, and goes on to look whether the server answers.
async fn watch(shared: Weak<Shared>, mut stopping: watch::Receiver<bool>) {
    let mut was_wrong = None;
    while let Some(shared) = shared.upgrade() {
        let (server, checked) = (&shared.config.upstream, shared.check().await);
        let is_wrong = checked.is_err();
        match checked {
            _ if was_wrong == Some(is_wrong) => {}
            Ok(version) if version.contains("MariaDB") => {
                tracing::info!(server = %server, version, "the server can be used");
            }
            Ok(version) => {
                tracing::warn!(server = %server, version, "the server is not MariaDB: Hotrow is not tested with it");
            }
            Err(error) => tracing::warn!(server = %server, "{error}"),
        }
        was_wrong = Some(is_wrong);
        drop(shared);
        tokio::select! {
            () = sleep(Duration::from_millis(MAINTENANCE_MS)) => {}
            _ = stopping.wait_for(|stops| *stops) => return,
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stopping: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stops| *stops) => return,
        };
        match accepted {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, shared.clone(), stopping.clone()))),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(Duration::from_millis(limits::ACCEPT_PAUSE_MS)).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, stopping: watch::Receiver<bool>) {
    let mut client = accepted(stream);
    let Ok(_place) = shared.places.clone().try_acquire_owned() else {
        METRICS.refusals.add(RefusalReason::TooManyClients, 1);
        let _ = client.send(0, &Refusal::TooManyClients.payload()).await; // the client may be gone
        return;
    };
    let config = &shared.config;
    let Some(logged_in) = login(client, config, shared.pools.as_deref(), &shared.aborted).await else {
        return;
    };
    if let Err(error) = session::run(logged_in, shared.pools.clone(), stopping).await {
        tracing::debug!(%error, "a session has lost a connection");
    }
}
