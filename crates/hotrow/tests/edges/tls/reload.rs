//! A new certificate while clients are connected: they stay, new clients get it, and a broken file changes nothing.

use hotrow_testkit::until;
use nix::sys::signal::Signal;

use crate::tls::certificates::Authority;
use crate::tls::client::Client;
use crate::tls::{Pair, Stage};

const UPDATE: &str = "update t set n = n + 1 where id = 1 returning n";

#[tokio::test]
async fn new_clients_get_a_new_certificate_and_never_a_broken_one() {
    let stage = Stage::new(&[]).await;
    let mut old = stage.client();
    assert_eq!(old.value(UPDATE), "1");
    let connects = |authority: &Authority| Client::request_tls(stage.gateway.port(), authority.trust());

    let new_authority = Authority::new("the next authority");
    new_authority.issue("gateway", &["localhost"]).write(stage.folder.path(), "gateway");
    stage.gateway.signal(Signal::SIGHUP);
    until("new clients get the new certificate", async || connects(&new_authority).is_ok()).await;
    assert!(connects(&stage.authority).is_err(), "the old certificate is no longer used");
    assert_eq!(old.value(UPDATE), "2", "connected clients stay");

    let broken = Pair { certificate: "broken".into(), key: "broken".into() };
    broken.write(stage.folder.path(), "gateway");
    stage.gateway.signal(Signal::SIGHUP);
    until("the error is logged", async || stage.gateway.log().contains("gateway.crt is wrong")).await;
    let mut new = connects(&new_authority).expect("the last valid certificate is still used");
    new.login(&stage.schema);
    assert_eq!(new.value(UPDATE), "3");
    assert_eq!(old.value(UPDATE), "4");
}
