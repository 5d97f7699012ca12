//! Serves the gateway's metrics and its health.

use std::sync::Arc;

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
    /// Serves in the background, with the health of the gateway and of the server.
    pub async fn start(page: MetricsPage, check: Check, sockets: &mut Sockets) -> Result<Self, Error> {
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

/// Whether a server answered when the maintenance last connected to it, which it does every few seconds. A probe that connected
/// itself would need a connection of its own.
pub fn check_of_servers() -> Check {
    Arc::new(|| Box::pin(std::future::ready(one_is_up(&METRICS.servers.all()))))
}

/// With several servers, one that is away is no reason to call the gateway of the others not ready.
fn one_is_up(servers: &[(String, bool)]) -> Result<(), String> {
    if servers.iter().any(|(_, is_up)| *is_up) {
        return Ok(());
    }
    if servers.is_empty() {
        return Err("no server has been asked yet".to_owned());
    }
    let hosts: Vec<&str> = servers.iter().map(|(hosts, _)| hosts.as_str()).collect();
    Err(format!("no server answered when the gateway last connected: {}", hosts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_ready_if_one_of_its_servers_answers() {
        let servers = |states: &[bool]| -> Vec<(String, bool)> {
            states.iter().enumerate().map(|(number, is_up)| (format!("s{number}:1"), *is_up)).collect()
        };
        assert!(one_is_up(&servers(&[])).unwrap_err().contains("yet"));
        assert!(one_is_up(&servers(&[false, false])).unwrap_err().ends_with("s0:1; s1:1"));
        assert_eq!(one_is_up(&servers(&[false, true])), Ok(()));
    }
}
