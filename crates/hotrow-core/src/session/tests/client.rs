//! A simulated client with its real session: its messages, and the bytes on the session's connections.

use std::cell::Cell;
use std::rc::Rc;

use bytes::{Buf, BytesMut};
use hotrow_wire::backend::tag;
use hotrow_wire::{frontend, split};

use super::envelope::SimAnswers;
use super::environment::{Settings, Shared, SimCancel, SimEnvironment};
use super::leaving::{Ending, Fate};
use super::listener::SimInbox;
use super::postgres::{Backend, Database};
use super::waits::Wait;
use crate::session::{Need, Session, SessionEnd, SwitchValues};

/// The name of the clients at login.
pub const CLIENT_NAME: &str = "client";

/// One client and its session.
pub struct Client {
    pub program: BytesMut,
    /// All messages that it would send.
    whole: BytesMut,
    pub input: BytesMut,
    pub session: Session<SimEnvironment>,
    pub answers: SimAnswers,
    pub settings: Settings,
    pub received: BytesMut,
    /// The current need of the session.
    pub need: Option<Need<SimEnvironment>>,
    pub is_over: bool,
    /// It sends a unit when the earlier ones are answered.
    pub waits: bool,
    /// Units that it has sent.
    sent: usize,
    /// For each of them, the number of notifications that were committed then, and of those that were signalled. None if an
    /// earlier unit was unanswered.
    pub marks: Vec<Option<(usize, usize)>>,
    /// It sometimes sends several units at once.
    pub sends_several: bool,
    pub inbox: SimInbox,
    /// The number of its wait for the listening connection.
    pub catches_up: Option<u64>,
    pub cancel: SimCancel,
    pub wait: Option<Wait>,
    /// What it needs when no cancel request is on its way to its backend.
    pub delayed: Option<Need<SimEnvironment>>,
    pub sent_bytes: usize,
    /// What others have put into its box.
    pub given: i64,
    /// The number of its bytes before a Terminate.
    pub ends_at: usize,
    /// What becomes of it.
    pub fate: Option<Fate>,
    /// Its session has noticed that it sends no more.
    pub is_closed: bool,
    /// How its session ends.
    pub ending: Option<Ending>,
}

impl Client {
    /// A client that will send these messages.
    pub fn new(shared: Rc<Shared>, number: usize, program: BytesMut) -> Self {
        let answers = SimAnswers::default();
        let at_start = SwitchValues { reads_from_replica: shared.happens(2), ..SwitchValues::default() };
        let (settings, inbox, cancel) = (Settings::default(), SimInbox::default(), SimCancel::default());
        let environment = SimEnvironment {
            shared,
            client: number,
            answers: answers.clone(),
            settings: settings.clone(),
            inbox: inbox.clone(),
            has_lost: Cell::new(false),
            cancel: cancel.clone(),
            is_shadowed: false,
        };
        Client {
            ends_at: program.len(),
            whole: program.clone(),
            program,
            input: BytesMut::new(),
            session: Session::new(environment, CLIENT_NAME.to_owned(), at_start),
            answers,
            settings,
            received: BytesMut::new(),
            need: Some(Need::Event),
            is_over: false,
            waits: false,
            sent: 0,
            marks: Vec::new(),
            sends_several: false,
            inbox,
            catches_up: None,
            cancel,
            wait: None,
            delayed: None,
            sent_bytes: 0,
            given: 0,
            fate: None,
            is_closed: false,
            ending: None,
        }
    }

    /// Whether nothing that it has to send or to handle is left.
    pub fn is_done(&self) -> bool {
        self.is_over || self.program.is_empty() && self.input.is_empty()
    }

