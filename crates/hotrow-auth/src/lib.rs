//! Who may come in, and how that is proven: everything about log-ins that is decided. No I/O, no clock, no random
//! numbers of its own; whoever carries the messages brings them.
//!
//! | question | module |
//! |---|---|
//! | which proof is asked for | `hba`: a list like `pg_hba.conf` |
//! | what is known of a user | `users` (a file), `secret`, `account` |
//! | whether the proof is right | `exchange`: `scram::server`, md5 and cleartext |
//! | how to log in at the server as the same user | `credential`, `scram::client` |

mod account;
mod credential;
mod exchange;
mod hash;
mod hba;
#[cfg(test)]
mod robust;
mod scram;
mod secret;
mod users;
mod verifier;

pub use account::Account;
pub use credential::{Credential, Md5Response};
pub use exchange::{Ask, Exchange, Offer, Proven, Refusal, Step};
pub use hba::{Asking, Certificate, Hba, HbaError, Method, Rule};
pub use scram::client::{Challenge, ClientFinal, ClientFirst, ServerError};
pub use scram::{Binding, PLAIN as SCRAM_SHA_256, PLUS as SCRAM_SHA_256_PLUS};
pub use secret::{Key, Password, ProcessKey, Secret};
pub use users::{Users, UsersError};
pub use verifier::{Keys, Verifier};
