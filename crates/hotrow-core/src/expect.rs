//! Which replies the server owes on a connection that a session holds, and which of them are for the client.
//!
//! The gateway prepares statements on its own account between the client's messages. Every message that is answered
//! leaves an entry here; a reply takes one off, and the entry says who gets it.

use std::collections::VecDeque;

use hotrow_wire::backend::tag;

/// A message that the server will answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owed {
    /// A Parse of the client's, for the statement of this number.
    Parse(u64),
    /// A Parse of the gateway's, likewise.
    OwnParse(u64),
    /// A Bind.
    Bind,
    /// A Describe.
    Describe,
    /// An Execute.
    Execute,
    /// A Close of the client's.
    Close,
    /// A Close of the gateway's.
    OwnClose,
    /// A Sync.
    Sync,
    /// A Query or a FunctionCall, answered up to a ReadyForQuery.
    Query,
    /// A CopyDone or CopyFail: no reply of its own, but it ends what the server ignores.
    CopyEnd,
}

/// What to do with a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is the client's.
    Forward,
    /// It answers the gateway.
    Swallow,
    /// It is the client's: its Parse of this statement has succeeded.
    Prepared(u64),
    /// It is the client's: its Close has been done.
    Closed,
    /// The server sent what it was not asked for: the connection is of no use.
    Unexpected,
}

/// The replies a connection owes, earliest first.
#[derive(Debug)]
pub struct Expected {
    owed: VecDeque<Owed>,
    /// A Sync or Query is among them.
    has_whole_unit: bool,
    copying_in: bool,
    /// An extended query has failed and its Sync is not sent yet: the server ignores all that comes before it.
    skipping: bool,
    /// Parse and Close messages that failed or were skipped because of an earlier error.
    skipped: Vec<Owed>,
}

impl Default for Expected {
    fn default() -> Self {
        // Room for one statement as drivers send it.
        Expected {
            owed: VecDeque::with_capacity(8),
            has_whole_unit: false,
            copying_in: false,
            skipping: false,
            skipped: Vec::new(),
        }
    }
}

impl Expected {
    /// Nothing is owed: between two units, or idle.
    pub fn is_settled(&self) -> bool {
        self.owed.is_empty() && !self.skipping
    }

    /// The Parse and Close messages that failed, or were skipped behind another failure, since this was last asked.
    pub fn take_skipped(&mut self) -> Vec<Owed> {
        std::mem::take(&mut self.skipped)
    }

    /// Whether a unit was sent as a whole and is not answered yet.
    pub fn has_unit_under_way(&self) -> bool {
        self.has_whole_unit
    }

    fn look_for_whole_unit(&mut self) {
        self.has_whole_unit = self.owed.iter().any(|owed| matches!(owed, Owed::Sync | Owed::Query));
    }

    /// Whether it is open if this statement will be there: its Parse stands in an earlier unit, which is not answered
    /// and may fail.
    pub fn is_in_doubt(&self, statement: u64) -> bool {
        let mut is_earlier = false;
        for owed in self.owed.iter().rev() {
            match owed {
                Owed::Sync | Owed::Query => is_earlier = true,
                Owed::Parse(id) | Owed::OwnParse(id) if *id == statement => return is_earlier,
                _ => {}
            }
        }
        false
    }

    /// Notes a message that was sent.
    pub fn sent(&mut self, owed: Owed) {
        if self.skipping && owed != Owed::Sync {
            return self.skip(owed);
        }
        self.skipping = false;
        match owed {
            Owed::CopyEnd if self.owed.is_empty() => {} // no COPY: the server ignores it
            Owed::Sync if self.copying_in => {}         // ignored by the server while it reads COPY data
            Owed::CopyEnd => {
                self.copying_in = false;
                self.owed.push_back(owed);
            }
            owed => {
                self.has_whole_unit |= matches!(owed, Owed::Sync | Owed::Query);
                self.owed.push_back(owed);
            }
        }
    }

