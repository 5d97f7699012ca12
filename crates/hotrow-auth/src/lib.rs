//! Which clients can log in, and how they prove who they are: everything about log-ins that is decided. No I/O, no clock, no
//! random numbers of its own: the caller passes them in.
//!
//! | question | module |
//! |---|---|
//! | which proof a client has to give | `hba`: the access file, in `pg_hba.conf` format |
//! | what is known of a user | `users` (a file), `stored`, `account`; `secret` are passwords and keys |
//! | whether the proof is right | `exchange`: `scram`, `md5` and cleartext; `verifier` and `hash` compute |
//! | how to log in at the server as the same user | `credential`, `scram` |
//! | random input | `robust` (tests) |

mod account;
mod credential;
mod exchange;
mod hash;
mod hba;
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
pub use exchange::{AuthMessage, Exchange, LoginContext, Proven, Refusal, Step};
pub use hba::{Certificate, Hba, HbaError, LoginAttempt, Method, Rule};
pub use md5::Md5Response;
pub use scram::client::{Challenge, ClientFinal, ClientFirst, ServerError};
pub use scram::{Binding, PLAIN as SCRAM_SHA_256, PLUS as SCRAM_SHA_256_PLUS};
pub use secret::{Key, Password};
pub use stored::{ProcessKey, Secret};
pub use users::{Users, UsersError};
pub use verifier::{Keys, Verifier};
