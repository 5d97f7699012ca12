//! The gateway's sessions that all HTTP requests share. They are opened when needed, reopened when lost, and pipelined. The
//! areas decide the calls.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, pending};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::limits;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio::net::UnixStream;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, watch};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, WrongType};
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

use crate::answer::{Answer, Answered};
use crate::calls::{Call, Effect};
use crate::columns;
use crate::problem::Problem;
use crate::room::{self, Room};
use crate::sqlstate;

/// Makes a new client of the gateway.
pub type Connector = Arc<dyn Fn() -> io::Result<UnixStream> + Send + Sync>;

/// The gateway, and the user of all calls.
pub struct GatewayAccess {
    /// Connects a new client to the gateway.
    pub connect: Connector,
    /// The user of all calls.
    pub user: String,
    /// The database of all calls.
    pub database: String,
    /// A query that returns whether this user can trust the installed hotrow schema. Its parameters are this user and two texts,
    /// which are empty here.
    pub pack_trusted: &'static str,
    /// A query that returns the functions of an array that this user cannot execute.
    pub missing_functions: &'static str,
    /// The sender is dropped when the server is told to stop. Requests that wait for an order are then answered.
    pub stop: watch::Receiver<()>,
}

/// One parameter of a call.
pub type Value = Box<dyn ToSql + Sync + Send>;

/// The parameters of a call.
macro_rules! values {
    ($($value:expr),*) => { vec![$(Box::new($value) as $crate::clients::Value),*] };
}
pub(crate) use values;

/// The group of sessions that a call uses. Calls that contend for a row have the same.
#[derive(Clone, Copy, Debug)]
pub struct Key(usize);

impl Key {
    /// The key of a counter, an item or a reservation: the bytes of its parameter.
    pub fn of(name: &(impl Hash + ?Sized)) -> Self {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        Key((hasher.finish() % limits::HTTP_GROUPS as u64) as usize)
    }
}

/// The sessions of calls that wait.
pub struct Waits {
    idle: Mutex<Vec<Slot>>,
    /// One permit for each call that can wait.
    pub room: Arc<Semaphore>,
}

impl Default for Waits {
    fn default() -> Self {
        Waits { idle: Mutex::default(), room: Arc::new(Semaphore::new(limits::HTTP_WAITS_MAX)) }
    }
}

impl Waits {
    /// An idle session, or a new one.
    pub fn slot(&self) -> Slot {
        self.lock().pop().unwrap_or_default()
    }

    /// Keeps a session for the next call that waits.
    pub fn keep(&self, slot: Slot) {
        let mut idle = self.lock();
        if idle.len() < limits::HTTP_WAIT_SESSIONS_KEPT {
            idle.push(slot);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All sessions. Merged calls have sessions of their own: a call sent after one that is passed through would be passed through
/// too.
pub struct Clients {
    merged: Vec<Group>,
    others: Vec<Group>,
    pub(crate) waits: Waits,
    pub(crate) batches: Arc<Semaphore>,
    connect: Connector,
    config: Config,
    /// A query about the owner of the hotrow schema's functions. Each session runs it before its first call.
    pack_trusted: &'static str,
    /// A query about functions, for the check whether the API can serve.
    pub(crate) missing_functions: &'static str,
    room: Arc<Semaphore>,
    /// The room for answers that clients have not read.
    pub(crate) answers: Arc<Semaphore>,
    stop: watch::Receiver<()>,
}

/// All sessions and the room for the answer, as the router passes them to the function of a route.
pub struct Sessions {
    clients: Arc<Clients>,
    pub(crate) room: Room,
}

impl FromRequestParts<Arc<Clients>> for Sessions {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, clients: &Arc<Clients>) -> Result<Self, Infallible> {
        let connection = parts.extensions.get().cloned().unwrap_or_default();
        Ok(Sessions { clients: clients.clone(), room: Room::new(&connection, &clients.answers) })
    }
}

impl Deref for Sessions {
    type Target = Arc<Clients>;

    fn deref(&self) -> &Arc<Clients> {
        &self.clients
    }
}

impl Sessions {
    /// The row of a call that returns one row or none. The answer is expected to have this number of bytes.
    pub async fn row(
        &self,
        call: Call,
        key: Key,
        values: Vec<Value>,
        bytes: usize,
    ) -> Result<Option<Answer>, Problem> {
        let held = self.room.reserve(bytes).await?;
        let (mut rows, held) = self.rows_with(held, call, key, values).await?;
        Ok(rows.pop().map(|row| Answer::Row(row, held)))
    }

    /// The rows of a call, under a name. The answer is expected to have this number of bytes.
    pub async fn list(
        &self,
        name: &'static str,
        call: Call,
        key: Key,
        values: Vec<Value>,
        bytes: usize,
    ) -> Answered {
        let held = self.room.reserve(bytes).await?;
        let (rows, held) = self.rows_with(held, call, key, values).await?;
        Ok(Answer::Rows(name, rows, held))
    }
}

/// The permits that a call holds while it is under way.
pub type Permits = (OwnedSemaphorePermit, OwnedSemaphorePermit);

/// Sessions that share the calls of some keys. Answers come in the order of the calls, so a call that waits for a lock holds
/// up later calls: at worst its whole group.
struct Group {
    slots: Vec<Slot>,
    room: Arc<Semaphore>,
}

/// The place of one session.
#[derive(Default)]
pub(crate) struct Slot {
    session: tokio::sync::Mutex<Option<Arc<Session>>>,
    under_way: AtomicUsize,
}

struct Session {
    client: Client,
    prepared: Mutex<HashMap<&'static str, Arc<OnceCell<Statement>>>>,
}

/// Counts a call for as long as it is under way.
struct UnderWay<'a>(&'a Slot);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Relaxed);
    }
}

