//! Taking an upstream connection for a session and giving it back when nothing is left behind on it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use hotrow_core::classify::Effect;
use hotrow_core::limits;
use hotrow_wire::backend::{Problem, Status};
use hotrow_wire::{frontend, split};

use super::{End, Sequences, Session};
use crate::control::Target;
use crate::held::{self, Held};
use crate::lane::cancelled;
use crate::metrics::METRICS;
use crate::statements::Statement;
use crate::unit::{Packed, put_refusals};
use crate::upstream;

/// A connection that the session holds, and what is going on there.
pub struct Holding {
    pub(super) held: Held,
    /// Statements whose Parse is not answered, with the names they get, unless something behind takes them away.
    pub(super) naming: VecDeque<(Option<Bytes>, Arc<Statement>)>,
    /// For each Close that is not answered what it takes away, if anything: an error before it puts it back.
    pub(super) closing: VecDeque<Option<(Bytes, Arc<Statement>)>>,
    /// What is true of the session when the unit under way succeeds: things that the unit clears.
    pub(super) clears: Effect,
    /// The unit under way has failed.
    pub(super) failed: bool,
    /// Messages were forwarded since the last Sync or Query.
    pub(super) open: bool,
    /// What the last ReadyForQuery said.
    pub(super) status: Status,
    /// Bytes still to come of a message that is being relayed in pieces.
    pub(super) rest: usize,
    /// The statement whose success is worth noting: it lost its credit by failing in lanes.
    pub(super) on_trial: Option<Arc<Statement>>,
    /// It must be closed instead of given back.
    pub(super) spoilt: bool,
    /// The client's settings were reset in this unit, its name with them.
    pub(super) name_reset: bool,
}

impl Holding {
    /// Whether so much waits for the server that the client has to wait too.
    pub fn is_full(&self) -> bool {
        self.held.upstream.output.len() > limits::UNREAD_BYTES_MAX
    }

    /// The backend that works for the session.
    pub fn cancel_target(&self) -> Target {
        let upstream = &self.held.upstream;
        Target {
            process_id: upstream.process_id,
            secret: upstream.secret.clone(),
            address: upstream.address.clone(),
        }
    }

    /// Nothing is owed and nothing was begun.
    pub(super) fn is_settled(&self) -> bool {
        self.held.upstream.expected.is_settled() && !self.open && self.rest == 0
    }
}

impl Session {
    /// Takes a connection, once everything that went to lanes is answered.
    pub(super) async fn hold(&mut self) -> Result<(), End> {
        if self.holding.is_some() {
            return Ok(());
        }
        self.drained().await?;
        // A transaction that failed and ran alone may have stayed open: then it is the one.
        if self.holding.is_some() { Ok(()) } else { self.hold_now().await }
    }

    async fn hold_now(&mut self) -> Result<(), End> {
        let held = match self.pool.try_take(&self.application_name) {
            Some(held) => held,
            None => self.wait_for_connection().await?,
        };
        self.holding = Some(Holding {
            held,
            naming: VecDeque::new(),
            closing: VecDeque::new(),
            clears: Effect::NONE,
            failed: false,
            open: false,
            status: Status::Idle,
            rest: 0,
            on_trial: None,
            spoilt: false,
            name_reset: false,
        });
        if self.note_cancel_target() {
            self.let_go().await;
            return Err(End::Problem(cancelled()));
        }
        Ok(())
    }

    async fn wait_for_connection(&mut self) -> Result<Held, End> {
        self.control.waits("waits for a connection");
        let taken = tokio::select! {
            biased;
            taken = self.pool.take(&self.application_name) => taken.map_err(|error| problem(&error, false)),
            () = self.control.cancelled_waiting() => Err(cancelled()),
        };
        taken.map_err(|problem| {
            self.control.set_target(None);
            End::Problem(problem)
        })
    }

    /// Gives the connection back if the session doesn't need it any more.
    pub(super) async fn let_go(&mut self) {
        let Some(holding) = &mut self.holding else { return };
        let needed = !holding.is_settled()
            || holding.status != Status::Idle
            || self.left.pins()
            || (!self.pack && self.pool.packs());
        if needed {
            holding.held.leave_turn(); // it may keep the connection for long
            return;
        }
        self.control.leave_target().await;
        if self.sequences == Sequences::Here {
            self.sequences = Sequences::Elsewhere;
        }
        if let Some(holding) = self.holding.take()
            && !holding.spoilt
        {
            self.pool.give_back(holding.held);
        }
    }

    /// Runs a unit that can't run in a lane, from its first message to its ReadyForQuery. Where one before it has left
    /// a failed transaction open, it runs in that.
    pub(super) async fn run_alone(&mut self, packed: &Packed) -> Result<(), End> {
        if self.holding.is_none()
            && let Err(end) = self.hold_now().await
        {
            let End::Problem(problem) = end else { return Err(end) };
            self.mailbox.append(|out| put_refusals(&problem, packed.readies(), out));
            return Ok(());
        }
        // Names mean what they meant when the unit came, whatever the client has sent since; afterwards they mean again
        // what they do for what it sends next.
        let mentioned = mentioned(packed);
        let since = mentioned.iter().map(|mention| self.statements.remove(&mention.name));
        let since: Vec<_> = since.collect();
        for Mention { name, statement, .. } in mentioned.iter().filter(|mention| !mention.is_parsed) {
            self.statements.insert(name.clone(), statement.clone());
        }
        self.alone = Some(packed.readies());
        let result = self.forward_to_end(packed.raw()).await;
        let owed = self.alone.take().unwrap_or_default();
        for (Mention { name, statement, .. }, since) in mentioned.into_iter().zip(since) {
            match since {
                Some(since) if since.id == statement.id => {}
                Some(since) => {
                    self.statements.insert(name, since);
                }
                None => {
                    self.statements.remove(&name);
                }
            }
        }
        match result {
            Err(End::Problem(_)) if owed > 0 => {
                self.lose_alone(owed);
                Ok(())
            }
            result => result,
        }
    }

