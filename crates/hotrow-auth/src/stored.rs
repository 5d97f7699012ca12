//! Stored secrets, in the forms of `rolpassword` and `userlist.txt`, and the key for salts of unknown users.

use crate::hash;
use crate::secret::{Key, Password};
use crate::verifier::Verifier;

/// A user's stored secret, in one of the forms of `rolpassword` and `userlist.txt`.
#[derive(Clone, Debug, PartialEq)]
pub enum Secret {
    /// The password itself.
    Plain(Password),
    /// `md5` and the digits. For md5 authentication it is equivalent to the password.
    Md5(Password),
    /// `SCRAM-SHA-256$...`. It checks proofs but cannot produce them.
    Scram(Verifier),
}

impl Secret {
    /// Distinguishes the forms as PostgreSQL does. An empty text is no secret, and no password matches it.
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

/// A key that only this process knows. It determines salts for users without a stored salt. One user always
/// gets the same salt, which is indistinguishable from a random one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_distinguished_as_in_postgresql() {
        assert!(matches!(Secret::parse("hunter2"), Some(Secret::Plain(_))));
        assert!(matches!(Secret::parse("md5"), Some(Secret::Plain(_))));
        assert!(matches!(Secret::parse("md5a3556571e93b0d20722ba62be61e8c2d"), Some(Secret::Md5(_))));
        assert!(matches!(Secret::parse("md5A3556571e93b0d20722ba62be61e8c2d"), Some(Secret::Plain(_))));
        assert!(matches!(Secret::parse("SCRAM-SHA-256$4096:x"), Some(Secret::Plain(_))));
        assert!(Secret::parse("").is_none());
    }

    #[test]
    fn secrets_are_not_printed() {
        let secret = Secret::parse("hunter2").unwrap();
        assert_eq!(format!("{secret:?}"), "Plain((secret))");
        assert_eq!(format!("{:?}", ProcessKey::new([65; 32])), "ProcessKey((secret))");
    }
}
