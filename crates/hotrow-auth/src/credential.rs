//! By what a pool of clients logs in at the server: whatever the clients have proven, or is known of them. It stays with
//! the pool, since lanes have to log in again when no client is about to.

use crate::account::Account;
use crate::exchange::Proven;
use crate::md5::{Md5Response, md5_response, md5_secret};
use crate::scram::client::Challenge;
use crate::secret::{Key, Password};
use crate::stored::Secret;
use crate::verifier::{Keys, Verifier};

/// All that is known; the server chooses what it asks for.
#[derive(Clone, Debug, Default)]
pub struct Credential {
    /// The key that a client has proven to have, and the verifier that it fits.
    scram: Option<(Key, Verifier)>,
    password: Option<Password>,
    /// `md5` and digits.
    md5: Option<Password>,
}

impl Credential {
    /// Of a user whose account may be known and who may have proven something. `fallback` is a password that is used where
    /// nothing else is known.
    pub fn new(account: Option<&Account>, proven: Proven, fallback: Option<Password>) -> Self {
        let mut credential = Credential {
            scram: None,
            password: account.and_then(Account::password).cloned(),
            md5: match account.map(Account::secret) {
                Some(Secret::Md5(hash)) => Some(hash.clone()),
                _ => None,
            },
        };
        match proven {
            Proven::Nothing => {}
            Proven::Password(password) => credential.password = Some(password),
            Proven::Key(key) => {
                credential.scram =
                    account.and_then(Account::own_verifier).map(|verifier| (key, verifier.clone()));
            }
        }
        credential.password = credential.password.or(fallback);
        credential
    }

    /// What a client has brought that came later counts; what it has not brought stays.
    pub fn renewed(&self, newer: Credential) -> Self {
        Credential {
            scram: newer.scram.or_else(|| self.scram.clone()),
            password: newer.password.or_else(|| self.password.clone()),
            md5: newer.md5.or_else(|| self.md5.clone()),
        }
    }

    /// The password, where a server asks for it as it is.
    pub fn password(&self) -> Option<&Password> {
        self.password.as_ref()
    }

    /// The answer where a server asks for md5 with this salt.
    pub fn md5(&self, user: &str, salt: [u8; 4]) -> Option<Md5Response> {
        let secret = match (&self.md5, &self.password) {
            (Some(hash), _) => hash.clone(),
            (None, Some(password)) => md5_secret(user, password),
            (None, None) => return None,
        };
        Some(md5_response(&secret, salt))
    }

    /// Whether a SCRAM proof can be made at once: the server's salt and iterations are those of the verifier for which the
    /// key was proven.
    pub fn keys(&self, challenge: &Challenge) -> Option<Keys> {
        let (client_key, verifier) = self.scram.as_ref()?;
        let same = verifier.salt == challenge.salt && verifier.iterations == challenge.iterations;
        same.then(|| Keys { client_key: client_key.clone(), server_key: verifier.server_key.clone() })
    }

    /// Whether a client has shown a key, whatever verifier it fits.
    pub fn has_key(&self) -> bool {
        self.scram.is_some()
    }
}
