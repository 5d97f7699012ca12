//! Acquires an upstream connection for a session, and gives it back when no state is left on it.

use std::sync::Arc;

use hotrow_core::classify::Effect;
use hotrow_core::limits;
use hotrow_wire::backend::{Problem, Status};

use super::{Sequences, Session, SessionEnd};
use crate::lane::Envelope;
use crate::lane::cancelled;
use crate::metrics::METRICS;
use crate::server::held::{self, HeldConnection};
use crate::server::upstream;
use crate::session::control::BackendKey;
use crate::statements::Statement;
use hotrow_core::unit::put_refusals;

/// A connection that the session holds, with the state of its work.
pub struct Holding {
    pub(super) held: HeldConnection,
    /// The state that the unit under way clears if it succeeds.
    pub(super) clears: Effect,
    /// The unit under way has failed.
    pub(super) failed: bool,
    /// The status in the last ReadyForQuery.
    pub(super) status: Status,
    /// Missing bytes of a message that is relayed in pieces.
    pub(super) message_bytes_left: usize,
    /// A statement without credit that runs now: its success earns credit.
    pub(super) earning_credit: Option<Arc<Statement>>,
    /// The connection must be closed instead of given back.
    pub(super) must_close: bool,
    /// A statement ran that may have left state: the server is queried before another session gets the connection.
    pub(super) unproven: bool,
    /// A statement ran that may have released advisory locks.
    pub(super) may_unlock: bool,
    /// The gateway has prepared a statement again that the client had prepared before.
    pub(super) prepared_anew: bool,
    /// The client's name, or all its settings, were reset in this unit.
    pub(super) name_reset: bool,
    /// A ReadyForQuery that the client gets after its name is restored.
    pub(super) delayed_ready: Option<Status>,
}

impl Holding {
    /// Whether so much output waits for the server that the client has to wait too.
    pub fn is_full(&self) -> bool {
        self.held.upstream.output.len() > limits::UNREAD_BYTES_MAX
    }

    /// The backend that works for the session.
    pub fn backend_key(&self) -> BackendKey {
        let upstream = &self.held.upstream;
        BackendKey {
            process_id: upstream.process_id,
            secret: upstream.secret.clone(),
            address: upstream.address.clone(),
        }
    }
}

impl Session {
    /// Acquires a connection after all units in lanes are answered.
    pub(super) async fn acquire_connection(&mut self) -> Result<(), SessionEnd> {
        if self.holding.is_some() {
            return Ok(());
        }
        self.drain_lanes().await?;
        // A failed transaction that ran alone may have stayed open. Then the session holds its connection already.
        if self.holding.is_some() { Ok(()) } else { self.acquire_connection_now().await }
    }

    async fn acquire_connection_now(&mut self) -> Result<(), SessionEnd> {
        let held = match self.pool.try_take(&self.application_name) {
            Some(held) => held,
            None => self.wait_for_connection().await?,
        };
        self.holding = Some(Holding {
            held,
            clears: Effect::NONE,
            failed: false,
            status: Status::Idle,
            message_bytes_left: 0,
            earning_credit: None,
            must_close: false,
            unproven: false,
            may_unlock: false,
            prepared_anew: false,
            name_reset: false,
            delayed_ready: None,
        });
        if self.update_cancel_target() {
            self.release_connection().await;
            return Err(SessionEnd::Problem(cancelled()));
        }
        Ok(())
    }

    async fn wait_for_connection(&mut self) -> Result<HeldConnection, SessionEnd> {
        self.control.set_waiting("waits for a connection");
        let taken = tokio::select! {
            biased;
            taken = self.pool.take(&self.application_name) => taken.map_err(|error| problem(&error, false)),
            () = self.control.cancelled_waiting() => Err(cancelled()),
        };
        taken.map_err(|problem| {
            self.control.set_target(None);
            SessionEnd::Problem(problem)
        })
    }

    /// Gives the connection back if the session no longer needs it.
    pub(super) async fn release_connection(&mut self) {
        if self.holding.is_some() && self.is_settled() {
            self.close_shown();
        }
        let is_settled = self.is_settled();
        let Some(holding) = &mut self.holding else { return };
        let is_busy = !is_settled || holding.status != Status::Idle;
        // Only the server knows whether a lock was released.
        let unlocked = Effect { advisory_lock: holding.may_unlock, ..Effect::NONE };
        let may_be_free = !self.left.without(unlocked).pins();
        if !is_busy
            && holding.unproven
            && !holding.must_close
            && may_be_free
            && self.check_left_behind().await.is_err()
        {
            self.disconnect();
            return;
        }
        let Some(holding) = &mut self.holding else { return };
        if is_busy || self.left.pins() || (!self.pack && self.pool.packs()) {
            holding.held.release_turn(); // the session may keep the connection for long
            return;
        }
        self.control.clear_target().await;
        if self.sequences == Sequences::Here {
            self.sequences = Sequences::Elsewhere;
        }
        let Some(holding) = self.disconnect() else { return };
        if !holding.must_close {
            self.pool.give_back(holding.held);
        }
    }

    /// Takes the connection away from the session.
    pub(super) fn disconnect(&mut self) -> Option<Holding> {
        self.expected.disconnect();
        self.portals.clear();
        self.holding.take()
    }

