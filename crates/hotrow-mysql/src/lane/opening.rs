//! Opens a lane's connection: logs in as the clients' user, with their settings, and makes sure that the lane's former connection
//! is gone. Only then the outcome of its last commit can be read: a server goes on with what its socket's buffer has.

use std::time::{Duration, Instant};

use hotrow_mysql_wire::capabilities::DEPRECATE_EOF;
use tokio::time::{sleep, timeout};

use crate::limits;
use crate::own::{self, Credentials, OwnError};
use crate::socket::Socket;
use crate::upstream::Upstream;

/// What a lane connects to, and how.
pub struct Target {
    pub upstream: Upstream,
    pub credentials: Credentials,
    /// The settings that the clients have made, as statements.
    pub sets: Vec<String>,
    /// The settings that result, as [`FINGERPRINT`] tells them.
    pub fingerprint: String,
    pub server_wait: Duration,
}

impl Target {
    pub fn deprecates_eof(&self) -> bool {
        self.credentials.capabilities & DEPRECATE_EOF != 0
    }
}

/// A lane's connection.
#[derive(Debug)]
pub struct Opened {
    pub socket: Socket,
    /// The number of the lane's last committed batch.
    pub marked: Option<u64>,
    /// Whether its settings are those of the clients.
    pub fits: bool,
}

/// The session variables on which the effect of a statement by key can depend, as one text. A session that has set another one
/// itself is not packed, so the difference can only come from changes of the server's defaults.
pub const FINGERPRINT: &str = include_str!("../../sql/fingerprint.sql");

/// A lane's own settings. Locks of others are not waited for, and a gateway that hangs between the answers and COMMIT does not hold
/// the rows for long.
const SETTINGS: &str = "set session autocommit = 0, tx_isolation = 'READ-COMMITTED', innodb_lock_wait_timeout = 0, \
    lock_wait_timeout = 1, idle_write_transaction_timeout = 5, wait_timeout = 28800";

async fn log_in(upstream: &Upstream, credentials: &Credentials, sets: &[String]) -> Result<Socket, OwnError> {
    let (mut socket, greeting) = own::connect(upstream).await?;
    own::log_in(&mut socket, &greeting, credentials).await?;
    for set in sets {
        own::rows(&mut socket, credentials.capabilities & DEPRECATE_EOF != 0, set).await?;
    }
    Ok(socket)
}

/// The settings of a new connection with these.
pub async fn probe(
    upstream: &Upstream,
    credentials: &Credentials,
    sets: &[String],
) -> Result<String, OwnError> {
    let mut socket = log_in(upstream, credentials, sets).await?;
    let deprecates_eof = credentials.capabilities & DEPRECATE_EOF != 0;
    Ok(single(own::rows(&mut socket, deprecates_eof, FINGERPRINT).await?).unwrap_or_default())
}

fn single(rows: Vec<Vec<Option<String>>>) -> Option<String> {
    rows.into_iter().next()?.into_iter().next()?
}

/// Opens the connection. Tries again until the wait is over, and longer if a commit is in doubt.
pub async fn open(target: std::sync::Arc<Target>, name: String, in_doubt: bool) -> Option<Opened> {
    let wait = if in_doubt { target.server_wait * 6 } else { target.server_wait };
    let deadline = Instant::now() + wait;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match timeout(left, attempt(&target, &name)).await {
            Ok(Ok(opened)) => return Some(opened),
            Ok(Err(error)) => tracing::warn!(%error, "a lane cannot connect"),
            Err(_) => return None,
        }
        sleep(Duration::from_millis(limits::OPEN_PAUSE_MS)).await;
    }
}

async fn attempt(target: &Target, name: &str) -> Result<Opened, OwnError> {
    let deprecates_eof = target.deprecates_eof();
    let mut socket = log_in(&target.upstream, &target.credentials, &target.sets).await?;
    let fingerprint = single(own::rows(&mut socket, deprecates_eof, FINGERPRINT).await?);
    let fits = fingerprint.as_ref() == Some(&target.fingerprint);
    let mut ask = async |sql: &str| own::rows(&mut socket, deprecates_eof, sql).await.map(single);
    let lock = format!("hotrow.{name}");
    if ask(&format!("select get_lock('{lock}', 0)")).await?.as_deref() != Some("1") {
        // The former connection lives on. Its ID is asked for: after a restart, the ID that it had is another one's.
        if let Some(id) = ask(&format!("select is_used_lock('{lock}')")).await? {
            let _ = ask(&format!("kill {id}")).await; // it may have ended
        }
        let wait = limits::FORMER_WAIT_SECONDS;
        if ask(&format!("select get_lock('{lock}', {wait})")).await?.as_deref() != Some("1") {
            return Err(OwnError::Former);
        }
    }
    ask(&format!("call hotrow.open_lane('{name}')")).await?;
    let marked =
        ask(&format!("select hotrow.marked('{name}')")).await?.and_then(|number| number.parse().ok());
    ask(SETTINGS).await?;
    Ok(Opened { socket, marked, fits })
}
