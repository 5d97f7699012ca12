//! Messages of a client: views of their bodies, and the messages that the gateway writes.

use bytes::BytesMut;

use crate::{Error, Reader, put_cstr, put_frame};

/// Tags of client messages.
pub mod tag {
    /// Bind.
    pub const BIND: u8 = b'B';
    /// Close.
    pub const CLOSE: u8 = b'C';
    /// CopyData.
    pub const COPY_DATA: u8 = b'd';
    /// CopyDone.
    pub const COPY_DONE: u8 = b'c';
    /// CopyFail.
    pub const COPY_FAIL: u8 = b'f';
    /// Describe.
    pub const DESCRIBE: u8 = b'D';
    /// Execute.
    pub const EXECUTE: u8 = b'E';
    /// Flush.
    pub const FLUSH: u8 = b'H';
    /// FunctionCall.
    pub const FUNCTION_CALL: u8 = b'F';
    /// Parse.
    pub const PARSE: u8 = b'P';
    /// Password, SASL and GSS responses.
    pub const PASSWORD: u8 = b'p';
    /// Query.
    pub const QUERY: u8 = b'Q';
    /// Sync.
    pub const SYNC: u8 = b'S';
    /// Terminate.
    pub const TERMINATE: u8 = b'X';
}

/// Maximum number of bytes of a message with this tag, as in PostgreSQL: messages with data can be large. It
/// is zero for tags that no client can send, as a second check besides [`check_tag`].
pub fn bytes_max(tag: u8, small: usize, large: usize) -> usize {
    match tag {
        tag::QUERY | tag::PARSE | tag::BIND | tag::FUNCTION_CALL | tag::COPY_DATA => large,
        tag::CLOSE | tag::DESCRIBE | tag::EXECUTE | tag::FLUSH | tag::SYNC | tag::TERMINATE => small,
        tag::COPY_DONE | tag::COPY_FAIL | tag::PASSWORD => small,
        _ => 0,
    }
}

/// Fails for a tag that no client can send.
pub fn check_tag(tag: u8) -> Result<(), Error> {
    if bytes_max(tag, 1, 1) == 0 { Err(Error::UnknownTag(tag)) } else { Ok(()) }
}

/// A Query's text.
pub fn query(body: &[u8]) -> Result<&[u8], Error> {
    let mut reader = Reader::new(body);
    let text = reader.cstr()?;
    reader.end()?;
    Ok(text)
}

/// A view of Parse.
#[derive(Clone, Copy, Debug)]
pub struct Parse<'a> {
    /// The statement's name.
    pub name: &'a [u8],
    pub text: &'a [u8],
    /// The declared parameter types, four bytes each.
    pub types: &'a [u8],
}

impl<'a> Parse<'a> {
    /// Parses the body.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body);
        let (name, text) = (reader.cstr()?, reader.cstr()?);
        let count = usize::from(reader.u16()?);
        let types = reader.bytes(count * 4)?;
        reader.end()?;
        Ok(Parse { name, text, types })
    }

    /// Appends the message.
    pub fn put(&self, out: &mut BytesMut) {
        put_frame(out, tag::PARSE, |out| {
            put_cstr(out, self.name);
            put_cstr(out, self.text);
            let count = u16::try_from(self.types.len() / 4).unwrap_or(u16::MAX);
            out.extend_from_slice(&count.to_be_bytes());
            out.extend_from_slice(self.types);
        });
    }
}

/// A view of Bind.
#[derive(Clone, Copy, Debug)]
pub struct Bind<'a> {
    /// The portal's name.
    pub portal: &'a [u8],
    /// The statement's name.
    pub statement: &'a [u8],
    /// The bytes after the names: formats, values, result formats.
    pub rest: &'a [u8],
    formats: &'a [u8],
    values: &'a [u8],
    results: &'a [u8],
    count: usize,
}

/// A parameter's value as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a> {
    /// Whether it is in binary format.
    pub binary: bool,
    /// The bytes. `None` is NULL.
    pub bytes: Option<&'a [u8]>,
}

impl<'a> Bind<'a> {
    /// Parses the body and checks every length in it.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body);
        let (portal, statement) = (reader.cstr()?, reader.cstr()?);
        let rest = reader.rest();
        let formats = usize::from(reader.u16()?);
        let formats = reader.bytes(formats * 2)?;
        let count = usize::from(reader.u16()?);
        let values = reader.rest();
        for _ in 0..count {
            value(&mut reader)?;
        }
        let values = &values[..values.len() - reader.rest().len()];
        let results = usize::from(reader.u16()?);
        let results = reader.bytes(results * 2)?;
        reader.end()?;
        Ok(Bind { portal, statement, rest, formats, values, results, count })
    }

    /// Number of parameters.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether the number of formats is none, one, or that of the values. The server refuses others.
    pub fn has_fitting_formats(&self) -> bool {
        self.formats.len() <= 2 || self.formats.len() / 2 == self.count
    }

    /// The requested formats of the results, two bytes each.
    pub fn results(&self) -> &'a [u8] {
        self.results
    }

    /// The parameter with this index, counted from 0.
    pub fn value(&self, index: usize) -> Option<Value<'a>> {
        if index >= self.count {
            return None;
        }
        let mut reader = Reader::new(self.values);
        for _ in 0..index {
            value(&mut reader).ok()?;
        }
        let format = match self.formats {
            [] => [0, 0],
            [a, b] => [*a, *b],
            formats => *formats.get(index * 2..)?.first_chunk()?,
        };
        Some(Value { binary: format != [0, 0], bytes: value(&mut reader).ok()? })
    }

    /// Appends the message with other names.
    pub fn put(&self, portal: &[u8], statement: &[u8], out: &mut BytesMut) {
        put_frame(out, tag::BIND, |out| {
            put_cstr(out, portal);
            put_cstr(out, statement);
            out.extend_from_slice(self.rest);
        });
    }
}

