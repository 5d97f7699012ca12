//! Serves the metrics beside the gateway.

use hotrow_gateway::metrics::METRICS;
use hotrow_gateway::{InheritedSocket, Sockets};
use tokio::task::JoinHandle;

/// The address can't be had.
#[derive(Debug, thiserror::Error)]
#[error("can't serve metrics on {address}: {error}; choose another address with --metrics")]
pub struct Error {
    address: String,
    error: std::io::Error,
}

/// Where Prometheus reads.
pub struct Metrics {
    /// Its listening socket, for the gateway that takes over.
    pub inheritable: InheritedSocket,
    accepting: JoinHandle<std::io::Result<()>>,
}

impl Metrics {
    /// Serves in the background.
    pub async fn start(address: String, sockets: &mut Sockets) -> Result<Self, Error> {
        let refused = |error| Error { address: address.clone(), error };
        let nothing = || refused(std::io::Error::other("the name has no address"));
        let wanted = tokio::net::lookup_host(&address).await.map_err(refused)?.next().ok_or_else(nothing)?;
        let listener = sockets.tcp(wanted).await.map_err(refused)?;
        tracing::info!(address = %listener.socket.local_addr().map_err(refused)?, "serving /metrics");
        let inheritable = listener.inheritable().map_err(refused)?;
        let accepting = tokio::spawn(hotrow_http::serve_metrics(listener.socket, || METRICS.render()));
        Ok(Metrics { inheritable, accepting })
    }
    /// Accepts nobody from now on.
    pub fn stop(&self) {
        self.accepting.abort();
    }
}
