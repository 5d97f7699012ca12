//! A lane's connection as it comes and goes: made with pauses in between, read and written while it is there, and
//! used to ask what became of a transaction.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotrow_core::lane::{Kind, Outcome};
use hotrow_core::limits;
use hotrow_core::witness::{Bond, Server, Word, believe};
use hotrow_wire::frontend::Parse;

use super::writer::{TRANSACTION_ID, Writer};
use crate::metrics::{GaugeGuard, METRICS};
use crate::pool::Pool;
use crate::upstream::{Error, Upstream};

/// What happened on the connection.
#[derive(Debug)]
pub enum Progress {
    /// Bytes came.
    Bytes,
    /// More bytes were taken by the system.
    Written,
    /// It is up.
    Connected,
    /// It could not be made.
    ConnectFailed {
        /// Nothing shall wait for it any longer.
        give_up: bool,
    },
    /// What became of the transaction asked about.
    Resolved(Outcome),
    /// It is gone.
    Lost,
}

/// The connection and what is being done about it.
pub struct Link {
    pool: Arc<Pool>,
    kind: Kind,
    index: usize,
    state: State,
    /// The server when the connection was made that is in use, or was in use before.
    server: Option<Server>,
    /// Since when there is no connection although one is wanted.
    without_since: Option<Instant>,
    pause: Duration,
}

type Making = Pin<Box<dyn Future<Output = Result<(Upstream, Option<Server>), Error>> + Send>>;
type Asking = Pin<Box<dyn Future<Output = (Result<Upstream, Error>, Outcome)> + Send>>;

enum State {
    Down,
    Making { making: Making, in_doubt: bool },
    Up { upstream: Box<Upstream>, server: Option<Server>, _gauge: GaugeGuard },
    Asking { asking: Asking, server: Option<Server> },
}

impl Link {
    /// No connection yet.
    pub fn new(pool: Arc<Pool>, kind: Kind, index: usize) -> Self {
        Link {
            pool,
            kind,
            index,
            state: State::Down,
            server: None,
            without_since: None,
            pause: Duration::ZERO,
        }
    }

    /// The connection while it is up.
    pub fn upstream(&mut self) -> Option<&mut Upstream> {
        match &mut self.state {
            State::Up { upstream, .. } => Some(upstream),
            _ => None,
        }
    }

    /// Closes the connection.
    pub fn drop_connection(&mut self) {
        self.state = State::Down;
    }

    /// Begins to make a connection. With a commit in doubt there is more patience.
    pub fn connect(&mut self, in_doubt: bool) {
        self.without_since.get_or_insert_with(Instant::now);
        let making = make(self.pool.clone(), self.kind, self.index, self.pause, in_doubt);
        let longest = Duration::from_millis(limits::RECONNECT_MAX_MS);
        self.pause = (self.pause * 2).clamp(Duration::from_millis(limits::RECONNECT_MIN_MS), longest);
        self.state = State::Making { making: Box::pin(making), in_doubt };
    }

    /// Begins to ask what became of a transaction.
    pub fn resolve(&mut self, xid: u64) {
        if let State::Up { upstream, server, _gauge } = std::mem::replace(&mut self.state, State::Down) {
            let bond = Bond::between(self.server.as_ref(), server.as_ref());
            let deadline = Instant::now() + self.pool.config().resolve_timeout();
            tracing::warn!(
                xid,
                lane = self.index,
                ?bond,
                server = %upstream.address,
                "a connection was lost around a commit: asking what became of it"
            );
            self.state = State::Asking { asking: Box::pin(ask(*upstream, xid, bond, deadline)), server };
        }
    }

    /// The next thing that happens. Cancel safe.
    pub async fn progress(&mut self, writer: &mut Writer) -> Progress {
        match &mut self.state {
            State::Down => std::future::pending().await,
            State::Making { making, in_doubt } => match making.await {
                Ok((upstream, server)) => {
                    self.up(upstream, server);
                    Progress::Connected
                }
                Err(error) => {
                    let patience = if *in_doubt {
                        self.pool.config().resolve_timeout()
                    } else {
                        self.pool.config().server_wait
                    };
                    let waited = self.without_since.map_or(Duration::ZERO, |since| since.elapsed());
                    let give_up = waited > patience;
                    tracing::warn!(%error, lane = self.index, give_up, "no connection for a lane");
                    self.state = State::Down;
                    if give_up {
                        self.without_since = None;
                        self.pause = Duration::ZERO;
                    }
                    Progress::ConnectFailed { give_up }
                }
            },
            State::Up { upstream, .. } => {
                let Upstream { read, write, input, output, .. } = &mut **upstream;
                let read_some = tokio::select! {
                    count = read.fill(input) => Some(count),
                    _ = write.writable(), if !output.is_empty() => None,
                };
                match read_some {
                    Some(Ok(1..)) => Progress::Bytes,
                    None if writer.flush(upstream).is_ok() => Progress::Written,
                    _ => self.gone(),
                }
            }
            State::Asking { asking, server } => match asking.await {
                (Ok(upstream), outcome) => {
                    tracing::warn!(?outcome, lane = self.index, "what became of the commit in doubt");
                    let server = server.take();
                    self.up(upstream, server);
                    Progress::Resolved(outcome)
                }
                (Err(_), _) => self.gone(),
            },
        }
    }

