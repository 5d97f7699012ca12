//! The hosts of the server, as libpq reads them: addresses of one cluster, one of which is the primary. Decides the
//! order in which they are tried, and remembers which one has served. `connect.rs` connects.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use hotrow_core::primary::{Change, ServedHistory};
use hotrow_core::replica::History;
use hotrow_core::reports::{Back, Outage};
use tokio_postgres::config::{Host, LoadBalanceHosts, TargetSessionAttrs};

use crate::config::UpstreamError;
use crate::lock::Lock;
use crate::net::Address;

/// One or more addresses.
#[derive(Clone, Debug)]
pub struct Hosts {
    addresses: Vec<Address>,
    /// Whether a server in recovery is skipped.
    pub read_write: bool,
    /// Whether the server runs on this machine, according to the addresses.
    pub are_local: bool,
    /// Whether they are asked for their timelines. Replicas and nodes are not: they are compared in other ways.
    pub have_timelines: bool,
    served: Arc<Lock<Served>>,
    /// The start of the clock of `outage`.
    start: Instant,
    outage: Arc<Lock<Outage>>,
    /// The hosts that accept writes besides the one that serves, as the log has reported them.
    rivals: Arc<Lock<Rivals>>,
}

/// Number of hosts that accept writes besides those that serve.
pub static RIVALS: AtomicU64 = AtomicU64::new(0);

/// Addresses that are counted.
#[derive(Debug, Default)]
struct Rivals(Vec<Address>);

impl Rivals {
    fn set(&mut self, addresses: Vec<Address>) {
        RIVALS.fetch_add((addresses.len() as u64).wrapping_sub(self.0.len() as u64), Relaxed);
        self.0 = addresses;
    }
}

impl Drop for Rivals {
    fn drop(&mut self) {
        self.set(Vec::new()); // a reload has removed the server
    }
}

/// The host that served last.
#[derive(Debug, Default)]
struct Served {
    /// Its index, once one has served. It is tried first, so a host that is down for good does not delay each connection.
    index: Option<usize>,
    history: ServedHistory,
    /// Shared with the connections of this timeline, and set when it is over.
    is_over: Arc<AtomicBool>,
}

/// The host that served last, for the gateway that takes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedLast {
    pub address: String,
    /// Its history, if the role could ask for it.
    pub history: Option<History>,
}

/// The timeline of a connection.
#[derive(Clone, Debug, Default)]
pub struct TimelineUse(Arc<AtomicBool>);

