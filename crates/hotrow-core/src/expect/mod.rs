//! The replies that the server owes on a connection that a session holds, the meaning of each reply, and its effect on the
//! meaning of the client's statement names.
//!
//! Every message that the server answers adds an entry here, with its effect on names if it succeeds. A reply
//! removes the entry and applies the effect. An error removes the entries that the server skips, without
//! their effects. The names are therefore always those of the replies that have arrived.
//!
//! A message refers to names as they are when the server runs it. Messages of one group (between two Syncs)
//! are skipped after an error in the group. If a message of the group runs, all earlier messages of its group
//! have succeeded. The effect of an unanswered message of an earlier group is unknown. A message that depends
//! on it waits for the reply. The reply must not depend on another message of the client. The gateway
//! therefore sends a Flush before the wait.

mod copy;
mod message;
mod names;
mod prepared;
#[cfg(test)]
mod random;
#[cfg(test)]
mod same_as_postgres;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use hotrow_wire::backend::tag;

use crate::classify::Step;
use copy::Copy;
pub use message::{Message, PortalChange, RunEffects};
use names::{Meaning, Unanswered};
pub use prepared::{Preparation, PreparedStatements, StatementName};

/// Unanswered messages decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InDoubt;

/// The destination of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is for the client.
    Forward,
    /// It is for the gateway.
    Swallow,
    /// It is for the client: an error of a COPY while Syncs were under way. The server has ignored the Syncs
    /// that the COPY has read. To find out which, the gateway has to send a Sync, a Close of a statement that
    /// does not exist, and a Flush.
    ForwardAndAsk,
    /// It is for the gateway: the server has refused its BEGIN.
    NotBegun,
    /// The server sent an unexpected message. The connection cannot be used any more.
    Unexpected,
}

/// The meaning of a client's names of statements, according to the replies that have arrived. They outlive the connection.
pub type Names<S> = BTreeMap<Bytes, S>;

/// The replies that a session's connection owes.
#[derive(Debug)]
pub struct Expected<S> {
    /// The client's names that the gateway has created on the connection, until they are closed there.
    placeholders: Vec<Bytes>,
    /// The gateway has created a name, and the message that needs it is unanswered.
    is_placing: bool,
    owed: VecDeque<Message<S>>,
    /// The number of Syncs, Queries and FunctionCalls among them.
    whole_units: usize,
    /// The number of messages among them that remove all names.
    taking_all: usize,
    /// The effects of the unanswered messages on the client's names.
    naming: Unanswered<Bytes, S>,
    /// The portals whose statements need a record, according to the replies that have arrived.
    portals: BTreeMap<Bytes, S>,
    /// The effects of the unanswered messages on these records.
    binding: Unanswered<Bytes, S>,
    /// The effects of the unanswered messages on the statements prepared on the connection.
    preparing: Unanswered<StatementName, Preparation>,
    /// Number of Syncs that were ever sent. It is the group number of the next message.
    group: u64,
    /// The client has begun an extended query that neither a Sync nor a Query has ended.
    is_open: bool,
    /// An extended query has failed and its Sync is not sent yet. The server skips all messages before that
    /// Sync.
    skips: bool,
    /// The server answers all unanswered messages without another message.
    is_flushed: bool,
    /// See [`Expected::has_shown_rows`].
    has_shown_rows: bool,
    copy: Copy,
}

/// Messages for which memory is kept from one connection of a session to the next.
const ROOM_MAX: usize = 64;

impl<S> Default for Expected<S> {
    fn default() -> Self {
        Expected {
            placeholders: Vec::new(),
            is_placing: false,
            owed: VecDeque::new(),
            whole_units: 0,
            taking_all: 0,
            naming: Unanswered::default(),
            portals: BTreeMap::new(),
            binding: Unanswered::default(),
            preparing: Unanswered::default(),
            group: 0,
            is_open: false,
            skips: false,
            is_flushed: false,
            has_shown_rows: false,
            copy: Copy::No,
        }
    }
}

