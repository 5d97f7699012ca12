//! Tests that the checks of the scenarios report each planted fault. They make no load.

#![allow(clippy::unwrap_used, reason = "a test that cannot create its environment has failed")]

mod rows;

use rows::Rows;

#[tokio::test]
async fn faults_in_the_histories_of_counters_are_reported() {
    let rows = Rows::new(
        include_str!("../../sql/counter.sql"),
        include_str!("../../sql/counter_before_run.sql"),
        "select hotrow.create_counter('log', 'log');
         select hotrow.increment('7', 2), hotrow.increment('log', 2), hotrow_bench.command('7', 'increment', 2);
         select hotrow.drain('7'), hotrow.drain('log'), hotrow_bench.command('7', 'drain', 0);
         select hotrow.increment('7', 3), hotrow.increment('log', 3), hotrow_bench.command('7', 'increment', 3);
         insert into hotrow_bench.application_ledger values
             ('7', 1, 'a', 'increment', 2, 2, 2), ('7', 2, 'b', 'drain', 0, 0, 2), ('7', 3, 'c', 'increment', 3, 3, 3);
         insert into hotrow_bench.application_log (counter, transaction_id, command, amount)
             values ('7', 'a', 'increment', 2)",
        include_str!("../../sql/counter_reading.sql"),
    )
    .await;
    assert_eq!(rows.read().await.unwrap(), (13, 0));
    rows.reports(&[
        "update hotrow.ledger set value = value + 1 where version = 1",
        "update hotrow.ledger set value = value + 1 where version = 3",
        "delete from hotrow.ledger where version = 2",
        "delete from hotrow.ledger where version = 3",
        "delete from hotrow.ledger",
        "update hotrow.counter set version = version + 1 where strategy = 'ledger'",
        "update hotrow.counter set value = value + 1 where strategy = 'ledger'",
        "delete from hotrow.log_entry where version = 2",
        "update hotrow.counter set version = version + 1 where strategy = 'log'",
        "update hotrow_bench.ledger set command = 'increment' where version = 2",
        "update hotrow_bench.counter set value = value + 1",
        "delete from hotrow_bench.application_ledger where version = 1",
        "update hotrow_bench.application_ledger set value = 4 where version = 3",
    ])
    .await;
}

#[tokio::test]
async fn faults_in_the_reservations_of_a_sale_are_reported() {
    let rows = Rows::new(
        include_str!("../../sql/sale.sql"),
        concat!(include_str!("../../sql/sale_before_run.sql"), include_str!("../../sql/sale_units.sql")),
        "select hotrow_bench.reserve_update('ann', gen_random_uuid()), hotrow_bench.reserve_nowait('ann', gen_random_uuid()),
             hotrow_bench.reserve_try_lock('bob', gen_random_uuid()), hotrow_bench.reserve_unit('bob', gen_random_uuid()),
             hotrow_bench.reserve_update('ann', '10000000-0000-4000-8000-100000000000'),
             hotrow_bench.reserve_update('ann', '10000000-0000-4000-8000-100000000000');
         select hotrow.reserve('7', 'ann', 1, '10000000-0000-4000-8000-100000000000'),
             hotrow.reserve('7', 'ann', 1, '10000000-0000-4000-8000-100000000000'),
             hotrow.reserve('7', 'bob', 1, '10000000-0000-4000-8000-100000000001')",
        include_str!("../../sql/sale_reading.sql"),
    )
    .await;
    assert_eq!(rows.read().await.unwrap(), (7, 0), "a repeated request counts once");
    rows.reports(&[
        "update hotrow.sale set remaining = remaining - 1",
        "delete from hotrow.reservation where buyer = 'bob'",
        "delete from hotrow.request where request_id = '10000000-0000-4000-8000-100000000001'",
        "update hotrow.buyer set quantity = quantity + 1 where buyer = 'bob'",
        "delete from hotrow.buyer where buyer = 'bob'",
        "update hotrow_bench.item set remaining = remaining - 1 where item = 'phone'",
        "update hotrow_bench.item set per_buyer = 2 where item = 'phone'",
        "delete from hotrow_bench.reservation where buyer = 'bob' and item = 'phone'",
        "update hotrow_bench.buyer set quantity = quantity - 1 where buyer = 'ann'",
        "delete from hotrow_bench.unit where unit = 100",
    ])
    .await;
}

#[tokio::test]
async fn a_sale_of_a_sold_out_item_is_reported() {
    let rows = Rows::new(
        include_str!("../../sql/sold_out.sql"),
        include_str!("../../sql/sold_out_before_run.sql"),
        "select hotrow.reserve('7', 'ann')",
        include_str!("../../sql/sold_out_reading.sql"),
    )
    .await;
    assert_eq!(rows.read().await.unwrap(), (0, 0));
    rows.reports(&["update hotrow.sale set stock = 1, remaining = 1"]).await;
}

