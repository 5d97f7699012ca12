//! The same messages to the server and to the gateway: the answers must be the same, byte for byte, and so must be what
//! the table holds afterwards. Which messages, is for the tests.

use hotrow_testkit::raw::{Message, Raw, bind, describe, execute, parse, query, sync, tags};
use hotrow_testkit::{Gateway, new_schema, server, value};
use tokio_postgres::Client;

pub const RESET: &str = "drop table if exists r; truncate t; insert into t select id, 0, 'row ' || id from generate_series(1, 9) id";
pub const UPDATE: &str = "update t set n = n + 1 where id = $1 returning id, n";
pub const READ: &str = "select n, label from t where id = $1";

/// A table in a schema of its own, and a gateway in front of it.
pub struct Stage {
    /// The gateway.
    pub gateway: Gateway,
    schema: String,
    /// A direct connection.
    pub direct: Client,
}

impl Stage {
    /// A stage.
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    /// The same, with options of the gateway's.
    pub async fn with(options: &[&str]) -> Self {
        let (schema, direct) = new_schema().await;
        let table = "create table t (id int primary key, n int not null check (n < 100), label text)";
        direct.batch_execute(table).await.unwrap();
        Self { gateway: Gateway::start(options), schema, direct }
    }

    /// A connection that looks into the schema.
    pub async fn raw(&self, port: u16) -> Raw {
        Raw::log_in(port, &[("options", &format!("-c search_path={}", self.schema))]).await
    }

    /// Runs the steps, each sent in one go, directly and through the gateway; what was said, if it was the same.
    pub async fn same(&self, what: &str, steps: &[Vec<u8>]) -> Vec<Message> {
        self.same_with(what, steps, readies).await
    }

    /// The same where each step but the last is answered by so many ReadyForQuery: some of its messages are skipped.
    pub async fn same_but_readies(&self, what: &str, steps: &[Vec<u8>], count: usize) -> Vec<Message> {
        let skipped =
            |step: &[u8]| if steps.iter().any(|other| other == step) { count } else { readies(step) };
        self.same_with(what, steps, skipped).await
    }

    async fn same_with(
        &self,
        what: &str,
        steps: &[Vec<u8>],
        readies: impl Fn(&[u8]) -> usize,
    ) -> Vec<Message> {
        let mut said = Vec::new();
        for port in [server().port(), self.gateway.port()] {
            self.direct.batch_execute(RESET).await.unwrap();
            let mut raw = self.raw(port).await;
            let mut all = Vec::new();
            for step in steps.iter().chain([&query("select 'still here'")]) {
                raw.send(step).await;
                all.extend(raw.until_ready(readies(step)).await);
            }
            let state = value(&self.direct, "select string_agg(t::text, ' ' order by id) from t").await;
            said.push((all, state));
        }
        let (through, directly) = (said.pop().unwrap(), said.pop().unwrap());
        assert_eq!(
            tags(&through.0),
            tags(&directly.0),
            "{what}: {:?} instead of {:?}",
            through.0,
            directly.0
        );
        for (through, directly) in through.0.iter().zip(&directly.0) {
            assert_eq!(through, directly, "{what}");
        }
        assert_eq!(through.1, directly.1, "{what}: what the table holds afterwards");
        through.0
    }

    /// How many units were packed.
    pub fn packed(&self) -> u64 {
        self.gateway.metric("packed_units_total") + self.gateway.metric("packed_reads_total")
    }
}

/// One statement as most drivers send it.
pub fn once(text: &str, values: &[Option<&str>]) -> Vec<u8> {
    [parse("", text), bind("", "", values), describe(b'P', ""), execute("", 0), sync()].concat()
}

/// How many ReadyForQuery answer these messages.
fn readies(mut messages: &[u8]) -> usize {
    let mut count = 0;
    while let [tag, a, b, c, d, ..] = *messages {
        count += usize::from(matches!(tag, b'Q' | b'S' | b'F'));
        messages = &messages[1 + u32::from_be_bytes([a, b, c, d]) as usize..];
    }
    count
}

/// Messages that are sent in one go.
macro_rules! step {
    ($($message:expr),* $(,)?) => { [$(&$message[..]),*].concat() };
}
pub(crate) use step;