    /// Runs a unit that cannot run in a lane, from its first message to its ReadyForQuery. If an earlier unit has left
    /// a failed transaction open, it runs in that transaction.
    pub(super) async fn run_alone(&mut self, packed: &Envelope) -> Result<(), SessionEnd> {
        if self.holding.is_none()
            && let Err(end) = self.acquire_connection_now().await
        {
            let SessionEnd::Problem(problem) = end else { return Err(end) };
            self.mailbox.append(|out| put_refusals(&problem, packed.unit.readies(), out));
            return Ok(());
        }
        self.forget_naming();
        self.alone = Some(packed.unit.readies());
        let result = self.forward_to_end(packed.unit.raw()).await;
        let owed = self.alone.take().unwrap_or_default();
        match result {
            Err(SessionEnd::Problem(_)) if owed > 0 => {
                self.lost_while_alone(owed);
                Ok(())
            }
            result => result,
        }
    }

    async fn forward_to_end(&mut self, messages: &[u8]) -> Result<(), SessionEnd> {
        self.forward_all(messages).await?;
        while self.holding.is_some() && !self.is_settled() {
            let left = self.mailbox.try_write()?;
            self.relay_alone(left.unread).await?;
        }
        Ok(())
    }

    /// The connection was lost under a unit that ran alone. Each unanswered message gets an error. Otherwise the client
    /// would take the answers of later units for this unit's.
    fn lost_while_alone(&mut self, owed: usize) {
        self.disconnect();
        self.update_cancel_target();
        if self.sequences == Sequences::Here {
            self.sequences = Sequences::Elsewhere;
        }
        METRICS.unknown.inc();
        let problem = Problem::error(
            "08007",
            "the connection to the server was lost, and the outcome of the statement is unknown",
            "The statement was executed once or not at all. Check before you send it again.",
        );
        self.mailbox.append(|out| put_refusals(&problem, owed, out));
    }

    /// Queries the server for state that is left on the connection.
    async fn check_left_behind(&mut self) -> Result<(), held::Error> {
        let _ = self.mailbox.try_write(); // the client gets its answer now; reading it shows an error
        let first_role = self.pool.first_role();
        let holding = self.holding.as_mut().expect("called only while a connection is held");
        (holding.unproven, holding.may_unlock) = (false, false);
        let text = include_str!("../../sql/left_behind.sql");
        let rows = holding.held.upstream.query(text, &[self.pool.identity.user(), &first_role]).await?;
        let is_there = |column: usize| {
            rows.first().and_then(|row| row.get(column)?.as_deref()).is_none_or(|value| value == "t")
        };
        self.left = Effect {
            settings: is_there(0),
            role: is_there(1),
            temporary: is_there(2),
            prepared: is_there(3),
            listen: is_there(4),
            holdable_cursor: is_there(5),
            advisory_lock: is_there(6),
            ..Effect::NONE
        };
        let count = rows.first().and_then(|row| row.get(7)?.as_deref()?.parse().ok());
        let holding = self.held();
        // A function may have deallocated statements of other sessions.
        holding.must_close |= count != Some(holding.held.upstream.prepared.count());
        if !self.left.pins() {
            let held = &mut self.held().held;
            held.upstream.query(include_str!("../../sql/reset_settings.sql"), &[]).await?;
            held.forget_name();
        }
        Ok(())
    }

    /// Whether a read of currval or lastval has a right answer here. It has none if the session's values are on another
    /// connection and no sequence has moved on this one since.
    pub(super) fn can_read_sequences(&self) -> bool {
        let moved = self.holding.as_ref().is_some_and(|holding| holding.held.moved_sequence);
        moved || self.sequences != Sequences::Elsewhere
    }
}

/// The error for a client that gets no connection.
pub fn problem(error: &held::Error, fatal: bool) -> Problem {
    no_connection(error, fatal, "the statement was not executed", "It is safe to send the statement again.")
}

/// The error for a client that cannot log in because there is no connection for it.
pub fn log_in_problem(error: &held::Error) -> Problem {
    no_connection(error, true, "the client was not logged in", "Connect again.")
}

fn no_connection(error: &held::Error, fatal: bool, outcome: &str, retry: &str) -> Problem {
    METRICS.refused.inc();
    let retry_later = format!("{retry} server_wait_ms limits how long clients wait for the server.");
    let (code, message, hint) = match error {
        held::Error::AllInUse(_) => (
            "53300",
            error.to_string(),
            "All connections that sessions may hold are in use. End transactions sooner, or raise held_connections_max or held_wait_ms.",
        ),
        held::Error::TableConnectionsInUse(..) => (
            "53300",
            error.to_string(),
            "End transactions sooner, or raise held_connections_max or held_wait_ms in the [[pool]] table.",
        ),
        held::Error::NoLogIn(_) => ("57P03", error.to_string(), "Connect again, or raise server_wait_ms."),
        held::Error::Paused => return Problem { fatal, ..crate::lane::paused(outcome, retry) },
        held::Error::Upstream(upstream::Error::Io { .. } | upstream::Error::Timeout { .. }) => {
            ("57P03", format!("the server can't be reached: {error}; {outcome}"), &*retry_later)
        }
        held::Error::Upstream(upstream::Error::NoPassword(_) | upstream::Error::OtherVerifier(_)) => (
            "28000",
            format!("the gateway can't log in at the server for this client: {error}"),
            "Change users_file or auth_query in the gateway's settings, then reload.",
        ),
        held::Error::Upstream(cause) => (
            "57P03",
            format!("the server gave no connection: {error}; {outcome}"),
            // A refusal by the server, such as too many connections, may be over at the next attempt.
            match cause.is_retryable() || matches!(cause, upstream::Error::Refused { .. }) {
                true => retry,
                false => {
                    "Retrying does not help until the settings of the gateway or of the server are changed."
                }
            },
        ),
    };
    Problem { fatal, code, message, hint: hint.to_owned() }
}
