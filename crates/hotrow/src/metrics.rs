//! Serves the gateway's metrics.

use hotrow_gateway::metrics::METRICS;
use hotrow_gateway::{InheritedSocket, Sockets};
use tokio::task::JoinHandle;

/// The address cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot serve metrics on {address}: {error}; if another program uses the address, choose another one with --metrics"
)]
pub struct Error {
    address: String,
    error: std::io::Error,
}

/// The running endpoint for Prometheus.
pub struct Metrics {
    /// The listening socket, for the successor of this process.
    pub inheritable: InheritedSocket,
    accepting: JoinHandle<std::io::Result<()>>,
}

impl Metrics {
    /// Serves in the background.
    pub async fn start(address: String, sockets: &mut Sockets) -> Result<Self, Error> {
        let refused = |error| Error { address: address.clone(), error };
        let nothing = || refused(std::io::Error::other("the host name has no address"));
        let wanted = tokio::net::lookup_host(&address).await.map_err(refused)?.next().ok_or_else(nothing)?;
        let listener = sockets.tcp(wanted).await.map_err(refused)?;
        tracing::info!(address = %listener.socket.local_addr().map_err(refused)?, "serving /metrics");
        let inheritable = listener.inheritable().map_err(refused)?;
        let accepting = tokio::spawn(hotrow_http::serve_metrics(listener.socket, || METRICS.render()));
        Ok(Metrics { inheritable, accepting })
    }
    /// Stops accepting connections.
    pub fn stop(&self) {
        self.accepting.abort();
    }
}
