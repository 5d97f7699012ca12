//! The command-log design: appends the commands of a batch under a lock, then folds in memory all commands after the
//! bookmark, including those of other applications. It writes no value and, as in the article, no snapshot.

use super::{Answer, Command, DRAIN, LOCK, State};
use std::collections::HashMap;
use tokio_postgres::{Client, Error, Statement};

/// The connection and the memory of one application.
pub(super) struct CommandLog {
    client: Client,
    counter: String,
    lock: Statement,
    append: Statement,
    behind: Statement,
    bookmark: i64,
    state: State,
}

impl CommandLog {
    /// Folds the commands that are in the log already.
    pub(super) async fn start(client: Client, counter: &str) -> Result<Self, Error> {
        let lock = client.prepare(include_str!("../../../sql/application/lock.sql")).await?;
        let append = client.prepare(include_str!("../../../sql/application/log_append.sql")).await?;
        let behind = client.prepare(include_str!("../../../sql/application/log_behind.sql")).await?;
        let counter = counter.to_owned();
        let mut log = Self { client, counter, lock, append, behind, bookmark: 0, state: State::default() };
        log.fold(&[]).await?;
        Ok(log)
    }

    pub(super) async fn run(&mut self, batch: &[Command]) -> Result<Vec<Answer>, Error> {
        let ids: Vec<_> = batch.iter().map(|command| command.transaction_id.as_str()).collect();
        let names: Vec<_> = batch.iter().map(Command::name).collect();
        let amounts: Vec<_> = batch.iter().map(|command| command.amount).collect();
        // Because of the lock, numbers of the sequence become visible in their order: none appears before the bookmark
        // later.
        tokio::try_join!(self.client.batch_execute("begin"), self.client.query(&self.lock, &[&LOCK]))?;
        self.client.execute(&self.append, &[&self.counter, &ids, &names, &amounts]).await?;
        self.client.batch_execute("commit").await?;
        self.fold(&ids).await
    }

    /// Reads on from the bookmark. Returns the answers to the commands with these IDs, in the order of the IDs.
    async fn fold(&mut self, ids: &[&str]) -> Result<Vec<Answer>, Error> {
        let mut answers: HashMap<String, Answer> = HashMap::with_capacity(ids.len());
        for row in self.client.query(&self.behind, &[&self.counter, &self.bookmark]).await? {
            let (command, amount): (&str, i64) = (row.get(2), row.get(3));
            let answer = self.state.apply(command == DRAIN, amount);
            self.bookmark = row.get(0);
            answers.insert(row.get(1), answer);
        }
        Ok(ids.iter().filter_map(|id| answers.get(*id).copied()).collect())
    }
}
