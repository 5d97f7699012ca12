//! Collects the messages of an extended query up to its Sync, and decides whether they are statements that a
//! lane can run.

use std::ops::Range;

use bytes::{Buf, BytesMut};
use hotrow_wire::frontend::{Bind, Execute, ObjectName, Parse, tag};
use hotrow_wire::{Error, Frame, HEADER_BYTES};

use crate::limits;

/// The messages of a unit that a client has sent so far.
#[derive(Debug, Default)]
pub struct Gather {
    raw: BytesMut,
    parts: Vec<(u8, Range<usize>)>,
}

/// Maximum size of a buffer that is kept for the next unit.
const KEPT_BYTES: usize = 4 << 10;

/// The form of a whole unit.
#[derive(Debug)]
pub enum Gathered<'a> {
    /// Close messages only. None of the statements and portals needs the server.
    Closes(Vec<ObjectName<'a>>),
    /// One statement, bound and executed once.
    Single(Single<'a>),
    /// Several statements, each bound and executed once.
    Several(Vec<Single<'a>>),
    /// Any other sequence of messages.
    Other,
}

/// One statement, bound and executed once.
#[derive(Debug)]
pub struct Single<'a> {
    /// Its Parse, if it is in the unit.
    pub parse: Option<Parse<'a>>,
    pub bind: Bind<'a>,
    /// The description that the client requested.
    pub describe: Describe,
    /// Maximum number of rows, zero for all. It has no effect on a statement without rows.
    pub rows_max: i32,
    /// Numbers of Close messages before and after the statement.
    pub closes: (Vec<ObjectName<'a>>, Vec<ObjectName<'a>>),
}

/// The description that a client requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Describe {
    /// Nothing.
    #[default]
    No,
    /// The description of the statement, requested before the Bind.
    StatementFirst,
    /// The description of the statement, requested after the Bind.
    Statement,
    Portal,
}

impl Gather {
    /// Whether nothing was sent since the last Sync.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.raw.len()
    }

    /// Adds one message.
    pub fn push(&mut self, frame: Frame<'_>) {
        let start = self.raw.len();
        self.raw.extend_from_slice(frame.bytes);
        self.parts.push((frame.tag, start + HEADER_BYTES..self.raw.len()));
    }

    /// The messages' tags and bodies.
    pub fn messages(&self) -> impl Iterator<Item = (u8, &[u8])> {
        self.parts.iter().map(|(tag, range)| (*tag, &self.raw[range.clone()]))
    }

    /// All messages as they arrived.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Drops the messages in the first bytes.
    pub fn drop_first(&mut self, bytes: usize) {
        if bytes == self.raw.len() {
            return self.clear();
        }
        self.raw.advance(bytes);
        self.parts.retain_mut(|(_, range)| {
            let stays = range.start >= bytes;
            *range = range.start.saturating_sub(bytes)..range.end.saturating_sub(bytes);
            stays
        });
    }

    /// Drops all messages.
    pub fn clear(&mut self) {
        self.parts.clear();
        self.raw.clear();
        if self.raw.capacity() > KEPT_BYTES {
            self.raw = BytesMut::new();
        }
    }

    /// The form of the unit. Fails if a message is malformed.
    pub fn form(&self) -> Result<Gathered<'_>, Error> {
        let mut statements: Vec<Single<'_>> = Vec::new();
        let mut open = Open::default();
        for (tag, range) in &self.parts {
            let body = &self.raw[range.clone()];
            if open.executed.is_some() && matches!(*tag, tag::PARSE | tag::BIND) {
                let Some(single) = std::mem::take(&mut open).finish() else { return Ok(Gathered::Other) };
                statements.push(single);
                if statements.len() == limits::UNIT_STATEMENTS_MAX {
                    return Ok(Gathered::Other);
                }
            }
            if !open.take(*tag, body)? {
                return Ok(Gathered::Other);
            }
        }
        if open.is_closes_only() && statements.is_empty() {
            return Ok(Gathered::Closes(open.closes.0));
        }
        Ok(match open.finish() {
            None => Gathered::Other,
            Some(single) if statements.is_empty() => Gathered::Single(single),
            Some(single) => {
                statements.push(single);
                // A named portal stays until the Sync. Binding it again is an error.
                let is_named = statements.iter().any(|single| !single.bind.portal.is_empty());
                if is_named { Gathered::Other } else { Gathered::Several(statements) }
            }
        })
    }
}

