//! What is stored of a user's password: in one of the forms that `rolpassword` and `userlist.txt` have. And the key for salts of
//! users of whom nothing is stored.

use crate::hash;
use crate::secret::{Key, Password};
use crate::verifier::Verifier;

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
}
