//! The ledger design: locks, reads the latest entry, computes the batch in memory, inserts its entries, and commits. It
//! keeps nothing between batches.

use super::{Answer, Command, LOCK, State};
use tokio_postgres::{Client, Error, Statement};

/// The connection of one application.
pub(super) struct Ledger {
    client: Client,
    counter: String,
    lock: Statement,
    latest: Statement,
    insert: Statement,
}

impl Ledger {
    pub(super) async fn start(client: Client, counter: &str) -> Result<Self, Error> {
        let lock = client.prepare(include_str!("../../../sql/application/lock.sql")).await?;
        let latest = client.prepare(include_str!("../../../sql/application/ledger_latest.sql")).await?;
        let insert = client.prepare(include_str!("../../../sql/application/ledger_insert.sql")).await?;
        Ok(Self { client, counter: counter.to_owned(), lock, latest, insert })
    }

    pub(super) async fn run(&mut self, batch: &[Command]) -> Result<Vec<Answer>, Error> {
        tokio::try_join!(self.client.batch_execute("begin"), self.client.query(&self.lock, &[&LOCK]))?;
        let latest = self.client.query_opt(&self.latest, &[&self.counter]).await?;
        let mut state =
            latest.map_or(State::default(), |entry| State { version: entry.get(0), value: entry.get(1) });
        let answers = self.insert(batch, &mut state).await?;
        self.client.batch_execute("commit").await?;
        Ok(answers)
    }

    async fn insert(&self, batch: &[Command], state: &mut State) -> Result<Vec<Answer>, Error> {
        let (mut answers, mut values) = (Vec::new(), Vec::new());
        for command in batch {
            answers.push(state.apply(command.drain, command.amount));
            values.push(state.value);
        }
        let versions: Vec<_> = answers.iter().map(|answer| answer.version).collect();
        let returned: Vec<_> = answers.iter().map(|answer| answer.returned).collect();
        let ids: Vec<_> = batch.iter().map(|command| command.transaction_id.as_str()).collect();
        let names: Vec<_> = batch.iter().map(Command::name).collect();
        let amounts: Vec<_> = batch.iter().map(|command| command.amount).collect();
        self.client
            .execute(&self.insert, &[&self.counter, &versions, &ids, &names, &amounts, &values, &returned])
            .await?;
        Ok(answers)
    }
}
