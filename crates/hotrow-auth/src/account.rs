//! A user as far as log-ins go: the secret, and the verifier that a proof is checked against.

use crate::secret::Password;
use crate::stored::{ProcessKey, Secret};
use crate::verifier::Verifier;

/// What PostgreSQL uses for new passwords; unknown users are asked for as many.
pub(crate) const ITERATIONS: u32 = 4096;

/// One of them.
#[derive(Clone, Debug)]
pub struct Account {
    secret: Secret,
    /// Of a plain password.
    derived: Option<Verifier>,
}

impl Account {
    /// Derives a verifier from a plain password, which takes about a millisecond: do it once.
    pub fn new(user: &str, secret: Secret, key: &ProcessKey) -> Self {
        let derived = match &secret {
            Secret::Plain(password) => Some(Verifier::derive(password, &key.salt_for(user), ITERATIONS)),
            _ => None,
        };
        Account { secret, derived }
    }

    /// What a SCRAM proof is checked against; an md5 hash can't be.
    pub(crate) fn verifier(&self) -> Option<&Verifier> {
        match &self.secret {
            Secret::Scram(verifier) => Some(verifier),
            _ => self.derived.as_ref(),
        }
    }

    /// The verifier, if it was given and not made here, so that it may be the server's own.
    pub(crate) fn own_verifier(&self) -> Option<&Verifier> {
        match &self.secret {
            Secret::Scram(verifier) => Some(verifier),
            _ => None,
        }
    }

    /// The password, where that is known.
    pub fn password(&self) -> Option<&Password> {
        match &self.secret {
            Secret::Plain(password) => Some(password),
            _ => None,
        }
    }

    /// What md5 is checked against: `md5` and the digits.
    pub(crate) fn md5(&self, user: &str) -> Option<Password> {
        match &self.secret {
            Secret::Plain(password) => Some(crate::md5::md5_secret(user, password)),
            Secret::Md5(hash) => Some(hash.clone()),
            Secret::Scram(_) => None,
        }
    }

    /// What was given.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }
}
