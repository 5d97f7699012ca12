//! The task of one client's session. It reads and writes the client's socket and the held connection, and provides
//! what the session needs. `hotrow_core::session` decides everything else.
//!
//! Futures are moved, and thus copied, before they run. What is large and seldom awaited is boxed where it begins, because a
//! session that waits for a connection does so for each statement.

#![warn(clippy::large_futures)]

pub mod activity;
mod classify;
mod client;
pub mod control;
mod environment;
mod gone;
mod held;
mod membership;
mod notifications;
pub mod problems;
mod provide;
pub mod state;
mod state_left;
pub mod stop;
mod waiting_call;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use hotrow_connect::lock::Lock;
use hotrow_connect::net::ReadHalf;
use hotrow_core::admission::ReportedSettings;
use hotrow_core::limits;
use hotrow_core::session::{self, Session, SessionEnd, Stage, SwitchValues, Wait};
use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;

use crate::lane::Mailbox;
use crate::mailbox::Backlog;
use crate::net::budget::Reservation;
use crate::pool::directory::Directory;
use crate::pool::pools::PoolUse;
use crate::pool::{Member, Pool};
use crate::session::client::client_gone;
use crate::session::control::Control;
use crate::session::environment::Environment;
use crate::session::problems::{killed, left_behind, stopping};
use crate::session::stop::Stop;

/// What a session needs.
type Need = session::Need<Environment>;

/// The task's state.
pub struct SessionTask {
    session: Session<Environment>,
    pool: Arc<Pool>,
    /// Keeps the pool open, and counts the client there.
    membership: Membership,
    mailbox: Arc<Mailbox>,
    control: Arc<Control>,
    read: ReadHalf,
    input: BytesMut,
    budget: Reservation,
    stop: Arc<Stop>,
    /// Number of its units when it entered the pool.
    units_before: u64,
    /// Number of times that it has changed its pool.
    moves: usize,
    /// The client has gone, and what it waited for was cancelled.
    is_gone: bool,
}

/// A session's place in its pool.
type Membership = (PoolUse, Member);

/// The parts of a new session.
pub struct Start {
    /// Its pool, and its place there.
    pub membership: Membership,
    /// All pools, for a session that changes its settings.
    pub directory: Arc<Directory>,
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
    /// Its values of the gateway's settings.
    pub switches: SwitchValues,
    /// The server's settings that the client was told.
    pub reported: ReportedSettings,
    /// Whether the gateway stops. The mailbox wakes the session when this changes.
    pub stop: Arc<Stop>,
}

impl SessionTask {
    /// For a client that has received ReadyForQuery.
    pub fn new(start: Start) -> Self {
        let Start { membership, mailbox, control, .. } = start;
        let pool = membership.0.pool().clone();
        let environment = Environment {
            pool: pool.clone(),
            directory: start.directory,
            mailbox: mailbox.clone(),
            control: control.clone(),
            since: Instant::now(),
            looked_for_room: Instant::now(),
            subscription: None,
            reported: start.reported,
            undecided: Lock::default(),
            shadowed: None,
        };
        SessionTask {
            session: Session::new(environment, start.application_name, start.switches),
            pool,
            membership,
            mailbox,
            control,
            read: start.read,
            input: start.input,
            budget: Reservation::default(),
            stop: start.stop,
            units_before: 0,
            moves: 0,
            is_gone: false,
        }
    }

    /// Runs until the client leaves or has to leave. It borrows the session: a future that takes its argument keeps it twice,
    /// and each client has one.
    pub async fn run(&mut self) {
        let end = loop {
            if let Err(end) = self.go_on().await {
                break end;
            }
        };
        let end = self.session.leave(end);
        let patience = self.pool.config().drain_timeout;
        if !matches!(end, SessionEnd::Server) {
            // Units in lanes are answered first, also to a client that only sends no more.
            let _ = tokio::time::timeout(patience, self.settle()).await;
        }
        self.session.end();
        if let SessionEnd::Problem(problem) = &end {
            self.mailbox.answers(|answers| answers.append(|out| problem.put(out)));
        }
        let _ = tokio::time::timeout(patience, self.flush_to_client()).await;
        // In this order: a lane that gives back a unit later finds the mailbox closed, and forgets the session itself.
        self.mailbox.close();
        self.leave_lanes();
        if let SessionEnd::Problem(problem) = end {
            tracing::debug!(
                session = self.mailbox.session,
                code = problem.code.code(),
                message = problem.message,
                "a client's session ended with an error"
            );
        }
    }

