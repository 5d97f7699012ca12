//! LISTEN and NOTIFY through the gateway: sessions that listen share one connection, and their clients get what a
//! direct connection would report. The modules contain the tests, and this file contains the code that they share.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod failures;
mod floods;
mod same_as_direct;
mod sharing;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use hotrow_testkit::raw::{Message, Raw, tags};
use hotrow_testkit::{Gateway, connect, new_database, value};
use tokio_postgres::Client;

hotrow_testkit::shared_server!();

/// The name under which the gateway's listening connection is shown.
const LISTENER: &str = "hotrow listener";

/// A database of its own, with a table, and a gateway.
struct Stage {
    gateway: Gateway,
    database: String,
    direct: Client,
}

impl Stage {
    async fn new(options: &[&str]) -> Self {
        let (name, direct) = new_database().await;
        direct
            .batch_execute("create table t (id int primary key, n int); insert into t values (1, 0)")
            .await
            .unwrap();
        Self { gateway: Gateway::start(options), database: name, direct }
    }

    async fn client(&self) -> Client {
        connect(self.gateway.config().dbname(&self.database)).await
    }

    async fn raw(&self) -> Raw {
        Raw::login(self.gateway.port(), &[("database", &self.database)]).await
    }

    /// A client that listens to this channel.
    async fn listener(&self, channel: &str) -> Raw {
        let mut raw = self.raw().await;
        let replies = raw.query(&format!("listen {channel}")).await;
        assert_eq!(tags(&replies).replace('A', ""), "CZ", "{:?}", replies[0].field(b'M'));
        raw
    }

    /// Number of connections with this name.
    async fn connections(&self, name: &str) -> u32 {
        let text = format!(
            "select count(*) from pg_stat_activity where datname = current_database() and application_name = '{name}'"
        );
        value(&self.direct, &text).await.parse().unwrap()
    }

    /// Number of all connections of clients but this stage's own.
    async fn backends(&self) -> u32 {
        let text = "select count(*) from pg_stat_activity
                     where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()";
        value(&self.direct, text).await.parse().unwrap()
    }
}

/// Channel and payload of a NotificationResponse.
fn notification(message: &Message) -> Option<(String, String)> {
    let mut parts = message.body.get(4..)?.split(|byte| *byte == 0);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    (message.tag == b'A').then(|| (text(), text()))
}

/// The payload of the next notification. None if the connection is closed.
async fn next_payload(raw: &mut Raw) -> Option<String> {
    loop {
        if let Some((_, payload)) = notification(&raw.message().await?) {
            return Some(payload);
        }
    }
}

/// Sends the numbers from 1 on with NOTIFY, each in its own transaction, until it is told to stop. Returns the last one.
async fn count_up(
    client: Client,
    channel: &'static str,
    last: std::sync::Arc<AtomicU32>,
    stop: std::sync::Arc<AtomicU32>,
) {
    for number in 1.. {
        client.batch_execute(&format!("notify {channel}, '{number}'")).await.unwrap();
        last.store(number, Relaxed);
        if stop.load(Relaxed) == 1 {
            return;
        }
        if number % 16 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await; // the listeners keep up
        }
    }
}
