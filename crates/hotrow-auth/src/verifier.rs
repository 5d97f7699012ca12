//! A SCRAM verifier: it can check a proof but cannot produce one.

use crate::limits;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::hash;
use crate::secret::{Key, Password};

/// A SCRAM-SHA-256 verifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Verifier {
    pub(crate) iterations: u32,
    pub(crate) salt: Vec<u8>,
    pub(crate) stored_key: Key,
    pub(crate) server_key: Key,
}

/// The keys of a password with one salt: the key that proves the password, and the key with which the server
/// authenticates.
#[derive(Clone, Debug)]
pub struct Keys {
    pub(crate) client_key: Key,
    pub(crate) server_key: Key,
}

impl Keys {
    /// Takes time in proportion to the iterations.
    pub fn derive(password: &Password, salt: &[u8], iterations: u32) -> Self {
        let salted = hash::pbkdf2(&password.prepared(), salt, iterations);
        Keys {
            client_key: hash::hmac(salted.bytes(), &[b"Client Key"]),
            server_key: hash::hmac(salted.bytes(), &[b"Server Key"]),
        }
    }
}

impl Verifier {
    /// Parses `SCRAM-SHA-256$iterations:salt$stored key:server key`.
    pub fn parse(text: &str) -> Option<Self> {
        let (salted, keys) = text.strip_prefix("SCRAM-SHA-256$")?.split_once('$')?;
        let (iterations, salt) = salted.split_once(':')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let key = |text: &str| Some(Key::new(STANDARD.decode(text).ok()?.try_into().ok()?));
        let iterations = iterations.parse().ok()?;
        (1..=limits::SCRAM_ITERATIONS_MAX).contains(&iterations).then_some(())?;
        Some(Verifier {
            iterations,
            salt: STANDARD.decode(salt).ok()?,
            stored_key: key(stored_key)?,
            server_key: key(server_key)?,
        })
    }

    /// Derives a verifier from a password. Takes time in proportion to the iterations.
    pub fn derive(password: &Password, salt: &[u8], iterations: u32) -> Self {
        let keys = Keys::derive(password, salt, iterations);
        Verifier {
            iterations,
            salt: salt.to_vec(),
            stored_key: hash::sha256(keys.client_key.bytes()),
            server_key: keys.server_key,
        }
    }

    /// Whether this is the password. Takes time in proportion to the iterations.
    pub fn is_of(&self, password: &Password) -> bool {
        Verifier::derive(password, &self.salt, self.iterations).stored_key == self.stored_key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PostgreSQL 15's verifier for `create role ann password 'hunter2'`.
    pub const OF_HUNTER2: &str = "SCRAM-SHA-256$4096:2QYwsOD1yJ9vxMnV9L2zMw==$pS1Zr5eEYnoXiJ7oHJVkPMWv3HjqPzjHtzdOOyxfr/c=:NbdVfmLiJfaERlJpRu1ZyQj3dTweP1R3rjsmJQhXPgM=";

    #[test]
    fn verifiers_of_postgresql_are_accepted() {
        let verifier = Verifier::parse(OF_HUNTER2).unwrap();
        assert_eq!((verifier.iterations, verifier.salt.len()), (4096, 16));
        assert!(verifier.is_of(&Password::new(b"hunter2".to_vec())));
        assert!(!verifier.is_of(&Password::new(b"hunter3".to_vec())));
        assert!(!format!("{verifier:?}").contains(OF_HUNTER2.rsplit(':').next().unwrap()));
    }

    #[test]
    fn malformed_verifiers_are_rejected() {
        let (front, _) = OF_HUNTER2.rsplit_once(':').unwrap();
        for text in [
            front.to_owned(),
            format!("{front}:AAAA"),
            OF_HUNTER2.replace("4096", "0"),
            OF_HUNTER2.replace("4096", "999999999"),
            OF_HUNTER2.replace("256$", "512$"),
        ] {
            assert!(Verifier::parse(&text).is_none(), "{text}");
        }
    }
}
