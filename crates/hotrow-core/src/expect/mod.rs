//! What the server owes on a connection that a session holds, what it does with each message, and what the client's names
//! of statements mean.
//!
//! Every message that is answered leaves an entry here, with what it does to names if it succeeds. A reply takes the entry
//! off and does that. An error takes off the entries that the server skips, and those have done nothing. So the names are
//! always those of the replies that have come.
//!
//! A message that is sent means what the names are when the server gets to it. Messages of one group, which are those
//! between two Syncs, skip each other behind an error: for a message that is run, all before it in its group have succeeded.
//! What an unanswered message of an earlier group did is not known. A message that depends on it waits for the answer, which
//! comes without another message of the client's: before the wait the server is asked to send what it has to say (Flush).

mod copy;
mod names;
mod prepared;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use hotrow_wire::backend::tag;

use copy::Copy;
use names::{Meaning, Unanswered};
pub use prepared::{Preparation, Prepared, StatementName};

/// A message that the server answers, or skips behind an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<S> {
    /// A Parse of the client's: the name, what it stands for if the Parse succeeds, and what the connection has prepared then.
    Parse(Bytes, S, Option<Preparation>),
    /// A Parse of the gateway's.
    OwnParse(Preparation),
    /// A Parse of the gateway's of an empty text under a name of the client's, which the next message finds taken, or takes
    /// away.
    Show(Bytes),
    /// A Bind, of the client's statement of this name.
    Bind(Bytes),
    /// A Describe.
    Describe,
    /// An Execute.
    Execute(RunEffects),
    /// A Close of the client's: the statement's name, if it is one.
    Close(Option<Bytes>),
    /// A Close of the gateway's: what the connection has no more, if it had.
    OwnClose(Option<StatementName>),
    /// A Sync.
    Sync,
    /// A Query.
    Query(RunEffects),
    /// A FunctionCall.
    FunctionCall,
}

/// What a statement that is run does besides its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunEffects {
    /// It may be COPY FROM STDIN.
    pub may_copy: bool,
    /// It is DEALLOCATE of the client's statement of this name.
    pub deallocates: Option<Bytes>,
    /// It is DEALLOCATE ALL, or does the same.
    pub deallocates_all: bool,
}

/// What to do with a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is the client's.
    Forward,
    /// It answers the gateway.
    Swallow,
    /// It is the client's: an error of a COPY while Syncs were on their way, which the server has ignored if the COPY has read
    /// them. It has to be asked, by a Sync, a Close of a statement that is not there, and a Flush.
    ForwardAndAsk,
    /// The server sent what it was not asked for: the connection is of no use.
    Unexpected,
}

/// What a session's connection owes, and the client's names, which outlive the connection.
#[derive(Debug)]
pub struct Expected<S> {
    /// What the client's names stand for, as of the replies that have come.
    pub names: BTreeMap<Bytes, S>,
    /// The client's names that the connection was shown, until they are closed there.
    shown: Vec<Bytes>,
    /// It was shown one, and the message that this is for is not answered.
    is_showing: bool,
    owed: VecDeque<Message<S>>,
    /// How many Syncs, Queries and FunctionCalls are among them.
    whole_units: usize,
    /// How many of them take all names away.
    taking_all: usize,
    /// What the owed messages do to the client's names.
    naming: Unanswered<Bytes, S>,
    /// What they do to what is prepared on the connection.
    preparing: Unanswered<StatementName, Preparation>,
    /// Syncs that were ever sent: the number of the group that the next message belongs to.
    group: u64,
    /// The client has begun an extended query that neither a Sync nor a Query has ended.
    is_open: bool,
    /// An extended query has failed and its Sync is not sent yet: the server skips all that comes before it.
    skips: bool,
    /// The server answers all that is owed without another message.
    is_flushed: bool,
    copy: Copy,
}

