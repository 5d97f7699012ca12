//! Load by workers that take a batch of orders in one statement and complete it in another. pgbench cannot do this, because
//! it keeps no rows. The SQL is part of the technique.

use crate::endpoint::Endpoint;
use crate::load::{Answers, Failure, Part, joined};
use crate::scenario::Steps;
use crate::statistics::Latencies;
use bytes::BytesMut;
use std::time::Instant;
use tokio::task::JoinSet;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Error};

/// The orders that one worker completed, and the latencies of its batches, from the request to the completion.
struct Done {
    orders: u64,
    latencies: Latencies,
}

/// Runs a load to its end. It counts orders, not batches.
pub async fn run(endpoint: &Endpoint, steps: Steps, part: &Part) -> Result<Answers, Failure> {
    let mut clients = Vec::new();
    for _ in 0..part.run.clients {
        clients.push(endpoint.client().await.map_err(failure)?);
    }
    let began = Instant::now();
    let named = |text: &str| text.replace(":run", &part.number.to_string());
    let mut workers = JoinSet::new();
    for client in clients {
        workers.spawn(work(client, named(steps.take), named(steps.complete), began + part.lasting()));
    }
    let mut all = Done { orders: 0, latencies: Latencies::new() };
    while let Some(ended) = workers.join_next().await {
        let done = joined(ended)?;
        all.orders += done.orders;
        all.latencies.add(&done.latencies);
    }
    Ok(Answers::since(began, all.orders, all.latencies))
}

/// Runs one worker until the time is over.
async fn work(client: Client, take: String, complete: String, end: Instant) -> Result<Done, Failure> {
    let take = client.prepare(&take).await.map_err(failure)?;
    let complete = client.prepare(&complete).await.map_err(failure)?;
    let mut done = Done { orders: 0, latencies: Latencies::new() };
    let mut last = i64::MIN;
    while Instant::now() < end {
        let began = Instant::now();
        let orders = client.query(&take, &[]).await.map_err(failure)?;
        let mut receipts = Vec::with_capacity(orders.len());
        for order in &orders {
            let id: i64 = order.try_get("id").map_err(failure)?;
            if id <= last {
                return Err(Failure(format!("out of order: a worker got {last} before {id}")));
            }
            last = id;
            receipts.push(order.try_get("receipt").map_err(failure)?);
        }
        if receipts.is_empty() {
            return Err(Failure("the orders ran out".into()));
        }
        done.orders += receipts.len() as u64;
        client.query(&complete, &[&Receipts(receipts)]).await.map_err(failure)?;
        done.latencies.record_since(began);
    }
    Ok(done)
}

/// An array of bigint, also as a parameter of a domain of the hotrow schema.
#[derive(Debug)]
struct Receipts(Vec<i64>);

impl ToSql for Receipts {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.0.to_sql(&Type::INT8_ARRAY, out)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn failure(error: Error) -> Failure {
    Failure::of_client("a worker", &error)
}
