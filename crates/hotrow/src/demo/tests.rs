//! Small sales on real servers: answers, the check, logins, and the owner of the schema.

use std::time::Duration;

use hotrow_postgres::PrivateServer;
use tokio_postgres::Config;

use super::answer::Answer;
use super::buyers::{Answers, Buyers, Demand};
use super::error::Error;
use super::facts::ServerFacts;
use super::figures::{Round, Side};
use super::layout::Layout;
use super::postgres::{Connection, Sale, Target};
use super::report::Report;
use super::stocktaking::Stocktaking;
use super::target;

fn server() -> PrivateServer {
    PrivateServer::builder().label("demo-test").start().unwrap()
}

fn login(server: &PrivateServer) -> (Config, Target) {
    let config: Config = server.url().parse().unwrap();
    let target = Target::of(&config).unwrap();
    (config, target)
}

async fn shop(server: &PrivateServer) -> (Sale, Target) {
    let (config, target) = login(server);
    let mut sale = Sale::connect(&config, &target).await.unwrap();
    sale.open().await.unwrap();
    (sale, target)
}

async fn rush(target: &Target, buyers: u64) -> (Answers, Duration) {
    let mut rush = Buyers::send(target::Target::Postgres(target.clone()), 8, Demand::Buyers(buyers)).unwrap();
    let took = rush.finished().await.unwrap();
    (rush.so_far(), took)
}

fn round(side: Side, stocktaking: Stocktaking, answers: Answers, took: Duration) -> Round {
    let commits = answers.sold;
    Round { number: Some(1), side, stocktaking, answers, took, commits }
}

#[tokio::test]
async fn a_rush_sells_what_there_is_and_refuses_the_rest() {
    let server = server();
    let (sale, target) = shop(&server).await;
    sale.restock(100).await.unwrap();
    let before = sale.transactions().await.unwrap();

    let (answers, took) = rush(&target, 1000).await;

    assert_eq!((answers.sold, answers.refused, answers.failed), (100, 900, 0));
    assert_eq!(answers.waits.len(), 1000, "each buyer's wait is counted");
    // Direct, each sale is a commit. Of the refused, only those that were waiting when the last one was sold wrote one.
    let commits = sale.transactions().await.unwrap() - before;
    assert!((100..=107).contains(&commits), "{commits}");
    let stocktaking = sale.take_stock(100, answers.sold).await.unwrap();
    assert!(stocktaking.agrees(), "{stocktaking:?}");

    let facts = sale.server().await.unwrap();
    assert!(facts.durable(), "{facts:?}");
    let rounds = [Side::Direct, Side::Hotrow].map(|side| round(side, stocktaking, answers.clone(), took));
    let report = Report::of(&facts, 8, &rounds, &round(Side::Hotrow, stocktaking, answers, took));
    assert!(report.passed());
    let text = report.text(Layout::of(80));
    assert!(text.contains("300 sales acknowledged, 300 in the table"), "{text}");
}

#[tokio::test]
async fn a_sale_that_the_row_does_not_know_fails_the_check() {
    let server = server();
    let (sale, target) = shop(&server).await;
    sale.restock(1000).await.unwrap();
    let (answers, took) = rush(&target, 50).await;
    server.query("update hotrow_demo.item set sold = sold - 1").unwrap();

    let stocktaking = sale.take_stock(1000, answers.sold).await.unwrap();
    assert!(
        !stocktaking.acknowledged() && !stocktaking.complete() && !stocktaking.oversold(),
        "{stocktaking:?}"
    );

    let facts =
        ServerFacts::Postgres { version: "15".into(), fsync: "on".into(), synchronous_commit: "on".into() };
    let bad = round(Side::Direct, stocktaking, answers, took);
    let report = Report::of(&facts, 8, &[], &bad);
    assert!(!report.passed());
    let (text, json) = (report.text(Layout::of(80)), report.json());
    assert!(text.contains("✗ 50 sales acknowledged, 49 in the table"), "{text}");
    assert!(!text.contains("sales per second"), "no figures without a passed check: {text}");
    assert!(json.contains("\"comparison\": null") && json.contains("\"figures\": null"), "{json}");
}

