//! Serves the gateway's metrics.

use hotrow_gateway::metrics::METRICS;
use hotrow_gateway::{InheritedSocket, Sockets};
use hotrow_http::Check;
use tokio::task::JoinHandle;

use crate::settings::MetricsPage;

/// The address cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot serve metrics on {address}: {error}; if another program uses the address, choose another one with --metrics"
)]
pub struct Error {
    address: std::net::SocketAddr,
    error: std::io::Error,
}

/// The running endpoint for Prometheus.
pub struct Metrics {
    /// The listening socket, for the successor of this process.
    pub inheritable: InheritedSocket,
    accepting: JoinHandle<std::io::Result<()>>,
}

impl Metrics {
    /// Serves in the background. With a check of the server, its health is there, too.
    pub async fn start(
        page: MetricsPage,
        check: Option<Check>,
        sockets: &mut Sockets,
    ) -> Result<Self, Error> {
        let MetricsPage { address, tokens } = page;
        let refused = |error| Error { address, error };
        let listener = sockets.tcp(address).await.map_err(refused)?;
        tracing::info!(address = %listener.socket.local_addr().map_err(refused)?, "serving /metrics");
        let inheritable = listener.inheritable().map_err(refused)?;
        let serving = hotrow_http::serve_metrics(listener.socket, tokens, check, || METRICS.render());
        let accepting = tokio::spawn(serving);
        Ok(Metrics { inheritable, accepting })
    }

    /// Stops accepting connections.
    pub fn stop(&self) {
        self.accepting.abort();
    }
}
