//! What nobody may see: passwords and keys. They print as nothing, compare without telling where they differ, and are
//! overwritten when dropped.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const HIDDEN: &str = "(secret)";

/// A password as it was typed.
#[derive(Clone)]
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    /// Takes it over.
    pub fn new(bytes: Vec<u8>) -> Self {
        Password(Zeroizing::new(bytes))
    }

    /// Its bytes, for whoever sends or hashes it.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// As it goes into a hash: normalised by SASLprep where it can be, as it is where not, like PostgreSQL does.
    pub(crate) fn prepared(&self) -> Zeroizing<Vec<u8>> {
        let prepared = std::str::from_utf8(&self.0).ok().and_then(|text| stringprep::saslprep(text).ok());
        Zeroizing::new(prepared.map_or_else(|| self.0.to_vec(), |text| text.into_owned().into_bytes()))
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl PartialEq for Password {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// 32 bytes that are a key, or what a key is checked against.
#[derive(Clone)]
pub struct Key(Zeroizing<[u8; 32]>);

impl Key {
    /// From its bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Key(Zeroizing::new(bytes))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; 32] {
        &mut self.0
    }

    /// Bit by bit, one or the other.
    pub(crate) fn xor(&self, other: &Key) -> Key {
        let mut result = self.clone();
        result.0.iter_mut().zip(other.0.iter()).for_each(|(byte, other)| *byte ^= other);
        result
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&*other.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        let password = |text: &str| Password::new(text.into());
        assert!(password("hunter2") == password("hunter2"));
        for other in ["", "hunter", "hunter22", "Hunter2", "hunter3"] {
            assert!(password("hunter2") != password(other), "{other}");
        }
        assert!(Key::new([7; 32]) == Key::new([7; 32]));
        for place in 0..32 {
            let mut other = [7; 32];
            other[place] = 8;
            assert!(Key::new([7; 32]) != Key::new(other), "{place}");
        }
    }

    #[test]
    fn passwords_are_normalised_where_they_can_be() {
        let prepared = |text: &[u8]| Password::new(text.to_vec()).prepared().to_vec();
        assert_eq!(prepared("\u{2168}".as_bytes()), b"IX"); // RFC 4013
        assert_eq!(prepared("\u{7}".as_bytes()), b"\x07"); // prohibited: as it is
        assert_eq!(prepared(b"\xff"), b"\xff");
    }
}
