//! Authentication: which clients can log in, and how they prove their identity. No I/O, no clock, no random
//! numbers of its own: the caller passes them in.
//!
//! | module | what lives there |
//! |---|---|
//! | `account` | a user's secret and the verifier that checks a proof |
//! | `credential` | credentials with which the gateway logs in at the server as the same user |
//! | `exchange` | the messages of an authentication exchange and the meaning of the answers |
//! | `hash` | HMAC, SHA-256, PBKDF2 and MD5 |
//! | `hba` | the access file, in `pg_hba.conf` format |
//! | `limits` | every bound |
//! | `md5` | secrets and responses of md5 authentication |
//! | `robust` | tests with random input from files, clients and servers |
//! | `scram` | SCRAM-SHA-256, as server and as client |
//! | `secret` | passwords and keys, which are never printed |
//! | `stored` | stored forms of a password, and salts for unknown users |
//! | `users` | the user file, in PgBouncer's `userlist.txt` format |
//! | `verifier` | SCRAM verifiers |

mod account;
mod credential;
mod exchange;
mod hash;
mod hba;
pub mod limits;
mod md5;
#[cfg(test)]
mod robust;
mod scram;
mod secret;
mod stored;
mod users;
mod verifier;

pub use account::Account;
pub use credential::Credential;
pub use exchange::{AuthMessage, Exchange, LoginContext, Proven, Rejection, Step};
pub use hba::{Certificate, Hba, HbaError, LoginAttempt, Method, Rule};
pub use md5::Md5Response;
pub use scram::client::{Challenge, ClientFinal, ClientFirst, ServerError};
pub use scram::{Binding, PLAIN as SCRAM_SHA_256, PLUS as SCRAM_SHA_256_PLUS};
pub use secret::{Key, Password};
pub use stored::{ProcessKey, Secret};
pub use users::{Users, UsersError};
pub use verifier::{Keys, Verifier};
