//! Load by workers that take a batch of orders in one statement and complete it in another, which pgbench can't do, since it
//! keeps no rows; the SQL is the technique's.

use crate::endpoint::Endpoint;
use crate::load::{Answers, Failure};
use crate::scenario::Steps;
use crate::statistics::Latencies;
use bytes::BytesMut;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// What the workers are to do.
#[derive(Debug)]
pub struct Load<'a> {
    /// Whom they connect to.
    pub endpoint: &'a Endpoint,
    /// How they work.
    pub steps: Steps,
    /// The run's number.
    pub run: u32,
    /// How many there are.
    pub workers: u32,
    /// How long.
    pub seconds: u32,
}

/// Orders that one worker completed, and how long a batch took it from asking for it to its completion.
struct Done {
    orders: u64,
    latencies: Latencies,
}

/// Runs a load to its end. Each order counts, and not each batch.
pub async fn run(load: &Load<'_>) -> Result<Answers, Failure> {
    let mut clients = Vec::new();
    for _ in 0..load.workers {
        let (client, connection) = load.endpoint.config().connect(NoTls).await.map_err(failure)?;
        // Its end shows up as an error of the worker's next statement.
        tokio::spawn(connection);
        clients.push(client);
    }
    let began = Instant::now();
    let end = began + Duration::from_secs(load.seconds.into());
    let named = |text: &str| text.replace(":run", &load.run.to_string());
    let (take, complete) = (named(load.steps.take), named(load.steps.complete));
    let mut workers = JoinSet::new();
    for client in clients {
        workers.spawn(work(client, take.clone(), complete.clone(), end));
    }
    let mut all = Done { orders: 0, latencies: Latencies::new() };
    while let Some(ended) = workers.join_next().await {
        let done = match ended {
            Ok(done) => done?,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        };
        all.orders += done.orders;
        all.latencies.add(&done.latencies);
    }
    let per_second = all.orders as f64 / began.elapsed().as_secs_f64();
    Ok(Answers { acknowledged: all.orders, beside: 0, per_second, latencies: all.latencies, pace: None })
}

/// One worker, until the time is over.
async fn work(
    client: tokio_postgres::Client,
    take: String,
    complete: String,
    end: Instant,
) -> Result<Done, Failure> {
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
        done.latencies.record(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    Ok(done)
}

/// An array of bigint, also where a domain of the schema pack's over one is wanted.
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

fn failure(error: tokio_postgres::Error) -> Failure {
    Failure(match error.as_db_error() {
        Some(said) => format!("a worker's statement failed: {} ({})", said.message(), said.code().code()),
        None => format!("a worker failed: {error}"),
    })
}
