//! Fixture that sends the same messages to the server and to the gateway, and compares the replies byte for byte and
//! the table's rows afterwards. The tests define the messages.

use hotrow_testkit::raw::{Message, Raw, bind, describe, execute, parse, query, sync, tags};
use hotrow_testkit::{Gateway, new_schema, patient, server, until, value};
use tokio_postgres::{Client, Config};

pub const RESET: &str = "drop table if exists r; truncate t; insert into t select id, 0, 'row ' || id from generate_series(1, 9) id";
pub const UPDATE: &str = "update t set n = n + 1 where id = $1 returning id, n";
pub const READ: &str = "select n, label from t where id = $1";

/// A table in its own schema, and a gateway in front of the server.
pub struct Stage {
    /// The gateway.
    pub gateway: Gateway,
    schema: String,
    /// A direct connection.
    pub direct: Client,
}

impl Stage {
    /// A stage with default options.
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    /// A stage whose gateway has more options. Its lanes are patient unless the options say otherwise, because tests count
    /// packed units.
    pub async fn with(options: &[&str]) -> Self {
        let (schema, direct) = new_schema().await;
        let table = "create table t (id int primary key, n int not null check (n < 100), label text)";
        direct.batch_execute(table).await.unwrap();
        Self { gateway: Gateway::start(&patient(options)), schema, direct }
    }

    /// A connection with the stage's schema as its search path.
    pub async fn raw(&self, port: u16) -> Raw {
        Raw::login(port, &[("options", &format!("-c search_path={}", self.schema))]).await
    }

    /// The same for a client with a name.
    pub async fn named(&self, port: u16, name: &str) -> Raw {
        let path = format!("-c search_path={}", self.schema);
        Raw::login(port, &[("options", &path), ("application_name", name)]).await
    }

    /// For a driver that uses the stage's schema through the gateway.
    pub fn config(&self) -> Config {
        self.gateway.config_in(&self.schema)
    }

    /// Runs a round of 18 units while one of the rows 1 to 9 is locked, and a second round. Batches then lock their rows first, with
    /// the rows' values. A lock with a wrong value would fail.
    pub async fn locks_ahead(&self, round: impl AsyncFn()) {
        self.direct.batch_execute("insert into t select id, 0 from generate_series(1, 9) id").await.unwrap();
        self.direct.batch_execute("begin; update t set n = n where id = 4").await.unwrap();
        let release = async {
            let met = async || self.gateway.metric("blocked_units_total") > 0;
            until("a unit meets the lock", met).await;
            self.direct.batch_execute("commit").await.unwrap();
        };
        tokio::join!(round(), release);
        let before = self.packed();
        round().await;
        assert_eq!(self.packed() - before, 18);
        assert_eq!(self.gateway.metric("failed_units_total"), 0, "no lock has failed");
        assert_eq!(value(&self.direct, "select sum(n) from t").await, "72");
    }

    /// Runs the steps, each sent in one write, directly and through the gateway. Returns the replies, which must be the
    /// same.
    pub async fn same(&self, what: &str, steps: &[Vec<u8>]) -> Vec<Message> {
        self.same_with(what, steps, readies).await
    }

    /// As `same`, but `count` ReadyForQuery answer each step except the last, because some of its messages are skipped.
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
        let mut replies = Vec::new();
        for port in [server().port(), self.gateway.port()] {
            self.direct.batch_execute(RESET).await.unwrap();
            let mut raw = self.raw(port).await;
            let mut all = Vec::new();
            for step in steps.iter().chain([&query("select 'still here'")]) {
                raw.send(step).await;
                all.extend(raw.until_ready(readies(step)).await);
            }
            let state = value(&self.direct, "select string_agg(t::text, ' ' order by id) from t").await;
            replies.push((all, state));
        }
        let (through, directly) = (replies.pop().unwrap(), replies.pop().unwrap());
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
        assert_eq!(through.1, directly.1, "{what}: the table's rows afterwards");
        through.0
    }

    /// The number of packed units.
    pub fn packed(&self) -> u64 {
        self.gateway.metric("packed_units_total") + self.gateway.metric("packed_reads_total")
    }
}

/// One statement as most drivers send it.
pub fn once(text: &str, values: &[Option<&str>]) -> Vec<u8> {
    [parse("", text), bind("", "", values), describe(b'P', ""), execute("", 0), sync()].concat()
}

/// The number of ReadyForQuery that answer these messages.
fn readies(mut messages: &[u8]) -> usize {
    let mut count = 0;
    while let [tag, a, b, c, d, ..] = *messages {
        count += usize::from(matches!(tag, b'Q' | b'S' | b'F'));
        messages = &messages[1 + u32::from_be_bytes([a, b, c, d]) as usize..];
    }
    count
}

/// Messages that are sent in one write.
macro_rules! step {
    ($($message:expr),* $(,)?) => { [$(&$message[..]),*].concat() };
}
pub(crate) use step;
