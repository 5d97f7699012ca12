//! Where a COPY FROM STDIN stands: while the server reads its data it ignores Syncs, before and afterwards it answers them.
//!
//! So nothing is sent behind a statement that may be a COPY, nor behind the end of its data, until the server has said what
//! became of it. Only Syncs among the data are sent, since drivers send one right behind the Execute. If the COPY fails then,
//! the server has ignored those that it had read, and has yet to answer the others. It is asked which, by a Sync and a Close
//! that are the gateway's own: as many ReadyForQuery as come before the CloseComplete, less one, are the client's.

use super::Reply;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copy {
    /// There is none.
    No,
    /// What was sent last may be one.
    Possible,
    /// The server reads its data, and so many Syncs were sent among them.
    Reading { syncs: usize },
    /// All its data are sent.
    Ended { syncs: usize },
    /// It has failed, and the server was asked which Syncs it has read: it has answered so many, the gateway's included.
    Asking { seen: usize, is_query: bool },
}

impl Copy {
    pub(super) fn asks(self) -> bool {
        matches!(self, Copy::Asking { .. })
    }

    /// A ReadyForQuery that belongs to one of those Syncs. They all look the same, so that the client gets its own when the next
    /// one comes.
    pub(super) fn counts_sync(&mut self) -> Reply {
        let Copy::Asking { seen, .. } = self else { return Reply::Unexpected };
        *seen += 1;
        if *seen == 1 { Reply::Swallow } else { Reply::Forward }
    }
}
