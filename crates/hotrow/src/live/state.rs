//! One event of the operations page, from the gateway's view. Each list is bounded. Pure.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hotrow_gateway::view::View;
use hotrow_gateway::view::clients::{Client, ClientClass};
use hotrow_gateway::view::lanes::LaneState;
use hotrow_http::limits::LIVE_ROWS_MAX;
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
    view.clients.sort_by_key(|client| (client.class, Reverse(client.units_packed + client.units_passed)));
    view.clients.truncate(LIVE_ROWS_MAX);
    view.lanes.sort_by_key(|lane| {
        let lane = &lane.state;
        (
            Reverse(lane.parked_units + lane.queued_units + lane.units_under_way),
            Reverse(lane.totals.units_done),
        )
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
        "shadow": view.shadow,
    });
    let Value::Object(fields) = fields else { unreachable!("the value above is an object") };
    fields
}

/// Units in all lanes by what happens to them. The bound of the list of lanes does not apply.
fn lane_sums(view: &View) -> Value {
    let sum =
        |units: fn(&LaneState) -> usize| -> usize { view.lanes.iter().map(|lane| units(&lane.state)).sum() };
    json!({
        "gathering": sum(|lane| lane.queued_units),
        "executing": sum(|lane| lane.units_under_way - lane.units_committing),
        "committing": sum(|lane| lane.units_committing),
        "blocked": sum(|lane| lane.parked_units),
    })
}

/// The clients by application, the applications with the most clients first.
fn applications(clients: &[Client]) -> Vec<Application> {
    let mut applications = BTreeMap::<&str, Application>::new();
    for client in clients {
        let sum = applications.entry(&client.application_name).or_default();
        sum.clients += 1;
        match client.class {
            ClientClass::Waiting => sum.waiting += 1,
            ClientClass::Pinned => sum.pinned += 1,
            ClientClass::InTransaction => sum.in_transaction += 1,
            ClientClass::Active => sum.active += 1,
            ClientClass::Idle => {}
        }
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
    use hotrow_gateway::view::clients::ClientState;

    use super::*;

    fn client(application: &str, class: ClientClass) -> Client {
        Client {
            process_id: 1,
            session: 1,
            user: "ann".to_owned(),
            database: "shop".to_owned(),
            application_name: application.to_owned(),
            address: "unix".to_owned(),
            tls: false,
            state: ClientState::Idle,
            class,
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
            client("shop", ClientClass::Active),
            client("shop", ClientClass::Waiting),
            client("shop", ClientClass::Pinned),
            client("job", ClientClass::InTransaction),
            client("job", ClientClass::Idle),
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
}
