//! A new certificate while clients are there: they stay, new ones see the new one, and a broken file changes nothing.

use hotrow_testkit::until;
use nix::sys::signal::Signal;

use crate::certificates::Authority;
use crate::client::Client;
use crate::{Pair, Stage};

const UPDATE: &str = "update t set n = n + 1 where id = 1 returning n";

#[tokio::test]
async fn a_new_certificate_is_shown_to_new_clients_and_a_broken_one_is_not() {
    let stage = Stage::new(&[]).await;
    let mut old = stage.client();
    assert_eq!(old.value(UPDATE), "1");
    let comes_in = |authority: &Authority| Client::ask(stage.gateway.port(), authority.believe());

    let new_authority = Authority::new("the next one");
    new_authority.issue("gateway", &["localhost"]).write(stage.folder.path(), "gateway");
    stage.gateway.signal(Signal::SIGHUP);
    until("the new certificate is shown", async || comes_in(&new_authority).is_ok()).await;
    assert!(comes_in(&stage.authority).is_err(), "the old one is not shown any more");
    assert_eq!(old.value(UPDATE), "2", "who is there stays");

    let broken = Pair { certificate: "broken".into(), key: "broken".into() };
    broken.write(stage.folder.path(), "gateway");
    stage.gateway.signal(Signal::SIGHUP);
    until("it is logged", async || stage.gateway.log().contains("gateway.crt is wrong")).await;
    let mut new = comes_in(&new_authority).expect("the last good one is still shown");
    new.log_in(&stage.schema);
    assert_eq!(new.value(UPDATE), "3");
    assert_eq!(old.value(UPDATE), "4");
}
