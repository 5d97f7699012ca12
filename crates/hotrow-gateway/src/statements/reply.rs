//! The server's reply to a statement that only clears state, as long as the gateway repeats it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hotrow_core::classify::differ_in_tables_only;

/// A reply that was learned from the server.
#[derive(Debug)]
pub(super) struct KnownReply {
    reply: Bytes,
    /// The epoch of the catalog: another one begins when the pool notices that its server or its settings have changed.
    epoch: u64,
    /// When it was learned, or last withheld.
    at: Instant,
}

impl KnownReply {
    /// A reply that was learned now.
    pub(super) fn new(reply: Bytes, epoch: u64) -> Self {
        KnownReply { reply, epoch, at: Instant::now() }
    }

    /// The reply, if it can be repeated in this epoch. One caller gets none when the reply has this age, and asks the server. The others
    /// do not wait for that: a server that reads its configuration again (`lc_messages`) does not do so at one moment either.
    pub(super) fn repeat(&mut self, epoch: u64, now: Instant, age_max: Duration) -> Option<Bytes> {
        if !differ_in_tables_only(self.epoch, epoch) {
            return None;
        }
        if now.saturating_duration_since(self.at) >= age_max {
            self.at = now;
            return None;
        }
        Some(self.reply.clone())
    }
}

#[cfg(test)]
mod tests {
    use hotrow_core::classify::Alters;

    use super::*;

    #[test]
    fn one_caller_asks_again_when_a_reply_is_old_and_all_after_a_change() {
        let (age_max, reply) = (Duration::from_secs(5), Bytes::from_static(b"C"));
        let mut known = KnownReply::new(reply.clone(), 0);
        let later = known.at + age_max;
        for (epoch, now, expected) in [
            (0, known.at, Some(&reply)),
            (0, later, None),
            (0, later, Some(&reply)),
            (Alters::Tables.step(), later, Some(&reply)),
            (Alters::Anything.step(), later, None),
            (Alters::Anything.step(), later, None),
        ] {
            assert_eq!(known.repeat(epoch, now, age_max).as_ref(), expected, "epoch {epoch}");
        }
    }
}
