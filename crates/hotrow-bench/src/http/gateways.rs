//! The two gateways before one server that the load over HTTP is shared out to; sends nothing.

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::gateway::Gateway;
use std::net::SocketAddr;
use std::path::Path;

/// Two gateways that this benchmark started, each with an HTTP address.
#[derive(Debug)]
pub struct Gateways {
    running: Vec<Gateway>,
    /// Where they serve HTTP.
    pub addresses: Vec<SocketAddr>,
}

impl Gateways {
    const NUMBER: usize = 2;

    /// Starts them before the server at `upstream_url`.
    pub async fn start(program: &Path, upstream_url: &str, upstream: &Endpoint) -> Result<Self, Error> {
        let (mut running, mut addresses) = (Vec::new(), Vec::new());
        for _ in 0..Self::NUMBER {
            let (gateway, address) = Gateway::start_with_http(program, upstream_url, upstream).await?;
            running.push(gateway);
            addresses.push(address);
        }
        Ok(Self { running, addresses })
    }

    /// If one has ended by itself: how, and its last words.
    pub fn obituary(&mut self) -> Option<String> {
        self.running.iter_mut().find_map(Gateway::obituary)
    }

    /// Ends them.
    pub async fn stop(self) -> Result<(), Error> {
        for gateway in self.running {
            gateway.stop().await?;
        }
        Ok(())
    }
}