    fn up(&mut self, upstream: Upstream, server: Option<Server>) {
        self.without_since = None;
        self.pause = Duration::ZERO;
        self.state = State::Up { upstream: Box::new(upstream), server, _gauge: METRICS.lanes.enter() };
    }

    /// All that was in doubt is settled: from now on this connection's server is the one to compare with.
    pub fn settle(&mut self) {
        if let State::Up { server, .. } = &self.state
            && self.server != *server
        {
            self.server.clone_from(server);
        }
    }

    fn gone(&mut self) -> Progress {
        self.state = State::Down;
        Progress::Lost
    }
}

/// Makes a connection for a lane: with its own lock timeout and name, and the statement every batch ends with. With a
/// commit in doubt only to a primary: a standby may not have heard of it yet, and could not run it again.
async fn make(
    pool: Arc<Pool>,
    kind: Kind,
    index: usize,
    pause: Duration,
    in_doubt: bool,
) -> Result<(Upstream, Option<Server>), Error> {
    tokio::time::sleep(pause).await;
    let name = match kind {
        Kind::Write => format!("hotrow lane {index}"),
        Kind::Read => format!("hotrow read lane {index}"),
    };
    let config = pool.config();
    let mut parameters = pool.identity.parameters().to_vec();
    parameters.retain(|(name, _)| name != "lock_timeout");
    parameters.push(("application_name".to_owned(), name));
    parameters.push(("lock_timeout".to_owned(), pool.lane_lock_timeout().as_millis().to_string()));
    let mut upstream = Upstream::connect(&config.upstream, &parameters, &pool.login, in_doubt).await?;
    if kind == Kind::Read {
        return Ok((upstream, None));
    }
    let server = identify(&mut upstream).await?;
    let text = include_str!("../../sql/transaction_id.sql").as_bytes();
    Parse { name: TRANSACTION_ID, text, types: &[] }.put(&mut upstream.output);
    upstream.query("select 1", &[]).await?;
    Ok((upstream, server))
}

/// Which server this is.
async fn identify(upstream: &mut Upstream) -> Result<Option<Server>, Error> {
    let life = first(upstream.query(include_str!("../../sql/server_life.sql"), &[]).await?);
    let cluster = match upstream.query(include_str!("../../sql/cluster.sql"), &[]).await {
        Ok(rows) => first(rows),
        Err(Error::Refused { message, .. }) => {
            tracing::debug!(message, "the server does not say which cluster it belongs to");
            None
        }
        Err(error) => return Err(error),
    };
    Ok(life.map(|life| Server { life, cluster }))
}

/// Asks what became of a transaction until it is known.
async fn ask(
    mut upstream: Upstream,
    xid: u64,
    bond: Bond,
    deadline: Instant,
) -> (Result<Upstream, Error>, Outcome) {
    loop {
        let rows =
            upstream.query(include_str!("../../sql/transaction_status.sql"), &[&xid.to_string()]).await;
        let word = match rows {
            Ok(rows) => word(first(rows).as_deref()),
            // An id that this server has not given out yet.
            Err(Error::Refused { code, .. }) if code == "22023" => Word::NotGivenOut,
            Err(error) => return (Err(error), Outcome::Unknown),
        };
        match believe(word, bond) {
            Some(outcome) => return (Ok(upstream), outcome),
            None if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(10)).await,
            None => return (Ok(upstream), Outcome::Unknown),
        }
    }
}

fn word(status: Option<&str>) -> Word {
    match status {
        Some("committed") => Word::Committed,
        Some("aborted") => Word::Aborted,
        Some("in progress") => Word::InProgress,
        Some("in recovery") => Word::InRecovery,
        _ => Word::Forgotten,
    }
}

fn first(rows: Vec<Vec<Option<String>>>) -> Option<String> {
    rows.into_iter().next()?.into_iter().next()?
}
