//! Idle connections are closed, and opened again when they are needed.

use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::Line;
use hotrow_testkit::{Gateway, patient, until};

use crate::load::SELL;
use crate::prepare;

const LANES: &str = "select pid from pg_stat_activity where application_name like 'hotrow lane%'";

/// A gateway that closes connections that were idle for `idle` milliseconds.
fn stage(idle: &str) -> (PrivateServer, Gateway, Line) {
    let server = PrivateServer::builder().label("idle").start().unwrap();
    prepare(server.port(), "idle");
    let gateway = Gateway::in_front_of(&server.url(), &patient(&["--held-idle-ms", idle]));
    let line = Line::connect(gateway.port(), "idle").unwrap().unwrap();
    (server, gateway, line)
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_opened_again() {
    let (server, gateway, mut line) = stage("300");
    for round in 1..=3 {
        assert_eq!(line.query(SELL).rows(), [[Some(round.to_string())]]);
        assert_eq!(gateway.metric("packed_units_total"), round, "the update is packed");
        until("the connections are closed", || async {
            gateway.metric("lanes_connected") == 0 && gateway.metric("held_connections") == 0
        })
        .await;
    }
    assert_eq!(gateway.metric("lane_connections_lost_total"), 0, "no connection was lost");
    until("the server has closed its side", || async { server.query(LANES).unwrap().is_empty() }).await;
}

#[test]
#[ignore = "long: make test-all"]
fn a_lane_at_work_keeps_its_connection() {
    let (server, _gateway, mut line) = stage("2000"); // longer than the pauses of a busy machine
    assert_eq!(line.query(SELL).error(), None);
    let before = server.query(LANES).unwrap();
    let end = Instant::now() + Duration::from_secs(5);
    while Instant::now() < end {
        assert_eq!(line.query(SELL).error(), None);
        std::thread::sleep(Duration::from_millis(20)); // an ordinary client's pause
    }
    assert_eq!(server.query(LANES).unwrap(), before);
}
