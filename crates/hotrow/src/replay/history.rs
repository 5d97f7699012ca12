//! The counters' histories, streamed in order from one snapshot of the database. The check is in `fold`.

use std::pin::Pin;
use std::time::SystemTime;

use futures_util::TryStreamExt;
use hotrow_sql::{MIGRATIONS, State as Installed};
use tokio_postgres::{Client, IsolationLevel, Row, RowStream, Transaction};

use super::fold::{Difference, Entry, Fold, Head, Strategy};

/// Why the history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Connect(#[from] crate::direct::Error),
    /// The hotrow schema is not there.
    #[error("the hotrow schema is not installed in this database: run hotrow migrate --upstream URL")]
    NotInstalled,
    /// The hotrow schema is older than this program.
    #[error(
        "the hotrow schema in this database lacks {0} migrations of this program: run hotrow migrate --upstream URL"
    )]
    Older(usize),
    /// The hotrow schema is newer than this program.
    #[error(
        "the hotrow schema in this database is newer than this program (migration {0}): use the newer program"
    )]
    Newer(i32),
    /// The server reports an error.
    #[error(transparent)]
    Server(#[from] hotrow_sql::Error),
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error.into())
    }
}

/// Connects, and checks that the hotrow schema is installed.
pub async fn connect(upstream: &str) -> Result<Client, Error> {
    let client = crate::direct::connect(upstream).await?;
    client.batch_execute("set search_path = pg_catalog, pg_temp").await?;
    match hotrow_sql::check(&client).await? {
        Installed::Fits => Ok(client),
        Installed::Missing(missing) if missing == MIGRATIONS.len() => Err(Error::NotInstalled),
        Installed::Missing(missing) => Err(Error::Older(missing)),
        Installed::Newer(number) => Err(Error::Newer(number)),
    }
}

/// The schema of the original tables.
pub const OWN: &str = "hotrow";

/// One snapshot of the hotrow schema, or of one shard if it is distributed.
pub struct Snapshot<'c> {
    /// The transaction that reads it.
    pub transaction: Transaction<'c>,
    schema: String,
}

impl<'c> Snapshot<'c> {
    /// Begins a transaction with one snapshot for all queries. The locks come before the snapshot: a partition of the history
    /// that is truncated later would be empty in the snapshot too. The locks block only truncation. They do not reach the node
    /// of a shard, so a reader of a shard compares the parts.
    pub async fn begin(client: &'c mut Client, schema: &str) -> Result<Self, Error> {
        let builder =
            client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        let snapshot = Snapshot { transaction: builder.start().await?, schema: schema.to_owned() };
        if schema == OWN {
            snapshot.transaction.batch_execute(include_str!("../../sql/history_lock.sql")).await?;
        }
        Ok(snapshot)
    }

    /// A statement about this schema.
    pub fn text(&self, statement: &str) -> String {
        statement.replace("hotrow.", &format!("{}.", self.schema))
    }

    /// The parts of the rings that are written to.
    pub async fn parts(&self) -> Result<(i16, i16), Error> {
        let row = self.transaction.query_one(&self.text(include_str!("../../sql/parts.sql")), &[]).await?;
        Ok((row.get(0), row.get(1)))
    }

    /// Whether the history has every command since the beginning.
    pub async fn whole(&self) -> Result<bool, Error> {
        let text = self.text(include_str!("../../sql/history_whole.sql"));
        Ok(self.transaction.query_one(&text, &[]).await?.get(0))
    }
}

pub async fn schema_of(client: &Client, counter: &str) -> Result<String, Error> {
    if hotrow_sql::shards(client).await?.is_none() {
        return Ok(OWN.to_owned());
    }
    let row = client.query_one("select hotrow.shard_of($1)", &[&counter]).await?;
    Ok(hotrow_sql::shard_schema(row.get(0)))
}

/// A part of the histories.
#[derive(Debug, Clone, Copy)]
pub struct Range<'a> {
    pub counter: Option<&'a str>,
    /// Commands after this version, and the snapshot at this version.
    pub after: i64,
    /// Commands up to this version.
    pub upto: i64,
}

impl Range<'_> {
    /// All histories.
    pub const ALL: Self = Range { counter: None, after: -1, upto: i64::MAX };
}

/// A stream of rows, of which only a few are in memory at a time.
pub struct History {
    rows: Pin<Box<RowStream>>,
}

impl History {
    /// Starts the query.
    pub async fn open(snapshot: &Snapshot<'_>, range: Range<'_>) -> Result<Self, Error> {
        let transaction = &snapshot.transaction;
        let statement = transaction.prepare(&snapshot.text(include_str!("../../sql/history.sql"))).await?;
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&range.counter, &range.after, &range.upto];
        Ok(Self { rows: Box::pin(transaction.query_raw(&statement, parameters).await?) })
    }

    /// The next row.
    pub async fn next(&mut self) -> Result<Option<Record>, Error> {
        Ok(self.rows.try_next().await?.map(|row| Record { row }))
    }
}

/// One row of history.
pub struct Record {
    row: Row,
}

/// The kind of a row.
pub enum Kind {
    /// The counter's row, which comes before its history.
    Counter(Head),
    Command,
    Snapshot,
}

impl Record {
    /// The name of its counter.
    pub fn counter(&self) -> &str {
        self.row.get(0)
    }

    pub fn kind(&self) -> Kind {
        match self.row.get::<_, i32>(2) {
            0 => Kind::Counter(self.head()),
            3 => Kind::Snapshot,
            _ => Kind::Command,
        }
    }

    /// Passes a command or a snapshot to the fold.
    pub fn fold(&self, fold: &mut Fold) -> Result<(), Difference> {
        let (version, at): (i64, SystemTime) = (self.row.get(1), self.row.get(7));
        let kept_in = match self.row.get::<_, i32>(2) {
            1 => Strategy::Ledger,
            2 => Strategy::Log,
            _ => return fold.snapshot(version, self.row.get(5), at),
        };
        let (command, amount) = (self.row.get(3), self.row.get(4));
        let (value, returned) = (self.row.get(5), self.row.get(6));
        fold.command(&Entry { kept_in, version, command, amount, value, returned, at })
    }

    fn head(&self) -> Head {
        let strategy = if self.row.get::<_, &str>(10) == "log" { Strategy::Log } else { Strategy::Ledger };
        let (min, max) = (self.row.get(8), self.row.get(9));
        Head { strategy, min, max, version: self.row.get(6), value: self.row.get(5) }
    }
}
