//! Load by extended queries of unnamed statements with texts of this program. pgbench cannot make it, because its extended
//! queries have the texts of its script.

use crate::arrivals::arrivals;
use crate::endpoint::Endpoint;
use crate::load::{Answers, Failure, Part, joined};
use crate::scenario::Text;
use crate::statistics::Latencies;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

/// The number of counters in the table, `c0` and so on.
const COUNTERS: u32 = 20;

/// The number of statements that this process has written to be like no other. It stays below the number of sets of counters
/// in the life of one gateway, so no gateway sees one of them twice.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Times at which requests are due.
#[derive(Clone)]
enum Due {
    /// At once, until this time.
    Closed(Instant),
    /// When the next time is received. The clients share the times.
    Open(Arc<Mutex<UnboundedReceiver<Instant>>>),
}

impl Due {
    fn of(rate: Option<u32>, began: Instant, lasting: Duration) -> Self {
        let end = began + lasting;
        let open = |rate| Self::Open(Arc::new(Mutex::new(arrivals(rate, began, end))));
        rate.map_or(Self::Closed(end), open)
    }

    async fn next(&self) -> Option<Instant> {
        match self {
            Self::Closed(end) => Some(Instant::now()).filter(|now| now < end),
            Self::Open(due) => due.lock().await.recv().await,
        }
    }
}

/// Clients that are connected and have sent nothing.
pub struct Clients {
    clients: Vec<Client>,
    rows: u32,
}

impl Clients {
    pub async fn connect(endpoint: &Endpoint, clients: u32, rows: u32) -> Result<Self, Failure> {
        let mut connected = Vec::new();
        for _ in 0..clients {
            connected.push(endpoint.client().await.map_err(failure)?);
        }
        Ok(Self { clients: connected, rows })
    }

    /// Lets all of them send statements for this time, at this rate or as fast as they are answered.
    pub async fn send(self, text: Text, rate: Option<u32>, lasting: Duration) -> Result<Answers, Failure> {
        let began = Instant::now();
        let due = Due::of(rate, began, lasting);
        let mut tasks = JoinSet::new();
        for client in self.clients {
            tasks.spawn(send_all(client, text, due.clone(), self.rows));
        }
        let mut latencies = Latencies::new();
        while let Some(ended) = tasks.join_next().await {
            latencies.add(&joined(ended)?);
        }
        Ok(Answers::since(began, latencies.count(), latencies))
    }
}

/// Runs a load to its end.
pub async fn run(endpoint: &Endpoint, text: Text, part: &Part) -> Result<Answers, Failure> {
    let clients = Clients::connect(endpoint, part.run.clients, part.rows).await?;
    clients.send(text, part.rate, part.lasting()).await
}

/// Runs the load of the first second after a pause, at the end of which a direct client changes something.
pub async fn run_after_pause(
    endpoint: &Endpoint,
    server: &Endpoint,
    change: &str,
    part: &Part,
) -> Result<Answers, Failure> {
    const SECOND: Duration = Duration::from_secs(1);
    /// Longer than facts of the catalog are valid in a gateway without a setting `catalog_age_ms`.
    const PAUSE: Duration = Duration::from_secs(6);
    if part.is_warm_up() {
        return run(endpoint, Text::Same, part).await;
    }
    let clients = Clients::connect(endpoint, part.run.clients, part.rows).await?;
    if !part.quick {
        tokio::time::sleep(PAUSE).await;
    }
    server.client().await.map_err(failure)?.batch_execute(change).await.map_err(failure)?;
    clients.send(Text::Same, None, part.lasting().min(SECOND)).await
}

/// One client: sends the due statements, one after another, until there will be no more.
async fn send_all(client: Client, text: Text, due: Due, rows: u32) -> Result<Latencies, Failure> {
    let mut latencies = Latencies::new();
    while let Some(at) = due.next().await {
        let number = if text == Text::Same { 0 } else { NUMBER.fetch_add(1, Relaxed) };
        let sql = written(text, number);
        let id = fastrand::u32(1..=rows) as i32;
        match client.execute_typed(&sql, &[(&id, Type::INT4)]).await.map_err(failure)? {
            1 => latencies.record_since(at),
            changed => {
                return Err(Failure(format!("a statement changed {changed} rows instead of one: {sql}")));
            }
        }
    }
    Ok(latencies)
}

/// The text of a statement with a number that no other has.
fn written(text: Text, number: u32) -> String {
    // About half of the counters, which makes it as long as the others.
    const USUAL_COUNTERS: u32 = 0x5_5555;
    // An odd number without factors in common with the number of sets: each number has a set of its own.
    const SPREAD: u32 = 0x9_E375;
    let plain = |counters: u32| {
        let mut sql = "update hotrow_bench.inv set stock = stock - 1, sold = sold + 1".to_owned();
        for counter in (0..COUNTERS).filter(|counter| counters >> counter & 1 == 1) {
            sql.push_str(&format!(", c{counter} = c{counter} + 1"));
        }
        sql.push_str(" where id = $1 and stock >= 1");
        sql
    };
    match text {
        Text::Same => plain(USUAL_COUNTERS),
        Text::Commented => {
            let trace = format!("00-0af7651916cd43dd8448eb21{number:08x}-b7ad6b71{number:08x}-01");
            format!("{} /*route='/sell',traceparent='{trace}'*/", plain(USUAL_COUNTERS))
        }
        Text::NewShape => plain(number.wrapping_mul(SPREAD) % (1 << COUNTERS)),
    }
}

fn failure(error: Error) -> Failure {
    Failure::of_client("a client", &error)
}

#[cfg(test)]
mod tests {
    use super::written;
    use crate::scenario::Text;
    use std::collections::HashSet;

    #[test]
    fn each_statement_is_new_unless_it_is_the_same() {
        let different = |text| (0..20_000).map(|number| written(text, number)).collect::<HashSet<_>>().len();
        assert_eq!([Text::Same, Text::Commented, Text::NewShape].map(different), [1, 20_000, 20_000]);
    }
}