#[tokio::test]
async fn a_purchase_that_ends_in_an_error_is_neither_sold_nor_refused() {
    let server = server();
    let (sale, target) = shop(&server).await;
    // The schema's own check refuses: the condition in the UPDATE looks at the stock, this one at what was sold.
    server.query("alter table hotrow_demo.item add constraint at_most_ten check (sold <= 10)").unwrap();
    sale.restock(1000).await.unwrap();
    let (answers, _) = rush(&target, 30).await;
    assert_eq!((answers.sold, answers.refused, answers.failed), (10, 0, 20));
    let words = answers.first_failure.unwrap();
    assert!(words.contains("at_most_ten") && words.ends_with("(23514)"), "{words}");
    assert!(sale.take_stock(1000, 10).await.unwrap().agrees());
}

#[tokio::test]
async fn buyers_login_with_passwords() {
    let server = server();
    let (sale, _) = shop(&server).await;
    sale.restock(10).await.unwrap();
    server
        .query("set password_encryption = 'scram-sha-256'; create role scram superuser login password 'päss'")
        .unwrap();
    server.query("set password_encryption = 'md5'; create role md5 superuser login password 'word'").unwrap();
    server.query("create role plain superuser login password 'word'").unwrap();
    let rules = "host all scram all scram-sha-256\nhost all md5 all md5\nhost all plain all password\n";
    let file = server.data_dir().join("pg_hba.conf");
    let trusted = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{rules}{trusted}")).unwrap();
    server.query("select pg_reload_conf()").unwrap();

    let as_role = |login: &str| {
        let url = format!("postgres://{login}@127.0.0.1:{}/postgres", server.port());
        Target::of(&url.parse().unwrap()).unwrap()
    };
    // The postmaster reads the new rules when its signal arrives, so the first refusal of a wrong password is the sign.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    let turned_away = loop {
        match Connection::open(&as_role("scram:wrong")).await {
            Err(Error::TurnedAway { answer, .. }) => break answer,
            Err(error) => panic!("{error}"),
            Ok(_) => assert!(tokio::time::Instant::now() < deadline, "the rules were not read"),
        }
    };
    assert!(turned_away.ends_with("(28P01)"), "{turned_away}");
    for login in ["scram:p%C3%A4ss", "md5:word", "plain:word"] {
        let mut connection = Connection::open(&as_role(login)).await.unwrap();
        assert_eq!(connection.buy().await.unwrap(), Answer::Sold, "{login}");
    }
}

#[tokio::test]
async fn the_schema_is_made_once_and_removed_by_its_maker_only() {
    let server = server();
    let (config, target) = login(&server);
    let schemas = || server.query("select count(*) from pg_namespace where nspname = 'hotrow_demo'").unwrap();
    let connect = || async { Sale::connect(&config, &target).await.unwrap() };

    let (mut first, mut second) = (connect().await, connect().await);
    first.open().await.unwrap();
    assert!(matches!(second.open().await, Err(Error::Claimed)));
    second.close().await.unwrap();
    assert_eq!(schemas()[0][0].as_deref(), Some("1"), "a demo that made nothing removes nothing");

    first.close().await.unwrap();
    assert_eq!(schemas()[0][0].as_deref(), Some("0"));

    server.query("create schema hotrow_demo").unwrap();
    let mut third = connect().await;
    assert!(matches!(third.open().await, Err(Error::Taken)));
    third.close().await.unwrap();
    assert_eq!(schemas()[0][0].as_deref(), Some("1"), "a stranger's schema stays");

    server.query("comment on schema hotrow_demo is 'made by hotrow demo, removed when it ends'").unwrap();
    let mut fourth = connect().await;
    fourth.open().await.unwrap();
    fourth.restock(1).await.unwrap();
    fourth.close().await.unwrap();
    assert_eq!(schemas()[0][0].as_deref(), Some("0"), "what a killed demo left is replaced and removed");
}
