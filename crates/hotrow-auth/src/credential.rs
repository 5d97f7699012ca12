//! Credentials with which a pool logs in at the server: everything that clients have proven or that is known
//! about them. The pool keeps them, because lanes have to log in again when no client is logging in.

use crate::account::Account;
use crate::exchange::Proven;
use crate::md5::{Md5Response, md5_response, md5_secret};
use crate::scram::client::Challenge;
use crate::secret::{Key, Password};
use crate::stored::Secret;
use crate::verifier::{Keys, Verifier};

/// All known credentials. The server chooses which of them it requests.
#[derive(Clone, Debug, Default)]
pub struct Credential {
    /// The key that a client has proven to have, and its verifier.
    scram: Option<(Key, Verifier)>,
    password: Option<Password>,
    /// `md5` and digits.
    md5: Option<Password>,
}

impl Credential {
    /// Credentials of a user from the account, if known, and from a proof. `fallback` is a password that is
    /// used if no other credential is known.
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

    /// Replaces credentials by newer ones. Credentials that the newer set lacks stay.
    pub fn renewed(&self, newer: Credential) -> Self {
        Credential {
            scram: newer.scram.or_else(|| self.scram.clone()),
            password: newer.password.or_else(|| self.password.clone()),
            md5: newer.md5.or_else(|| self.md5.clone()),
        }
    }

    /// The password, for a server that requests it in cleartext.
    pub fn password(&self) -> Option<&Password> {
        self.password.as_ref()
    }

    /// The response to a server that requests md5 with this salt.
    pub fn md5(&self, user: &str, salt: [u8; 4]) -> Option<Md5Response> {
        let secret = match (&self.md5, &self.password) {
            (Some(hash), _) => hash.clone(),
            (None, Some(password)) => md5_secret(user, password),
            (None, None) => return None,
        };
        Some(md5_response(&secret, salt))
    }

    /// The keys, if a SCRAM proof can be computed without another login: the server's salt and iterations
    /// must be those of the verifier for which the key was proven.
    pub fn keys(&self, challenge: &Challenge) -> Option<Keys> {
        let (client_key, verifier) = self.scram.as_ref()?;
        let same = verifier.salt == challenge.salt && verifier.iterations == challenge.iterations;
        same.then(|| Keys { client_key: client_key.clone(), server_key: verifier.server_key.clone() })
    }

    /// Whether a client has proven a key, for any verifier.
    pub fn has_key(&self) -> bool {
        self.scram.is_some()
    }
}