#[tokio::test]
async fn faults_in_the_orders_of_queues_are_reported() {
    let rows = Rows::new(
        include_str!("../../sql/queue/tables.sql"),
        include_str!("../../sql/queue/before_run.sql"),
        "insert into hotrow_bench.begun values (8);
         insert into hotrow_bench.waiting (order_id, payload) select gen_random_uuid(), '{}' from generate_series(1, 4);
         with taken as (delete from hotrow_bench.waiting where id <= 2 returning id, order_id, cts)
         insert into hotrow_bench.processed (id, order_id, cts, status) select id, order_id, cts, 1 from taken;
         select hotrow.create_queue('7');
         select hotrow.enqueue('7', gen_random_uuid()) from generate_series(1, 4);
         select hotrow.take('7', 2, null)",
        include_str!("../../sql/queue/reading.sql"),
    )
    .await;
    assert_eq!(rows.read().await.unwrap(), (4, 0));
    rows.reports(&[
        "delete from hotrow_bench.waiting where id = 4",
        "delete from hotrow_bench.processed where id = 1",
        "delete from hotrow_bench.processed where id = 2",
        "delete from hotrow.queue_order where id = 4",
        "delete from hotrow.processed_order where id = 1",
        "insert into hotrow_bench.waiting (order_id, payload) select order_id, '{}' from hotrow_bench.processed where id = 2",
        "insert into hotrow_bench.processed (id, order_id, cts, status)
             select 9, order_id, at, 1 from hotrow.queue_order where id = 2",
        "insert into hotrow_bench.processed (id, order_id, cts, status)
             select 4, order_id, at, 1 from hotrow.queue_order where id = 4",
        "select hotrow.take('7', 1)",
        "insert into hotrow_bench.worked select 9, order_id from hotrow_bench.waiting where id = 4",
    ])
    .await;
}

#[tokio::test]
async fn faults_in_queues_of_other_projects_are_reported() {
    let rows = Rows::new(
        include_str!("../../sql/queue/tables.sql"),
        include_str!("../../sql/queue/before_run.sql"),
        "insert into hotrow_bench.begun values (2), (3);
         insert into hotrow_bench.elsewhere values ('graphile_worker'), ('pgboss'), ('river');
         create schema graphile_worker;
         create table graphile_worker._private_jobs (payload json);
         create schema pgboss;
         create table pgboss.job (data jsonb, state text);
         create schema river;
         create table river.river_job (args jsonb, state text);
         insert into hotrow_bench.worked select n, gen_random_uuid() from generate_series(1, 5) n;
         insert into pgboss.job select jsonb_build_object('order_id', order_id), 'completed' from hotrow_bench.worked;
         insert into river.river_job select * from pgboss.job",
        include_str!("../../sql/queue/reading.sql"),
    )
    .await;
    assert_eq!(rows.read().await.unwrap(), (5, 0));
    rows.reports(&[
        "delete from hotrow_bench.worked where id = 1",
        "insert into hotrow_bench.worked select 6, order_id from hotrow_bench.worked where id = 1",
        "insert into graphile_worker._private_jobs select json_build_object('order_id', order_id)
             from hotrow_bench.worked where id = 1",
        "insert into graphile_worker._private_jobs values (json_build_object('order_id', gen_random_uuid()))",
        "update pgboss.job set state = 'active'",
        "update river.river_job set state = 'retryable'",
    ])
    .await;
}

#[tokio::test]
async fn faults_in_enqueued_orders_are_reported() {
    let rows = Rows::new(
        include_str!("../../sql/queue/tables.sql"),
        include_str!("../../sql/queue/before_run.sql"),
        "insert into hotrow_bench.waiting (order_id, payload) select gen_random_uuid(), '{}' from generate_series(1, 2);
         select hotrow.create_queue('7');
         select hotrow.enqueue('7', gen_random_uuid()) from generate_series(1, 3)",
        include_str!("../../sql/queue/enqueue_reading.sql"),
    )
    .await;
    assert_eq!(rows.read().await.unwrap(), (5, 0));
    rows.reports(&["insert into hotrow_bench.waiting (order_id, payload)
             select order_id, '{}' from hotrow.queue_order where id = 1"])
        .await;
}

#[tokio::test]
async fn faults_in_the_messages_of_feeds_are_reported() {
    let rows = Rows::new(
        include_str!("../../sql/feed/tables.sql"),
        include_str!("../../sql/feed/before_run.sql"),
        "select hotrow_bench.push(1, 2, now()::timestamp, 'a', 0) from generate_series(1, 2);
         select hotrow_bench.consume(1, 1, 'ts');
         select hotrow.push(1, 2, 'a') from generate_series(1, 3);
         select hotrow.consume(1, 2)",
        include_str!("../../sql/feed/reading.sql"),
    )
    .await;
    assert_eq!(rows.read().await.unwrap(), (8, 0));
    rows.reports(&[
        "update hotrow_bench.feed set status = 2",
        "delete from hotrow.inbox_entry where number = 1",
        "delete from hotrow.inbox_entry where number = 3",
        "update hotrow.inbox set last = last + 1",
        "update hotrow.reader set read_to = 4",
        "delete from hotrow.inbox",
    ])
    .await;
}