    /// What its session needs, in words.
    pub fn need(&self) -> &'static str {
        match self.need {
            Some(Need::Event) => "an event",
            Some(Need::Reply) => "a reply",
            Some(Need::Lanes) => "its lanes",
            Some(Need::Notifications) => "notifications",
            _ => "something else",
        }
    }

    /// Runs the session, and gives the client its replies.
    pub fn step(&mut self) -> Result<Option<Need<SimEnvironment>>, SessionEnd> {
        let need = match self.ending {
            Some(_) => self.session.last_need(),
            None => match self.step_once() {
                // Its connection goes with this one.
                need @ (Ok(Need::Release { .. }) | Err(_)) => need.map(Some),
                // A message that waits is handled again from its beginning. Without what it waits for, it waits again, and an
                // effect that a handler has before its last need comes twice, which the client notices.
                Ok(_) => self.step_once().map(Some),
            },
        };
        let out = std::mem::take(&mut self.answers.borrow_mut().out);
        self.received.extend_from_slice(&out);
        need
    }

    fn step_once(&mut self) -> Result<Need<SimEnvironment>, SessionEnd> {
        let mut taken = 0;
        let need = self.session.step(&self.input, &mut taken);
        self.input.advance(taken);
        need
    }

    /// The client sends some bytes.
    pub fn send(&mut self, random: &mut fastrand::Rng, database: &Database) -> bool {
        if self.program.is_empty() || self.ending.is_some() || !matches!(self.need, Some(Need::Event)) {
            return false;
        }
        let bytes = match random.u8(..3) {
            _ if self.waits => self.next_units(random),
            0 => self.program.len(),
            _ => random.usize(1..=self.program.len()),
        };
        if bytes == 0 {
            return false;
        }
        if self.waits {
            self.marks.push(Some((database.notifications.len(), database.signalled)));
            self.marks.resize(self.sent, None);
        }
        self.session.arrived();
        self.input.extend_from_slice(&self.program.split_to(bytes));
        self.sent_bytes += bytes;
        true
    }

    /// The length of the client's next units, or 0 while an earlier one is unanswered.
    fn next_units(&mut self, random: &mut fastrand::Rng) -> usize {
        if lengths(&self.received, &[tag::READY]).count() < self.sent {
            return 0;
        }
        let count = if self.sends_several && random.bool() { random.usize(1..5) } else { 1 };
        let ends = lengths(&self.program, &[frontend::tag::QUERY, frontend::tag::SYNC]).take(count);
        let ends: Vec<usize> = ends.collect();
        self.sent += ends.len().max(1);
        ends.last().copied().unwrap_or(self.program.len())
    }

    /// The number of bytes that are missing of the message that it has begun to send.
    pub fn rest_of_message(&self) -> usize {
        // What it has sent and what it will send are valid messages together.
        let mut sent = 0;
        while let Some(frame) = split(&self.whole[sent..], |_| usize::MAX).expect("valid") {
            if sent >= self.sent_bytes {
                break;
            }
            sent += frame.bytes.len();
        }
        sent.saturating_sub(self.sent_bytes)
    }

    /// The session's messages reach the backend.
    pub fn write(
        &mut self,
        random: &mut fastrand::Rng,
        backends: &mut [Backend],
        database: &Database,
    ) -> bool {
        let Some(connection) = self.session.connection().filter(|held| !held.output.is_empty()) else {
            return false;
        };
        let bytes = random.usize(1..=connection.output.len());
        let part = connection.output.split_to(bytes);
        let backend = &mut backends[connection.backend];
        if backend.input.is_empty() {
            backend.report_idle(database); // before messages that arrive later
        }
        backend.input.extend_from_slice(&part);
        true
    }

    /// Replies of the backend arrive.
    pub fn read(&mut self, random: &mut fastrand::Rng, backends: &mut [Backend]) -> bool {
        let Some(connection) = self.session.connection() else { return false };
        let output = &mut backends[connection.backend].output;
        if output.is_empty() {
            return false;
        }
        let bytes = random.usize(1..=output.len());
        connection.input.extend_from_slice(&output.split_to(bytes));
        self.relay();
        true
    }

    /// The session handles the replies that have arrived.
    pub fn relay(&mut self) {
        let Some(connection) = self.session.connection() else { return };
        let input = std::mem::take(&mut connection.input);
        let mut taken = 0;
        let result = self.session.replies(&input, &mut taken);
        assert!(result.is_ok(), "the session ends: {result:?}");
        if let Some(connection) = self.session.connection() {
            connection.input.extend_from_slice(&input[taken..]);
        }
    }
}

/// The places after the messages of these types.
fn lengths(bytes: &[u8], tags: &[u8]) -> impl Iterator<Item = usize> {
    let mut end = 0;
    let frames = std::iter::from_fn(move || {
        let frame = split(&bytes[end..], |_| usize::MAX).expect("valid")?;
        end += frame.bytes.len();
        Some((frame.tag, end))
    });
    frames.filter_map(|(tag, end)| tags.contains(&tag).then_some(end))
}
