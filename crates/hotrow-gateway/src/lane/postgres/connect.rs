//! A lane's connection: made with pauses in between, read and written while it is up, and used to ask for the outcome
//! of a transaction.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use hotrow_connect::upstream::{Error, Rows, Upstream};
use hotrow_core::limits;
use hotrow_core::witness::{self, Continuity, Log, Mark, Question, Server, XactStatus};
use hotrow_lane::lane::{Doubt, LaneKind, Outcome};

use super::context::{LaneContext, OWN};
use super::left_state::LaneState;
use super::marks;
use super::writer::Writer;
use crate::lane::backend::Progress;
use crate::metrics::{GaugeGuard, METRICS};

/// Connections of lanes are numbered in the order in which they were made.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// The number of the newest connection of a lane.
pub fn newest_connection() -> u64 {
    CONNECTIONS.load(SeqCst)
}

/// A lane's connection and its state.
pub struct LaneConnection {
    context: Arc<LaneContext>,
    kind: LaneKind,
    index: usize,
    state: State,
    /// The server of the connection in use, or of the one before.
    server: Option<Server>,
    /// Since when a connection is missing.
    without_since: Option<Instant>,
    pause: Duration,
    /// The number of the connection.
    number: u64,
    /// Why there is no connection, and when that was found.
    failure: Option<(Error, Instant)>,
    /// The session's state at the last login.
    lane_state: Option<LaneState>,
}

/// A new connection, with what is asked at login.
struct Made {
    upstream: Upstream,
    server: Option<Server>,
    lane_state: Option<LaneState>,
}

type Connecting = Pin<Box<dyn Future<Output = Result<Made, Error>> + Send>>;
type Resolving = Pin<Box<dyn Future<Output = (Result<Upstream, Error>, Outcome)> + Send>>;

enum State {
    Down,
    Connecting {
        connecting: Connecting,
        in_doubt: bool,
    },
    /// The server would refuse the connection.
    Full,
    Up {
        upstream: Box<Upstream>,
        server: Option<Server>,
        _gauge: GaugeGuard,
    },
    Resolving {
        resolving: Resolving,
        server: Option<Server>,
    },
}

impl LaneConnection {
    /// No connection yet.
    pub fn new(context: Arc<LaneContext>, kind: LaneKind, index: usize) -> Self {
        LaneConnection {
            context,
            kind,
            index,
            state: State::Down,
            server: None,
            without_since: None,
            pause: Duration::ZERO,
            number: 0,
            failure: None,
            lane_state: None,
        }
    }

    /// The session's state at login.
    pub fn lane_state(&self) -> Option<LaneState> {
        self.lane_state.clone()
    }

    /// Why there is no connection.
    pub fn failure(&self) -> Option<&Error> {
        self.failure.as_ref().map(|(error, _)| error)
    }

    /// Whether the server has just refused one more connection.
    fn is_known_full(&self) -> bool {
        let recent = Duration::from_millis(limits::RECONNECT_MAX_MS);
        self.failure.as_ref().is_some_and(|(error, at)| error.is_full() && at.elapsed() < recent)
    }

    /// The number of the connection.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    /// The connection while it is up.
    pub fn upstream(&mut self) -> Option<&mut Upstream> {
        match &mut self.state {
            State::Up { upstream, .. } => Some(upstream),
            _ => None,
        }
    }

    /// The mark of the connection that is up.
    pub fn mark(&self) -> Option<Mark> {
        match &self.state {
            State::Up { server: Some(server), .. } => server.mark.clone(),
            _ => None,
        }
    }

    /// Whether batches on the connection that is up need a BEGIN and a COMMIT of their own.
    pub fn needs_block(&self) -> bool {
        matches!(&self.state, State::Up { server: Some(Server { has_parts: true, .. }), .. })
    }

    /// Batches no longer set the mark, so it proves nothing about them.
    pub fn forget_mark(&mut self) {
        let current = match &mut self.state {
            State::Up { server, .. } | State::Resolving { server, .. } => server.as_mut(),
            State::Down | State::Full | State::Connecting { .. } => None,
        };
        self.server.iter_mut().chain(current).for_each(|server| server.mark = None);
    }

    /// Closes the connection.
    pub fn close(&mut self) {
        self.state = State::Down;
    }

    /// Begins to make a connection. It waits longer if a commit is in doubt.
    pub fn connect(&mut self, in_doubt: bool) {
        self.without_since.get_or_insert_with(Instant::now);
        if self.is_known_full() && !in_doubt {
            self.state = State::Full;
            return;
        }
        let mark = self.server.as_ref().and_then(|server| server.mark.clone());
        let connecting = make(self.context.clone(), self.kind, self.index, self.pause, in_doubt, mark);
        let longest = Duration::from_millis(limits::RECONNECT_MAX_MS);
        self.pause = (self.pause * 2).clamp(Duration::from_millis(limits::RECONNECT_MIN_MS), longest);
        self.state = State::Connecting { connecting: Box::pin(connecting), in_doubt };
    }

