//! A connection that is opened again if it is lost, and calls that can then be repeated. It does not interpret the calls.

use std::collections::HashMap;
use std::error;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use tokio::sync::watch;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type, accepts, to_sql_checked};
use tokio_postgres::{Client, Error, NoTls, Row, Statement};

const ATTEMPTS: u32 = 10;

/// A parameter.
pub type Value<'a> = &'a (dyn ToSql + Sync);

pub struct Session {
    url: String,
    client: Option<Client>,
    /// The prepared statements of this connection. A prepared call has the form that the gateway merges.
    prepared: HashMap<String, Statement>,
}

impl Session {
    /// A session that is not connected yet.
    pub fn new(url: &str) -> Self {
        Session { url: url.to_owned(), client: None, prepared: HashMap::new() }
    }

    /// Repeats a call if the connection is lost. All calls can be repeated safely, but a repeated call can return lease_lost.
    /// With `stop`, a call is cancelled when the program stops. It then returns no rows, or the rows that it had found.
    pub async fn call(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut stop: Option<&mut watch::Receiver<bool>>,
    ) -> Result<Vec<Row>, Error> {
        let mut attempt = 1;
        loop {
            match self.ask(sql, values, stop.as_deref_mut()).await {
                Err(error) if attempt < ATTEMPTS && is_lost(&error) => {
                    tokio::time::sleep(Duration::from_millis(100) * attempt).await;
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }

    async fn ask(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        stop: Option<&mut watch::Receiver<bool>>,
    ) -> Result<Vec<Row>, Error> {
        let (client, statement) = self.prepare(sql).await?;
        let mut answer = std::pin::pin!(client.query(&statement, values));
        let Some(stop) = stop else { return answer.await };
        tokio::select! {
            answer = &mut answer => return answer,
            _ = stop.wait_for(|stop| *stop) => {}
        }
        // If it cannot be cancelled, it runs to its end.
        let _ = client.cancel_token().cancel_query(NoTls).await;
        match answer.await {
            Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => Ok(Vec::new()),
            answer => answer,
        }
    }

    async fn prepare(&mut self, sql: &str) -> Result<(&Client, Statement), Error> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await?;
            tokio::spawn(connection); // if the connection ends, the calls fail
            self.client = Some(client);
            self.prepared.clear();
        }
        let client = self.client.as_ref().expect("it was just set");
        if let Some(statement) = self.prepared.get(sql) {
            return Ok((client, statement.clone()));
        }
        let statement = client.prepare(sql).await?;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok((client, statement))
    }
}

/// Whether the connection failed, and not the call.
fn is_lost(error: &Error) -> bool {
    error.code().is_none_or(|code| code.code().starts_with("08") || code.code().starts_with("57P0"))
}

/// A duration as PostgreSQL's interval.
#[derive(Debug)]
pub struct Interval(pub Duration);

impl ToSql for Interval {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn error::Error + Sync + Send>> {
        out.put_i64(i64::try_from(self.0.as_micros())?);
        out.put_i32(0);
        out.put_i32(0);
        Ok(IsNull::No)
    }

    accepts!(INTERVAL);
    to_sql_checked!();
}
