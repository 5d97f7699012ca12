//! A user for authentication: the secret, and the verifier that checks a proof.

use crate::secret::Password;
use crate::stored::{ProcessKey, Secret};
use crate::verifier::Verifier;

/// PostgreSQL's default for new passwords. Unknown users get the same number of iterations.
pub(crate) const ITERATIONS: u32 = 4096;

/// A user's secret and verifier.
#[derive(Clone, Debug)]
pub struct Account {
    secret: Secret,
    /// Derived from a plain password.
    derived: Option<Verifier>,
}

impl Account {
    /// Derives a verifier from a plain password. This takes about a millisecond and should be done once.
    pub fn new(user: &str, secret: Secret, key: &ProcessKey) -> Self {
        let derived = match &secret {
            Secret::Plain(password) => Some(Verifier::derive(password, &key.salt_for(user), ITERATIONS)),
            _ => None,
        };
        Account { secret, derived }
    }

    /// The verifier that checks a SCRAM proof. An md5 hash has none.
    pub(crate) fn verifier(&self) -> Option<&Verifier> {
        match &self.secret {
            Secret::Scram(verifier) => Some(verifier),
            _ => self.derived.as_ref(),
        }
    }

    /// The verifier, if it was given and not derived here. It can be the server's own.
    pub(crate) fn own_verifier(&self) -> Option<&Verifier> {
        match &self.secret {
            Secret::Scram(verifier) => Some(verifier),
            _ => None,
        }
    }

    /// The password, if known.
    pub fn password(&self) -> Option<&Password> {
        match &self.secret {
            Secret::Plain(password) => Some(password),
            _ => None,
        }
    }

    /// The secret that checks an md5 response: `md5` and the digits.
    pub(crate) fn md5(&self, user: &str) -> Option<Password> {
        match &self.secret {
            Secret::Plain(password) => Some(crate::md5::md5_secret(user, password)),
            Secret::Md5(hash) => Some(hash.clone()),
            Secret::Scram(_) => None,
        }
    }

    /// The secret as given.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }
}
