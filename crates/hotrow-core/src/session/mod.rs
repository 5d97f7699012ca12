//! One client's conversation. Units that can be packed go to the lanes. The others are passed through on an
//! upstream connection, which the session holds during a transaction, or as long as state is left on it.
//!
//! [`Session::step`] handles the client's messages until it needs something, and says what. The caller
//! provides it and calls `step` again. A message that has to wait is handled again from its beginning, so a handler sends nothing
//! before its last need, which its types show (`planning`). It may only change what is right to change twice: the simulator of
//! the tests handles each message once more than necessary.
//!
//! Calls run downwards only: this file calls handlers of messages (`simple`, `extended`, `forward`, `refuse`). These call what
//! the session does for several of them (`begun`, `submit`, `record`), which calls what reads or answers (`status`, `plan`,
//! `answers`). Components get what they need as arguments, and know no session (`marks`, `names`, `prepare`, `texts`, `turns`,
//! `reads`, `switches`).

mod alone;
mod answers;
mod begun;
mod block;
mod defer;
mod deferred;
mod environment;
mod executed;
mod extended;
mod foretold;
mod forward;
mod handover;
mod holding;
mod leaving;
mod listening;
mod marks;
mod names;
mod phase;
mod plan;
mod planning;
mod prepare;
mod reads;
mod record;
mod refuse;
mod release;
mod replies;
mod reports;
mod run_deferred;
mod sets;
mod shadow;
mod simple;
mod state_left;
mod stateless;
mod statement;
mod status;
mod submit;
mod switches;
mod takeover;
#[cfg(test)]
mod tests;
mod texts;
mod turns;
mod unjudged;
mod waiting_call;

use bytes::BytesMut;
use hotrow_lane::answers::Next;
use hotrow_lane::row_queue::QueueId;
use hotrow_wire::backend::Problem;
use hotrow_wire::frontend::{self, tag};
use hotrow_wire::{Frame, split};

use alone::Alone;
use deferred::Deferred;
use environment::Stop;
pub use environment::{Connection, Envelope, Environment, LongText, Need, Place, SessionEnd, StatementOf};
pub use handover::Moved;
use holding::Room;
use leaving::Leaving;
pub use leaving::{Stage, Wait};
use listening::Listening;
use names::{Names, Renaming};
use phase::Phase;
use planning::{Handled, Planning};
use reads::Reads;
pub use replies::put_ready;
use shadow::Shadowed;
pub use simple::wrong_value;
pub use state_left::StateLeft;
pub use statement::{
    Named, OWN_NAMES, OWN_STATEMENT, OutcomeOfSets, Pieces, Proof, Resolved, RunOutcome, Statement,
    StatementInfo, Verdict, statement_name,
};
use submit::InLanes;
pub use switches::SwitchValues;
use switches::Switches;
pub use takeover::TakesOver;
use texts::Texts;
use turns::Places;
pub use waiting_call::{CallEnd, CallEvent, CallTimer, cancelled};

use crate::limits;
use crate::replica::LsnBound;
use crate::unit::gather::Gather;

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

/// The state of one client's conversation.
pub struct Session<E: Environment> {
    /// The gateway around it.
    pub env: E,
    application_name: String,
    /// The client's name at login.
    first_name: String,
    texts: Texts<E::Statement>,
    /// The messages of an extended query, up to its Sync.
    gather: Gather,
    scratch: BytesMut,
    /// The meaning of the client's names of statements.
    names: Names<E::Statement>,
    /// The changes of these names by unanswered units, mostly in lanes.
    renaming: Renaming<E::Statement>,
    phase: Phase<E>,
    /// The writes that its transaction holds back.
    deferred: Deferred<E::Statement>,
    /// For its next connection, which it mostly has for one transaction.
    room: Room<E>,
    /// Its transaction's places among those that work on the same rows.
    places: Places<E::Place>,
    sequences: Sequences,
    listening: Listening,
    /// The unit that runs on a connection of its own, before all later ones.
    alone: Option<Alone<E::Envelope, E::Place>>,
    /// The client's own settings `hotrow.pack` and `hotrow.reads`.
    switches: Switches,
    reads: Reads,
    in_lanes: InLanes,
    /// The unit under way that would run in a lane, in shadow mode.
    shadowed: Option<Shadowed>,
    /// After an error of the gateway in an extended query: messages up to the next Sync are ignored.
    skipping: bool,
    leaving: Leaving,
    /// What was provided for the message that is being handled.
    provided: Provided<E>,
}

