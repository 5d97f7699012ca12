//! The operations page in a browser: every tab with data, without data, under load, and with the server away. Only `make
//! page-test` runs it, because it needs Node.js and Chromium. The steps in the browser are in `conformance/page`.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod load;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, free_port, migrate};
use load::Load;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/page")
}

/// A gateway with its HTTP port.
struct Page {
    gateway: Option<Gateway>,
    upstream: String,
    options: Vec<String>,
    port: u16,
}

impl Page {
    fn start(upstream: &str, options: &[&str]) -> Self {
        let port = free_port();
        let listen = ["--listen".to_owned(), format!("127.0.0.1:{}", free_port())];
        let http = ["--http".to_owned(), format!("127.0.0.1:{port}")];
        let given = options.iter().map(ToString::to_string);
        let options = listen.into_iter().chain(http).chain(given).collect();
        let mut page = Page { gateway: None, upstream: upstream.to_owned(), options, port };
        page.begin();
        page
    }

    fn begin(&mut self) {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        self.gateway = Some(Gateway::in_front_of(&self.upstream, &options));
    }

    fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().unwrap()
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

#[test]
fn the_page_works_in_a_browser() {
    let [own, shop] =
        ["page", "page-shop"].map(|label| PrivateServer::builder().label(label).start().unwrap());
    let _standby = shop.standby().unwrap();
    for url in [own.url(), shop.url()] {
        migrate(&url);
    }
    let secrets = tempfile::tempdir().unwrap();
    let tokens = secrets.path().join("tokens");
    std::fs::write(&tokens, "full-token-0123456789\nread-only reader-token-0123456789\n").unwrap();
    // Pictures show values, which are hidden by default.
    let shows_values = std::env::var_os("HOTROW_TEST_SHOTS").is_some().to_string();
    let mut quiet = Page::start(&own.url(), &[]);
    let busy = Page::start(&shop.url(), &["--http-show-values", &shows_values]);
    let locked = Page::start(&shop.url(), &["--http-token-file", tokens.to_str().unwrap()]);
    let urls = serde_json::json!({"quiet": quiet.url(), "busy": busy.url(), "locked": locked.url()});
    let mut browser = Command::new("node")
        .arg(folder().join("run.mjs"))
        .arg(urls.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Node.js is installed: make page-test says what is needed");
    let mut answers = browser.stdin.take().unwrap();
    let mut load = None;
    for line in BufReader::new(browser.stdout.take().unwrap()).lines() {
        match line.unwrap().as_str() {
            "want load" => load = Some(Load::start(busy.gateway(), &shop)),
            "want server away" => own.stop().unwrap(),
            "want server back" => own.restart().unwrap(),
            "want gateway away" => quiet.gateway = None,
            "want gateway back" => quiet.begin(),
            other => panic!("{other}: what the browser wants is not known"),
        }
        writeln!(answers, "done").unwrap();
    }
    assert!(browser.wait().unwrap().success(), "the lines above have the failures");
    drop(load);
}
