//! Opens a lane's connection: logs in as the clients' user, with their settings, and makes sure that the lane's former connection
//! is gone. Only then the outcome of its last commit can be read: a server goes on with what its socket's buffer has.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hotrow_gateway::metrics::{GaugeGuard, METRICS};
use hotrow_mysql_client::own::{self, Credentials, OwnError};
use hotrow_mysql_client::{Socket, Upstream};
use hotrow_mysql_wire::capabilities::DEPRECATE_EOF;
use hotrow_mysql_wire::message::Err as ErrPacket;
use tokio::time::{sleep, timeout};

use crate::limits;
use crate::pace::Pace;

/// What a lane connects to, and how.
pub struct Target {
    pub upstream: Upstream,
    pub credentials: Credentials,
    /// The settings that the clients have made, as statements.
    pub sets: Vec<String>,
    /// The settings and rights that result, as [`FINGERPRINT`] tells them.
    pub fingerprint: String,
    pub server_wait: Duration,
    /// The first lane.
    pub first: Refused,
    /// The other lanes. While they are refused, the first one has all statements.
    pub others: Refused,
    /// That of the batches of its lanes.
    pub pace: Pace,
}

/// When the server last refused lanes.
#[derive(Debug, Default)]
pub struct Refused(Mutex<Option<Instant>>);

impl Refused {
    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether that was just now, so that statements need not wait for one.
    pub fn is_recent(&self) -> bool {
        let when = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        when.is_some_and(|when| when.elapsed() < Duration::from_millis(limits::FAILED_POOL_MS))
    }
}

impl Target {
    fn refused(&self, lane: usize) -> &Refused {
        if lane == 0 { &self.first } else { &self.others }
    }

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
    _gauge: GaugeGuard,
}

/// The session variables on which the effect of a statement by key can depend, and the rights of the user, as one text.
pub const FINGERPRINT: &str = include_str!("../../sql/fingerprint.sql");

/// A lane's own settings. Locks of others, also of tables, are not waited for, and a gateway that hangs between the answers and COMMIT does not hold
/// the rows for long.
const SETTINGS: &str = "set session autocommit = 0, tx_isolation = 'READ-COMMITTED', innodb_lock_wait_timeout = 0, \
    lock_wait_timeout = 0, idle_write_transaction_timeout = 5, wait_timeout = 28800";

/// The number of the error as which the server tells the fingerprint.
const TOLD: u16 = 1644;

/// The fingerprint in an answer. None if there is none, because the user cannot be packed.
pub fn fingerprint(answer: &ErrPacket) -> Option<String> {
    Some(answer.message.clone()).filter(|text| answer.code == TOLD && !text.is_empty())
}

async fn login(target: &Target) -> Result<Socket, OwnError> {
    let (socket, greeting) = own::connect(&target.upstream).await?;
    own::login(socket, &greeting, &target.upstream, &target.credentials).await
}

/// Makes the clients' settings. Returns whether the connection is then like those of the clients.
async fn set(socket: &mut Socket, target: &Target) -> Result<bool, OwnError> {
    for set in &target.sets {
        own::rows(socket, target.deprecates_eof(), set).await?;
    }
    match own::rows(socket, target.deprecates_eof(), FINGERPRINT).await {
        Err(OwnError::Refused(told)) => Ok(fingerprint(&told).as_ref() == Some(&target.fingerprint)),
        told => told.map(|_| false),
    }
}

/// Whether a new connection is like those of the clients.
pub async fn probe(target: &Target) -> Result<bool, OwnError> {
    let mut socket = login(target).await?;
    set(&mut socket, target).await
}

fn single(rows: Vec<Vec<Option<String>>>) -> Option<String> {
    rows.into_iter().next()?.into_iter().next()?
}

/// Opens the connection. If the server cannot be reached, tries again until the wait is over, and longer if a commit is in doubt.
pub async fn open(target: Arc<Target>, lane: usize, name: String, in_doubt: bool) -> Option<Opened> {
    let wait = if in_doubt { target.server_wait * 6 } else { target.server_wait };
    let deadline = Instant::now() + wait;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match timeout(left, attempt(&target, &name)).await {
            Ok(Ok(opened)) => return Some(opened),
            Ok(Err(error)) => {
                tracing::warn!(%error, "a lane cannot connect");
                if matches!(error, OwnError::Refused(_)) && !in_doubt {
                    target.refused(lane).note();
                    return None;
                }
            }
            Err(_) => return None,
        }
        sleep(Duration::from_millis(limits::OPEN_PAUSE_MS)).await;
    }
}

async fn attempt(target: &Target, name: &str) -> Result<Opened, OwnError> {
    let deprecates_eof = target.deprecates_eof();
    let mut socket = login(target).await?;
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
    // Before the row is made: a row that somebody has removed does not say that nothing was committed.
    let marked =
        ask(&format!("select hotrow.marked('{name}')")).await?.and_then(|number| number.parse().ok());
    if marked.is_none() {
        // Otherwise nothing is written: a global read lock would keep back the outcome of a commit in doubt.
        ask(&format!("call hotrow.open_lane('{name}')")).await?;
    }
    // After the questions above, whose answers depend on character_set_results and sql_safe_updates.
    let fits = set(&mut socket, target).await?;
    own::rows(&mut socket, deprecates_eof, SETTINGS).await?;
    Ok(Opened { socket, marked, fits, _gauge: METRICS.lanes.enter() })
}