impl<S> Expected<S> {
    /// For a new connection, with memory that an earlier one has used.
    pub fn with_room(owed: VecDeque<Message<S>>) -> Self {
        debug_assert!(owed.is_empty());
        Expected { owed, ..Expected::default() }
    }

    /// The memory for unanswered messages.
    pub fn into_room(self) -> VecDeque<Message<S>> {
        let mut owed = self.owed;
        owed.clear();
        if owed.capacity() > ROOM_MAX { VecDeque::new() } else { owed }
    }
}

impl<S: Clone> Expected<S> {
    /// No reply is owed and no extended query has begun: the session is between two units, or idle.
    pub fn is_settled(&self) -> bool {
        self.owed.is_empty() && !self.skips && !self.is_open && self.copy == Copy::No
    }

    /// Whether an extended query has begun that its Sync has not ended.
    pub fn is_in_unit(&self) -> bool {
        self.is_open || self.skips
    }

    /// Whether a reply on the connection could show rows, or anything else that is newer than an earlier read.
    pub fn has_shown_rows(&self) -> bool {
        self.has_shown_rows
    }

    /// Whether every message is answered.
    pub fn owes_nothing(&self) -> bool {
        self.owed.is_empty()
    }

    /// Whether the server is known to skip everything up to the next Sync. No other message needs to be sent.
    pub fn skips(&self) -> bool {
        self.skips
    }

    /// The client's name of the statement in the earliest message, if that message is a Bind.
    pub fn bound(&self) -> Option<&Bytes> {
        match self.owed.front() {
            Some(Message::Bind(name, _)) => Some(name),
            _ => None,
        }
    }

    /// The step of the earliest message that this command tag reports.
    pub fn step_done(&mut self, tag: &[u8]) -> Option<Step> {
        let Some(Message::Execute(runs) | Message::Query(runs)) = self.owed.front_mut() else { return None };
        let place = runs.steps.iter().position(|step| step.has_tag(tag))?;
        runs.steps.drain(..=place).next_back()
    }

    /// Whether a Sync or Query is unanswered.
    pub fn has_unit_under_way(&self) -> bool {
        self.whole_units > 0
    }

    /// Whether there are names that the gateway has created on the connection.
    pub fn has_placeholders(&self) -> bool {
        !self.placeholders.is_empty()
    }