/// A statement whose messages are being read.
#[derive(Default)]
struct Open<'a> {
    parse: Option<Parse<'a>>,
    bind: Option<Bind<'a>>,
    describe: Describe,
    /// Maximum number of rows, zero for all, after an Execute.
    executed: Option<i32>,
    closes: (Vec<ObjectName<'a>>, Vec<ObjectName<'a>>),
}

impl<'a> Open<'a> {
    /// Adds one message. `false` if it does not fit.
    fn take(&mut self, tag: u8, body: &'a [u8]) -> Result<bool, Error> {
        match tag {
            tag::PARSE if self.parse.is_none() && self.bind.is_none() && self.describe == Describe::No => {
                self.parse = Some(Parse::read(body)?);
            }
            tag::BIND if self.bind.is_none() => {
                let bind = Bind::read(body)?;
                if !bind.has_fitting_formats() {
                    return Ok(false);
                }
                self.bind = Some(bind);
            }
            tag::DESCRIBE if self.describe == Describe::No && self.executed.is_none() => {
                let named = ObjectName::read(body)?;
                let Some(kind) = described(named, self.parse.as_ref(), self.bind.as_ref()) else {
                    return Ok(false);
                };
                self.describe = kind;
            }
            tag::EXECUTE if self.executed.is_none() => {
                let execute = Execute::read(body)?;
                if self.bind.as_ref().is_none_or(|bind| execute.portal != bind.portal) {
                    return Ok(false);
                }
                self.executed = Some(execute.rows_max);
            }
            tag::CLOSE if self.executed.is_some() => self.closes.1.push(ObjectName::read(body)?),
            tag::CLOSE if self.is_closes_only() => self.closes.0.push(ObjectName::read(body)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn is_closes_only(&self) -> bool {
        self.parse.is_none() && self.bind.is_none() && self.describe == Describe::No
    }

    /// The statement, if the messages are one.
    fn finish(self) -> Option<Single<'a>> {
        let Open { parse, bind: Some(bind), describe, executed: Some(rows_max), closes } = self else {
            return None;
        };
        let is_one = match &parse {
            Some(parse) => parse.name == bind.statement,
            // A statement that is closed directly before its use does not exist.
            None => {
                describe != Describe::StatementFirst
                    && !closes.0.iter().any(|close| close.statement && close.name == bind.statement)
            }
        };
        is_one.then_some(Single { parse, bind, describe, rows_max, closes })
    }
}

fn described(named: ObjectName<'_>, parse: Option<&Parse<'_>>, bind: Option<&Bind<'_>>) -> Option<Describe> {
    match (named.statement, parse, bind) {
        (true, Some(parse), None) if parse.name == named.name => Some(Describe::StatementFirst),
        (true, _, Some(bind)) if bind.statement == named.name => Some(Describe::Statement),
        (false, _, Some(bind)) if bind.portal == named.name => Some(Describe::Portal),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hotrow_wire::{frontend, put_frame, split};

    use super::*;

    fn gather(messages: &[(u8, &[u8])]) -> Gather {
        let mut bytes = BytesMut::new();
        for (tag, body) in messages {
            put_frame(&mut bytes, *tag, |out| out.extend_from_slice(body));
        }
        let mut gather = Gather::default();
        let mut rest = &bytes[..];
        while let Some(frame) = split(rest, |_| 1 << 20).unwrap() {
            gather.push(frame);
            rest = &rest[frame.bytes.len()..];
        }
        gather
    }

    const PARSE: (u8, &[u8]) = (b'P', b"\0select 1\0\0\0");
    const BIND: (u8, &[u8]) = (b'B', b"\0\0\0\0\0\0\0\0");
    const DESCRIBE_PORTAL: (u8, &[u8]) = (b'D', b"P\0");
    const DESCRIBE_STATEMENT: (u8, &[u8]) = (b'D', b"S\0");
    const EXECUTE: (u8, &[u8]) = (b'E', b"\0\0\0\0\0");
    const CLOSE: (u8, &[u8]) = (b'C', b"Sx\0");

    #[test]
    fn messages_that_drivers_send_for_one_statement() {
        for (messages, describe) in [
            (&[BIND, EXECUTE][..], Describe::No),
            (&[BIND, DESCRIBE_PORTAL, EXECUTE], Describe::Portal), // libpq, prepared
            (&[PARSE, BIND, DESCRIBE_PORTAL, EXECUTE], Describe::Portal), // libpq, JDBC, node
            (&[PARSE, BIND, DESCRIBE_STATEMENT, EXECUTE], Describe::Statement), // tokio-postgres
            (&[PARSE, DESCRIBE_STATEMENT, BIND, EXECUTE], Describe::StatementFirst),
            (&[CLOSE, PARSE, BIND, EXECUTE, CLOSE], Describe::No),
        ] {
            match gather(messages).form().unwrap() {
                Gathered::Single(single) => assert_eq!(single.describe, describe),
                other => panic!("{messages:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn messages_that_are_not_one_statement() {
        let other_portal: (u8, &[u8]) = (b'E', b"c\0\0\0\0\0");
        for messages in [
            &[PARSE][..],
            &[PARSE, DESCRIBE_STATEMENT],
            &[DESCRIBE_STATEMENT],
            &[BIND],
            &[EXECUTE],
            &[BIND, other_portal],
            &[BIND, EXECUTE, EXECUTE],
            &[DESCRIBE_STATEMENT, BIND, EXECUTE],
            &[PARSE, PARSE, BIND, EXECUTE],
            &[(b'P', b"a\0select 1\0\0\0"), BIND, EXECUTE],
            &[(b'C', b"S\0"), BIND, EXECUTE],
        ] {
            assert!(matches!(gather(messages).form().unwrap(), Gathered::Other), "{messages:?}");
        }
    }

    #[test]
    fn several_statements_before_one_sync() {
        let limited: (u8, &[u8]) = (b'E', b"\0\0\0\0\x05");
        let gathered =
            gather(&[PARSE, BIND, EXECUTE, CLOSE, BIND, DESCRIBE_PORTAL, limited, PARSE, BIND, EXECUTE]);
        let Gathered::Several(statements) = gathered.form().unwrap() else { panic!() };
        let seen: Vec<_> = statements
            .iter()
            .map(|s| (s.parse.is_some(), s.describe, s.rows_max, s.closes.0.len(), s.closes.1.len()))
            .collect();
        assert_eq!(
            seen,
            [
                (true, Describe::No, 0, 0, 1),
                (false, Describe::Portal, 5, 0, 0),
                (true, Describe::No, 0, 0, 0)
            ]
        );
        assert!(matches!(gather(&[BIND, EXECUTE, BIND]).form().unwrap(), Gathered::Other));
        assert!(matches!(gather(&[BIND, EXECUTE, PARSE, EXECUTE]).form().unwrap(), Gathered::Other));
        let many = [BIND, EXECUTE].repeat(limits::UNIT_STATEMENTS_MAX);
        assert!(matches!(gather(&many).form().unwrap(), Gathered::Several(_)));
        let too_many = [&many[..], &[BIND, EXECUTE]].concat();
        assert!(matches!(gather(&too_many).form().unwrap(), Gathered::Other));
    }

    #[test]
    fn close_messages_and_an_empty_unit() {
        assert!(
            matches!(gather(&[CLOSE, CLOSE]).form().unwrap(), Gathered::Closes(closes) if closes.len() == 2)
        );
        assert!(matches!(gather(&[]).form().unwrap(), Gathered::Closes(closes) if closes.is_empty()));
    }

    #[test]
    fn a_malformed_message_is_an_error() {
        assert!(gather(&[(b'B', b"\0\0\xff\xff")]).form().is_err());
        assert!(gather(&[(b'D', b"Q\0")]).form().is_err());
    }

    #[test]
    fn the_bytes_are_unchanged() {
        let mut gather = gather(&[BIND, EXECUTE]);
        assert_eq!(gather.raw().len(), BIND.1.len() + EXECUTE.1.len() + 2 * HEADER_BYTES);
        assert!(gather.raw().ends_with(frontend::EXECUTE));
        gather.clear();
        assert!(gather.is_empty() && gather.raw().is_empty());
    }
}
