//! One client's session: reads its messages, sends units that can be packed to the lanes, and passes the others through
//! on an upstream connection. It holds this connection during a transaction, or as long as state is left on it. Answers
//! keep the order of the messages.

pub mod activity;
mod block;
mod classify;
pub mod control;
mod extended;
mod forward;
mod hold;
mod names;
mod relay;
mod simple;
pub mod stop;
mod submit;
mod waiting_call;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use hotrow_core::admission::ServerSettings;
use hotrow_core::classify::Effect;
use hotrow_core::expect::Expected;
use hotrow_core::lane::LaneKind;
use hotrow_core::limits;
use hotrow_core::normalise::Normaliser;
use hotrow_core::unit::gather::Gather;
use hotrow_wire::backend::{self, Problem};
use hotrow_wire::frontend::{Parse, tag};
use hotrow_wire::{Frame, frontend, split};

use crate::lane::Message;
use crate::lane::{Backlog, Mailbox};
use crate::net::ReadHalf;
use crate::net::budget::Reservation;
use crate::pool::Pool;
use crate::session::control::Control;
use crate::session::stop::{Stage, Stop};
use crate::statements::{Named, Statement};
pub use forward::put_ready;
use hold::Holding;
use names::Naming;
pub use waiting_call::CALL_WAITS;

/// Why a session ends.
#[derive(Debug)]
pub enum SessionEnd {
    /// The client has sent Terminate or is gone.
    Client,
    /// The client gets this error and the connection is closed.
    Problem(Problem),
    /// The server has closed the connection that the session holds, and the client must get nothing more: it has the
    /// server's error, or a message was cut off.
    Server,
}

impl From<io::Error> for SessionEnd {
    fn from(_: io::Error) -> Self {
        SessionEnd::Client
    }
}

impl From<hotrow_wire::Error> for SessionEnd {
    fn from(error: hotrow_wire::Error) -> Self {
        SessionEnd::Problem(Problem::fatal(
            "08P01",
            error.to_string(),
            "The connection is closed, because later messages cannot be read reliably. Check the client's driver.",
        ))
    }
}

impl From<crate::server::held::Error> for SessionEnd {
    fn from(error: crate::server::held::Error) -> Self {
        SessionEnd::Problem(hold::problem(&error, true))
    }
}

/// Where the session's last sequence values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sequences {
    /// The session has moved no sequence.
    Untouched,
    /// On the connection that it holds.
    Here,
    /// On a connection that it does not hold.
    Elsewhere,
}

/// The session's state. One task owns it.
pub struct Session {
    pool: Arc<Pool>,
    mailbox: Arc<Mailbox>,
    control: Arc<Control>,
    read: ReadHalf,
    input: BytesMut,
    budget: Reservation,
    application_name: String,
    /// The client's name at log-in.
    first_name: String,
    normaliser: Normaliser,
    gather: Gather,
    scratch: BytesMut,
    /// The replies that its connection owes, and the meaning of the client's names of statements.
    expected: Expected<Named>,
    /// The changes of these names by unanswered units, mostly in lanes.
    naming: VecDeque<Naming>,
    /// The portals whose statements may be COPY, or concern names of statements.
    portals: BTreeMap<Bytes, Arc<Statement>>,
    /// The last simple query, which is often repeated.
    last_simple: Option<(Bytes, Arc<Statement>)>,
    /// The last parsed statement, which is often repeated.
    last_parsed: Option<Arc<Statement>>,
    holding: Option<Holding>,
    /// The state that is left on the connection that it holds.
    left: Effect,
    sequences: Sequences,
    /// It runs a unit that a lane gave back, whose client waits for this many ReadyForQuery messages.
    alone: Option<usize>,
    /// A statement ran that can change the catalogue, in a transaction whose end is not known yet.
    changes_catalogue: bool,
    /// The client's own switch `hotrow.pack`.
    pack: bool,
    /// The server's settings that the client was told, except for changes reported by a connection that it held.
    reported_settings: Arc<ServerSettings>,
    /// The lane that has units of this session.
    lane: Option<(LaneKind, usize)>,
    /// A lane has given units back to this session, and may keep state about it.
    has_returned_units: bool,
    /// A transaction with BEGIN and COMMIT was sent to a lane, and its end may be unknown.
    has_block_under_way: bool,
    /// The client has sent more after the message that is being handled.
    has_more: bool,
    /// After an error of the gateway in an extended query: messages up to the next Sync are ignored.
    skipping: bool,
    /// The session has ended: no call waits any longer.
    has_ended: bool,
    /// A call's wait was ended because the gateway stops: the session ends when it is idle.
    must_leave: bool,
    stop: Arc<Stop>,
}