    /// Takes in a reply's tag.
    pub fn received(&mut self, reply: u8) -> Reply {
        match reply {
            tag::PARSE_COMPLETE => match self.pop() {
                Some(Owed::Parse(statement)) => Reply::Prepared(statement),
                Some(Owed::OwnParse(_)) => Reply::Swallow,
                _ => Reply::Unexpected,
            },
            tag::BIND_COMPLETE => self.pop_if(Owed::Bind),
            tag::CLOSE_COMPLETE => match self.pop() {
                Some(Owed::Close) => Reply::Closed,
                Some(Owed::OwnClose) => Reply::Swallow,
                _ => Reply::Unexpected,
            },
            tag::NO_DATA => self.pop_if(Owed::Describe),
            tag::ROW_DESCRIPTION if self.front() == Some(Owed::Describe) => self.pop_if(Owed::Describe),
            tag::COMMAND_COMPLETE | tag::EMPTY_QUERY | tag::PORTAL_SUSPENDED
                if self.front() == Some(Owed::Execute) =>
            {
                self.copying_in = false;
                self.pop_if(Owed::Execute)
            }
            tag::COPY_IN => {
                self.copy_begins();
                Reply::Forward
            }
            tag::ERROR => {
                self.skip_to_sync();
                Reply::Forward
            }
            tag::READY => {
                self.copying_in = false;
                let owed = self.pop();
                self.look_for_whole_unit();
                match owed {
                    Some(Owed::Sync | Owed::Query) => Reply::Forward,
                    _ => Reply::Unexpected,
                }
            }
            _ => Reply::Forward,
        }
    }

    fn front(&mut self) -> Option<Owed> {
        while self.owed.front() == Some(&Owed::CopyEnd) {
            self.owed.pop_front();
        }
        self.owed.front().copied()
    }

    fn pop(&mut self) -> Option<Owed> {
        self.front();
        let owed = self.owed.pop_front();
        self.front();
        owed
    }

    fn pop_if(&mut self, owed: Owed) -> Reply {
        if self.pop() == Some(owed) { Reply::Forward } else { Reply::Unexpected }
    }

    /// The server reads COPY data from now on: it ignores every Sync up to the end of the data, also those that
    /// were sent before it said so.
    fn copy_begins(&mut self) {
        let end = self.owed.iter().position(|owed| *owed == Owed::CopyEnd);
        self.copying_in = end.is_none();
        if self.front() != Some(Owed::Execute) {
            return; // a simple query: there is one ReadyForQuery at its end
        }
        let end = end.unwrap_or(self.owed.len());
        let mut index = 0;
        self.owed.retain(|owed| {
            index += 1;
            !(*owed == Owed::Sync && index <= end)
        });
        self.look_for_whole_unit();
    }

    /// After an error in an extended query the server answers nothing up to the next Sync, not even a simple query,
    /// whether that Sync was sent already or comes later.
    fn skip_to_sync(&mut self) {
        self.copying_in = false;
        if matches!(self.front(), None | Some(Owed::Sync | Owed::Query)) {
            return; // what ends its unit by itself has failed
        }
        while let Some(owed) = self.front() {
            if owed == Owed::Sync {
                return;
            }
            self.owed.pop_front();
            self.skip(owed);
        }
        self.skipping = true;
    }

