//! Commits in doubt after a crash, where the ids of lost transactions are given out again: what the first id of the
//! server's new life proves, and what it does not.

use std::thread;
use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::{Answer, Line};
use hotrow_testkit::proxy::{After, Fault, How, Proxy, Way};
use hotrow_testkit::{Gateway, PATIENCE};

use crate::load::SELL;
use crate::prepare;

/// Rounds until a crash comes between a transaction's id and its commit.
const ROUNDS: usize = 20;
/// A connection that is of no use.
pub const CUT: Fault = Fault { way: Way::ToGateway, after: After::Bytes(0), how: How::Cut };

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The log arrives in a pipe of its own, so it may come after the answer.
pub fn logged(gateway: &Gateway, what: &str) {
    until("it is not in the log", || gateway.log().contains(what));
}

#[test]
fn a_batch_without_an_id_that_no_committed_id_can_belong_to_is_run_again() {
    let server = PrivateServer::builder().label("no-id").start().unwrap();
    prepare(server.port(), "no_id");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let mut client = Line::connect(gateway.port(), "no_id").unwrap().unwrap();
    assert_eq!(client.query(SELL).rows(), [[Some("1".to_owned())]]);
    let written = gateway.metric("batch_units_count");
    server.freeze().unwrap();
    client.put_query(SELL);
    client.send().unwrap();
    until("the batch is not sent", || gateway.metric("batch_units_count") != written);
    server.kill_dash_nine().unwrap();
    server.restart().unwrap();
    assert_eq!(client.answer().rows(), [[Some("2".to_owned())]], "{}", gateway.log());
    logged(&gateway, "question=AnyCommitted");
}

/// A sale whose transaction was lost in a crash after its id had arrived. Others have committed under its id since, and
/// the server has crashed so many times more when the gateway can ask. What its client is told, and how many are sold.
fn lost_sale(more_crashes: usize) -> (Answer, String, Gateway) {
    let server = PrivateServer::builder()
        .label("lost-id")
        .setting("commit_delay", "100000") // microseconds between a commit and its flush
        .setting("commit_siblings", "0")
        .start()
        .unwrap();
    prepare(server.port(), "lost_id");
    let proxy = Proxy::start(server.port());
    let gateway = Gateway::in_front_of(&proxy.url(), &["--server-wait-ms", "20000"]);
    let mut client = Line::connect(gateway.port(), "lost_id").unwrap().unwrap();
    for _ in 0..ROUNDS {
        let sold = number(&client.query(SELL));
        let cuts = proxy.cuts();
        proxy.for_new(|| Some(CUT));
        proxy.arm(Fault { way: Way::ToGateway, after: After::TransactionId, how: How::Cut });
        client.put_query(SELL);
        client.send().unwrap();
        until("the id does not arrive", || proxy.cuts() != cuts);
        server.kill_dash_nine().unwrap();
        server.restart().unwrap();
        let mut direct = Line::connect(server.port(), "lost_id").unwrap().unwrap();
        let lost = number(&direct.query("select sold from inv")) == sold;
        if lost {
            for _ in 0..3 {
                assert_eq!(direct.query("update inv set stock = stock").error(), None);
            }
            for _ in 0..more_crashes {
                server.kill_dash_nine().unwrap();
                server.restart().unwrap();
            }
        }
        proxy.for_new(|| None);
        let answer = client.answer();
        if lost {
            let more = server.query("select sold from lost_id.inv").unwrap()[0][0].clone().unwrap();
            return (answer, format!("{} more", more.parse::<i64>().unwrap() - sold), gateway);
        }
    }
    panic!("no crash came in time");
}

pub fn number(answer: &Answer) -> i64 {
    answer.rows()[0][0].as_ref().unwrap().parse().unwrap()
}

#[test]
fn a_lost_transaction_whose_id_another_one_has_committed_under_is_run_again() {
    let (answer, sold, gateway) = lost_sale(0);
    assert_eq!(answer.error(), None, "{}", gateway.log());
    assert_eq!(sold, "1 more", "{}", gateway.log());
    logged(&gateway, "outcome=Aborted");
}

/// The id is below the first one of the last life, and committed: by another transaction, in the life in between.
#[test]
fn a_lost_transaction_whose_id_was_given_out_two_lives_ago_is_not_taken_for_committed() {
    let (answer, sold, gateway) = lost_sale(1);
    let report = answer.error().unwrap_or_else(|| panic!("{}", gateway.log()));
    assert_eq!((report.code.as_str(), sold.as_str()), ("08007", "0 more"), "{}", gateway.log());
}