/// Names and values of the server's settings that it reports to clients.
pub type Parameters = Vec<(String, String)>;

/// What a session was given for the message that it handles.
struct Provided<E: Environment> {
    verdicts: Vec<(StatementOf<E>, Verdict)>,
    /// Why there is no connection.
    no_connection: Option<Problem>,
    /// A cancel request has ended a wait for the message, or for an earlier one that has been answered.
    is_cancelled: bool,
    /// Statements are prepared before settings change.
    prepared: bool,
    /// The session has entered the pool to which its SETs lead, with the parameters that the client has to be told. None of
    /// this if that pool is not open.
    entered: Option<Option<Parameters>>,
    /// The unit of the message is counted in shadow mode.
    shadowed: bool,
    /// Long texts up to this offset are classified.
    classified: usize,
}

impl<E: Environment> Default for Provided<E> {
    fn default() -> Self {
        Provided {
            verdicts: Vec::new(),
            no_connection: None,
            is_cancelled: false,
            prepared: false,
            entered: None,
            shadowed: false,
            classified: 0,
        }
    }
}

impl<E: Environment> Session<E> {
    /// A session whose client has received ReadyForQuery, and has this name and these values of the gateway's settings.
    pub fn new(env: E, application_name: String, at_start: SwitchValues) -> Self {
        Session {
            env,
            first_name: application_name.clone(),
            application_name,
            texts: Texts::default(),
            gather: Gather::default(),
            scratch: BytesMut::new(),
            names: Names::new(),
            renaming: Renaming::default(),
            phase: Phase::Free,
            deferred: Deferred::default(),
            room: Room::<E>::new(),
            places: Places::default(),
            sequences: Sequences::Untouched,
            listening: Listening::default(),
            alone: None,
            switches: Switches::new(at_start),
            reads: Reads::default(),
            in_lanes: InLanes::default(),
            shadowed: None,
            skipping: false,
            leaving: Leaving::default(),
            provided: Provided::default(),
        }
    }

    /// Handles the messages at the beginning of `input` until the session needs something. Adds the number of
    /// handled bytes to `taken`.
    pub fn step(&mut self, input: &[u8], taken: &mut usize) -> Result<Need<E>, SessionEnd> {
        // A lane has given back a unit. No other unit may get between it and the later ones.
        let is_draining = self.env.answers(|answers| answers.next()) == Next::Wait;
        loop {
            let stop = match self.handle_next(&input[*taken..], is_draining) {
                Ok(bytes) => {
                    *taken += bytes;
                    continue;
                }
                Err(stop) => stop,
            };
            match stop {
                Stop::Need(need) => return Ok(need),
                Stop::End(end) => self.failed(end)?,
            }
        }
    }

    /// Handles what comes next. Returns the number of bytes of the client that it has taken.
    fn handle_next(&mut self, input: &[u8], is_draining: bool) -> Result<usize, Stop<E>> {
        self.hand_over()?;
        self.wait_for_due()?;
        self.finish_unit()?;
        self.deliver()?;
        if self.alone.is_some() {
            self.run_alone()?;
            return Ok(0);
        }
        let planning = Planning::of_message();
        if is_draining {
            self.lanes_done(&planning)?;
        }
        let is_full = match self.phase.held_mut() {
            Some(holding) => holding.is_full(),
            None => self.env.is_full(),
        };
        let Some(tag) = input.first().filter(|_| !is_full) else { return Err(Stop::Need(Need::Event)) };
        frontend::check_tag(*tag)?;
        let large = self.env.message_bytes_max();
        let bytes_max = |tag| frontend::bytes_max(tag, limits::SMALL_MESSAGE_BYTES_MAX, large);
        let Some(frame) = split(input, bytes_max)? else { return Err(Stop::Need(Need::Event)) };
        let refused = match self.provided.is_cancelled {
            true => self.take_cancelled(planning, frame, input)?,
            false => Handled::Continue(planning),
        };
        let (bytes, is_cancelled) = match refused {
            Handled::Break(refused) => refused,
            Handled::Continue(planning) => (self.take(planning, frame, input)?, false),
        };
        self.provided = Provided { is_cancelled, ..Provided::default() };
        self.reads.message_over();
        if !self.phase.is_held() {
            self.shadow_over(); // a unit that is passed through would be under way
        }
        Ok(bytes)
    }