    async fn forward_to_end(&mut self, messages: &[u8]) -> Result<(), End> {
        self.forward_all(messages).await?;
        while self.holding.as_ref().is_some_and(|holding| !holding.is_settled()) {
            let left = self.mailbox.try_write()?;
            self.relay_alone(left.unread).await?;
        }
        Ok(())
    }

    /// The connection is gone under a unit that ran alone. The client is told in the place of each message that is not
    /// answered, or else the answers of the units behind it would be taken for its own.
    fn lose_alone(&mut self, owed: usize) {
        self.holding = None;
        self.note_cancel_target();
        if self.sequences == Sequences::Here {
            self.sequences = Sequences::Elsewhere;
        }
        METRICS.unknown.inc();
        let problem = Problem::error(
            "08007",
            "the connection to the server was lost, and what became of the statement can't be found out",
            "The statement was executed once or not at all: look before you send it again.",
        );
        self.mailbox.append(|out| put_refusals(&problem, owed, out));
    }

    /// Before currval or lastval are read: makes sure that no other session's values answer. False if the values
    /// are on a connection that the session doesn't hold, so that there is no right answer.
    pub(super) async fn prepare_sequences(&mut self) -> Result<bool, End> {
        let session = self.mailbox.session;
        let Some(holding) = &mut self.holding else { return Ok(true) };
        match self.sequences {
            Sequences::Elsewhere => Ok(false),
            Sequences::Here => Ok(true),
            Sequences::Untouched if holding.held.sequences.is_none_or(|owner| owner == session) => Ok(true),
            Sequences::Untouched if !holding.is_settled() => Ok(false),
            Sequences::Untouched => {
                let forgotten =
                    holding.held.upstream.query(include_str!("../../sql/discard_sequences.sql"), &[]).await;
                forgotten.map_err(|error| End::from(held::Error::from(error)))?;
                holding.held.sequences = None;
                Ok(true)
            }
        }
    }
}

/// A name in a unit's messages, and the statement it stands for there.
struct Mention {
    name: Bytes,
    statement: Arc<Statement>,
    /// The unit prepares it itself.
    is_parsed: bool,
}

/// The names of statements that a unit's extended queries mention.
fn mentioned(packed: &Packed) -> Vec<Mention> {
    let mut mentioned: Vec<Mention> = Vec::new();
    let mut parsed: Vec<&[u8]> = Vec::new();
    let mut statements = packed.statements();
    let mut rest = packed.raw();
    while let Ok(Some(frame)) = split(rest, |_| usize::MAX) {
        rest = &rest[frame.bytes.len()..];
        match frame.tag {
            frontend::tag::QUERY => drop(statements.next()),
            frontend::tag::PARSE => {
                parsed.extend(frontend::Parse::read(frame.body()).map(|parse| parse.name));
            }
            frontend::tag::BIND => {
                let (Some(statement), Ok(bind)) = (statements.next(), frontend::Bind::read(frame.body()))
                else {
                    break;
                };
                let is_parsed = parsed.contains(&bind.statement);
                match mentioned.iter_mut().find(|mention| mention.name == bind.statement) {
                    Some(earlier) => earlier.statement = statement.clone(),
                    None => mentioned.push(Mention {
                        name: Bytes::copy_from_slice(bind.statement),
                        statement: statement.clone(),
                        is_parsed,
                    }),
                }
            }
            _ => {}
        }
    }
    mentioned
}

/// What a client is told when there is no connection for it.
pub fn problem(error: &held::Error, fatal: bool) -> Problem {
    METRICS.refused.inc();
    let (code, message, hint) = match error {
        held::Error::AllInUse(_) => (
            "53300",
            error.to_string(),
            "All connections that sessions may hold are in use: end transactions sooner, or raise held_connections_max.",
        ),
        held::Error::ShareInUse(..) => (
            "53300",
            error.to_string(),
            "All connections that these clients' sessions may hold are in use: end transactions sooner, or raise held_connections_max in their [[pool]] table.",
        ),
        held::Error::Paused => return Problem { fatal, ..crate::lane::paused() },
        held::Error::Upstream(upstream::Error::Io { .. } | upstream::Error::Timeout { .. }) => (
            "57P03",
            format!("the server can't be reached: {error}; the statement was not executed"),
            "It is safe to send it again.",
        ),
        held::Error::Upstream(upstream::Error::NoPassword(_) | upstream::Error::OtherVerifier(_)) => (
            "28000",
            format!("the gateway can't log in at the server for this client: {error}"),
            "It is the gateway that lacks what the server asks for.",
        ),
        held::Error::Upstream(cause) => (
            "57P03",
            format!("the server gave no connection: {error}; the statement was not executed"),
            // What the server refuses, it may grant the next time: too many connections, for one.
            match cause.is_away() || matches!(cause, upstream::Error::Refused { .. }) {
                true => "It is safe to send it again.",
                false => "It will be so again until the gateway's settings or the server's are changed.",
            },
        ),
    };
    Problem { fatal, code, message, hint: hint.to_owned() }
}
