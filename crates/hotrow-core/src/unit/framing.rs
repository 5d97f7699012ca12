//! How a client asked for a statement, and so how the gateway has to answer: which messages stand around what the lane's
//! connection brought.

use bytes::BytesMut;
use hotrow_wire::backend::{self, tag};
use hotrow_wire::split;

use super::gather::Describe;
use crate::classify::Boundary;

/// How the client asked, which tells how it is answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplyFraming {
    /// By a simple query.
    pub(super) simple: bool,
    /// CloseComplete to put in front and behind.
    pub(super) closes: (u16, u16),
    /// ParseComplete to put in front.
    pub(super) parse: bool,
    /// What is to be described.
    pub(super) describe: Describe,
    /// NoData to put in behind BindComplete: the statement returns no rows, so that nobody has to ask the server.
    pub(super) no_data: bool,
    /// ReadyForQuery to put in behind, in the transaction that goes on.
    pub(super) ready: bool,
}

impl ReplyFraming {
    pub(super) fn put_before(self, out: &mut BytesMut) {
        (0..self.closes.0).for_each(|_| out.extend_from_slice(backend::CLOSE_COMPLETE));
        if self.parse {
            out.extend_from_slice(backend::PARSE_COMPLETE);
        }
    }

    pub(super) fn put_behind(self, out: &mut BytesMut) {
        (0..self.closes.1).for_each(|_| out.extend_from_slice(backend::CLOSE_COMPLETE));
    }

    /// What the lane brought, as the client is to see it.
    pub(super) fn put(self, from_lane: &[u8], out: &mut BytesMut) {
        if !self.simple && !self.no_data {
            return out.extend_from_slice(from_lane);
        }
        let (before, behind) = around_bind_complete(from_lane);
        out.extend_from_slice(before);
        if self.no_data {
            out.extend_from_slice(backend::BIND_COMPLETE);
            out.extend_from_slice(backend::NO_DATA);
        }
        out.extend_from_slice(behind);
    }

    /// The answer to BEGIN or COMMIT.
    pub(super) fn put_boundary(self, boundary: Boundary, out: &mut BytesMut) {
        let described = |out: &mut BytesMut| {
            out.extend_from_slice(backend::NO_PARAMETERS);
            out.extend_from_slice(backend::NO_DATA);
        };
        if self.describe == Describe::StatementFirst {
            described(out);
        }
        if !self.simple {
            out.extend_from_slice(backend::BIND_COMPLETE);
        }
        match self.describe {
            Describe::Statement => described(out),
            Describe::Portal => out.extend_from_slice(backend::NO_DATA),
            Describe::No | Describe::StatementFirst => {}
        }
        backend::put_command_complete(out, boundary.tag());
    }
}

/// What is in front of BindComplete (notices, if anything) and what is behind it.
fn around_bind_complete(frames: &[u8]) -> (&[u8], &[u8]) {
    let mut start = 0;
    while let Ok(Some(frame)) = split(&frames[start..], |_| usize::MAX) {
        if frame.tag == tag::BIND_COMPLETE {
            return (&frames[..start], &frames[start + frame.bytes.len()..]);
        }
        start += frame.bytes.len();
    }
    (&[], frames)
}
