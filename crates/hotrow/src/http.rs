//! Starts and stops the HTTP API, which is a client of the gateway.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hotrow_connect::config::UpstreamConfig;
use hotrow_connect::pack::{MISSING_FUNCTIONS, PACK_TRUSTED};
use hotrow_gateway::view::Values;
use hotrow_gateway::{Gateway, InheritedSocket, Sockets};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::live::LiveState;
use crate::settings::Http;

/// The address cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot serve HTTP on {address}: {error}; if another program uses the address, choose another one with --http"
)]
pub struct Error {
    address: SocketAddr,
    error: std::io::Error,
}

/// A running HTTP server.
pub struct HttpServer {
    address: SocketAddr,
    inheritable: InheritedSocket,
    stop: watch::Sender<()>,
    task: JoinHandle<bool>,
}

impl HttpServer {
    /// Serves in the background. At the end, requests under way have `patience` to finish.
    pub async fn start(
        http: Http,
        gateway: &Gateway,
        upstream: &UpstreamConfig,
        patience: Duration,
        sockets: &mut Sockets,
    ) -> Result<Self, Error> {
        let address = http.address;
        let refused = |error| Error { address, error };
        let listener = sockets.tcp(http.address).await.map_err(refused)?;
        let address = listener.socket.local_addr().map_err(refused)?;
        let inheritable = listener.inheritable().map_err(refused)?;
        let inside = gateway.internal_clients();
        let values = if http.shows_values { Values::Shown } else { Values::Hidden };
        let live = LiveState::new(inside.clone(), values, http.upstream_url, upstream, gateway.addresses());
        let live = Arc::new(live);
        let (stop, mut stopped) = watch::channel(());
        let upstream = hotrow_http::GatewayAccess {
            connect: Arc::new(move || inside.connect()),
            user: upstream.user.clone(),
            database: upstream.database.clone(),
            pack_trusted: PACK_TRUSTED,
            missing_functions: MISSING_FUNCTIONS,
            stop: stopped.clone(),
        };
        let router = hotrow_http::router(&upstream, http.tokens, Some(live));
        let until = async move {
            // No value is ever sent: the end of the sender is the signal.
            let _ = stopped.changed().await;
        };
        let bounds = hotrow_http::Bounds::new(patience);
        let task = tokio::spawn(hotrow_http::serve(listener.socket, router, bounds, until));
        Ok(HttpServer { address, inheritable, stop, task })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The listening socket, for the successor of this process.
    pub fn inheritable(&self) -> std::io::Result<InheritedSocket> {
        self.inheritable.try_clone()
    }

    /// Waits for requests under way; false if some did not finish in time.
    pub async fn stop(self) -> bool {
        drop(self.inheritable);
        drop(self.stop);
        self.task.await.unwrap_or(false)
    }
}
