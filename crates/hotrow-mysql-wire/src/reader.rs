//! A cursor over the payload of a packet. Numbers are little endian.

use crate::WireError;

/// Reads values in order.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the first byte on.
    pub fn new(payload: &'a [u8]) -> Self {
        Reader { rest: payload }
    }

    /// The bytes that are not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next bytes.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A number of 8 bits.
    pub fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.bytes(1)?[0])
    }

    /// A number of 16 bits.
    pub fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::try_from(self.number(2)?).expect("two bytes"))
    }

    /// A number of 32 bits.
    pub fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::try_from(self.number(4)?).expect("four bytes"))
    }

    fn number(&mut self, bytes: usize) -> Result<u64, WireError> {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(self.bytes(bytes)?);
        Ok(u64::from_le_bytes(number))
    }

    /// A number whose first byte tells its length.
    pub fn length_encoded(&mut self) -> Result<u64, WireError> {
        match self.u8()? {
            0xfc => self.number(2),
            0xfd => self.number(3),
            0xfe => self.number(8),
            // 0xfb is NULL in a row, and 0xff begins an error.
            0xfb | 0xff => Err(WireError::Unexpected { expected: "a length-encoded number" }),
            small => Ok(u64::from(small)),
        }
    }

    /// Bytes after their length-encoded length.
    pub fn length_encoded_bytes(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.length_encoded()?;
        self.bytes(usize::try_from(length).map_err(|_| WireError::Truncated)?)
    }

    /// Bytes up to a zero byte, which is read too.
    pub fn until_zero(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.rest.iter().position(|byte| *byte == 0).ok_or(WireError::Truncated)?;
        let bytes = self.bytes(length)?;
        self.bytes(1)?;
        Ok(bytes)
    }
}

/// Appends a number with its length in front.
pub(crate) fn put_length_encoded(out: &mut Vec<u8>, number: u64) {
    let bytes = number.to_le_bytes();
    match number {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}