impl<S> Default for Expected<S> {
    fn default() -> Self {
        Expected {
            names: BTreeMap::new(),
            shown: Vec::new(),
            is_showing: false,
            owed: VecDeque::new(),
            whole_units: 0,
            taking_all: 0,
            naming: Unanswered::default(),
            preparing: Unanswered::default(),
            group: 0,
            is_open: false,
            skips: false,
            is_flushed: false,
            copy: Copy::No,
        }
    }
}

impl<S: Clone> Expected<S> {
    /// Nothing is owed and nothing was begun: between two units, or idle.
    pub fn is_settled(&self) -> bool {
        self.owed.is_empty() && !self.skips && !self.is_open && self.copy == Copy::No
    }

    /// The connection is gone, or another session's: nothing is owed any more. The names stay.
    pub fn disconnect(&mut self) {
        let names = std::mem::take(&mut self.names);
        *self = Expected { names, group: self.group, ..Expected::default() };
    }

    /// Whether everything that was sent is answered.
    pub fn owes_nothing(&self) -> bool {
        self.owed.is_empty()
    }

    /// Whether the server is known to skip everything up to the next Sync. Nothing else need be sent.
    pub fn skips(&self) -> bool {
        self.skips
    }

    /// The client's name of the statement that the earliest message, if it is a Bind, has bound.
    pub fn bound(&self) -> Option<&Bytes> {
        match self.owed.front() {
            Some(Message::Bind(name)) => Some(name),
            _ => None,
        }
    }

    /// Whether a Sync or Query is not answered yet.
    pub fn has_unit_under_way(&self) -> bool {
        self.whole_units > 0
    }