impl TimelineUse {
    /// Whether a primary on a higher timeline has served since the connection was made.
    pub fn is_over(&self) -> bool {
        self.0.load(SeqCst)
    }
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
        Ok(Hosts { have_timelines: true, ..Hosts::of(addresses, read_write) })
    }

    fn of(addresses: Vec<Address>, read_write: bool) -> Self {
        Hosts {
            are_local: addresses.iter().all(is_local),
            addresses,
            read_write,
            have_timelines: false,
            served: Arc::default(),
            start: Instant::now(),
            outage: Arc::default(),
            rivals: Arc::default(),
        }
    }

    /// The only host of a node of a distributed database. It must be a primary.
    pub fn of_node(address: Address) -> Self {
        Hosts::of(vec![address], true)
    }

    pub fn each(&self) -> impl Iterator<Item = Hosts> {
        self.addresses.iter().map(|address| Hosts::of(vec![address.clone()], false))
    }

    /// The hosts as they were named.
    pub fn all(&self) -> &[Address] {
        &self.addresses
    }

    /// All hosts in the order in which to try them: the one that served last, then the others as they were named.
    pub fn in_turn(&self) -> impl Iterator<Item = &Address> {
        let last = self.served.lock().index.unwrap_or_default();
        let others = self.addresses.iter().enumerate().filter(move |(index, _)| *index != last);
        self.addresses.get(last).into_iter().chain(others.map(|(_, address)| address))
    }

    /// Whether none of several hosts has served: then they are compared before one serves.
    pub fn are_new(&self) -> bool {
        self.have_timelines && self.addresses.len() > 1 && self.served.lock().index.is_none()
    }

    /// The host that serves and its history, as far as known.
    pub fn serving(&self) -> Option<(&Address, Option<History>)> {
        let served = self.served.lock();
        let address = self.addresses.get(served.index?)?;
        Some((address, served.history.history().cloned()))
    }

    /// The host that served last, for the gateway that takes over.
    pub fn served_last(&self) -> Option<ServedLast> {
        self.serving().map(|(address, history)| ServedLast { address: address.to_string(), history })
    }

    /// The previous gateway was served by this host. Its history counts also if the host is no longer one of these.
    pub fn inherit(&self, last: &ServedLast) {
        let mut served = self.served.lock();
        served.index = self.addresses.iter().position(|address| address.to_string() == last.address);
        served.history = ServedHistory::new(last.history.clone());
    }

    /// The timeline that has served, if a primary with this history is on an earlier one and must not serve.
    pub fn left_behind(&self, history: Option<&History>) -> Option<u32> {
        let served = self.served.lock();
        let served_timeline = served.history.history().map(|history| history.timeline);
        served_timeline.filter(|_| !served.history.admits(history))
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Notes that no host could be reached.
    pub fn failed(&self, error: &dyn fmt::Display) {
        let now = self.milliseconds();
        if let Some(since) = self.outage.lock().failed(now) {
            let seconds = (now - since) / 1000;
            tracing::error!(server = %self, error = %error, seconds, "the server is unreachable");
        }
    }

    /// For how long the server cannot be reached, if it cannot.
    pub fn lost_for(&self) -> Option<Duration> {
        let since = self.outage.lock().since()?;
        Some(Duration::from_millis(self.milliseconds().saturating_sub(since)))
    }

    /// Notes that this host serves, with this history. Returns the timeline of the connection.
    pub fn served(&self, address: &Address, history: Option<&History>) -> TimelineUse {
        let now = self.milliseconds();
        if let Some(Back { after, attempts }) = self.outage.lock().served(now) {
            let seconds = after as f64 / 1000.0;
            tracing::info!(server = %address, seconds, attempts, "the server is reachable again");
        }
        let mut served = self.served.lock();
        let index = self.addresses.iter().position(|other| other == address);
        let is_other = index.is_some() && index != Some(served.index.unwrap_or_default());
        served.index = index.or(served.index);
        if served.history.serves(history) == Change::NewTimeline {
            std::mem::take(&mut served.is_over).store(true, SeqCst);
        }
        let timeline_use = TimelineUse(served.is_over.clone());
        drop(served);
        if is_other {
            let timeline = history.map(|history| history.timeline);
            tracing::warn!(server = %address, timeline, "another host serves from now on");
        }
        timeline_use
    }

    /// Notes the hosts that accept writes for the cluster of the host that serves, and reports a change.
    pub fn set_rivals(&self, serves: &Address, rivals: Vec<Address>) {
        let mut known = self.rivals.lock();
        if known.0 == rivals {
            return;
        }
        match rivals.is_empty() {
            true => {
                tracing::info!(server = %serves, "no other host of the cluster accepts writes any longer")
            }
            false => tracing::error!(
                server = %serves,
                rivals = %List(&rivals),
                "two hosts of one cluster accept writes, and those on one of them will be lost: stop one of them, or make it \
                 a standby of the other"
            ),
        }
        known.set(rivals);
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
        List(&self.addresses).fmt(f)
    }
}

struct List<'a>(&'a [Address]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, address) in self.0.iter().enumerate() {
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

    fn address(host: &str) -> Address {
        Address::Tcp(host.to_owned(), 5432)
    }

    fn history(timeline: u32) -> History {
        History { cluster: "7".to_owned(), timeline }
    }

    #[test]
    fn the_host_that_served_last_is_tried_first() {
        let three = hosts("host=a,b,c").unwrap();
        three.served(&address("b"), None);
        assert_eq!(shown(&three), ["b:5432", "a:5432", "c:5432"]);
        three.served(&address("stranger"), None);
        assert_eq!(shown(&three), ["b:5432", "a:5432", "c:5432"]);
    }

    #[test]
    fn several_hosts_are_new_until_one_serves() {
        assert!(!hosts("host=a").unwrap().are_new());
        let two = hosts("host=a,b").unwrap();
        assert!(two.are_new());
        two.served(&address("a"), None);
        assert!(!two.are_new());
        assert!(two.each().all(|replica| !replica.are_new() && !replica.have_timelines));
    }

    #[test]
    fn a_higher_timeline_ends_the_use_of_earlier_connections() {
        let two = hosts("host=a,b").unwrap();
        let unknown = two.served(&address("a"), None);
        let first = two.served(&address("a"), Some(&history(1)));
        assert!(!unknown.is_over() && !first.is_over());
        let second = two.served(&address("b"), Some(&history(2)));
        assert!(first.is_over() && !second.is_over());
        assert_eq!(two.left_behind(Some(&history(1))), Some(2));
        assert_eq!((two.left_behind(Some(&history(2))), two.left_behind(None)), (None, None));
    }

    #[test]
    fn the_host_that_served_last_is_handed_over() {
        let before = hosts("host=a,b").unwrap();
        assert_eq!(before.served_last(), None);
        before.served(&address("b"), Some(&history(2)));
        let last = before.served_last().unwrap();
        let after = hosts("host=c,a,b").unwrap();
        after.inherit(&last);
        assert_eq!(shown(&after), ["b:5432", "c:5432", "a:5432"]);
        assert_eq!(after.left_behind(Some(&history(1))), Some(2));
        let without = hosts("host=a,c").unwrap();
        without.inherit(&last);
        assert!(without.are_new(), "the hosts are compared again");
        assert_eq!(without.left_behind(Some(&history(1))), Some(2));
    }
}
