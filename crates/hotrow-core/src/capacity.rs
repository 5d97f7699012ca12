//! Whether the gateway's bounds allow more connections to a server than the server accepts, and when the log reports it.

/// The connections that a server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerCapacity {
    pub connections_max: u64,
    /// Connections among them that only superusers and members of `pg_use_reserved_connections` can use.
    pub reserved: u64,
}

/// The connections that the gateway can open at once for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The bound of connections outside lanes.
    pub held: u64,
    /// The lanes for writes and for reads of all pools.
    pub lanes: u64,
    /// The pools that are open, or one if there is none yet.
    pub pools: u64,
}

impl Demand {
    /// For pools with these numbers of lanes for writes. A pool has as many lanes for reads. Before the first pool is open,
    /// `lanes` is the number of its lanes for writes.
    pub fn new(held: usize, lanes: usize, of_pools: &[usize]) -> Self {
        let first = [lanes];
        let pools = if of_pools.is_empty() { &first } else { of_pools };
        Demand {
            held: held as u64,
            lanes: pools.iter().map(|lanes| 2 * *lanes as u64).sum(),
            pools: pools.len() as u64,
        }
    }

    /// All connections together.
    pub fn connections(self) -> u64 {
        self.held + self.lanes
    }
}

/// Reports a demand over the capacity once, and again if it has grown.
#[derive(Clone, Copy, Debug, Default)]
pub struct CapacityReports {
    reported: u64,
}

impl CapacityReports {
    /// Whether to report this demand now.
    pub fn note(&mut self, demand: Demand, capacity: ServerCapacity) -> bool {
        let connections = demand.connections();
        if connections <= capacity.connections_max.saturating_sub(capacity.reserved) {
            self.reported = 0;
            return false;
        }
        let is_new = connections > self.reported;
        self.reported = self.reported.max(connections);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ServerCapacity = ServerCapacity { connections_max: 100, reserved: 3 };

    #[test]
    fn held_connections_and_the_lanes_of_all_pools_count() {
        let demand = Demand::new(80, 4, &[4, 4, 2]);
        assert_eq!(demand, Demand { held: 80, lanes: 20, pools: 3 });
        assert_eq!(demand.connections(), 100);
        assert_eq!(Demand::new(80, 4, &[]), Demand { held: 80, lanes: 8, pools: 1 });
        assert_eq!(Demand::new(80, 4, &[0]).lanes, 0, "nothing is packed");
    }

    #[test]
    fn a_demand_over_the_capacity_is_reported_once_and_again_if_it_grows() {
        let mut reports = CapacityReports::default();
        let mut note = |held| reports.note(Demand { held, lanes: 8, pools: 1 }, SERVER);
        assert!(!note(89), "97 connections are not reserved");
        assert!(note(90));
        assert!(!note(90) && !note(90));
        assert!(note(91) && !note(90));
        assert!(!note(80) && note(90), "it was in order meanwhile");
    }
}