impl Clients {
    /// No session is opened yet.
    pub fn new(upstream: &GatewayAccess) -> Self {
        let GatewayAccess { connect, user, database, pack_trusted, missing_functions, stop } = upstream;
        let mut config = Config::new();
        config.user(user).dbname(database).application_name("hotrow http");
        let groups = || (0..limits::HTTP_GROUPS).map(|_| Group::new()).collect();
        let room = Arc::new(Semaphore::new(limits::HTTP_REQUESTS_MAX));
        let batches = Arc::new(Semaphore::new(limits::HTTP_BATCHES_MAX));
        let (merged, others, waits) = (groups(), groups(), Waits::default());
        let (connect, stop) = (connect.clone(), stop.clone());
        Clients {
            merged,
            others,
            waits,
            batches,
            connect,
            config,
            pack_trusted,
            missing_functions,
            room,
            answers: room::of_all_connections(),
            stop,
        }
    }

    /// Returns the rows of a call.
    pub async fn rows(
        self: &Arc<Self>,
        call: Call,
        key: Key,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, Problem> {
        self.rows_with((), call, key, values).await.map(|(rows, ())| rows)
    }

    /// Returns the rows of a call, with the room for them. The call runs to its end even if its client has gone, and is
    /// counted and has its room until then.
    async fn rows_with<R: Send + 'static>(
        self: &Arc<Self>,
        room: R,
        call: Call,
        key: Key,
        values: Vec<Value>,
    ) -> Result<(Vec<Row>, R), Problem> {
        let permits = self.admit_to(call, key)?;
        let clients = self.clone();
        let answer = tokio::spawn(async move {
            let _permits = permits;
            clients.share(call, key, values).await.map(|rows| (rows, room))
        });
        // The call was sent by then, or was given up.
        let limit = Duration::from_millis(limits::HTTP_SEND_TIMEOUT_MS + limits::HTTP_ANSWER_TIMEOUT_MS);
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) => Err(Problem::internal(&error)),
            Err(_) => Err(sqlstate::lost(call.effect != Effect::Reads, "the answer did not arrive in time")),
        }
    }

    fn groups(&self, effect: Effect) -> &[Group] {
        if effect == Effect::Merged { &self.merged } else { &self.others }
    }

    /// Admits one more call, if the limits of all calls and of this kind of call allow it.
    pub(crate) fn admit(&self, room: &Arc<Semaphore>) -> Result<Permits, Problem> {
        match (self.room.clone().try_acquire_owned(), room.clone().try_acquire_owned()) {
            (Ok(of_all), Ok(of_kind)) => Ok((of_all, of_kind)),
            _ => Err(Problem::full()),
        }
    }

    /// Admits one more call to the sessions that it shares.
    pub(crate) fn admit_to(&self, call: Call, key: Key) -> Result<Permits, Problem> {
        self.admit(&self.groups(call.effect)[key.0].room)
    }

    /// Ready when the server is told to stop.
    pub(crate) fn stopping(&self) -> impl Future<Output = ()> + use<> {
        let mut stop = self.stop.clone();
        async move {
            let _ = stop.changed().await; // nothing is ever sent: only the drop of the sender ends the wait
        }
    }

    /// Runs a call on one of the sessions that calls of its key share.
    pub(crate) async fn share(&self, call: Call, key: Key, values: Vec<Value>) -> Result<Vec<Row>, Problem> {
        let (slot, _under_way) = self.groups(call.effect)[key.0].choose();
        self.run(slot, call, values, pending()).await
    }

    /// Runs a call on this session. If `ended` is ready first, the call is cancelled. A cancelled call that has found nothing
    /// returns no rows.
    pub(crate) async fn run(
        &self,
        slot: &Slot,
        call: Call,
        values: Vec<Value>,
        ended: impl Future<Output = ()>,
    ) -> Result<Vec<Row>, Problem> {
        let limit = Duration::from_millis(limits::HTTP_SEND_TIMEOUT_MS);
        let prepared = tokio::time::timeout(limit, self.prepare(slot, call)).await;
        let (session, statement) =
            prepared.unwrap_or_else(|_| Err(sqlstate::away("no connection within the time limit")))?;
        let writes = call.effect != Effect::Reads;
        let parameters: Vec<_> = values.iter().map(|value| value.as_ref() as &(dyn ToSql + Sync)).collect();
        let mut answer = std::pin::pin!(session.client.query(&statement, &parameters));
        let mut cancelled = false;
        let result = tokio::select! {
            result = &mut answer => result,
            () = ended => {
                cancelled = true;
                self.cancel(slot, &session).await;
                answer.await
            }
        };
        let error = match result {
            Ok(rows) => return Ok(rows),
            Err(error) if cancelled && error.code() == Some(&SqlState::QUERY_CANCELED) => {
                return Ok(Vec::new());
            }
            Err(error) => error,
        };
        let Some(report) = error.as_db_error() else {
            tracing::debug!(%error, call = call.sql, "no answer");
            let mismatch = error.source().is_some_and(|source| source.is::<WrongType>());
            if mismatch {
                slot.leave(&session).await;
                return Err(sqlstate::mismatch(&error)); // detected before anything was sent
            }
            return Err(sqlstate::lost(writes, "the session ended before the answer arrived"));
        };
        if sqlstate::is_outdated(report) {
            slot.leave(&session).await;
        }
        Err(sqlstate::refused(report, writes))
    }

    /// Cancels the calls under way in a session and leaves the session, because the cancel request can arrive at any later
    /// time.
    async fn cancel(&self, slot: &Slot, session: &Arc<Session>) {
        slot.leave(session).await;
        let Ok(stream) = (self.connect)() else { return };
        if let Err(error) = session.client.cancel_token().cancel_query_raw(stream, NoTls).await {
            tracing::debug!(%error, "a call could not be cancelled: it ends when its time is over");
        }
    }

    async fn prepare(&self, slot: &Slot, call: Call) -> Result<(Arc<Session>, Statement), Problem> {
        let session = self.session(slot).await?;
        let cell = {
            let mut prepared = session.prepared.lock().unwrap_or_else(PoisonError::into_inner);
            prepared.entry(call.sql).or_default().clone()
        };
        let statement = cell.get_or_try_init(|| session.client.prepare(call.sql)).await;
        let statement = statement.map_err(|error| sqlstate::not_sent(&error))?.clone();
        // Detected before execution, because the answer could not be written.
        if let Some(column) = columns::unknown(statement.columns()) {
            slot.leave(&session).await;
            return Err(sqlstate::unknown_column(column));
        }
        Ok((session, statement))
    }

    /// Returns the slot's session, or a new one if it is lost.
    async fn session(&self, slot: &Slot) -> Result<Arc<Session>, Problem> {
        let mut place = slot.session.lock().await;
        if let Some(session) = place.as_ref().filter(|session| !session.client.is_closed()) {
            return Ok(session.clone());
        }
        let stream = (self.connect)().map_err(|error| sqlstate::away(&error.to_string()))?;
        let connected = self.config.connect_raw(stream, NoTls).await;
        let (client, connection) = connected.map_err(|error| sqlstate::not_sent(&error))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a session of the HTTP side has ended");
            }
        });
        let user = self.config.get_user().unwrap_or_default();
        let trusted = client.query(self.pack_trusted, &[&user, &"", &""]).await;
        let trusted = trusted.map_err(|error| sqlstate::not_sent(&error))?;
        let says = |column: usize| trusted.first().and_then(|row| row.try_get(column).ok().flatten());
        if says(0) != Some(true) {
            let database = self.config.get_dbname().unwrap_or_default();
            return Err(match says(1) {
                Some(true) => sqlstate::untrusted(user),
                _ => sqlstate::not_installed(database),
            });
        }
        let session = Arc::new(Session { client, prepared: Mutex::default() });
        *place = Some(session.clone());
        Ok(session)
    }
}

