//! The state of a COPY FROM STDIN. While the server reads the COPY data it ignores Syncs. Before and after
//! the data it answers them.
//!
//! The gateway therefore sends no message after a statement that can be a COPY, or after the end of its data,
//! until the server has reported the result. Only Syncs among the data are sent, because drivers send one
//! directly after the Execute. If the COPY then fails, the server has ignored the Syncs that it had read and
//! will answer the others. To find out which, the gateway sends a Sync and a Close of its own. The number of
//! ReadyForQuery messages before the CloseComplete, less one, belongs to the client.

use super::Reply;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copy {
    No,
    /// The last message sent can be a COPY.
    Possible,
    /// The server reads its data. `syncs` Syncs were sent among the data.
    Reading {
        syncs: usize,
    },
    /// All its data was sent.
    Ended {
        syncs: usize,
    },
    /// It has failed. The gateway has asked the server which Syncs it has read. `seen` counts the answers,
    /// including the answer to the gateway's Sync.
    Asking {
        seen: usize,
        is_query: bool,
    },
}

impl Copy {
    pub(super) fn asks(self) -> bool {
        matches!(self, Copy::Asking { .. })
    }

    /// A ReadyForQuery that belongs to one of those Syncs. They are indistinguishable. The client therefore
    /// gets its own when the next one arrives.
    pub(super) fn counts_sync(&mut self) -> Reply {
        let Copy::Asking { seen, .. } = self else { return Reply::Unexpected };
        *seen += 1;
        if *seen == 1 { Reply::Swallow } else { Reply::Forward }
    }
}