/// The parts of a new session.
pub struct Start {
    /// Its pool.
    pub pool: Arc<Pool>,
    /// Its answers.
    pub mailbox: Arc<Mailbox>,
    /// Its handle for cancel requests.
    pub control: Arc<Control>,
    /// The half of the client's socket that is read.
    pub read: ReadHalf,
    /// Bytes that were read already.
    pub input: BytesMut,
    /// The client's name.
    pub application_name: String,
    /// The server's settings that the client was told.
    pub reported_settings: Arc<ServerSettings>,
    /// Whether the gateway stops. The mailbox wakes the session when this changes.
    pub stop: Arc<Stop>,
}

impl Session {
    /// A session whose client has received ReadyForQuery.
    pub fn new(start: Start) -> Self {
        Session {
            pack: true,
            reported_settings: start.reported_settings,
            pool: start.pool,
            mailbox: start.mailbox,
            control: start.control,
            read: start.read,
            input: start.input,
            budget: Reservation::default(),
            first_name: start.application_name.clone(),
            application_name: start.application_name,
            normaliser: Normaliser::new(),
            gather: Gather::default(),
            scratch: BytesMut::new(),
            expected: Expected::default(),
            naming: VecDeque::new(),
            portals: BTreeMap::new(),
            last_simple: None,
            last_parsed: None,
            holding: None,
            left: Effect::NONE,
            sequences: Sequences::Untouched,
            alone: None,
            changes_catalogue: false,
            lane: None,
            has_returned_units: false,
            has_block_under_way: false,
            has_more: false,
            skipping: false,
            has_ended: false,
            must_leave: false,
            stop: start.stop,
        }
    }

    /// Runs until the client leaves or has to leave.
    pub async fn run(mut self) {
        let mut end = self.serve().await;
        if self.holding.as_ref().is_some_and(|holding| holding.message_bytes_left > 0) {
            end = Err(SessionEnd::Server); // no reason can be reported in the middle of a message
        }
        self.has_ended = true;
        self.disconnect(); // not given back: the server rolls back an open transaction
        let patience = self.pool.config().drain_timeout;
        if !matches!(end, Err(SessionEnd::Server)) {
            // Units in lanes are answered first, also to a client that only sends no more.
            let _ = tokio::time::timeout(patience, self.drain_lanes()).await;
        }
        self.disconnect();
        if let Err(SessionEnd::Problem(problem)) = &end {
            self.mailbox.append(|out| problem.put(out));
        }
        let _ = tokio::time::timeout(patience, self.flush_to_client()).await;
        if self.has_returned_units {
            let session = self.mailbox.session;
            self.pool.send_all(|| Message::Gone(session));
        }
        self.mailbox.close();
        if let Err(SessionEnd::Problem(problem)) = end {
            tracing::debug!(
                session = self.mailbox.session,
                code = problem.code,
                message = problem.message,
                "a client's session ended with an error"
            );
        }
    }

    async fn serve(&mut self) -> Result<(), SessionEnd> {
        loop {
            self.take_frames().await?;
            let left = self.mailbox.try_write()?;
            if self.holding.is_some() {
                self.relay_once(left.unread).await?;
            } else {
                self.wait(left).await?;
            }
        }
    }

    /// Waits without a connection for the client, for a lane, or for the end.
    async fn wait(&mut self, Backlog { unread, pending, is_full }: Backlog) -> Result<(), SessionEnd> {
        let stage = self.stop.stage();
        if (stage == Stage::Leaving || self.must_leave) && self.gather.is_empty() {
            self.drain_lanes().await?;
            return Err(SessionEnd::Problem(stopping()));
        }
        let silent = stage == Stage::TakenOver && self.gather.is_empty() && pending == 0;
        let room = !is_full;
        let watched = !room || stage == Stage::TakenOver;
        if watched {
            self.mailbox.watch(true);
        }
        tokio::select! {
            biased;
            () = self.mailbox.task_notify.notified() => {}
            count = self.read.fill(&mut self.input), if room => {
                if count? == 0 {
                    return Err(SessionEnd::Client);
                }
                return Ok(());
            }
            writable = self.mailbox.write.writable(), if unread > 0 => writable?,
            () = silence(), if silent => {
                return Err(SessionEnd::Problem(stopping()));
            }
        }
        if watched {
            self.mailbox.watch(false);
        }
        if self.mailbox.has_returned() {
            self.drain_lanes().await?;
        }
        Ok(())
    }

