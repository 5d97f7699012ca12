//! Tests that the checks of the scenarios report each planted fault. They make no load.

#![allow(clippy::unwrap_used, reason = "a test that cannot create its environment has failed")]

#[path = "../../hotrow-bench/tests/checks/rows.rs"]
mod rows;

use hotrow_mariadb::{PASSWORD, PrivateMariaDb, USER};
use hotrow_mysql_client::Client;
use rows::Rows;

#[tokio::test]
async fn faults_in_the_log_of_the_restarted_counter_are_reported() {
    let rows = Rows::new(
        include_str!("../sql/restart.sql"),
        "set hotrow_bench.first = 1; set hotrow_bench.last = 3000",
        concat!(include_str!("../sql/restart_fill.sql"), include_str!("../sql/restart_before_run.sql")),
        include_str!("../sql/restart_reading.sql"),
    )
    .await;
    rows.client.query_one(include_str!("../sql/first_answer.sql"), &[]).await.unwrap();
    assert_eq!(rows.read().await.unwrap(), (3001, 0));
    rows.client.batch_execute("discard all").await.unwrap();
    rows.reports(&[
        "update hotrow.snapshot set value = value + 1",
        "update hotrow.log_entry set amounts = '{2}' where version = 3000",
    ])
    .await;
}

#[tokio::test]
async fn faults_in_payments_are_reported() {
    let rows = Rows::new(
        include_str!("../../../examples/payments/sql/schema.sql"),
        "",
        include_str!("payments.sql"),
        include_str!("../sql/payments_reading.sql"),
    )
    .await;
    assert_eq!(
        rows.read().await.unwrap(),
        (3, 0),
        "one is captured, one was declined, one was never confirmed, one is captured by its second attempt"
    );
    rows.reports(&[
        "update payments.intent set state = 'authorizing' where state = 'captured'",
        "update payments.intent set captured = 99 where state = 'captured'",
        "update payments.intent set refunded = 1 where state = 'captured'",
        "update payments.intent set version = version + 1 where state = 'captured'",
        "update payments.intent set state = 'nonsense'",
        "update payments.intent set state = 'failed' where state = 'created'",
        "delete from payments.transition where version = 2 and state_before = 'created'",
        "delete from payments.transition where version = 5",
        "update payments.transition set state_before = 'nonsense', state = 'nonsense'",
        "update payments.transition set state = 'nonsense' where version = 2",
        "update payments.transition set state = 'failed' where state = 'captured'",
        "update payments.transition set state_before = 'failed' where version = 2",
        "update payments.transition set attempt = intent",
        "update payments.attempt set due_at = now() where state = 'succeeded'",
        "update payments.attempt set kind = 'capture' where state = 'succeeded'",
        "update payments.attempt set settled_on = settled_on - 1 where state = 'succeeded'",
        "update payments.attempt set settled_on = null where state = 'succeeded'",
        "update payments.attempt set amount = 99 where state = 'succeeded'",
        "update payments.attempt set state = 'unknown' where state = 'succeeded'",
        "update payments.attempt set state = 'succeeded' where state = 'declined'",
        "insert into payments.attempt (id, intent, intent_version, kind, gateway, authorization_id, amount, merchant, currency,
             intent_amount, captured_before, refunded_before, state, settled_on, valid_until)
         select gen_random_uuid(), intent, 9, kind, gateway, authorization_id, amount, merchant, currency, intent_amount,
             captured_before, refunded_before, state, settled_on, valid_until
         from payments.attempt where state = 'succeeded'",
        "update payments.merchant_day set captured = captured + 1",
        "update payments.merchant_day set declined = 0",
        "update payments.merchant_day set authorized = 0",
        "update payments.merchant_day set attempts = 1",
        "update payments.merchant_day set refunded = 1",
        "update payments.merchant_day set currency = 'EUR'",
        "delete from payments.merchant_day",
        "delete from payments.outbox where type = 'payment.captured'",
        "update payments.outbox set payload = jsonb_set(payload, '{attempt,id}', to_jsonb(gen_random_uuid())) where type = 'payment.failed'",
        "update payments.outbox set payload = '{}' where type = 'payment.failed'",
        "update payments.outbox set payload = jsonb_set(payload, '{attempt,amount}', '1') where type = 'payment.captured'",
        "update payments.outbox set payload = jsonb_set(payload, '{attempt,outcome}', '\"succeeded\"') where type = 'payment.failed'",
        "update payments.outbox set aggregateid = gen_random_uuid() where type = 'payment.failed'",
        "update payments.outbox set type = 'payment.captured' where type = 'payment.failed'",
        "insert into payments.outbox (id, aggregatetype, aggregateid, type, payload)
         select gen_random_uuid(), aggregatetype, aggregateid, type, payload from payments.outbox where type = 'payment.failed'",
    ])
    .await;
}