fn value<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a [u8]>, Error> {
    match reader.i32()? {
        -1 => Ok(None),
        length => {
            let length =
                usize::try_from(length).map_err(|_| Error::Malformed("invalid length of a value"))?;
            reader.bytes(length).map(Some)
        }
    }
}

/// Appends a Bind of text values to the unnamed portal. It requests text results.
pub fn put_bind_text<'a>(
    out: &mut BytesMut,
    statement: &[u8],
    values: impl ExactSizeIterator<Item = &'a [u8]>,
) {
    put_bind_text_to(out, b"", statement, values);
}

/// The same to a portal with this name.
pub fn put_bind_text_to<'a>(
    out: &mut BytesMut,
    portal: &[u8],
    statement: &[u8],
    values: impl ExactSizeIterator<Item = &'a [u8]>,
) {
    put_frame(out, tag::BIND, |out| {
        put_cstr(out, portal);
        put_cstr(out, statement);
        out.extend_from_slice(&[0, 0]);
        let count = u16::try_from(values.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&count.to_be_bytes());
        for value in values {
            let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(value);
        }
        out.extend_from_slice(&[0, 0]);
    });
}

/// Appends an Execute of a portal, for all rows.
pub fn put_execute(out: &mut BytesMut, portal: &[u8]) {
    put_frame(out, tag::EXECUTE, |out| {
        put_cstr(out, portal);
        out.extend_from_slice(&[0; 4]);
    });
}

/// Appends a Bind to the unnamed portal with values from another Bind. `results` are the formats of the
/// results, text if empty.
pub fn put_bind_values(out: &mut BytesMut, statement: &[u8], values: &[Value<'_>], results: &[u16]) {
    put_frame(out, tag::BIND, |out| {
        out.extend_from_slice(&[0]);
        put_cstr(out, statement);
        let count = u16::try_from(values.len()).unwrap_or(u16::MAX).to_be_bytes();
        out.extend_from_slice(&count);
        values.iter().for_each(|value| out.extend_from_slice(&[0, u8::from(value.binary)]));
        out.extend_from_slice(&count);
        for value in values {
            let length = value.bytes.map_or(u32::MAX, |bytes| u32::try_from(bytes.len()).unwrap_or(u32::MAX));
            out.extend_from_slice(&length.to_be_bytes()); // -1 is NULL
            out.extend_from_slice(value.bytes.unwrap_or_default());
        }
        let count = u16::try_from(results.len()).unwrap_or(u16::MAX).to_be_bytes();
        out.extend_from_slice(&count);
        results.iter().for_each(|format| out.extend_from_slice(&format.to_be_bytes()));
    });
}

/// A view of Describe and of Close: the kind of object, and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectName<'a> {
    /// Whether the object is a statement. Otherwise it is a portal.
    pub statement: bool,
    pub name: &'a [u8],
}

impl<'a> ObjectName<'a> {
    /// Parses the body.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body);
        let statement = match reader.u8()? {
            b'S' => true,
            b'P' => false,
            _ => return Err(Error::Malformed("invalid subtype of a DESCRIBE or CLOSE message")),
        };
        let name = reader.cstr()?;
        reader.end()?;
        Ok(ObjectName { statement, name })
    }

    /// Appends the message with this tag.
    pub fn put(&self, tag: u8, out: &mut BytesMut) {
        put_frame(out, tag, |out| {
            out.extend_from_slice(if self.statement { b"S" } else { b"P" });
            put_cstr(out, self.name);
        });
    }
}

/// A view of Execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execute<'a> {
    /// The portal's name.
    pub portal: &'a [u8],
    /// Maximum number of rows. 0 means all.
    pub rows_max: i32,
}

impl<'a> Execute<'a> {
    /// Parses the body.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body);
        let execute = Execute { portal: reader.cstr()?, rows_max: reader.i32()? };
        reader.end()?;
        Ok(execute)
    }
}

/// Describe of the unnamed portal.
pub const DESCRIBE_PORTAL: &[u8] = &[b'D', 0, 0, 0, 6, b'P', 0];
/// Execute of the unnamed portal, all rows.
pub const EXECUTE: &[u8] = &[b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];
/// Sync.
pub const SYNC: &[u8] = &[b'S', 0, 0, 0, 4];
/// Flush.
pub const FLUSH: &[u8] = &[b'H', 0, 0, 0, 4];
/// Terminate.
pub const TERMINATE: &[u8] = &[b'X', 0, 0, 0, 4];

/// Appends a Query.
pub fn put_query(out: &mut BytesMut, text: &str) {
    put_frame(out, tag::QUERY, |out| put_cstr(out, text.as_bytes()));
}