    /// Handles what is there, and provides what the session needs then.
    async fn go_on(&mut self) -> Result<(), SessionEnd> {
        if self.control.is_killed() {
            return Err(SessionEnd::Problem(killed()));
        }
        if self.holds_left_behind() {
            return Err(SessionEnd::Problem(left_behind()));
        }
        match self.step() {
            Ok(Need::Event) => self.wait_for_event().await,
            Ok(need) => self.provide(need).await,
            Err(SessionEnd::Server) => Err(SessionEnd::Server),
            // The client has sent Terminate, or a message that cannot be read: its earlier messages are still run and
            // answered.
            Err(end) => match self.finish().await {
                // No reason can be reported in the middle of a message.
                Err(SessionEnd::Server) => Err(SessionEnd::Server),
                Ok(()) | Err(_) => Err(end),
            },
        }
    }

    fn step(&mut self) -> Result<Need, SessionEnd> {
        let mut taken = 0;
        let need = self.session.step(&self.input, &mut taken);
        if taken == self.input.len() {
            self.input.clear();
        } else {
            self.input.advance(taken);
        }
        let need = need?;
        self.keep_budget()?;
        Ok(need)
    }

    async fn wait_for_event(&mut self) -> Result<(), SessionEnd> {
        let left = self.try_write()?;
        if self.session.is_held_up() && !left.is_full {
            return Ok(()); // the client has read: it gets more
        }
        let waits = self.session.waits(self.stop.stage(), &self.input);
        // A cancel request that has waited is for what the client has sent before it.
        if self.control.is_awaited() && waits == Wait::Event && !left.is_full && self.read_now().await {
            return Ok(());
        }
        self.control.at_events();
        match waits {
            Wait::Event if self.session.connection().is_some() => self.relay_once(left.unread).await,
            Wait::Event => self.wait(left, false).await,
            Wait::Moment => self.wait(left, true).await,
            Wait::Reply => self.relay_alone(left.unread).await,
            Wait::Lanes => self.next_from_lanes().await,
            Wait::Room => self.wait_for_room().await,
            Wait::Finish => {
                let _ = self.finish().await;
                Err(SessionEnd::Client)
            }
            Wait::Stop => Err(SessionEnd::Problem(stopping())),
        }
    }

    /// Waits without a connection for the client, for a lane, or for the end.
    async fn wait(&mut self, left: Backlog, ends_if_silent: bool) -> Result<(), SessionEnd> {
        let Backlog { unread, is_full, .. } = left;
        self.control.activity.set_begun(self.session.begun_status());
        let room = !is_full;
        let watched = !room || self.stop.stage() == Stage::TakenOver;
        if watched {
            self.mailbox.watch(true);
        }
        tokio::select! {
            biased;
            () = self.mailbox.task_notify.notified() => {}
            count = self.read.fill(&mut self.input), if room => return self.received(&count),
            writable = self.mailbox.write.writable(), if unread > 0 => writable.map_err(client_gone)?,
            () = silence(), if ends_if_silent => return Err(SessionEnd::Problem(stopping())),
        }
        if watched {
            self.mailbox.watch(false);
        }
        Ok(())
    }

    /// Large messages and answers of all clients share one budget.
    fn keep_budget(&mut self) -> Result<(), SessionEnd> {
        let bytes = self.input.capacity() + self.session.gathered_bytes();
        if self.input.is_empty() && self.input.capacity() > limits::SESSION_BUFFER_BYTES {
            self.input = BytesMut::new();
        }
        if self.budget.resize(bytes) {
            return Ok(());
        }
        Err(SessionEnd::Problem(Problem::fatal(
            SqlState::OutOfMemory,
            "the gateway's memory for messages is used up",
            "Send smaller messages, or fewer large ones at the same time.",
        )))
    }
}

impl Drop for SessionTask {
    fn drop(&mut self) {
        self.leaves_pool(0);
        self.mailbox.close();
        self.control.ended();
    }
}

/// Waits long enough for a client that has just connected to send its first message.
async fn silence() {
    tokio::time::sleep(Duration::from_millis(limits::HANDED_QUIET_MS)).await;
}
