//! What Hotrow decides: how a statement is classified, which row it contends for, what a lane does next, and every
//! bound. No I/O, no clock, no threads: everything a decision needs is handed in.

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
pub mod unit;
pub mod waiting;
pub mod witness;
