//! What a lane decides, and what stands between lanes and sessions: which units share a batch, what happens when one fails or
//! the connection is lost, and in which order a client gets its answers. Nothing here knows a protocol, a language or an
//! error code, so that each kind of database can have lanes. No I/O, no clock, no threads: the caller passes in everything
//! that a decision needs.
//!
//! | module | what lives there |
//! |---|---|
//! | `affinity` | the choice of a unit's lane |
//! | `answers` | the order of a client's answers |
//! | `cancel` | where a session's work is, as its cancel requests find it |
//! | `frequent` | the most frequent keys, in bounded memory |
//! | `key` | the row for which a unit contends, as a hash |
//! | `lane` | the state machine of a lane |
//! | `latencies` | counts of times, for quantiles |
//! | `limits` | every bound of lanes |
//! | `row_queue` | the transactions that work on the same rows |
//! | `shadow` | the batches that units would have made which were passed through |
//! | `waiting` | calls that found nothing and wait for a notification |

pub mod affinity;
pub mod answers;
pub mod cancel;
pub mod frequent;
pub mod key;
pub mod lane;
pub mod latencies;
pub mod limits;
pub mod row_queue;
pub mod shadow;
pub mod waiting;
