//! What shows the state of the servers although no client connects: the metrics and the log.

use hotrow_postgres::{PrivateServer, free_port};
use hotrow_testkit::{Gateway, until};

#[tokio::test]
#[ignore = "long: make test-all"]
async fn an_outage_without_clients_is_in_the_metrics_and_the_log_names_the_problem_of_each_host() {
    let server = PrivateServer::builder().label("outage").start().unwrap();
    let (port, other) = (server.port(), free_port());
    let url = format!("host=127.0.0.1,127.0.0.1 port={other},{port} user=postgres dbname=postgres");
    let gateway = Gateway::in_front_of(&url, &[]);
    let is = async |up: u8| {
        let line = format!("server_up{{server=\"127.0.0.1:{other},127.0.0.1:{port}\"}} {up}\n");
        until(&format!("server_up is {up}"), async || gateway.metrics().contains(&line)).await;
    };
    assert!(!gateway.metrics().contains("server_up{"), "nothing is known before the first connection");
    is(1).await;
    server.stop().unwrap();
    is(0).await;
    let unreachable =
        || gateway.log().lines().find(|line| line.contains("the server is unreachable")).map(str::to_owned);
    until("the log says so", async || unreachable().is_some()).await;
    let line = unreachable().unwrap();
    let (_, error) = line.split_once("error=").unwrap();
    for address in [format!("127.0.0.1:{other}: "), format!("127.0.0.1:{port}: ")] {
        assert!(error.contains(&address), "{line}");
    }
    assert_eq!(
        gateway.metric("maintenance_failures_total"),
        0,
        "an outage is not a failure of the maintenance"
    );
    server.restart().unwrap();
    is(1).await;
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn more_connections_than_the_server_accepts_are_a_warning_with_figures() {
    let server = PrivateServer::builder().label("capacity").setting("max_connections", "20").start().unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port());
    let gateway = Gateway::in_front_of(&url, &["--held-connections-max", "10", "--lanes", "4"]);
    let warned =
        || gateway.log().lines().find(|line| line.contains("than the server accepts")).map(str::to_owned);
    until("the log has a warning", async || warned().is_some()).await;
    let line = warned().unwrap();
    for part in ["WARN", "max_connections=20", "reserved=3", "held_connections_max=10", "lanes=8", "pools=1"]
    {
        assert!(line.contains(part), "{part}: {line}");
    }
}
