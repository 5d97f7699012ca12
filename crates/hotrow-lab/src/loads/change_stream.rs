//! The change stream of the payment service during a measurement: a slot, its reader, and a check that every event has
//! arrived. It makes no load.

use hotrow_bench::child::Child;
use hotrow_bench::endpoint::Endpoint;
use hotrow_bench::error::{Error, refused};
use hotrow_bench::files::temporary_folder;
use hotrow_bench::load::{Failure, NoFigure};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::process::Command;
use tokio_postgres::Client;

/// The reader of the stream.
#[derive(Debug, Clone)]
pub enum Reader {
    /// PostgreSQL's own program, at this path: it shows the server's cost for any reader.
    RecvLogical(PathBuf),
    /// Debezium, which sends the stream to Kafka, run by this script.
    Debezium(PathBuf),
}

/// A slot and its reader.
#[derive(Debug)]
pub struct ChangeStream {
    reader: Reader,
    running: Child,
    folder: TempDir,
}

/// Publication and slot, as an operator creates them for Debezium.
const SLOT: &str = include_str!("../../../../examples/payments/cdc/slot.sql");
const NAME: &str = "payments_outbox";
const OUTBOX: &str = "select id::text from payments.outbox";
/// Kafka and Debezium take ten seconds to start on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

impl ChangeStream {
    /// Creates the slot and starts its reader.
    pub async fn start(reader: Reader, server: &Endpoint, control: &Client) -> Result<Self, Error> {
        for statement in SLOT.split(';').filter(|statement| statement.contains("create")) {
            control.batch_execute(statement).await.map_err(refused("create a slot"))?;
        }
        let folder = temporary_folder()?;
        let (Reader::RecvLogical(program) | Reader::Debezium(program)) = &reader;
        let mut command = Command::new(program);
        match &reader {
            Reader::RecvLogical(_) => {
                command.args(["--dbname", &server.database, "--slot", NAME]);
                command.args(["--start", "--no-loop", "--verbose", "--fsync-interval", "0"]);
                command.arg("--file").arg(folder.path().join("events"));
                command.args(["-o", "proto_version=1", "-o", &format!("publication_names={NAME}")]);
            }
            Reader::Debezium(_) => {
                command.arg("run").arg(folder.path());
            }
        }
        command.envs(server.environment());
        let mut running = Child::start(program, command)?;
        let streams = |line: &str| {
            (line.contains("streaming initiated") || line.starts_with("streaming: ")).then_some(())
        };
        running.ready_within(PATIENCE, streams).await?;
        Ok(Self { reader, running, folder })
    }

    /// Waits until every event of the outbox has arrived.
    pub async fn all_arrived(&self, control: &Client) -> Result<(), NoFigure> {
        let rows = control.query(OUTBOX, &[]).await.map_err(refused("read the outbox"))?;
        let written: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let arrived = self.arrived(written.len()).await?;
            let missing = written.difference(&arrived).count();
            let strangers = arrived.difference(&written).count();
            if strangers > 0 {
                return Err(Failure(format!("{strangers} events are not in the outbox")).into());
            }
            if missing == 0 {
                return Ok(());
            }
            if Instant::now() > deadline {
                let all = written.len();
                let reason = format!("{missing} of {all} events have not arrived after {PATIENCE:?}");
                return Err(Failure(reason).into());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn arrived(&self, wanted: usize) -> Result<BTreeSet<String>, Error> {
        match &self.reader {
            Reader::RecvLogical(_) => {
                let path = self.folder.path().join("events");
                Ok(inserted_ids(&std::fs::read(&path).map_err(Error::file("read", &path))?))
            }
            Reader::Debezium(script) => {
                let mut command = Command::new(script);
                command.args(["consume", &wanted.to_string()]).kill_on_drop(true);
                let Ok(ended) = tokio::time::timeout(PATIENCE, command.output()).await else {
                    return Ok(BTreeSet::new());
                };
                let output = ended.map_err(Error::file("run", script))?;
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                Ok(text.lines().filter_map(|line| Some(line.split_once('\t')?.0.to_owned())).collect())
            }
        }
    }

    /// Stops the reader and drops the slot.
    pub async fn stop(self, control: &Client) -> Result<(), Error> {
        self.running.stop().await?;
        // The server notices only after a moment that the reader has gone.
        let free = format!(
            "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = '{NAME}'"
        );
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = control.batch_execute(&free).await {
            if Instant::now() > deadline {
                return Err(refused("drop a slot")(error));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

/// The first columns (IDs as text) of the insert messages of the plugin `pgoutput`: 'I', the table, 'N', the number of
/// columns, and for each column 't', its length and its text.
fn inserted_ids(messages: &[u8]) -> BTreeSet<String> {
    const ID_BYTES: usize = 36;
    const HEAD_BYTES: usize = 13;
    let is_insert = |message: &&[u8]| {
        message[0] == b'I' && message[5] == b'N' && message[8..HEAD_BYTES] == [b't', 0, 0, 0, ID_BYTES as u8]
    };
    let ids = messages.windows(HEAD_BYTES + ID_BYTES).filter(is_insert);
    ids.map(|message| String::from_utf8_lossy(&message[HEAD_BYTES..]).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::inserted_ids;

    #[test]
    fn ids_are_found_between_other_messages() {
        let id = "5dd2c228-b2e6-49c5-b6da-39ebdcf6e7d1";
        let mut messages = b"B12345678\nI\0\0\x40\x01N\0\x06t\0\0\0\x24".to_vec();
        messages.extend(id.as_bytes());
        messages.extend(b"t\0\0\0\x07payment\nC1\n");
        assert_eq!(inserted_ids(&messages).into_iter().collect::<Vec<_>>(), [id]);
        assert!(inserted_ids(&messages[..20]).is_empty());
    }
}