    /// Handles all complete messages that have arrived.
    async fn take_frames(&mut self) -> Result<(), SessionEnd> {
        if self.input.is_empty() {
            return self.keep_budget();
        }
        // The input is moved out of the session, which can then be changed while its messages are read.
        let mut input = std::mem::take(&mut self.input);
        let mut taken = 0;
        let result = self.take_whole_frames(&input, &mut taken).await;
        if taken == input.len() {
            input.clear();
        } else {
            input.advance(taken);
        }
        input.extend_from_slice(&self.input); // bytes that arrived while a call waited
        self.input = input;
        result?;
        self.keep_budget()
    }

    /// Reports changed settings of the server to the client, as the server would with its next answer. A client whose
    /// session holds a connection gets them from that connection.
    fn report_settings(&mut self) {
        if self.holding.is_some() {
            return;
        }
        let Some(newer) = self.pool.newer_settings(&self.reported_settings) else { return };
        for (name, value) in newer.changed_since(&self.reported_settings) {
            self.mailbox.append_in_turn(|out| backend::put_parameter_status(out, name, value));
        }
        self.reported_settings = newer;
    }

    async fn take_whole_frames(&mut self, input: &[u8], taken: &mut usize) -> Result<(), SessionEnd> {
        let since = Instant::now();
        self.control.activity.message_received(since);
        self.report_settings();
        let large = self.pool.config().message_bytes_max;
        let bytes_max = |tag| frontend::bytes_max(tag, limits::SMALL_MESSAGE_BYTES_MAX, large);
        loop {
            let wait = match &self.holding {
                Some(holding) => holding.is_full(),
                None => self.mailbox.is_full(),
            };
            let rest = &input[*taken..];
            let Some(tag) = rest.first().filter(|_| !wait) else { return Ok(()) };
            frontend::check_tag(*tag)?;
            let Some(frame) = split(rest, bytes_max)? else { return Ok(()) };
            if frame.bytes.len() > limits::CLASSIFIED_INLINE_BYTES_MAX {
                Box::pin(self.classify_long(frame)).await?;
            }
            if self.is_in_doubt(frame) {
                return Ok(()); // until the server has answered more
            }
            if block::may_begin(frame, rest) {
                // The future is boxed, so sessions that do not need it, idle ones above all, have no memory for it.
                let block = Box::pin(self.block(rest, since)).await?;
                if block > 0 {
                    *taken += block;
                    continue;
                }
            }
            *taken += frame.bytes.len();
            self.has_more = *taken < input.len();
            self.take_frame(frame, &input[*taken..], since).await?;
        }
    }

    /// Handles a message. `behind` is the input after it.
    async fn take_frame(
        &mut self,
        frame: Frame<'_>,
        behind: &[u8],
        since: Instant,
    ) -> Result<(), SessionEnd> {
        if frame.tag == tag::TERMINATE {
            self.finish().await;
            return Err(SessionEnd::Client);
        }
        let is_password = frame.tag == tag::PASSWORD;
        if is_password && self.holding.is_none() && self.gather.is_empty() {
            return Err(hotrow_wire::Error::UnknownTag(frame.tag).into());
        }
        if self.skipping {
            if frame.tag == tag::SYNC {
                self.skipping = false;
                self.ready_in_turn();
            }
            return Ok(());
        }
        if self.holding.is_some() {
            return self.forward(frame).await;
        }
        match frame.tag {
            tag::QUERY => self.query(frame, since).await,
            tag::SYNC => self.sync(frame, since).await,
            // The whole unit is there and is always passed through, so it needs no gathering.
            tag::PARSE | tag::BIND
                if behind.ends_with(frontend::SYNC) && self.begins_passed(frame, since)? =>
            {
                self.pass_first(frame, behind).await
            }
            tag::PARSE | tag::BIND | tag::DESCRIBE | tag::EXECUTE | tag::CLOSE => {
                self.gather.push(frame);
                if self.gather.bytes() > limits::UNIT_BYTES_MAX { self.pass_gathered().await } else { Ok(()) }
            }
            // Some drivers send Flush and Sync together. This is the same as a Sync.
            tag::FLUSH if behind.first() == Some(&tag::SYNC) => Ok(()),
            tag::FLUSH if self.gather.is_empty() => Ok(()),
            tag::FLUSH => self.pass_gathered_with(frame).await,
            // The gathered messages may contain a COPY, a FunctionCall runs after them, and the server rejects a password.
            tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL | tag::FUNCTION_CALL | tag::PASSWORD
                if !self.gather.is_empty() =>
            {
                self.pass_gathered_with(frame).await
            }
            tag::FUNCTION_CALL => match self.acquire_connection().await {
                Ok(()) => self.forward(frame).await,
                Err(SessionEnd::Problem(problem)) if !problem.fatal => {
                    self.refuse_query(&problem);
                    Ok(())
                }
                Err(end) => Err(end),
            },
            // COPY data outside a COPY are ignored, as by PostgreSQL.
            _ => Ok(()),
        }
    }

