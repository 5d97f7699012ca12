//! The hosts of the server, as libpq reads them: addresses of one cluster, one of which is the primary. Decides the
//! order in which they are tried. `server/connect.rs` connects.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use hotrow_core::reports::{Back, Outage};
use tokio_postgres::config::{Host, LoadBalanceHosts, TargetSessionAttrs};

use crate::config::UpstreamError;
use crate::lock::Lock;
use crate::metrics::milliseconds_since_start;
use crate::net::Address;

/// One or more addresses.
#[derive(Clone, Debug)]
pub struct Hosts {
    addresses: Vec<Address>,
    /// Whether a server in recovery is skipped.
    pub read_write: bool,
    /// Whether the server runs on this machine, according to the addresses.
    pub are_local: bool,
    /// The host that served last. It is tried first, so a host that is down for good does not delay each connection.
    last: Arc<AtomicUsize>,
    outage: Arc<Lock<Outage>>,
}

impl Hosts {
    /// From the hosts in libpq's URL or keyword string.
    pub fn new(config: &tokio_postgres::Config) -> Result<Self, UpstreamError> {
        let names: Vec<Host> = match config.get_hosts() {
            [] => config.get_hostaddrs().iter().map(|address| Host::Tcp(address.to_string())).collect(),
            hosts => hosts.to_vec(),
        };
        let ports = config.get_ports();
        if names.is_empty() {
            return Err(UpstreamError::NoHost);
        }
        if ports.len() > 1 && ports.len() != names.len() {
            return Err(UpstreamError::Ports { ports: ports.len(), hosts: names.len() });
        }
        if config.get_load_balance_hosts() != LoadBalanceHosts::Disable {
            return Err(UpstreamError::LoadBalance);
        }
        let read_write = match config.get_target_session_attrs() {
            TargetSessionAttrs::Any => false,
            TargetSessionAttrs::ReadWrite => true,
            _ => return Err(UpstreamError::ReadOnly),
        };
        let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        let address = |(index, host)| match host {
            Host::Tcp(host) => Address::Tcp(host, port(index)),
            Host::Unix(directory) => Address::Unix(directory.join(format!(".s.PGSQL.{}", port(index)))),
        };
        let addresses: Vec<_> = names.into_iter().enumerate().map(address).collect();
        let are_local = addresses.iter().all(is_local);
        Ok(Hosts { addresses, read_write, are_local, last: Arc::default(), outage: Arc::default() })
    }

    /// The only host of a node of a distributed database. It must be a primary.
    pub fn of_node(address: Address) -> Self {
        let are_local = is_local(&address);
        let addresses = vec![address];
        Hosts { addresses, read_write: true, are_local, last: Arc::default(), outage: Arc::default() }
    }

    /// Each host on its own.
    pub fn each(&self) -> impl Iterator<Item = Hosts> {
        let alone = |address: &Address| Hosts {
            addresses: vec![address.clone()],
            read_write: false,
            are_local: is_local(address),
            last: Arc::default(),
            outage: Arc::default(),
        };
        self.addresses.iter().map(alone)
    }

    /// All hosts in the order in which to try them: the one that served last, then the others as they were named.
    pub fn in_turn(&self) -> impl Iterator<Item = &Address> {
        let last = self.last.load(Relaxed);
        let others = self.addresses.iter().enumerate().filter(move |(index, _)| *index != last);
        self.addresses.get(last).into_iter().chain(others.map(|(_, address)| address))
    }

    /// Notes that no host could be reached.
    pub fn failed(&self, error: &dyn fmt::Display) {
        let now = milliseconds_since_start(Instant::now());
        if let Some(since) = self.outage.lock().failed(now) {
            let seconds = (now - since) / 1000;
            tracing::error!(server = %self, error = %error, seconds, "the server is unreachable");
        }
    }

    /// Notes that this host serves.
    pub fn served(&self, address: &Address) {
        if let Some(Back { after, attempts }) =
            self.outage.lock().served(milliseconds_since_start(Instant::now()))
        {
            let seconds = after as f64 / 1000.0;
            tracing::info!(server = %address, seconds, attempts, "the server is reachable again");
        }
        let Some(index) = self.addresses.iter().position(|other| other == address) else { return };
        if self.last.swap(index, Relaxed) != index {
            tracing::warn!(server = %address, "another host serves from now on");
        }
    }
}

fn is_local(address: &Address) -> bool {
    match address {
        Address::Unix(_) => true,
        Address::Tcp(host, _) => host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, address) in self.addresses.iter().enumerate() {
            write!(f, "{}{address}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Result<Hosts, UpstreamError> {
        Hosts::new(&text.parse().unwrap())
    }

    fn shown(hosts: &Hosts) -> Vec<String> {
        hosts.in_turn().map(ToString::to_string).collect()
    }

    #[test]
    fn hosts_are_read_as_by_libpq() {
        let one = hosts("host=db").unwrap();
        assert_eq!((one.to_string().as_str(), one.read_write), ("db:5432", false));
        let two = hosts("host=a,b port=6001,6002 target_session_attrs=read-write").unwrap();
        assert_eq!((two.to_string().as_str(), two.read_write), ("a:6001,b:6002", true));
        assert_eq!(hosts("host=a,b port=7000").unwrap().to_string(), "a:7000,b:7000");
    }

    #[test]
    fn addresses_show_whether_hosts_are_local() {
        for text in ["host=localhost", "host=/run/postgresql", "host=127.0.0.1,::1", "hostaddr=127.8.0.1"] {
            assert!(hosts(text).unwrap().are_local, "{text}");
        }
        for text in ["host=db", "host=10.0.0.7", "host=localhost,db"] {
            assert!(!hosts(text).unwrap().are_local, "{text}");
        }
    }

    #[test]
    fn contradictory_hosts_are_rejected() {
        assert!(matches!(hosts("user=ann"), Err(UpstreamError::NoHost)));
        let ports = hosts("host=a,b,c port=1,2");
        assert!(matches!(ports, Err(UpstreamError::Ports { ports: 2, hosts: 3 })));
        assert!(matches!(hosts("host=a load_balance_hosts=random"), Err(UpstreamError::LoadBalance)));
        assert!(matches!(hosts("host=a target_session_attrs=read-only"), Err(UpstreamError::ReadOnly)));
    }

    #[test]
    fn the_host_that_served_last_is_tried_first() {
        let three = hosts("host=a,b,c").unwrap();
        three.served(&Address::Tcp("b".into(), 5432));
        assert_eq!(shown(&three), ["b:5432", "a:5432", "c:5432"]);
        three.served(&Address::Tcp("stranger".into(), 5432));
        assert_eq!(shown(&three), ["b:5432", "a:5432", "c:5432"]);
    }
}
