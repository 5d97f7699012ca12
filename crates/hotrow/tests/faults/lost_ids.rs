//! Commits in doubt after a crash in which the server reuses the IDs of lost transactions: what the first ID after the
//! restart proves, and what it does not.

use hotrow_postgres::PrivateServer;
use hotrow_testkit::Gateway;
use hotrow_testkit::line::{Answer, Line, until};
use hotrow_testkit::proxy::{After, Fault, How, Proxy, Way};

use crate::load::SELL;
use crate::prepare;

/// Maximum of rounds until a crash comes between a transaction's ID and its commit.
const ROUNDS: usize = 20;
/// A connection that breaks at once.
pub const CUT: Fault = Fault { way: Way::ToGateway, after: After::Bytes(0), how: How::Cut };

/// Waits for a log line. The log arrives in its own pipe, so a line may arrive after the answer.
pub fn logged(gateway: &Gateway, what: &str) {
    until("the line is in the log", || gateway.log().contains(what));
}

#[test]
#[ignore = "long: make test-all"]
fn a_batch_without_an_id_is_run_again_if_no_committed_id_can_be_its_own() {
    let server = PrivateServer::builder().label("no-id").start().unwrap();
    prepare(server.port(), "no_id");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let mut client = Line::connect(gateway.port(), "no_id").unwrap().unwrap();
    assert_eq!(client.query(SELL).rows(), [[Some("1".to_owned())]]);
    let written = gateway.metric("batch_units_count");
    server.freeze().unwrap();
    client.put_query(SELL);
    client.send().unwrap();
    until("the batch is sent", || gateway.metric("batch_units_count") != written);
    server.kill_dash_nine().unwrap();
    server.restart().unwrap();
    assert_eq!(client.answer().rows(), [[Some("2".to_owned())]], "{}", gateway.log());
    logged(&gateway, "question=AnyCommitted");
}

/// A sale whose transaction was lost in a crash after its ID had arrived. Another transaction has committed under its
/// ID since, and the server has crashed `more_crashes` more times before the gateway can ask. Returns the client's
/// answer, the number sold and the gateway. `before` runs before the gateway starts, and `in_doubt` before each sale that
/// is to be lost.
pub fn lost_sale(
    more_crashes: usize,
    before: impl FnOnce(&PrivateServer),
    in_doubt: impl Fn(&PrivateServer),
) -> (Answer, String, Gateway) {
    let server = PrivateServer::builder()
        .label("lost-id")
        .setting("commit_delay", "100000") // microseconds between a commit and its flush
        .setting("commit_siblings", "0")
        .start()
        .unwrap();
    prepare(server.port(), "lost_id");
    before(&server);
    let proxy = Proxy::start(server.port());
    let gateway = Gateway::in_front_of(&proxy.url(), &["--server-wait-ms", "20000"]);
    let mut client = Line::connect(gateway.port(), "lost_id").unwrap().unwrap();
    for _ in 0..ROUNDS {
        // The lane has its connection, and the sale is its first batch that writes, in the first round.
        assert_eq!(client.query("update inv set sold = sold where id = 99").error(), None);
        let mut direct = Line::connect(server.port(), "lost_id").unwrap().unwrap();
        let sold = number(&direct.query("select sold from inv"));
        in_doubt(&server);
        let cuts = proxy.cuts();
        proxy.for_new(|| Some(CUT));
        proxy.arm(Fault { way: Way::ToGateway, after: After::TransactionId, how: How::Cut });
        client.put_query(SELL);
        client.send().unwrap();
        until("the id arrives", || proxy.cuts() != cuts);
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
    panic!("no crash happened in time");
}

pub fn number(answer: &Answer) -> i64 {
    answer.rows()[0][0].as_ref().unwrap().parse().unwrap()
}

#[test]
fn a_lost_transaction_whose_id_was_reused_is_run_again() {
    let (answer, sold, gateway) = lost_sale(0, |_| (), |_| ());
    assert_eq!(answer.error(), None, "{}", gateway.log());
    assert_eq!(sold, "1 more", "{}", gateway.log());
    logged(&gateway, "outcome=Aborted");
}

/// The ID is below the first one since the last restart, and committed by another transaction between the two restarts.
#[test]
#[ignore = "long: make test-all"]
fn a_lost_transaction_whose_id_was_reused_before_the_last_restart_is_not_taken_for_committed() {
    let (answer, sold, gateway) = lost_sale(1, |_| (), |_| ());
    let report = answer.error().unwrap_or_else(|| panic!("{}", gateway.log()));
    assert_eq!((report.code.as_str(), sold.as_str()), ("08007", "0 more"), "{}", gateway.log());
}
