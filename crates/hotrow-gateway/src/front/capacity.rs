//! Compares the connections that the gateway can open with those that a server accepts. `hotrow_core::capacity` decides when
//! the log reports a difference.

use std::collections::HashMap;

use hotrow_connect::lock::Lock;
use hotrow_connect::upstream::{Error, Upstream};
use hotrow_core::capacity::{CapacityReports, Demand, ServerCapacity};
use hotrow_core::pack_mode::PackMode;

use crate::config::routes::Route;
use crate::shared::Shared;

/// What was reported about each server, by its number.
#[derive(Debug, Default)]
pub struct Capacities(Lock<HashMap<u64, CapacityReports>>);

impl Capacities {
    /// Asks the server at this connection, and logs a warning if the gateway could open more connections than it accepts.
    pub async fn check(&self, upstream: &mut Upstream, shared: &Shared, route: &Route) -> Result<(), Error> {
        let rows = match upstream.query_catalog(include_str!("../../sql/capacity.sql"), &[]).await {
            Err(Error::Refused { .. }) => return Ok(()), // the role may not read settings: the capacity is not known
            rows => rows?,
        };
        let number = |index: usize| rows.first()?.get(index)?.as_deref()?.parse().ok();
        let (Some(connections_max), Some(reserved)) = (number(0), number(1)) else { return Ok(()) };
        let capacity = ServerCapacity { connections_max, reserved };
        let demand = demand(shared, route.server.id);
        if self.0.lock().entry(route.server.id).or_default().note(demand, capacity) {
            tracing::warn!(
                server = %route.server.upstream.hosts,
                max_connections = connections_max,
                reserved,
                held_connections_max = demand.held,
                lanes = demand.lanes,
                pools = demand.pools,
                "the gateway can open more connections than the server accepts: lower held_connections_max or lanes, or raise max_connections"
            );
        }
        Ok(())
    }

    /// Forgets servers that a reload has removed.
    pub fn retain(&self, is_present: impl Fn(u64) -> bool) {
        self.0.lock().retain(|server, _| is_present(*server));
    }
}

/// The connections that clients of this server can use at once.
fn demand(shared: &Shared, server: u64) -> Demand {
    let config = shared.config();
    let lanes = |mode: PackMode, lanes: usize| if mode >= PackMode::On { lanes } else { 0 };
    let pools = shared.pools();
    let of_server = pools.iter().filter(|pool| pool.identity.route().server.id == server);
    let of_pools: Vec<usize> = of_server
        .map(|pool| {
            let config = pool.config();
            lanes(config.pack, config.lanes)
        })
        .collect();
    Demand::new(config.held_connections_max, lanes(config.pack, config.lanes), &of_pools)
}