    /// Begins to ask for the outcome of a transaction.
    pub fn resolve(&mut self, doubt: Doubt) {
        if let State::Up { upstream, server, _gauge } = std::mem::replace(&mut self.state, State::Down) {
            let continuity = Continuity::for_doubt(doubt, self.server.as_ref(), server.as_ref());
            let question = witness::question(doubt, self.server.as_ref(), continuity);
            let rolls_back_all = witness::rolls_back_all(self.server.as_ref(), continuity);
            let deadline = Instant::now() + self.context.config().resolve_timeout();
            tracing::warn!(
                ?question,
                lane = self.index,
                ?continuity,
                server = %upstream.address,
                "a connection was lost during a commit: asking for the outcome"
            );
            let asked = ask(*upstream, question, continuity, deadline);
            let resolving = Box::pin(async move {
                match asked.await {
                    (upstream, Outcome::Aborted) if !rolls_back_all => (upstream, Outcome::Unknown),
                    known => known,
                }
            });
            self.state = State::Resolving { resolving, server };
        }
    }

    /// The next event. Cancel safe.
    pub async fn progress(&mut self, writer: &mut Writer) -> Progress {
        match &mut self.state {
            State::Down => std::future::pending().await,
            State::Full => {
                self.state = State::Down;
                Progress::ConnectFailed { give_up: true }
            }
            State::Connecting { connecting, in_doubt } => match connecting.await {
                Ok(made) => {
                    self.lane_state = made.lane_state;
                    self.up(made.upstream, made.server);
                    Progress::Connected
                }
                Err(error) => {
                    let patience = if *in_doubt {
                        self.context.config().resolve_timeout()
                    } else {
                        self.context.config().server_wait
                    };
                    let waited = self.without_since.map_or(Duration::ZERO, |since| since.elapsed());
                    let has_substitute = self.context.target.has_substitute();
                    // Sessions wait for connections that are there.
                    let others_run_it = error.is_full() && !*in_doubt || has_substitute;
                    let give_up = waited > patience || others_run_it;
                    self.context.target.lost();
                    // The loss of the server is reported once for all lanes.
                    if give_up && !error.is_full() && !has_substitute {
                        tracing::warn!(%error, lane = self.index, "no connection for a lane: its clients get an error");
                    } else {
                        tracing::debug!(%error, lane = self.index, "no connection for a lane: retrying");
                    }
                    self.failure = Some((error, Instant::now()));
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
                    _ => self.lost(),
                }
            }
            State::Resolving { resolving, server } => match resolving.await {
                (Ok(upstream), outcome) => {
                    tracing::warn!(?outcome, lane = self.index, "the outcome of the commit in doubt");
                    let server = server.take();
                    self.up(upstream, server);
                    Progress::Resolved(outcome)
                }
                (Err(_), _) => self.lost(),
            },
        }
    }

    fn up(&mut self, upstream: Upstream, server: Option<Server>) {
        self.without_since = None;
        self.pause = Duration::ZERO;
        self.failure = None;
        self.number = CONNECTIONS.fetch_add(1, SeqCst) + 1;
        self.state = State::Up { upstream: Box::new(upstream), server, _gauge: METRICS.lanes.enter() };
    }

    /// No commit is in doubt any more: later connections are compared with this connection's server.
    pub fn settle(&mut self) {
        if let State::Up { server, .. } = &self.state
            && self.server != *server
        {
            self.server.clone_from(server);
        }
    }

    fn lost(&mut self) -> Progress {
        self.state = State::Down;
        Progress::Lost
    }
}

