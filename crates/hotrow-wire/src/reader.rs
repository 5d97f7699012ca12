//! A cursor over a body. It never reads past the end.

use std::ffi::CStr;

use crate::Error;

/// Reads a body from the front.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the front of `body`.
    pub fn new(body: &'a [u8]) -> Self {
        Reader { rest: body }
    }

    /// The unread bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A 16-bit number.
    pub fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_be_bytes)
    }

    /// A 32-bit number.
    pub fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_be_bytes)
    }

    /// A signed 32-bit number.
    pub fn i32(&mut self) -> Result<i32, Error> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) =
            self.rest.split_at_checked(count).ok_or(Error::Malformed("insufficient data left in message"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The bytes up to a zero byte, which is skipped.
    pub fn cstr(&mut self) -> Result<&'a [u8], Error> {
        let text = CStr::from_bytes_until_nul(self.rest)
            .map_err(|_| Error::Malformed("invalid string in message"))?
            .to_bytes();
        self.rest = &self.rest[text.len() + 1..];
        Ok(text)
    }

    /// The bytes up to a zero byte, as text.
    pub fn text(&mut self) -> Result<&'a str, Error> {
        str::from_utf8(self.cstr()?).map_err(|_| Error::Malformed("invalid UTF-8 in message"))
    }

    /// Fails if bytes remain.
    pub fn end(self) -> Result<(), Error> {
        if self.rest.is_empty() { Ok(()) } else { Err(Error::Malformed("invalid message format")) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Error::Malformed("insufficient data left in message"))?;
        self.rest = rest;
        Ok(*taken)
    }
}
