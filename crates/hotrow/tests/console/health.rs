//! `hotrow health` in front of real gateways, and of programs that are none.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Output;
use std::time::{Duration, Instant};

use hotrow_postgres::{PrivateServer, free_port};
use hotrow_testkit::{Gateway, server, until};

fn health(args: &[&str]) -> Output {
    hotrow_testkit::hotrow().arg("health").args(args).output().unwrap()
}

/// The exit status, and the line that the command prints: to standard output if it succeeds.
fn says(output: &Output) -> (i32, String) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let status = output.status.code().unwrap();
    assert!(if status == 0 { err.is_empty() } else { out.is_empty() }, "{output:?}");
    (status, format!("{out}{err}"))
}

#[track_caller]
fn assert_says(args: &[&str], status: i32, parts: &[&str]) {
    let (was, line) = says(&health(args));
    assert_eq!(was, status, "{args:?}: {line}");
    assert!(status == 2 || line.lines().count() == 1, "one line: {line}");
    for part in parts {
        assert!(line.contains(part), "{part:?} is not in: {line}");
    }
}

#[tokio::test]
async fn a_gateway_with_its_server_is_live_and_ready() {
    let (gateway, start) = (Gateway::start(&[]), Instant::now());
    let address = format!("127.0.0.1:{}", gateway.metrics_port());
    assert_says(&[&address], 0, &[&format!("hotrow: the gateway at {address} is live")]);
    // The first connection for maintenance is under way when the gateway begins to serve.
    until("the gateway is ready", async || says(&health(&["--ready", &address])).0 == 0).await;
    // Not only after the second one, 15 s later.
    assert!(start.elapsed() < Duration::from_secs(12), "{:?}", start.elapsed());
    assert_says(&["--ready", &format!("http://{address}/")], 0, &["is ready"]);
}

#[test]
fn a_gateway_without_its_server_is_live_and_not_ready() {
    let away = format!("postgres://postgres@127.0.0.1:{}/shop", free_port());
    let gateway = Gateway::in_front_of(&away, &["--http", "127.0.0.1:0", "--server-wait-ms", "200"]);
    let [metrics, http] =
        [gateway.metrics_port(), gateway.http_port()].map(|port| format!("127.0.0.1:{port}"));
    for address in [&metrics, &http] {
        assert_says(&[address], 0, &["is live"]);
    }
    assert_says(&["--ready", &metrics], 1, &["is not ready: no server", "Check the server and upstream"]);
    assert_says(&["--ready", "--timeout-ms", "60000", &http], 1, &["is not ready: ", "127.0.0.1"]);
}

#[test]
fn http_is_ready_only_with_the_hotrow_schema() {
    let bare = PrivateServer::builder().label("health").start().unwrap();
    let gateway = Gateway::in_front_of(&bare.url(), &["--http", "127.0.0.1:0"]);
    let http = format!("127.0.0.1:{}", gateway.http_port());
    assert_says(&["--ready", "--timeout-ms", "60000", &http], 1, &["no schema hotrow", "hotrow migrate"]);
}

#[test]
fn the_address_is_that_of_the_settings() {
    let gateway = Gateway::start(&["--http", "127.0.0.1:0"]);
    let (metrics, http, free) = (gateway.metrics_port(), gateway.http_port(), free_port());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hotrow.toml");
    let file_with = |text: &str| std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    // The probe needs none of the other files that the settings name.
    file_with(&format!(
        "metrics = \"0.0.0.0:{metrics}\"\nhttp_token_file = \"/not/there\"\nhttp = \"[::]:{free}\"\n"
    ));
    assert_says(&["--config", path], 0, &[&format!("127.0.0.1:{metrics} is live")]);
    file_with(&format!("http = \"127.0.0.1:{http}\"\n"));
    assert_says(&["--config", path], 0, &[&format!("127.0.0.1:{http} is live")]);
    let of_environment = hotrow_testkit::hotrow()
        .args(["health", "--config", path])
        .env("HOTROW_METRICS", format!("127.0.0.1:{metrics}"))
        .output()
        .unwrap();
    assert!(says(&of_environment).1.contains(&format!("127.0.0.1:{metrics} is live")));
}

#[test]
fn an_address_without_a_gateway_is_not_live() {
    let free = format!("127.0.0.1:{}", free_port());
    assert_says(&[&free], 1, &["is not live: Connection refused", "check that the gateway runs"]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    assert_says(&["--timeout-ms", "100", &address], 1, &["no answer within 100 ms", "--timeout-ms"]);
    let postgres = format!("127.0.0.1:{}", server().port());
    assert_says(
        &["--timeout-ms", "60000", &postgres],
        1,
        &["check that this is the address of metrics or http"],
    );

    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let mut request = [0; 1024];
        assert!(stream.read(&mut request).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    assert_says(&[&address], 1, &["another program answered with status 404"]);
    answering.join().unwrap();
}

#[test]
fn wrong_usage_is_not_mistaken_for_a_gateway_that_is_down() {
    assert_says(&[], 2, &["no address to ask", "hotrow health 127.0.0.1:9187"]);
    assert_says(&["127.0.0.1"], 2, &["HOST:PORT"]);
    assert_says(&["https://127.0.0.1:1"], 2, &["without TLS"]);
    assert_says(&["--timeout-ms", "0", "127.0.0.1:1"], 2, &["1..=60000"]);
    assert_says(&["--config", "/not/there.toml"], 2, &["cannot read the configuration file /not/there.toml"]);
}