impl Group {
    fn new() -> Self {
        Group {
            slots: (0..limits::HTTP_GROUP_SESSIONS).map(|_| Slot::default()).collect(),
            room: Arc::new(Semaphore::new(limits::HTTP_GROUP_REQUESTS_MAX)),
        }
    }

    /// Chooses the slot with the fewest calls under way, and an idle one before a new one is opened.
    fn choose(&self) -> (&Slot, UnderWay<'_>) {
        let slot = self
            .slots
            .iter()
            .min_by_key(|slot| slot.under_way.load(Relaxed))
            .expect("there is at least one session");
        slot.under_way.fetch_add(1, Relaxed);
        (slot, UnderWay(slot))
    }
}

impl Slot {
    /// Makes the next call open a new session. This session ends after the calls on it have their answers.
    async fn leave(&self, session: &Arc<Session>) {
        let mut place = self.session.lock().await;
        if place.as_ref().is_some_and(|there| Arc::ptr_eq(there, session)) {
            *place = None;
        }
    }
}

/// Returns the row of a call that always returns one row.
pub async fn one(sessions: &Sessions, call: Call, key: Key, values: Vec<Value>) -> Answered {
    let answer = sessions.row(call, key, values, limits::HTTP_ROW_BYTES).await?;
    answer.ok_or_else(|| Problem::internal(&format_args!("no row came from {}", call.sql)))
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    use super::*;

    const CALL: Call = Call { sql: "select 1", effect: Effect::Merged };

    #[tokio::test]
    async fn a_request_over_the_limit_is_refused_and_an_abandoned_one_still_counts() {
        let (held, mut taken) = tokio::sync::mpsc::unbounded_channel();
        let connect: Connector = Arc::new(move || {
            let (ours, theirs) = UnixStream::pair()?;
            held.send(theirs).map_err(io::Error::other)?;
            Ok(ours)
        });
        let (_stop, stopped) = watch::channel(());
        let (user, database) = ("ann".to_owned(), "shop".to_owned());
        let upstream = GatewayAccess {
            connect,
            user,
            database,
            pack_trusted: "select true",
            missing_functions: "select 1",
            stop: stopped,
        };
        let mut clients = Clients::new(&upstream);
        clients.room = Arc::new(Semaphore::new(1));
        let clients = Arc::new(clients);
        let waiting = tokio::spawn({
            let clients = clients.clone();
            async move { clients.rows(CALL, Key::of("a"), Vec::new()).await.is_ok() }
        });
        let gateway = taken.recv().await.unwrap();
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        let refused = clients.rows(CALL, Key::of("a"), Vec::new()).await.unwrap_err().into_response();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["retry-after"], "1");
        drop(gateway);
        let _room_again = clients.room.acquire().await.unwrap();
    }
}
