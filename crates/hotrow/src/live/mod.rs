//! The data of the operations page: the gateway's state and the server's, for `hotrow_http`.

mod server;
mod state;

use std::pin::Pin;
use std::time::{SystemTime, UNIX_EPOCH};

use hotrow_connect::config::{Hosts, UpstreamConfig};
use hotrow_connect::net::Address;
use hotrow_gateway::InternalClients;
use hotrow_gateway::view::Values;
use hotrow_http::{Counters, Source, State};
use serde_json::{Map, Value, json};

use self::server::ServerSampler;

/// The state of this gateway and of its server.
pub struct LiveState {
    gateway: InternalClients,
    values: Values,
    server: ServerSampler,
    hosts: Hosts,
    about: Map<String, Value>,
}

impl LiveState {
    /// Asks nothing yet. The URL is the server's, and `addresses` are those of the gateway's clients.
    pub fn new(
        gateway: InternalClients,
        values: Values,
        url: String,
        upstream: &UpstreamConfig,
        addresses: &[Address],
    ) -> Self {
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let about = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "started": seconds_since_1970(SystemTime::now()),
            "addresses": addresses,
            "server": upstream.hosts.to_string(),
            "user": upstream.user,
            "database": upstream.database,
            "shows_values": values == Values::Shown,
        });
        let Value::Object(about) = about else { unreachable!("the value above is an object") };
        LiveState { gateway, values, server: ServerSampler::new(url), hosts: upstream.hosts.clone(), about }
    }
}

impl Source for LiveState {
    fn about(&self) -> Map<String, Value> {
        self.about.clone()
    }

    fn counters(&self) -> Counters {
        let totals = self.gateway.totals();
        Counters {
            packed: totals.units_packed,
            merged: totals.units_merged,
            reads: totals.reads_packed,
            passed: totals.units_passed,
            batches: totals.batches.saturating_sub(totals.read_batches),
            transactions: totals.transactions,
            refused: totals.refused,
            latencies: totals.latencies,
        }
    }

    fn state(&self) -> Pin<Box<dyn Future<Output = State> + Send + '_>> {
        Box::pin(async {
            let view = self.gateway.view(self.values).await;
            let server = self.server.latest(self.hosts.lost_for());
            let flushes_per_second = server.flushes_per_second();
            let mut fields = state::fields(view);
            fields.insert("server".to_owned(), json!(server.now));
            fields.insert("server_problem".to_owned(), json!(server.problem));
            State { fields, flushes_per_second }
        })
    }
}

fn seconds_since_1970(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
