//! `hotrow demo --page`: the page that the demo prints works while the demo runs, and ends with it.

use std::process::Stdio;

use hotrow_testkit::PATIENCE;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::client::{Events, send};

/// A demo that runs longer than the test needs. Without a display, it opens no browser.
fn demo() -> Child {
    Command::from(hotrow_testkit::hotrow())
        .args(["demo", "--page", "--rounds", "1", "--seconds", "60", "--buyers", "2"])
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_the_demo_is_live_until_the_demo_ends() {
    let mut demo = demo();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let port: u16 = loop {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("the demo prints the page's address");
        let line = line.unwrap().expect("the demo goes on");
        let Some((_, address)) = line.split_once("http://127.0.0.1:") else { continue };
        assert!(line.contains("page ") && line.ends_with("/, until the demo ends"), "{line}");
        break address.split('/').next().unwrap().parse().unwrap();
    };

    let page = send(port, "GET", "/", &[], "").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.text.contains("/page/app.js"), "{}", page.text);
    let mut events = Events::open(port, "/live", &[]).await;
    let mut names = Vec::new();
    while names.last().is_none_or(|name| name != "state") {
        names.push(events.next().await.expect("the stream goes on").0);
    }
    assert_eq!(names, ["about", "history", "state"]);

    kill(Pid::from_raw(demo.id().unwrap().try_into().unwrap()), Signal::SIGINT).unwrap();
    let status = timeout(PATIENCE, demo.wait()).await.expect("the demo stops").unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "the page ends with the demo");
}
