//! What nobody may see: passwords and keys. They print as nothing, compare without telling where they differ, and are
//! overwritten when dropped.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::hash;
use crate::verifier::Verifier;

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

/// What this process alone knows. Salts for users that have none of their own come from it: always the same for one
/// user, and nobody can tell them from random ones.
#[derive(Clone, Debug)]
pub struct ProcessKey(Key);

impl ProcessKey {
    /// From random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        ProcessKey(Key::new(random))
    }

    pub(crate) fn salt_for(&self, user: &str) -> [u8; 16] {
        let mac = hash::hmac(self.0.bytes(), &[user.as_bytes()]);
        *mac.bytes().first_chunk().expect("32 bytes begin with 16")
    }
}

/// What is known of a user's password, in one of the forms that `rolpassword` and `userlist.txt` have.
#[derive(Clone, Debug, PartialEq)]
pub enum Secret {
    /// The password itself.
    Plain(Password),
    /// `md5` and the digits: as good as the password where md5 is asked for.
    Md5(Password),
    /// `SCRAM-SHA-256$...`: proves nothing to anybody.
    Scram(Verifier),
}

impl Secret {
    /// Tells the forms apart as PostgreSQL does. An empty one is none: nobody comes in with it.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        if let Some(verifier) = Verifier::parse(text) {
            return Some(Secret::Scram(verifier));
        }
        let digits = text.strip_prefix("md5").filter(|digits| {
            digits.len() == 32 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        });
        let password = Password::new(text.as_bytes().to_vec());
        Some(if digits.is_some() { Secret::Md5(password) } else { Secret::Plain(password) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_are_told_apart() {
        assert!(matches!(Secret::parse("hunter2"), Some(Secret::Plain(_))));
        assert!(matches!(Secret::parse("md5"), Some(Secret::Plain(_))));
        assert!(matches!(Secret::parse("md5a3556571e93b0d20722ba62be61e8c2d"), Some(Secret::Md5(_))));
        assert!(matches!(Secret::parse("md5A3556571e93b0d20722ba62be61e8c2d"), Some(Secret::Plain(_))));
        assert!(matches!(Secret::parse("SCRAM-SHA-256$4096:x"), Some(Secret::Plain(_))));
        assert!(Secret::parse("").is_none());
    }

    #[test]
    fn nothing_secret_is_printed() {
        let secret = Secret::parse("hunter2").unwrap();
        assert_eq!(format!("{secret:?}"), "Plain((secret))");
        assert_eq!(format!("{:?}", ProcessKey::new([65; 32])), "ProcessKey((secret))");
    }

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