    /// The names that the connection was shown, to be closed with the next message that is not skipped.
    pub fn take_shown(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.shown)
    }

    /// Whether the server reads COPY data: it ignores everything else that a client may send then.
    pub fn is_reading_copy(&self) -> bool {
        matches!(self.copy, Copy::Reading { .. })
    }

    /// Whether the next message waits, whatever it is: it is not known yet what the server does with it.
    pub fn must_wait(&self) -> bool {
        self.is_showing || !matches!(self.copy, Copy::No | Copy::Reading { .. })
    }

    /// Whether it is not known what this name stands for when the next message is run.
    pub fn is_in_doubt(&self, name: &[u8]) -> bool {
        (self.taking_all > 0 && !name.is_empty())
            || matches!(self.naming.meaning(name, self.group), Meaning::InDoubt)
    }

    /// What this name stands for if the next message is run, where that is not in doubt.
    pub fn meaning(&self, name: &[u8]) -> Option<&S> {
        match self.naming.meaning(name, self.group) {
            Meaning::Settled => self.names.get(name),
            Meaning::Will(meaning) => meaning,
            Meaning::InDoubt => None,
        }
    }

    /// Whether this statement is there for sure if the next message is run, parsed no earlier than the client's.
    pub fn is_prepared(&self, prepared: &Prepared, wanted: Preparation) -> bool {
        let there = match self.preparing.meaning(&wanted.name, self.group) {
            Meaning::Settled if self.taking_all == 0 => prepared.get(wanted.name),
            Meaning::Will(there) => there.copied(),
            Meaning::Settled | Meaning::InDoubt => None,
        };
        there.is_some_and(|there| there.statement == wanted.statement && there.parsed >= wanted.parsed)
    }

    /// The statement that makes room for another one, if there are too many; one that no message is about.
    pub fn oldest(&self, prepared: &Prepared) -> Option<StatementName> {
        prepared
            .too_many()
            .find(|place| matches!(self.preparing.meaning(place, self.group), Meaning::Settled))
    }

    /// Whether a Flush has to be sent, or else the server may wait for more before it answers. Asked right before it is sent.
    pub fn needs_flush(&mut self) -> bool {
        !std::mem::replace(&mut self.is_flushed, true) && !self.owed.is_empty()
    }

    /// Notes a message that was sent. While the server is known to skip, only a Sync is.
    pub fn sent(&mut self, message: Message<S>) {
        let is_sync = matches!(message, Message::Sync);
        if is_sync && let Copy::Reading { syncs } = &mut self.copy {
            *syncs += 1; // ignored, unless the COPY fails before it has read it
            return;
        }
        self.skips = false;
        match &message {
            Message::Sync | Message::Query(_) | Message::FunctionCall => {
                self.is_open = false;
                self.whole_units += 1;
            }
            Message::Show(_) => self.is_showing = true,
            Message::OwnParse(_) | Message::OwnClose(_) => {}
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
        if let Message::Query(RunEffects { deallocates: Some(name), .. }) = &message {
            // What is behind a Query is run whether or not it succeeds.
            self.naming.add(name.clone(), None, u64::MAX);
        }
        self.is_flushed = matches!(message, Message::Sync | Message::Query(_) | Message::FunctionCall);
        self.group += u64::from(is_sync);
        self.owed.push_back(message);
    }

    /// Notes that the client's COPY data are all sent.
    pub fn sent_copy_end(&mut self) {
        if let Copy::Reading { syncs } = self.copy {
            self.copy = Copy::Ended { syncs };
            self.is_flushed = false;
        }
    }

    /// Takes in a reply, and does to names what it says.
    pub fn received(&mut self, prepared: &mut Prepared, reply: u8, body: &[u8]) -> Reply {
        use Message::{
            Bind, Close, Describe, Execute, FunctionCall, OwnClose, OwnParse, Parse, Query, Show, Sync,
        };
        match (reply, self.owed.front()) {
            (tag::PARSE_COMPLETE, Some(Parse(..) | OwnParse(_) | Show(_)))
            | (tag::BIND_COMPLETE, Some(Bind(_)))
            | (tag::CLOSE_COMPLETE, Some(Close(_) | OwnClose(_)))
            | (tag::NO_DATA | tag::ROW_DESCRIPTION, Some(Describe))
            | (tag::EMPTY_QUERY | tag::PORTAL_SUSPENDED, Some(Execute(_))) => self.succeeded(prepared),
            (tag::COMMAND_COMPLETE, Some(Execute(_))) => {
                self.completed(prepared, body);
                self.succeeded(prepared)
            }
            (tag::COMMAND_COMPLETE, _) => {
                self.completed(prepared, body);
                if let Copy::Ended { .. } = self.copy {
                    self.copy = Copy::Possible; // the Query may have another one
                }
                Reply::Forward
            }
            (tag::COPY_IN, _) => {
                self.copy = Copy::Reading { syncs: 0 };
                Reply::Forward
            }
            (tag::ERROR, front) => {
                let is_query = matches!(front, None | Some(Query(_) | FunctionCall | Sync));
                if !is_query {
                    self.failed(prepared);
                }
                // What may be a COPY is the last message.
                let is_last = self.owed.len() <= usize::from(is_query);
                if is_last { self.copy_failed(is_query) } else { Reply::Forward }
            }
            (tag::READY, Some(Sync | Query(_) | FunctionCall)) => self.succeeded(prepared),
            (tag::READY, _) => self.copy.counts_sync(),
            (tag::CLOSE_COMPLETE, _) => self.copy_asked(),
            (tag::PARSE_COMPLETE | tag::BIND_COMPLETE | tag::NO_DATA, _) => Reply::Unexpected,
            _ => Reply::Forward,
        }
    }

    /// The earliest message has done what it was to do.
    fn succeeded(&mut self, prepared: &mut Prepared) -> Reply {
        let Some(message) = self.take() else { return Reply::Unexpected };
        if self.owed.is_empty() && !self.copy.asks() {
            self.copy = Copy::No;
        }
        let is_own = matches!(message, Message::OwnParse(_) | Message::OwnClose(_) | Message::Show(_));
        if let Message::Show(name) = &message {
            self.shown.push(name.clone());
        }
        let (name, place) = message.changes();
        match name {
            // A command's tag has said whether it has taken the name away.
            _ if matches!(message, Message::Execute(_)) => {}
            Some((name, Some(meaning))) => drop(self.names.insert(name.clone(), meaning.clone())),
            Some((name, None)) => drop(self.names.remove(name)),
            None => {}
        }
        if let Some((place, preparation)) = place {
            prepared.set(place, preparation);
        }
        if is_own { Reply::Swallow } else { Reply::Forward }
    }

    /// A command's tag: what the commands that take names away have done.
    fn completed(&mut self, prepared: &mut Prepared, tag: &[u8]) {
        match (tag, self.owed.front()) {
            (b"DISCARD ALL\0" | b"DEALLOCATE ALL\0", _) => {
                prepared.clear();
                self.names.retain(|name, _| name.is_empty());
            }
            (b"DEALLOCATE\0", Some(Message::Execute(runs) | Message::Query(runs))) => {
                if let Some(name) = &runs.deallocates {
                    self.shown.retain(|shown| shown != name);
                    self.names.remove(name);
                }
            }
            _ => {}
        }
    }

    /// The earliest message, of an extended query, has failed. The server answers nothing up to the next Sync, not even a
    /// Query, whether that Sync was sent already or comes later.
    fn failed(&mut self, prepared: &mut Prepared) {
        let failed = self.take();
        // The server drops the unnamed statement before it looks at the text of the next.
        if let Some(Message::Parse(name, ..)) = &failed
            && name.is_empty()
        {
            self.names.remove(name);
        }
        let parsed = failed.as_ref().and_then(|message| message.changes().1);
        if let Some((StatementName::Unnamed, _)) = parsed {
            prepared.set(StatementName::Unnamed, None);
        }
        while self.owed.front().is_some_and(|message| !matches!(message, Message::Sync)) {
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

    /// The server has said which Syncs it has read: the client's extended query is over if it was one of the client's.
    fn copy_asked(&mut self) -> Reply {
        let Copy::Asking { seen: seen @ 1.., is_query } = self.copy else { return Reply::Unexpected };
        self.copy = Copy::No;
        self.skips = !is_query && seen == 1;
        self.is_open = self.skips;
        Reply::Swallow
    }

    /// Takes the earliest message off.
    fn take(&mut self) -> Option<Message<S>> {
        let message = self.owed.pop_front()?;
        self.is_showing &= !self.owed.is_empty();
        let (name, place) = message.changes();
        if let Some((name, _)) = name {
            self.naming.remove(name);
        }
        if let Some((place, _)) = place {
            self.preparing.remove(&place);
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

impl<S> Message<S> {
    /// What the message does if it succeeds: to one of the client's names, and to what the connection has prepared.
    #[expect(clippy::type_complexity, reason = "two changes, each of a thing and what becomes of it")]
    fn changes(&self) -> (Option<(&Bytes, Option<&S>)>, Option<(StatementName, Option<Preparation>)>) {
        static UNNAMED: Bytes = Bytes::new();
        let prepares = |preparation: &Preparation| (preparation.name, Some(*preparation));
        match self {
            Message::Parse(name, meaning, preparation) => {
                (Some((name, Some(meaning))), preparation.as_ref().map(prepares))
            }
            Message::OwnParse(preparation) => (None, Some(prepares(preparation))),
            Message::Close(Some(name)) => {
                (Some((name, None)), name.is_empty().then_some((StatementName::Unnamed, None)))
            }
            Message::OwnClose(place) => (None, place.map(|place| (place, None))),
            Message::Execute(RunEffects { deallocates: Some(name), .. }) => (Some((name, None)), None),
            // The server drops the unnamed statement at every Query.
            Message::Query(_) => (Some((&UNNAMED, None)), Some((StatementName::Unnamed, None))),
            _ => (None, None),
        }
    }
}
