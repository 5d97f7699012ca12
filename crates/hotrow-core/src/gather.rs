//! The messages of an extended query up to its Sync, and whether they are one statement that a lane can run.

use std::ops::Range;

use bytes::BytesMut;
use hotrow_wire::frontend::{Bind, Execute, Named, Parse, tag};
use hotrow_wire::{Error, Frame, HEADER_BYTES};

/// What a client has sent of a unit so far.
#[derive(Debug, Default)]
pub struct Gather {
    raw: BytesMut,
    parts: Vec<(u8, Range<usize>)>,
}

/// A buffer of so many bytes is kept for the next unit.
const KEPT_BYTES: usize = 4 << 10;

/// A whole unit, seen from outside.
#[derive(Debug)]
pub enum Form<'a> {
    /// Nothing but Close: so many statements and portals, none of which needs the server.
    Closes(Vec<Named<'a>>),
    /// One statement, bound and executed once, to its end.
    Single(Single<'a>),
    /// Anything else.
    Other,
}

/// One statement, bound and executed once.
#[derive(Debug)]
pub struct Single<'a> {
    /// Its Parse, if it is in the unit.
    pub parse: Option<Parse<'a>>,
    /// Its Bind.
    pub bind: Bind<'a>,
    /// What the client wants described.
    pub describe: Describe,
    /// The Close messages in front of it and behind it.
    pub closes: (Vec<Named<'a>>, Vec<Named<'a>>),
}

/// What a client wants described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Describe {
    /// Nothing.
    No,
    /// The statement, asked before the Bind.
    StatementFirst,
    /// The statement, asked behind the Bind.
    Statement,
    /// The portal.
    Portal,
}

impl Gather {
    /// Nothing was sent since the last Sync.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.raw.len()
    }

    /// Takes in one message.
    pub fn push(&mut self, frame: Frame<'_>) {
        let start = self.raw.len();
        self.raw.extend_from_slice(frame.bytes);
        self.parts.push((frame.tag, start + HEADER_BYTES..self.raw.len()));
    }

    /// All messages as they came.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Forgets all messages.
    pub fn clear(&mut self) {
        self.parts.clear();
        self.raw.clear();
        if self.raw.capacity() > KEPT_BYTES {
            self.raw = BytesMut::new();
        }
    }

    /// What the unit is. Fails where a message is malformed.
    pub fn form(&self) -> Result<Form<'_>, Error> {
        let mut parse = None;
        let mut bind = None;
        let mut describe = Describe::No;
        let mut executed = false;
        let mut closes = (Vec::new(), Vec::new());
        for (tag, range) in &self.parts {
            let body = &self.raw[range.clone()];
            match *tag {
                tag::PARSE if parse.is_none() && bind.is_none() && describe == Describe::No => {
                    parse = Some(Parse::read(body)?);
                }
                tag::BIND if bind.is_none() => bind = Some(Bind::read(body)?),
                tag::DESCRIBE if describe == Describe::No && !executed => {
                    let named = Named::read(body)?;
                    let Some(kind) = described(named, parse.as_ref(), bind.as_ref()) else {
                        return Ok(Form::Other);
                    };
                    describe = kind;
                }
                tag::EXECUTE if !executed => {
                    let execute = Execute::read(body)?;
                    let Some(bind) = &bind else { return Ok(Form::Other) };
                    if execute.rows_max > 0 || execute.portal != bind.portal {
                        return Ok(Form::Other);
                    }
                    executed = true;
                }
                tag::CLOSE if executed => closes.1.push(Named::read(body)?),
                tag::CLOSE if parse.is_none() && bind.is_none() && describe == Describe::No => {
                    closes.0.push(Named::read(body)?);
                }
                _ => return Ok(Form::Other),
            }
        }
        match bind {
            Some(bind) if executed => match &parse {
                Some(parse) if parse.name != bind.statement => Ok(Form::Other),
                // A statement closed right before it is used is gone.
                None if closes.0.iter().any(|close| close.statement && close.name == bind.statement) => {
                    Ok(Form::Other)
                }
                _ => {
                    let consistent = describe != Describe::StatementFirst || parse.is_some();
                    Ok(if consistent {
                        Form::Single(Single { parse, bind, describe, closes })
                    } else {
                        Form::Other
                    })
                }
            },
            None if parse.is_none() && describe == Describe::No => Ok(Form::Closes(closes.0)),
            _ => Ok(Form::Other),
        }
    }
}

fn described(named: Named<'_>, parse: Option<&Parse<'_>>, bind: Option<&Bind<'_>>) -> Option<Describe> {
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
    fn what_drivers_send_for_one_statement() {
        for (messages, describe) in [
            (&[BIND, EXECUTE][..], Describe::No),
            (&[BIND, DESCRIBE_PORTAL, EXECUTE], Describe::Portal), // libpq, prepared
            (&[PARSE, BIND, DESCRIBE_PORTAL, EXECUTE], Describe::Portal), // libpq, JDBC, node
            (&[PARSE, BIND, DESCRIBE_STATEMENT, EXECUTE], Describe::Statement), // tokio-postgres
            (&[PARSE, DESCRIBE_STATEMENT, BIND, EXECUTE], Describe::StatementFirst),
            (&[CLOSE, PARSE, BIND, EXECUTE, CLOSE], Describe::No),
        ] {
            match gather(messages).form().unwrap() {
                Form::Single(single) => assert_eq!(single.describe, describe),
                other => panic!("{messages:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_not_one_statement() {
        let limited: (u8, &[u8]) = (b'E', b"\0\0\0\0\x05");
        let other_portal: (u8, &[u8]) = (b'E', b"c\0\0\0\0\0");
        for messages in [
            &[PARSE][..],
            &[PARSE, DESCRIBE_STATEMENT],
            &[DESCRIBE_STATEMENT],
            &[BIND],
            &[EXECUTE],
            &[BIND, limited],
            &[BIND, other_portal],
            &[BIND, EXECUTE, BIND, EXECUTE],
            &[BIND, EXECUTE, EXECUTE],
            &[DESCRIBE_STATEMENT, BIND, EXECUTE],
            &[PARSE, PARSE, BIND, EXECUTE],
            &[(b'P', b"a\0select 1\0\0\0"), BIND, EXECUTE],
            &[(b'C', b"S\0"), BIND, EXECUTE],
        ] {
            assert!(matches!(gather(messages).form().unwrap(), Form::Other), "{messages:?}");
        }
    }

    #[test]
    fn closes_and_nothing() {
        assert!(matches!(gather(&[CLOSE, CLOSE]).form().unwrap(), Form::Closes(closes) if closes.len() == 2));
        assert!(matches!(gather(&[]).form().unwrap(), Form::Closes(closes) if closes.is_empty()));
    }

    #[test]
    fn a_malformed_message_is_an_error() {
        assert!(gather(&[(b'B', b"\0\0\xff\xff")]).form().is_err());
        assert!(gather(&[(b'D', b"Q\0")]).form().is_err());
    }

    #[test]
    fn the_bytes_are_as_they_came() {
        let mut gather = gather(&[BIND, EXECUTE]);
        assert_eq!(gather.raw().len(), BIND.1.len() + EXECUTE.1.len() + 2 * HEADER_BYTES);
        assert!(gather.raw().ends_with(frontend::EXECUTE));
        gather.clear();
        assert!(gather.is_empty() && gather.raw().is_empty());
    }
}
