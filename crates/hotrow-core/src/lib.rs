//! What Hotrow decides: how a statement is classified, which row it contends for, what a lane does next, and every
//! bound. No I/O, no clock, no threads: everything a decision needs is handed in.
//!
//! | module | what lives there |
//! |---|---|
//! | `normalise` | a simple query's text: its literals become parameters |
//! | `classify` | which statements can be packed, and with which key |
//! | `key` | the row that a unit contends for |
//! | `unit` | units: what they are, what a lane sends for them, what their clients are told |
//! | `session` | the order of a client's units and of their answers |
//! | `affinity` | which lane runs a unit |
//! | `lane` | the next action of a lane |
//! | `pace` | how long a unit would wait in a lane |
//! | `witness` | what became of a commit whose answer was lost |
//! | `waiting` | which waiting calls run again |
//! | `expect` | which replies a connection owes, and the meaning of the client's names |
//! | `admission` | whether a client gets into an open pool |
//! | `console` | the commands of the admin console |
//! | `limits` | every bound |

pub mod admission;
pub mod affinity;
pub mod classify;
pub mod console;
pub mod expect;
pub mod key;
pub mod lane;
pub mod limits;
pub mod normalise;
pub mod pace;
pub mod session;
pub mod unit;
pub mod waiting;
pub mod witness;
