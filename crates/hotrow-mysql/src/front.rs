//! The gateway's front: it listens, admits a bounded number of clients, and stops when their transactions have ended.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::config::Config;
use crate::limits;
use crate::log_in::log_in;
use crate::own;
use crate::packing::Pools;
use crate::refusal::Refusal;
use crate::session;
use crate::socket::Socket;

/// A running gateway.
pub struct Front {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    stops: watch::Sender<bool>,
}

struct Shared {
    config: Config,
    /// A permit for each client.
    places: Arc<Semaphore>,
    /// The lanes, if statements are packed.
    pools: Option<Arc<Pools>>,
}

impl Front {
    /// Listens, and checks the gateway's own log-in at the server without waiting for it.
    pub async fn start(config: Config) -> io::Result<Self> {
        let places = Arc::new(Semaphore::new(config.clients_max));
        let pools = config.packs.then(|| Arc::new(Pools::new(config.upstream.clone(), config.server_wait)));
        let shared = Arc::new(Shared { config, places, pools });
        let (stops, stopping) = watch::channel(false);
        let mut addresses = Vec::new();
        for address in &shared.config.listen {
            let listener = TcpListener::bind(address).await.map_err(|error| {
                io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
            })?;
            addresses.push(listener.local_addr()?);
            tokio::spawn(accept(listener, shared.clone(), stopping.clone()));
        }
        tokio::spawn(check(shared.clone()));
        Ok(Front { shared, addresses, stops })
    }

    /// The addresses, with the ports that the system has chosen.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Admits no more clients, and ends sessions when no transaction is open. False if some did not end in time.
    pub async fn stop(self) -> bool {
        self.stops.send_replace(true);
        let all = u32::try_from(self.shared.config.clients_max).unwrap_or(u32::MAX);
        timeout(self.shared.config.drain_timeout, self.shared.places.acquire_many(all)).await.is_ok()
    }
}

/// Says in the log what is wrong with the server or with the gateway's own user.
async fn check(shared: Arc<Shared>) {
    let upstream = &shared.config.upstream;
    let checked = async {
        let (server, greeting) = own::connect(upstream).await?;
        own::log_in_and_leave(server, &greeting, upstream).await?;
        Ok::<_, own::OwnError>(String::from_utf8_lossy(&greeting.version).into_owned())
    };
    match timeout(shared.config.server_wait, checked).await {
        Ok(Ok(version)) if version.contains("MariaDB") => {
            tracing::info!(server = %upstream, version, "the server can be used");
        }
        Ok(Ok(version)) => {
            tracing::warn!(server = %upstream, version, "the server is not MariaDB: Hotrow is not tested with it");
        }
        Ok(Err(error)) => {
            tracing::warn!(server = %upstream, "the gateway's own user cannot log in: {error}");
        }
        Err(_) => tracing::warn!(server = %upstream, "the server does not answer"),
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
    let mut client = Socket::accepted(stream);
    let Ok(_place) = shared.places.clone().try_acquire_owned() else {
        let _ = client.send(0, &Refusal::TooManyClients.payload()).await; // the client may be gone
        return;
    };
    let config = &shared.config;
    let Some(logged_in) = log_in(client, config).await else { return };
    if let Err(error) = session::run(logged_in, shared.pools.clone(), stopping).await {
        tracing::debug!(%error, "a session has lost a connection");
    }
}