#[tokio::test]
async fn faults_in_the_sales_of_transactions_are_reported() {
    let rows = Rows::new(
        include_str!("../../hotrow-bench/sql/inventory.sql"),
        "set hotrow_bench.first = 1; set hotrow_bench.last = 10",
        concat!(
            include_str!("../../hotrow-bench/sql/inventory_fill.sql"),
            "update hotrow_bench.inv set stock = stock - 3, sold = 3 where id in (1, 3, 4, 9);
             update hotrow_bench.inv set stock = stock - 1, sold = 1 where id between 6 and 8",
        ),
        include_str!("../sql/disks_transaction_reading.sql"),
    )
    .await;
    assert_eq!(rows.read().await.unwrap(), (3, 0));
    rows.reports(&[
        "update hotrow_bench.inv set stock = stock - 1, sold = sold + 1 where id = 1",
        "update hotrow_bench.inv set stock = stock - 1, sold = sold + 1 where id = 2",
        "update hotrow_bench.inv set stock = stock + 1, sold = sold - 1 where id = 9",
        "update hotrow_bench.inv set sold = sold + case id when 6 then 1 else -1 end where id in (6, 7)",
        "delete from hotrow_bench.inv where id = 10",
    ])
    .await;
}

#[tokio::test]
async fn faults_in_the_rows_of_incidents_are_reported() {
    let tables = include_str!("../sql/incidents/tables.sql");
    let statistics = Rows::new(
        tables,
        "",
        "insert into hotrow_bench.workflow_statistics values (3, 3, 'production_success', '7', now())",
        include_str!("../sql/incidents/statistics_reading.sql"),
    )
    .await;
    assert_eq!(statistics.read().await.unwrap(), (3, 0));
    statistics
        .reports(&[
            "update hotrow_bench.workflow_statistics set root_count = 2",
            "insert into hotrow_bench.workflow_statistics values (1, 1, 'production_success', '8', now())",
        ])
        .await;
    let applications = Rows::new(
        tables,
        "",
        "insert into hotrow_bench.client_application select app, now(), now(), 2 from generate_series(1, 10) as app",
        include_str!("../sql/incidents/applications_reading.sql"),
    )
    .await;
    assert_eq!(applications.read().await.unwrap(), (20, 0));
    applications
        .reports(&[
            "delete from hotrow_bench.client_application where app_name = '3'",
            "update hotrow_bench.client_application set writes = 1 where app_name = '3'",
            "update hotrow_bench.client_application set seen_at = 'epoch' where app_name = '3'",
        ])
        .await;
    let services = Rows::new(
        tables,
        "set hotrow_bench.first = 1; set hotrow_bench.last = 10",
        concat!(
            include_str!("../sql/incidents/services_fill.sql"),
            "update hotrow_bench.service set last_seen_at = now(), writes = 4 where id = 3",
        ),
        include_str!("../sql/incidents/services_reading.sql"),
    )
    .await;
    assert_eq!(services.read().await.unwrap(), (4, 0));
    services
        .reports(&[
            "delete from hotrow_bench.service where id = 4",
            "update hotrow_bench.service set writes = 1 where id = 4",
            "update hotrow_bench.service set last_seen_at = 'epoch' where id = 3",
        ])
        .await;
}

#[tokio::test]
async fn faults_in_the_rows_of_mariadb_are_reported() {
    let server = PrivateMariaDb::start(&[]).unwrap();
    let url = format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{}", server.port());
    let mut client = Client::open(&url.parse().unwrap()).await.unwrap();
    client.script(&include_str!("../sql/mariadb/set_up.sql").replace(":rows", "3")).await.unwrap();
    client.execute("update hot.row set v = 2 where id <> 2").await.unwrap();
    let reading = include_str!("../sql/mariadb/reading.sql").replace(":rows", "3");
    let read = async |client: &mut Client| {
        let rows = client.rows(&reading).await.unwrap();
        rows[0].clone().into_iter().map(|value| value.unwrap().parse().unwrap()).collect::<Vec<i64>>()
    };
    assert_eq!(read(&mut client).await, [4, 0]);
    for fault in [
        "delete from hot.row where id = 2",
        "insert into hot.row values (4, 0)",
        "update hot.row set v = -1 where id = 2",
    ] {
        client.execute("begin").await.unwrap();
        client.execute(fault).await.unwrap();
        assert!(read(&mut client).await[1] > 0, "not reported: {fault}");
        client.execute("rollback").await.unwrap();
    }
    assert_eq!(read(&mut client).await, [4, 0], "the faults are taken back");
}
