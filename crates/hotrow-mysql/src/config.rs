//! What the gateway runs with.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hotrow_gateway::tls;
use hotrow_mysql_client::Upstream;

/// What the gateway runs with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server.
    pub upstream: Upstream,
    /// Where clients connect.
    pub listen: Vec<SocketAddr>,
    /// The most clients.
    pub clients_max: usize,
    /// The longest wait for the server's greeting.
    pub server_wait: Duration,
    /// The number of statements under way at once from which they are packed. None if none are.
    pub pack_from: Option<usize>,
    /// The certificate for clients. They have no TLS without it.
    pub tls: Option<Arc<tls::Server>>,
    /// The longest wait for open transactions at a stop.
    pub drain_timeout: Duration,
}