    /// Large messages and answers of all clients share one budget.
    fn keep_budget(&mut self) -> Result<(), SessionEnd> {
        let bytes = self.input.capacity() + self.gather.bytes();
        if self.input.is_empty() && self.input.capacity() > limits::SESSION_BUFFER_BYTES {
            self.input = BytesMut::new();
        }
        if self.budget.resize(bytes) {
            return Ok(());
        }
        Err(SessionEnd::Problem(Problem::fatal(
            "53200",
            "the gateway's memory for messages is used up",
            "Send smaller messages, or fewer large ones at once.",
        )))
    }

    /// Waits until all units in lanes are answered, and runs alone those that a lane gives back. After that the meaning
    /// of all names is known.
    async fn drain_lanes(&mut self) -> Result<(), SessionEnd> {
        if self.mailbox.pending() == 0 {
            self.settle_names();
            return Ok(());
        }
        self.mailbox.watch(true);
        while self.mailbox.pending() > 0 {
            match self.mailbox.take_returned() {
                Some((slot, returned)) => self.handle_returned(slot, returned).await?,
                None => self.mailbox.task_notify.notified().await,
            }
        }
        self.mailbox.watch(false);
        self.settle_names();
        Ok(())
    }

    /// Waits until the client has read enough to get more.
    async fn wait_for_room(&mut self) -> Result<(), SessionEnd> {
        while self.mailbox.try_write()?.unread > 0 && self.mailbox.is_overfull(0) {
            if self.stop.stage() == Stage::Leaving && !self.has_ended {
                return Err(SessionEnd::Problem(stopping()));
            }
            tokio::select! {
                writable = self.mailbox.write.writable() => writable?,
                () = self.mailbox.task_notify.notified() => {} // the gateway may stop
            }
        }
        Ok(())
    }

    /// Waits until the client's socket has taken all answers.
    async fn flush_to_client(&mut self) -> Result<(), SessionEnd> {
        while self.mailbox.try_write()?.unread > 0 {
            self.mailbox.write.writable().await?;
        }
        Ok(())
    }

    /// The statement of a Parse.
    fn parsed_statement(&mut self, parse: &Parse<'_>) -> Arc<Statement> {
        if let Some(statement) = &self.last_parsed
            && statement.text == parse.text
            && statement.types == parse.types
            && statement.is_current()
        {
            return statement.clone();
        }
        let statement = self.pool.context.statements.extended(parse.text, parse.types);
        self.last_parsed = Some(statement.clone());
        statement
    }

    /// Whether the session may send anything to a lane.
    fn packs(&self) -> bool {
        self.pack && !self.left.pins() && self.pool.packs()
    }

    /// Sets the connection for cancel requests. Returns whether the session was cancelled while it waited for the
    /// connection.
    fn update_cancel_target(&self) -> bool {
        let target = self.holding.as_ref().map(|holding| holding.backend_key());
        self.control.set_target(target)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.mailbox.close();
    }
}

/// The error for a client that cannot log in because the gateway has no connection for it.
pub fn no_connection(error: &crate::server::held::Error) -> Problem {
    hold::log_in_problem(error)
}

/// Waits long enough for a client that has just connected to send its first message.
async fn silence() {
    tokio::time::sleep(Duration::from_millis(limits::HANDED_QUIET_MS)).await;
}

/// The error for a client whose secrets cannot be made.
pub fn no_random_numbers() -> Problem {
    Problem::fatal(
        "XX000",
        "the gateway cannot make a secret for this connection: the system gives no random numbers",
        "Check getrandom on the gateway's machine; the gateway's log has the system's error.",
    )
}

/// The error for a client when the gateway stops.
pub fn stopping() -> Problem {
    Problem::fatal("57P01", "terminating connection because the gateway is shutting down", "Connect again.")
}
