//! A unit on its way through a lane: the bytes for the lane, the bytes as they came, and how its answer is put
//! together from the lane's.

use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use hotrow_core::classify::Packing;
use hotrow_core::gather::{Describe, Single};
use hotrow_core::key::{Format, Key, KeySpec, ParamValue};
use hotrow_core::lane::Merge;
use hotrow_core::normalise::Shape;
use hotrow_wire::backend::{self, tag};
use hotrow_wire::frontend::{self, Bind, Named};
use hotrow_wire::split;

use crate::mailbox::Mailbox;
use crate::merged::{self, Rows};
use crate::statements::Statement;

/// A unit that a lane can run.
#[derive(Debug)]
pub struct Packed {
    /// Who is to be answered.
    pub mailbox: Arc<Mailbox>,
    /// The answer's place there.
    pub slot: u64,
    /// The statement, to be prepared on the lane.
    pub statement: Arc<Statement>,
    /// How it is packed.
    pub packing: Arc<Packing>,
    /// The row it contends for.
    pub key: Option<Key>,
    /// For a call of a function with a merge rule: what it can become one call with.
    pub merge: Option<Merge>,
    /// When it came.
    pub since: Instant,
    form: Form,
    bytes: Box<[u8]>,
    /// Where in `bytes` the messages begin as the client sent them.
    raw: usize,
}

/// How the client asked, which tells how it is answered.
#[derive(Clone, Copy, Debug, Default)]
struct Form {
    /// By a simple query.
    simple: bool,
    /// CloseComplete to put in front and behind.
    closes: (u16, u16),
    /// ParseComplete to put in front.
    parse: bool,
    /// RowDescription to put in behind BindComplete, where the answer comes out of a merged call.
    described: bool,
    /// NoData to put in behind BindComplete: the statement returns no rows, so that nobody has to ask the server.
    no_data: bool,
}

/// What a session knows of a unit when it makes it.
pub struct Parts<'a> {
    /// Who is to be answered.
    pub mailbox: &'a Arc<Mailbox>,
    /// The statement.
    pub statement: &'a Arc<Statement>,
    /// How it is packed.
    pub packing: &'a Arc<Packing>,
    /// The messages as the client sent them, the Sync included.
    pub raw: [&'a [u8]; 2],
    /// When they came.
    pub since: Instant,
}

impl Packed {
    /// A unit from a simple query and what was taken out of its text.
    pub fn simple(parts: Parts<'_>, shape: &Shape<'_>, out: &mut BytesMut) -> Self {
        out.clear();
        frontend::put_bind_text(out, &parts.statement.name, shape.literals().map(|literal| literal.value));
        if parts.packing.returns_rows {
            out.extend_from_slice(frontend::DESCRIBE_PORTAL);
        }
        out.extend_from_slice(frontend::EXECUTE);
        let key = key_of(parts.packing.key.as_ref(), |index| {
            let literal = shape.literal(usize::from(index))?;
            Some(ParamValue { format: Format::Text, bytes: literal.value })
        });
        let bind = if parts.packing.in_key_space { bind_of(out) } else { None };
        Self::new(parts, Form { simple: true, described: true, ..Form::default() }, key, bind, out)
    }

