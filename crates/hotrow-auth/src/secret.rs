//! Passwords and keys. They are never printed, are compared in constant time, and are overwritten when
//! dropped.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const HIDDEN: &str = "(secret)";

/// A password as the user typed it.
#[derive(Clone)]
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    /// Takes ownership of the bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Password(Zeroizing::new(bytes))
    }

    /// Its bytes, for sending or hashing.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The input for hashes: normalised with SASLprep if possible, otherwise unchanged, as in PostgreSQL.
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

/// A key of 32 bytes, or a value that checks one.
#[derive(Clone)]
pub struct Key(Zeroizing<[u8; 32]>);

impl Key {
    pub fn new(bytes: [u8; 32]) -> Self {
        Key(Zeroizing::new(bytes))
    }

    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; 32] {
        &mut self.0
    }

    /// The exclusive or of two keys.
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
    fn all_bytes_are_compared() {
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
    fn passwords_are_normalised_if_possible() {
        let prepared = |text: &[u8]| Password::new(text.to_vec()).prepared().to_vec();
        assert_eq!(prepared("\u{2168}".as_bytes()), b"IX"); // RFC 4013
        assert_eq!(prepared("\u{7}".as_bytes()), b"\x07"); // prohibited: unchanged
        assert_eq!(prepared(b"\xff"), b"\xff");
    }
}
