//! The form of a client's request, which determines the messages around the lane's reply.

use bytes::BytesMut;
use hotrow_wire::backend::{self, tag};
use hotrow_wire::frontend::ObjectName;
use hotrow_wire::split;

use super::gather::{Describe, Single};

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
    /// The client has the reply already.
    pub(super) told: bool,
}

/// Writes the reply to one statement of an extended query that returns no rows. `result` is the reply to its Execute.
pub fn put_command_answer(single: &Single<'_>, put_result: impl FnOnce(&mut BytesMut), out: &mut BytesMut) {
    let framing = ReplyFraming::of(single);
    framing.put_before(out);
    framing.put_without_rows(out);
    put_result(out);
    framing.put_behind(out);
}

impl ReplyFraming {
    /// For this statement of an extended query.
    pub(super) fn of(single: &Single<'_>) -> Self {
        let count = |closes: &[ObjectName<'_>]| u16::try_from(closes.len()).unwrap_or(u16::MAX);
        ReplyFraming {
            closes: (count(&single.closes.0), count(&single.closes.1)),
            parse: single.parse.is_some(),
            describe: single.describe,
            ..ReplyFraming::default()
        }
    }

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

    /// The reply to a command without rows, with this tag.
    pub(super) fn put_command(self, tag: &str, out: &mut BytesMut) {
        self.put_without_rows(out);
        backend::put_command_complete(out, tag);
    }

    /// The replies before that to the Execute of a statement without rows.
    fn put_without_rows(self, out: &mut BytesMut) {
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
