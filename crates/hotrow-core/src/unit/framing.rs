//! The form of a client's request, which determines the messages around the lane's reply.

use bytes::BytesMut;
use hotrow_wire::backend::{self, tag};
use hotrow_wire::split;

use super::gather::Describe;
use crate::classify::Boundary;

/// The form of a client's request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplyFraming {
    /// The request is a simple query.
    pub(super) simple: bool,
    /// Number of CloseComplete messages before and after the reply.
    pub(super) closes: (u16, u16),
    /// A ParseComplete precedes the reply.
    pub(super) parse: bool,
    /// The description that the client requested.
    pub(super) describe: Describe,
    /// A NoData follows BindComplete. The statement returns no rows, so the gateway does not ask the server.
    pub(super) no_data: bool,
    /// A ReadyForQuery inside the open transaction follows.
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

    /// The lane's reply as the client must see it.
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

    /// The reply to BEGIN or COMMIT.
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

/// The frames before BindComplete (notices, if any) and the frames after it.
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