    fn skip(&mut self, owed: Owed) {
        if matches!(owed, Owed::Parse(_) | Owed::OwnParse(_) | Owed::Close) {
            self.skipped.push(owed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(owed: &[Owed]) -> Expected {
        let mut expected = Expected::default();
        owed.iter().for_each(|owed| expected.sent(*owed));
        expected
    }

    #[test]
    fn own_replies_are_swallowed_between_the_clients() {
        use Owed::*;
        let mut e = expected(&[OwnClose, OwnParse(7), Bind, Describe, Execute, Sync]);
        let replies: Vec<_> = b"312TDDCZ".iter().map(|tag| e.received(*tag)).collect();
        assert_eq!(replies[..2], [Reply::Swallow, Reply::Swallow]);
        assert!(replies[2..].iter().all(|reply| *reply == Reply::Forward), "{replies:?}");
        assert!(e.is_settled());
    }

    #[test]
    fn an_error_skips_to_the_next_sync_only() {
        use Owed::*;
        let mut e = expected(&[Bind, Execute, Bind, Execute, Sync, Bind, Execute, Sync]);
        for tag in b"2EZ2CZ" {
            assert_eq!(e.received(*tag), Reply::Forward);
        }
        assert!(e.is_settled());
    }

    #[test]
    fn what_an_error_leaves_unprepared_is_told() {
        let mut e = expected(&[Owed::Parse(1), Owed::Parse(2), Owed::Bind, Owed::OwnParse(3), Owed::Sync]);
        assert_eq!(e.received(b'1'), Reply::Prepared(1));
        assert_eq!(e.received(b'E'), Reply::Forward);
        assert_eq!(e.take_skipped(), [Owed::Parse(2), Owed::OwnParse(3)]);
        assert_eq!(e.take_skipped(), []);
    }

    #[test]
    fn what_is_sent_after_an_error_is_skipped_up_to_the_sync() {
        use Owed::*;
        let mut e = expected(&[Bind, Execute]);
        assert_eq!(e.received(b'E'), Reply::Forward);
        assert!(!e.is_settled(), "the server waits for a Sync");
        for owed in [Parse(1), Bind, Execute, Close, Query] {
            e.sent(owed);
        }
        assert_eq!(e.take_skipped(), [Parse(1), Close]);
        for owed in [Sync, Bind, Execute, Sync] {
            e.sent(owed);
        }
        for tag in b"Z2CZ" {
            assert_eq!(e.received(*tag), Reply::Forward, "{}", char::from(*tag));
        }
        assert!(e.is_settled());
    }

    #[test]
    fn a_simple_query_behind_an_error_is_skipped_and_one_that_fails_skips_nothing() {
        use Owed::*;
        let mut e = expected(&[Bind, Query, Sync, Query, Query]);
        for tag in b"EZEZCZ" {
            assert_eq!(e.received(*tag), Reply::Forward, "{}", char::from(*tag));
        }
        assert!(e.is_settled());
    }

    #[test]
    fn a_statement_is_in_doubt_until_its_unit_is_answered() {
        use Owed::*;
        let mut e = expected(&[Parse(1), Bind, Execute]);
        assert!(!e.is_in_doubt(1), "in the same unit it is there or the rest is skipped");
        assert!(!e.has_unit_under_way());
        e.sent(Sync);
        assert!(e.has_unit_under_way());
        assert!(e.is_in_doubt(1) && !e.is_in_doubt(2));
        assert_eq!(e.received(b'1'), Reply::Prepared(1));
        assert!(!e.is_in_doubt(1));
        e.sent(OwnParse(1));
        assert!(!e.is_in_doubt(1));
    }

    #[test]
    fn a_query_owes_until_ready() {
        let mut e = expected(&[Owed::Query, Owed::Query]);
        for tag in b"TDCTDCEZ" {
            assert_eq!(e.received(*tag), Reply::Forward);
        }
        assert!(!e.is_settled());
        assert_eq!(e.received(b'Z'), Reply::Forward);
        assert!(e.is_settled());
        assert_eq!(e.received(b'Z'), Reply::Unexpected);
    }

    #[test]
    fn syncs_during_copy_in_are_ignored_as_the_server_does() {
        use Owed::*;
        let mut e = expected(&[Bind, Execute, Sync]);
        assert_eq!(e.received(b'2'), Reply::Forward);
        assert_eq!(e.received(b'G'), Reply::Forward);
        e.sent(Sync);
        e.sent(CopyEnd);
        e.sent(Sync);
        assert_eq!(e.received(b'C'), Reply::Forward);
        assert!(!e.is_settled());
        assert_eq!(e.received(b'Z'), Reply::Forward);
        assert!(e.is_settled());
    }

    #[test]
    fn a_copy_that_was_sent_in_one_go() {
        use Owed::*;
        let mut e = expected(&[Bind, Execute, Sync, CopyEnd, Sync]);
        for tag in b"2GCZ" {
            assert_eq!(e.received(*tag), Reply::Forward);
        }
        assert!(e.is_settled());
    }

    #[test]
    fn a_copy_by_a_simple_query() {
        let mut e = expected(&[Owed::Query]);
        assert_eq!(e.received(b'G'), Reply::Forward);
        e.sent(Owed::CopyEnd);
        for tag in b"CZ" {
            assert_eq!(e.received(*tag), Reply::Forward);
        }
        assert!(e.is_settled());
    }
}