    /// Handles a message, the first of these bytes. Returns how many of them are handled.
    fn take(&mut self, planning: Planning, frame: Frame<'_>, input: &[u8]) -> Result<usize, Stop<E>> {
        self.classify_long(&planning, frame, 0)?;
        let mut planning = match self.defer(planning, input)? {
            Handled::Break(bytes) => return Ok(bytes),
            Handled::Continue(planning) => planning,
        };
        if self.phase.is_held() {
            if !self.gather.is_empty() {
                self.forward_gathered()?;
            }
            if self.is_in_doubt(frame) {
                return Err(Stop::Need(Need::Event)); // until the server has answered more
            }
        } else if block::may_begin(frame, input) {
            planning = match self.block(planning, input)? {
                Handled::Break(bytes) => return Ok(bytes),
                Handled::Continue(planning) => planning,
            };
        }
        let bytes = frame.bytes.len();
        self.take_frame(planning, frame, &input[bytes..])?;
        Ok(bytes)
    }

    /// Handles a message. `behind` is the input after it.
    fn take_frame(&mut self, planning: Planning, frame: Frame<'_>, behind: &[u8]) -> Result<(), Stop<E>> {
        if frame.tag == tag::TERMINATE {
            return Err(Stop::End(SessionEnd::Client));
        }
        let is_password = frame.tag == tag::PASSWORD;
        if is_password && !self.phase.is_held() && self.gather.is_empty() {
            return Err(hotrow_wire::Error::UnknownTag(frame.tag).into());
        }
        if self.skipping {
            if frame.tag == tag::SYNC {
                self.skipping = false;
                self.ready_in_turn(&planning.perform());
            }
            return Ok(());
        }
        if self.phase.is_held() {
            return self.forward(planning, frame);
        }
        match frame.tag {
            tag::QUERY if self.gather.is_empty() => self.query(planning, frame, behind),
            tag::SYNC => self.sync(planning, frame, behind),
            // The whole unit is there and is always passed through, so it needs no gathering.
            tag::PARSE | tag::BIND if behind.ends_with(frontend::SYNC) && self.begins_passed(frame)? => {
                let problem = self.connect(&planning)?;
                self.refuse_unit(planning, frame, behind, &problem)
            }
            tag::PARSE | tag::BIND | tag::DESCRIBE | tag::EXECUTE | tag::CLOSE
                if self.gather.bytes() + frame.bytes.len() <= limits::UNIT_BYTES_MAX =>
            {
                self.gather.push(frame);
                Ok(())
            }
            // Some drivers send Flush and Sync together. This is the same as a Sync.
            tag::FLUSH if self.gather.is_empty() || behind.first() == Some(&tag::SYNC) => Ok(()),
            tag::FUNCTION_CALL if self.gather.is_empty() => {
                let problem = self.connect(&planning)?;
                self.refuse_query(&planning.perform(), &problem);
                Ok(())
            }
            // COPY data outside a COPY are ignored, as by PostgreSQL.
            tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL if self.gather.is_empty() => Ok(()),
            // The server handles the combination with the messages before.
            _ => {
                let problem = self.connect(&planning)?;
                self.refuse_unit(planning, frame, behind, &problem)
            }
        }
    }

    /// A connection cannot be acquired: the message that needs it is refused.
    pub fn no_connection(&mut self, problem: Problem) {
        self.provided.no_connection = Some(problem);
    }

    /// The transaction, or the unit that runs alone, has a place in a queue.
    pub fn placed(&mut self, queue: QueueId, place: E::Place) {
        match (queue, &mut self.alone) {
            (QueueId::Alone(key), Some(alone)) => alone.placed(key, place),
            _ => self.places.placed(queue, place),
        }
    }

    /// A replica has all that the session has done or seen. None if the session has to read from the primary.
    pub fn replica_found(&mut self, bound: Option<LsnBound>) {
        self.reads.found(bound);
    }

    /// The verdict about a statement.
    pub fn decided(&mut self, statement: StatementOf<E>, verdict: Verdict) {
        self.provided.verdicts.push((statement, verdict));
    }

    /// The connection that the session holds.
    pub fn connection(&mut self) -> Option<&mut E::Connection> {
        self.phase.held_mut().map(|holding| &mut holding.connection)
    }

    /// The same, with the session's environment.
    pub fn connection_and_environment(&mut self) -> Option<(&E::Connection, &mut E)> {
        self.phase.held().map(|holding| (&holding.connection, &mut self.env))
    }

    /// The client's name.
    pub fn application_name(&self) -> &str {
        &self.application_name
    }

    /// Whether the messages of an extended query have begun to arrive and wait for their Sync.
    pub fn gathered_bytes(&self) -> usize {
        self.gather.bytes()
    }
}