/// Makes a connection for a lane, with its own timeouts and name, and with the mark of an earlier connection if that
/// backend has ended. If a commit is in doubt, it connects only to a primary: a standby may not have received the
/// commit yet, and could not run the batch again.
async fn make(
    context: Arc<LaneContext>,
    kind: LaneKind,
    index: usize,
    pause: Duration,
    in_doubt: bool,
    earlier: Option<Mark>,
) -> Result<Made, Error> {
    tokio::time::sleep(pause).await;
    let name = match kind {
        LaneKind::Write => format!("hotrow lane {index}"),
        LaneKind::Read => format!("hotrow read lane {index}"),
    };
    let config = context.config();
    let mut parameters = context.parameters.clone();
    parameters.retain(|(name, _)| !OWN.contains(&&**name));
    parameters.push(("application_name".to_owned(), name.clone()));
    // The server would close a lane that waits for the next unit as an idle client.
    parameters.push(("idle_session_timeout".to_owned(), "0".to_owned()));
    parameters.push(("lock_timeout".to_owned(), context.lock_timeout().as_millis().to_string()));
    let mut upstream = Upstream::connect(&config.upstream, &parameters, &context.login, in_doubt).await?;
    if !context.settings.is_empty() {
        upstream.set_settings(&context.settings, &name).await?;
    }
    if let Some((question, expected)) = context.target.expected()
        && Some(upstream.query_catalog(question, &[]).await?) != expected
    {
        let why =
            "its settings are not known to be those of the primary, or its address leads to several servers";
        return Err(Error::Protocol(why.to_owned()));
    }
    let mut server = match kind {
        LaneKind::Write => identify(&mut upstream).await?,
        LaneKind::Read => None,
    };
    if let Some(server) = &mut server {
        server.mark = marks::find(&mut upstream, &context, earlier, in_doubt).await?;
    }
    let timeout = context.statement_timeout().as_millis().to_string();
    let rows = upstream.query(include_str!("../../../sql/lane_settings.sql"), &[&timeout]).await?;
    let lane_state = match kind {
        LaneKind::Write => LaneState::ask(&mut upstream).await?,
        LaneKind::Read => None,
    };
    if let Some(server) = &mut server {
        let has_citus = rows.first().and_then(|row| row.last()?.as_deref()) != Some("f");
        server.has_parts = has_citus && context.target.has_parts();
    }
    Ok(Made { upstream, server, lane_state })
}

async fn identify(upstream: &mut Upstream) -> Result<Option<Server>, Error> {
    let life = first(upstream.query(include_str!("../../../sql/server_life.sql"), &[]).await?);
    let cluster =
        upstream.query_if_allowed(include_str!("../../../sql/cluster.sql"), &[]).await?.and_then(first);
    let log =
        upstream.query_if_allowed(include_str!("../../../sql/log_position.sql"), &[]).await?.and_then(log);
    Ok(life.map(|life| Server { life, cluster, log, mark: None, has_parts: true }))
}

/// Asks for the outcome of a transaction until it is known.
async fn ask(
    mut upstream: Upstream,
    question: Question,
    continuity: Continuity,
    deadline: Instant,
) -> (Result<Upstream, Error>, Outcome) {
    loop {
        let answer = match &question {
            Question::Nothing(outcome) => Ok(Some(*outcome)),
            Question::Status(id) => status(&mut upstream, *id, continuity).await,
            Question::AnyCommitted(ids) => none_committed(&mut upstream, ids).await.map(Some),
        };
        match answer {
            Err(error) => return (Err(error), Outcome::Unknown),
            Ok(Some(outcome)) => return (Ok(upstream), outcome),
            Ok(None) if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(10)).await,
            Ok(None) => return (Ok(upstream), Outcome::Unknown),
        }
    }
}

async fn status(upstream: &mut Upstream, id: u64, continuity: Continuity) -> Result<Option<Outcome>, Error> {
    let sql = include_str!("../../../sql/transaction_status.sql");
    let word = match upstream.query(sql, &[&id.to_string()]).await {
        Ok(rows) => xact_status(first(rows).as_deref()),
        // The server has not assigned this ID yet.
        Err(Error::Refused { code, .. }) if code == "22023" => XactStatus::NotGivenOut,
        Err(error) => return Err(error),
    };
    Ok(witness::believe(id, word, continuity))
}

async fn none_committed(upstream: &mut Upstream, ids: &Range<u64>) -> Result<Outcome, Error> {
    let sql = include_str!("../../../sql/none_committed.sql");
    let rows = upstream.query(sql, &[&ids.start.to_string(), &ids.end.to_string()]).await?;
    Ok(witness::believe_none_committed(first(rows).as_deref() == Some("t")))
}

fn log(rows: Rows) -> Option<Log> {
    let mut row = rows.into_iter().next()?.into_iter().map(|value| value?.parse().ok());
    let (checkpoint, first_id, next_id) = (row.next()?, row.next()?, row.next()?);
    Some(Log { checkpoint: checkpoint?, first_id, next_id: next_id? })
}

fn xact_status(status: Option<&str>) -> XactStatus {
    match status {
        Some("committed") => XactStatus::Committed,
        Some("aborted") => XactStatus::Aborted,
        Some("in progress") => XactStatus::InProgress,
        Some("in recovery") => XactStatus::InRecovery,
        _ => XactStatus::Forgotten,
    }
}

fn first(rows: Rows) -> Option<String> {
    rows.into_iter().next()?.into_iter().next()?
}
