//! Secrets from one server: queried over one connection, one user at a time, and cached for a few seconds.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotrow_auth::{Account, ProcessKey, Secret};
use hotrow_connect::config::UpstreamConfig;
use hotrow_connect::lock::Lock;
use hotrow_connect::login::Login;
use hotrow_connect::upstream::{Error, Upstream as Connection};
use hotrow_core::limits;
use zeroize::Zeroize;

use crate::config::Config;
use crate::server::held::connect_with_retries;

/// The query's connection and its recent answers.
#[derive(Debug, Default)]
pub struct AuthQuery {
    answers: Lock<HashMap<String, Answer>>,
    connection: tokio::sync::Mutex<Option<(Connection, Instant)>>,
    complained: Lock<Option<Instant>>,
}

#[derive(Debug)]
struct Answer {
    since: Instant,
    account: Option<Arc<Account>>,
}

impl AuthQuery {
    /// The server's account of a user. None if the server refuses the query.
    pub async fn account(
        &self,
        config: &Config,
        server: &UpstreamConfig,
        key: &ProcessKey,
        user: &str,
    ) -> Result<Option<Arc<Account>>, Error> {
        if config.auth_query.is_empty() {
            return Ok(None);
        }
        if let Some(account) = self.remembered(user) {
            return Ok(account);
        }
        let mut connection = self.connection.lock().await;
        // Another login may have asked in the meantime.
        if let Some(account) = self.remembered(user) {
            return Ok(account);
        }
        let open = connection.take().and_then(|(mut open, _)| open.is_quiet().then_some(open));
        let mut upstream = match open {
            Some(upstream) => upstream,
            None => connect(server, config.server_wait).await?,
        };
        // The connection is put back only after a complete answer, because a client may leave before.
        let secret = match upstream.query(&config.auth_query, &[user]).await {
            Ok(rows) => secret(user, rows),
            Err(error @ Error::Refused { .. }) => {
                self.complain(&error);
                None
            }
            Err(error) => return Err(error),
        };
        *connection = Some((upstream, Instant::now()));
        drop(connection);
        let account = match secret {
            Some(secret) => Some(hashed(user, secret, key).await?),
            None => None,
        };
        self.remember(user, account.clone());
        Ok(account)
    }

    fn remembered(&self, user: &str) -> Option<Option<Arc<Account>>> {
        let answers = self.answers.lock();
        answers.get(user).filter(|answer| answer.is_fresh()).map(|answer| answer.account.clone())
    }

    fn remember(&self, user: &str, account: Option<Arc<Account>>) {
        let mut answers = self.answers.lock();
        if answers.len() >= limits::SECRETS_MAX {
            answers.retain(|_, answer| answer.is_fresh());
        }
        // A client that invents this many names within seconds makes all users be queried again. It has no other
        // effect.
        if answers.len() >= limits::SECRETS_MAX {
            answers.clear();
        }
        answers.insert(user.to_owned(), Answer { since: Instant::now(), account });
    }

    /// Queries the server at the next login, because the password may have changed.
    pub fn forget(&self, user: &str) {
        self.answers.lock().remove(user);
    }

    /// Closes the connection if it has been unused for this long.
    pub fn close_unused(&self, age: Duration) {
        if let Ok(mut connection) = self.connection.try_lock() {
            connection.take_if(|(_, since)| since.elapsed() >= age);
        }
        self.answers.lock().retain(|_, answer| answer.is_fresh());
    }

    /// Logs a refusal once in a while, because every login would repeat it.
    fn complain(&self, error: &Error) {
        let mut complained = self.complained.lock();
        if complained.is_none_or(|since| since.elapsed() >= COMPLAINT_PAUSE) {
            *complained = Some(Instant::now());
            tracing::warn!(
                %error,
                "the server refuses auth_query: users that are not in users_file cannot log in; set auth_query to a function that the upstream URL's user can execute, or to an empty string"
            );
        }
    }
}

/// Least time between two log lines about the same refusal.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(60);

impl Answer {
    fn is_fresh(&self) -> bool {
        self.since.elapsed() < Duration::from_millis(limits::SECRET_AGE_MS)
    }
}

async fn connect(server: &UpstreamConfig, patience: Duration) -> Result<Connection, Error> {
    let pairs =
        [("user", &*server.user), ("database", &server.database), ("application_name", "hotrow auth")];
    let parameters = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    connect_with_retries(server, patience, &parameters, &Login::new(&server.user, server.credential())).await
}

/// The second column of the row whose first column is this user.
fn secret(user: &str, rows: Vec<Vec<Option<String>>>) -> Option<Secret> {
    let mut secret = None;
    for mut row in rows {
        if let [Some(name), Some(text), ..] = &mut row[..] {
            if *name == user {
                secret = Secret::parse(text);
            }
            text.zeroize();
        }
    }
    secret
}

/// An auth_query function may return plain passwords.
async fn hashed(user: &str, secret: Secret, key: &ProcessKey) -> Result<Arc<Account>, Error> {
    let (user, key) = (user.to_owned(), key.clone());
    let hash = move || Arc::new(Account::new(&user, secret, &key));
    tokio::task::spawn_blocking(hash)
        .await
        .map_err(|error| Error::Protocol(format!("a password could not be hashed: {error}")))
}