    /// The names that the gateway has created on the connection. They are to be closed with the next message
    /// that is not skipped.
    pub fn take_placeholders(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.placeholders)
    }

    /// Whether the server reads COPY data. It then ignores all other messages of a client.
    pub fn is_reading_copy(&self) -> bool {
        matches!(self.copy, Copy::Reading { .. })
    }

    /// Whether the next message has to wait, whatever it is, because the server's behaviour is not known yet.
    pub fn must_wait(&self) -> bool {
        self.is_placing || !matches!(self.copy, Copy::No | Copy::Reading { .. })
    }

    /// Whether the meaning of this name is unknown when the next message runs.
    pub fn is_in_doubt(&self, name: &[u8]) -> bool {
        (self.taking_all > 0 && !name.is_empty())
            || matches!(self.naming.meaning(name, self.group), Meaning::InDoubt)
    }

    /// The meaning of this name when the next message runs, unless it is in doubt.
    pub fn meaning<'n>(&'n self, names: &'n Names<S>, name: &[u8]) -> Option<&'n S> {
        match self.naming.meaning(name, self.group) {
            Meaning::Settled => names.get(name),
            Meaning::Will(meaning) => meaning,
            Meaning::InDoubt => None,
        }
    }

    /// Number of records of portals that there may be. A Bind has to change them if its portal needs a record, or if
    /// there may be one.
    pub fn portals(&self) -> usize {
        self.portals.len() + self.binding.len()
    }

    /// The record of this portal when the next message runs. None if it has none, and an error while that is unknown.
    pub fn portal(&self, name: &[u8]) -> Result<Option<&S>, InDoubt> {
        match self.binding.meaning(name, self.group) {
            Meaning::Settled => Ok(self.portals.get(name)),
            Meaning::Will(record) => Ok(record),
            Meaning::InDoubt => Err(InDoubt),
        }
    }

    /// The transaction has ended, and its portals with it.
    pub fn clear_portals(&mut self) {
        self.portals.clear();
    }

    /// The statement that is certain to be prepared under this name when the next message runs.
    pub fn preparation(&self, prepared: &PreparedStatements, name: StatementName) -> Option<Preparation> {
        match self.preparing.meaning(&name, self.group) {
            Meaning::Settled if self.taking_all == 0 => prepared.get(name),
            Meaning::Will(there) => there.copied(),
            Meaning::Settled | Meaning::InDoubt => None,
        }
    }

    /// Whether it is unknown what is prepared under this name when the next message runs.
    pub fn is_preparation_in_doubt(&self, name: StatementName) -> bool {
        match self.preparing.meaning(&name, self.group) {
            Meaning::InDoubt => true,
            Meaning::Settled => self.taking_all > 0,
            Meaning::Will(_) => false,
        }
    }

    /// The client's name of the statement that the next reply describes to the gateway.
    pub fn described(&self) -> Option<&Bytes> {
        match self.owed.front() {
            Some(Message::OwnDescribe(name)) => Some(name),
            _ => None,
        }
    }

    /// The statements that can be closed if there are too many, the oldest first. No unanswered message refers to them.
    pub fn oldest(&self, prepared: &PreparedStatements) -> impl Iterator<Item = u64> {
        prepared.too_many().filter(|statement| {
            let place = StatementName::Named(*statement);
            matches!(self.preparing.meaning(&place, self.group), Meaning::Settled)
        })
    }

    /// Whether a Flush has to be sent. Without it the server may wait for more messages before it answers.
    /// The caller asks directly before sending.
    pub fn needs_flush(&mut self) -> bool {
        !std::mem::replace(&mut self.is_flushed, true) && !self.owed.is_empty()
    }

    /// Records a message that was sent. While the server is known to skip, only a Sync is recorded.
    pub fn sent(&mut self, message: Message<S>) {
        let is_sync = matches!(message, Message::Sync | Message::OwnUnit);
        if is_sync && let Copy::Reading { syncs } = &mut self.copy {
            *syncs += 1; // ignored, unless the COPY fails before the server has read it
            return;
        }
        self.skips = false;
        self.has_shown_rows |= message.can_show_rows();
        match &message {
            Message::Sync | Message::Query(_) | Message::FunctionCall => {
                self.is_open = false;
                self.whole_units += 1;
            }
            Message::Placeholder(_) => self.is_placing = true,
            Message::OwnParse(_)
            | Message::OwnClose(_)
            | Message::OwnDescribe(_)
            | Message::OwnBegin
            | Message::OwnUnit => {}
            _ => self.is_open = true,
        }
        if let Message::Execute(runs) | Message::Query(runs) = &message {
            self.taking_all += usize::from(runs.deallocates_all);
            if runs.may_copy {
                self.copy = Copy::Possible;
            }
        }
        let (name, place) = message.changes();
        if let Some((name, meaning)) = name {
            self.naming.add(name.clone(), meaning.cloned(), self.group);
        }
        if let Some((place, preparation)) = place {
            self.preparing.add(place, preparation, self.group);
        }
        if let Message::Bind(_, Some(change)) = &message {
            let (portal, record) = &**change;
            self.binding.add(portal.clone(), record.clone(), self.group);
        }
        if let Message::Query(RunEffects { deallocates: Some(name), .. }) = &message {
            // Messages after a Query run whether or not the Query succeeds.
            self.naming.add(name.clone(), None, u64::MAX);
        }
        self.is_flushed = is_sync || matches!(message, Message::Query(_) | Message::FunctionCall);
        self.group += u64::from(is_sync);
        self.owed.push_back(message);
    }

    /// Records that all COPY data of the client was sent.
    pub fn sent_copy_end(&mut self) {
        if let Copy::Reading { syncs } = self.copy {
            self.copy = Copy::Ended { syncs };
            self.is_flushed = false;
        }
    }

    /// Processes a reply and applies its effects to names.
    pub fn received(
        &mut self,
        names: &mut Names<S>,
        prepared: &mut PreparedStatements,
        reply: u8,
        body: &[u8],
    ) -> Reply {
        use Message::{
            Bind, Close, Describe, Execute, FunctionCall, OwnBegin, OwnClose, OwnDescribe, OwnParse, OwnUnit,
            Parse, Placeholder, Query, Sync,
        };
        match (reply, self.owed.front()) {
            (tag::PARSE_COMPLETE, Some(Parse(..) | OwnParse(_) | Placeholder(_)))
            | (tag::BIND_COMPLETE, Some(Bind(..)))
            | (tag::CLOSE_COMPLETE, Some(Close(_) | OwnClose(_)))
            | (tag::COMMAND_COMPLETE, Some(OwnBegin))
            | (tag::NO_DATA | tag::ROW_DESCRIPTION, Some(Describe | OwnDescribe(_)))
            | (tag::EMPTY_QUERY | tag::PORTAL_SUSPENDED, Some(Execute(_))) => self.succeeded(names, prepared),
            (tag::PARAMETER_DESCRIPTION, Some(OwnDescribe(_))) => Reply::Swallow,
            (tag::COMMAND_COMPLETE, Some(Execute(_))) => {
                self.completed(names, prepared, body);
                self.succeeded(names, prepared)
            }
            (tag::PARSE_COMPLETE | tag::BIND_COMPLETE, Some(OwnBegin)) => Reply::Swallow,
            (tag::ERROR, Some(OwnBegin)) => Reply::NotBegun,
            (
                tag::ERROR | tag::PARSE_COMPLETE | tag::BIND_COMPLETE | tag::COMMAND_COMPLETE,
                Some(OwnUnit),
            ) => Reply::Swallow,
            (tag::COMMAND_COMPLETE, _) => {
                self.completed(names, prepared, body);
                if let Copy::Ended { .. } = self.copy {
                    self.copy = Copy::Possible; // the Query can have another COPY
                }
                Reply::Forward
            }
            (tag::COPY_IN, _) => {
                self.copy = Copy::Reading { syncs: 0 };
                Reply::Forward
            }
            (tag::ERROR, front) => {
                self.has_shown_rows = true; // its cause can be new
                let is_query = matches!(front, None | Some(Query(_) | FunctionCall | Sync));
                if !is_query {
                    self.failed(names, prepared);
                }
                // A message that can be a COPY is the last message.
                let is_last = self.owed.len() <= usize::from(is_query);
                if is_last { self.copy_failed(is_query) } else { Reply::Forward }
            }
            (tag::READY, Some(Sync | OwnUnit | Query(_) | FunctionCall)) => self.succeeded(names, prepared),
            (tag::READY, _) => self.copy.counts_sync(),
            (tag::CLOSE_COMPLETE, _) => self.copy_asked(),
            (tag::PARSE_COMPLETE | tag::BIND_COMPLETE | tag::NO_DATA, _) => Reply::Unexpected,
            _ => Reply::Forward,
        }
    }

    /// The earliest message has succeeded.
    fn succeeded(&mut self, names: &mut Names<S>, prepared: &mut PreparedStatements) -> Reply {
        let Some(message) = self.take() else { return Reply::Unexpected };
        if self.owed.is_empty() && !self.copy.asks() {
            self.copy = Copy::No;
        }
        let is_own = matches!(
            message,
            Message::OwnParse(_)
                | Message::OwnClose(_)
                | Message::OwnDescribe(_)
                | Message::Placeholder(_)
                | Message::OwnBegin
                | Message::OwnUnit
        );
        if let Message::Placeholder(name) = &message {
            self.placeholders.push(name.clone());
        }
        let (name, place) = message.changes();
        match name {
            // A command tag has shown whether a statement removed the name.
            _ if matches!(message, Message::Execute(_)) => {}
            Some((name, Some(meaning))) => drop(names.insert(name.clone(), meaning.clone())),
            Some((name, None)) => drop(names.remove(name)),
            None => {}
        }
        if let Some((place, preparation)) = place {
            prepared.set(place, preparation);
        }
        if let Message::Bind(_, Some(change)) = message {
            let (portal, record) = *change;
            match record {
                Some(record) => drop(self.portals.insert(portal, record)),
                None => drop(self.portals.remove(&portal)),
            }
        }
        if is_own { Reply::Swallow } else { Reply::Forward }
    }

    /// A command tag: applies the effects of commands that remove names.
    fn completed(&mut self, names: &mut Names<S>, prepared: &mut PreparedStatements, tag: &[u8]) {
        match (tag, self.owed.front()) {
            (b"DISCARD ALL\0" | b"DEALLOCATE ALL\0", _) => {
                prepared.clear();
                names.retain(|name, _| name.is_empty());
            }
            (b"DEALLOCATE\0", Some(Message::Execute(runs) | Message::Query(runs))) => {
                if let Some(name) = &runs.deallocates {
                    self.placeholders.retain(|placeholder| placeholder != name);
                    names.remove(name);
                }
            }
            _ => {}
        }
    }

    /// The earliest message, of an extended query, has failed. The server answers nothing up to the next
    /// Sync, not even a Query, whether or not that Sync has been sent.
    fn failed(&mut self, names: &mut Names<S>, prepared: &mut PreparedStatements) {
        let failed = self.take();
        // The server drops the unnamed statement before it reads the text of the next one.
        if let Some(Message::Parse(name, ..)) = &failed
            && name.is_empty()
        {
            names.remove(name);
        }
        let parsed = failed.as_ref().and_then(|message| message.changes().1);
        if let Some((StatementName::Unnamed, _)) = parsed {
            prepared.set(StatementName::Unnamed, None);
        }
        while self.owed.front().is_some_and(|message| !matches!(message, Message::Sync | Message::OwnUnit)) {
            self.take();
        }
        self.skips = self.owed.is_empty();
    }

    /// An error has ended a COPY, if there was one.
    fn copy_failed(&mut self, is_query: bool) -> Reply {
        match self.copy {
            Copy::Reading { syncs } | Copy::Ended { syncs } if syncs > 0 => {
                self.copy = Copy::Asking { seen: 0, is_query };
                self.skips = false;
                Reply::ForwardAndAsk
            }
            Copy::Asking { .. } => Reply::Forward,
            _ => {
                self.copy = Copy::No;
                Reply::Forward
            }
        }
    }

    /// The server has reported which Syncs it has read. If one of the client's is among them, the client's
    /// extended query has ended.
    fn copy_asked(&mut self) -> Reply {
        let Copy::Asking { seen: seen @ 1.., is_query } = self.copy else { return Reply::Unexpected };
        self.copy = Copy::No;
        self.skips = !is_query && seen == 1;
        self.is_open = self.skips;
        Reply::Swallow
    }

    /// Removes the earliest message.
    fn take(&mut self) -> Option<Message<S>> {
        let message = self.owed.pop_front()?;
        self.is_placing &= !self.owed.is_empty();
        let (name, place) = message.changes();
        if let Some((name, _)) = name {
            self.naming.remove(name);
        }
        if let Some((place, _)) = place {
            self.preparing.remove(&place);
        }
        if let Message::Bind(_, Some(change)) = &message {
            self.binding.remove(&change.0);
        }
        match &message {
            Message::Sync | Message::FunctionCall => self.whole_units -= 1,
            Message::Query(runs) => {
                self.whole_units -= 1;
                self.taking_all -= usize::from(runs.deallocates_all);
                if let Some(name) = &runs.deallocates {
                    self.naming.remove(name);
                }
            }
            Message::Execute(runs) => self.taking_all -= usize::from(runs.deallocates_all),
            _ => {}
        }
        Some(message)
    }
}
