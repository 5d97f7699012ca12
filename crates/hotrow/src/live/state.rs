//! One event of the operations page, from the gateway's view. Each list is bounded. Pure.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hotrow_core::limits::LIVE_ROWS_MAX;
use hotrow_gateway::view::View;
use hotrow_gateway::view::clients::Client;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The clients with one application name.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Application {
    name: String,
    clients: u64,
    active: u64,
    waiting: u64,
    in_transaction: u64,
    pinned: u64,
    units_packed: u64,
    units_passed: u64,
}

/// The fields of the event.
pub fn fields(mut view: View) -> Map<String, Value> {
    let applications = applications(&view.clients);
    let (client_count, lane_count) = (view.clients.len(), view.lanes.len());
    let lane_sums = lane_sums(&view);
    view.clients.sort_by_key(|client| (rank(client), Reverse(client.units_packed + client.units_passed)));
    view.clients.truncate(LIVE_ROWS_MAX);
    view.lanes.sort_by_key(|lane| {
        (Reverse(lane.parked_units + lane.queued_units + lane.units_under_way), Reverse(lane.units_done))
    });
    view.lanes.truncate(LIVE_ROWS_MAX);
    view.statements.truncate(LIVE_ROWS_MAX);
    let fields = json!({
        "totals": view.totals,
        "gauges": view.gauges,
        "keys": view.keys,
        "statements": view.statements,
        "statement_totals": view.statement_totals,
        "applications": applications,
        "clients": view.clients,
        "client_count": client_count,
        "lane_sums": lane_sums,
        "lanes": view.lanes,
        "lane_count": lane_count,
        "databases": view.databases,
    });
    let Value::Object(fields) = fields else { unreachable!("the value above is an object") };
    fields
}

/// Units in all lanes by what happens to them. The bound of the list of lanes does not apply.
fn lane_sums(view: &View) -> Value {
    let sum = |units: fn(&hotrow_gateway::view::lanes::LaneState) -> usize| -> usize {
        view.lanes.iter().map(units).sum()
    };
    json!({
        "gathering": sum(|lane| lane.queued_units),
        "executing": sum(|lane| lane.units_under_way - lane.units_committing),
        "committing": sum(|lane| lane.units_committing),
        "blocked": sum(|lane| lane.parked_units),
    })
}

/// The order in the list of clients: clients with a problem come first.
fn rank(client: &Client) -> u8 {
    match () {
        () if client.is_waiting => 0,
        () if is_pinned(client) => 1,
        () if is_in_transaction(client) => 2,
        () if is_idle(client) => 4,
        () => 3,
    }
}

fn is_pinned(client: &Client) -> bool {
    client.state.starts_with("pinned")
}

fn is_in_transaction(client: &Client) -> bool {
    client.state.starts_with("idle in transaction")
}

fn is_idle(client: &Client) -> bool {
    client.state.starts_with("idle") && !is_in_transaction(client)
}

/// The clients by application, the applications with the most clients first.
fn applications(clients: &[Client]) -> Vec<Application> {
    let mut applications = BTreeMap::<&str, Application>::new();
    for client in clients {
        let sum = applications.entry(&client.application_name).or_default();
        sum.clients += 1;
        sum.waiting += u64::from(client.is_waiting);
        sum.pinned += u64::from(is_pinned(client));
        sum.in_transaction += u64::from(is_in_transaction(client));
        sum.active += u64::from(rank(client) == 3);
        sum.units_packed += client.units_packed;
        sum.units_passed += client.units_passed;
    }
    let mut sums: Vec<_> =
        applications.into_iter().map(|(name, sum)| Application { name: name.to_owned(), ..sum }).collect();
    sums.sort_by_key(|sum| Reverse(sum.clients));
    sums.truncate(LIVE_ROWS_MAX);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(application: &str, state: &str, is_waiting: bool) -> Client {
        Client {
            process_id: 1,
            session: 1,
            user: "ann".to_owned(),
            database: "shop".to_owned(),
            application_name: application.to_owned(),
            address: "unix".to_owned(),
            tls: false,
            state: state.to_owned(),
            is_waiting,
            since_seconds: 0.0,
            backend_pid: None,
            units_packed: 2,
            units_on_replicas: 0,
            units_passed: 1,
            unread_bytes: 0,
        }
    }

    #[test]
    fn clients_are_counted_by_application() {
        let clients = [
            client("shop", "in a lane", false),
            client("shop", "parked behind a locked row", true),
            client("shop", "pinned: temporary table", false),
            client("job", "idle in transaction", false),
            client("job", "idle, listens", false),
        ];
        let [shop, job] = applications(&clients).try_into().unwrap();
        let expected = Application {
            name: "shop".to_owned(),
            clients: 3,
            active: 1,
            waiting: 1,
            pinned: 1,
            units_packed: 6,
            units_passed: 3,
            ..Application::default()
        };
        assert_eq!(shop, expected);
        assert_eq!((job.clients, job.active, job.in_transaction), (2, 0, 1));
    }

    #[test]
    fn clients_with_a_problem_come_first() {
        let states = [("parked behind a locked row", true), ("pinned: LISTEN", false)];
        let states = states.into_iter().chain([("idle in transaction", false), ("in a lane", false)]);
        let ranks: Vec<_> = states
            .chain([("idle", false)])
            .map(|(state, is_waiting)| rank(&client("", state, is_waiting)))
            .collect();
        assert_eq!(ranks, [0, 1, 2, 3, 4]);
    }
}