    /// A unit from an extended query.
    pub fn extended(parts: Parts<'_>, single: &Single<'_>, out: &mut BytesMut) -> Self {
        out.clear();
        let name: &[u8] = &parts.statement.name;
        let describe_statement =
            |out: &mut BytesMut| Named { statement: true, name }.put(frontend::tag::DESCRIBE, out);
        if single.describe == Describe::StatementFirst {
            describe_statement(out);
        }
        single.bind.put(b"", name, out);
        let mut no_data = false;
        match single.describe {
            Describe::Statement => describe_statement(out),
            Describe::Portal if parts.packing.returns_rows => {
                out.extend_from_slice(frontend::DESCRIBE_PORTAL)
            }
            Describe::Portal => no_data = true,
            Describe::No | Describe::StatementFirst => {}
        }
        out.extend_from_slice(frontend::EXECUTE);
        let key = key_of(parts.packing.key.as_ref(), |index| param(&single.bind, index));
        let count = |closes: &[Named<'_>]| u16::try_from(closes.len()).unwrap_or(u16::MAX);
        let closes = (count(&single.closes.0), count(&single.closes.1));
        let described = single.describe == Describe::Portal;
        let form = Form { simple: false, closes, parse: single.parse.is_some(), described, no_data };
        // The statement's description comes from its own call only.
        let bind = matches!(single.describe, Describe::No | Describe::Portal).then_some(single.bind);
        Self::new(parts, form, key, bind, out)
    }

    /// `bind` is that of a call that may be merged.
    fn new(
        parts: Parts<'_>,
        form: Form,
        key: Option<Key>,
        bind: Option<Bind<'_>>,
        frames: &BytesMut,
    ) -> Self {
        let merge = (parts.packing.in_key_space && key.is_some()).then(|| {
            let merging = parts.packing.merging.as_ref().zip(bind);
            merging.map_or(Merge::NEVER, |(merging, bind)| merged::group(merging, &bind))
        });
        let mut bytes = Vec::with_capacity(frames.len() + parts.raw[0].len() + parts.raw[1].len());
        bytes.extend_from_slice(frames);
        parts.raw.iter().for_each(|raw| bytes.extend_from_slice(raw));
        Packed {
            mailbox: parts.mailbox.clone(),
            slot: 0,
            statement: parts.statement.clone(),
            packing: parts.packing.clone(),
            key,
            merge,
            since: parts.since,
            form,
            bytes: bytes.into(),
            raw: frames.len(),
        }
    }

    /// Its parameters, where its messages begin with Bind.
    pub fn bind(&self) -> Option<Bind<'_>> {
        bind_of(self.frames())
    }

    /// The messages for the lane, without Parse and Sync.
    pub fn frames(&self) -> &[u8] {
        &self.bytes[..self.raw]
    }

    /// The messages as the client sent them.
    pub fn raw(&self) -> &[u8] {
        &self.bytes[self.raw..]
    }

    /// Writes the client's answer from its row of a merged call.
    pub fn put_merged_answer(&self, rows: &Rows<'_>, place: usize, from_commit: &[u8], out: &mut BytesMut) {
        self.put_around(from_commit, out, |form, out| {
            if !form.simple {
                out.extend_from_slice(backend::BIND_COMPLETE);
            }
            rows.put(place, form.described, out);
        });
    }

    /// Writes the client's answer from what the lane's connection brought for this unit, and what it brought for
    /// the commit.
    pub fn put_answer(&self, from_lane: &[u8], from_commit: &[u8], out: &mut BytesMut) {
        self.put_around(from_commit, out, |form, out| {
            if form.simple || form.no_data {
                let (before, behind) = around_bind_complete(from_lane);
                out.extend_from_slice(before);
                if form.no_data {
                    out.extend_from_slice(backend::BIND_COMPLETE);
                    out.extend_from_slice(backend::NO_DATA);
                }
                out.extend_from_slice(behind);
            } else {
                out.extend_from_slice(from_lane);
            }
        });
    }

    /// Puts what every answer begins and ends with around `put`.
    fn put_around(&self, from_commit: &[u8], out: &mut BytesMut, put: impl FnOnce(Form, &mut BytesMut)) {
        let form = self.form;
        (0..form.closes.0).for_each(|_| out.extend_from_slice(backend::CLOSE_COMPLETE));
        if form.parse {
            out.extend_from_slice(backend::PARSE_COMPLETE);
        }
        put(form, out);
        out.extend_from_slice(from_commit);
        (0..form.closes.1).for_each(|_| out.extend_from_slice(backend::CLOSE_COMPLETE));
        out.extend_from_slice(backend::READY_IDLE);
    }
}

fn bind_of(frames: &[u8]) -> Option<Bind<'_>> {
    let frame = split(frames, |_| usize::MAX).ok()??;
    if frame.tag == frontend::tag::BIND { Bind::read(frame.body()).ok() } else { None }
}

fn key_of<'p>(spec: Option<&KeySpec>, param: impl Fn(u16) -> Option<ParamValue<'p>>) -> Option<Key> {
    spec.and_then(|spec| spec.key(param))
}

fn param<'a>(bind: &Bind<'a>, index: u16) -> Option<ParamValue<'a>> {
    let value = bind.value(usize::from(index))?;
    let format = if value.binary { Format::Binary } else { Format::Text };
    Some(ParamValue { format, bytes: value.bytes? })
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
