//! A unit on its way through a lane: the bytes for the lane, the bytes as they came, and how its answer is put
//! together from the lane's.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use hotrow_core::classify::{self, Ahead, Boundary, Packing, Returns};
use hotrow_core::gather::{Describe, Single};
use hotrow_core::key::{Format, Key, KeySpec, ParamValue};
use hotrow_core::lane::{Claim, Kind, Merge};
use hotrow_core::normalise::Shape;
use hotrow_core::waiting::Mark;
use hotrow_wire::backend::{self, Problem, tag};
use hotrow_wire::frontend::{self, Bind, Named};
use hotrow_wire::split;

use crate::counts::Became;
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
    /// The row it contends for; of a unit of several statements the least of them.
    pub key: Option<Key>,
    /// How many of its versions may share a commit.
    pub rows_per_commit: u16,
    /// For a call of a function with a merge rule: what it can become one call with.
    pub merge: Option<Merge>,
    /// The rows that a unit of several statements contends for.
    pub claims: Box<[Claim]>,
    /// When it came.
    pub came: Instant,
    /// When it was last handed to a lane, or came.
    pub since: Instant,
    /// Of a call that waits: when it shall wait no more.
    pub deadline: Option<Instant>,
    /// Of a call that may wait: what was known when it was handed to a lane.
    pub mark: Option<Mark>,
    /// How often its session was cancelled before it was.
    pub cancels: u64,
    /// If it succeeds, it gives names of statements or takes them away.
    pub changes_names: bool,
    steps: Vec<Step>,
    bytes: Box<[u8]>,
    /// Where in `bytes` the messages begin as the client sent them.
    raw: usize,
}

/// What one statement of a unit is.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Run by the lane.
    Run(Arc<Statement>, Arc<Packing>),
    /// BEGIN or COMMIT, which the batch stands for.
    Boundary(Arc<Statement>, Boundary),
}

impl Plan {
    /// The statement.
    pub fn statement(&self) -> &Arc<Statement> {
        match self {
            Plan::Run(statement, _) | Plan::Boundary(statement, _) => statement,
        }
    }
}

/// One statement of a unit.
#[derive(Debug)]
enum Step {
    Run(Run),
    Boundary(Boundary, Form),
}

/// A statement that the lane runs.
#[derive(Debug)]
pub struct Run {
    /// The statement, to be prepared on the lane.
    pub statement: Arc<Statement>,
    /// How it is packed.
    pub packing: Arc<Packing>,
    /// Its messages for the lane, within those of the unit.
    frames: Range<usize>,
    form: Form,
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
    /// What is to be described.
    describe: Describe,
    /// NoData to put in behind BindComplete: the statement returns no rows, so that nobody has to ask the server.
    no_data: bool,
    /// ReadyForQuery to put in behind, in the transaction that goes on.
    ready: bool,
}

/// What a session knows of a unit when it makes it.
pub struct Parts<'a> {
    /// Who is to be answered.
    pub mailbox: &'a Arc<Mailbox>,
    /// The messages as the client sent them, the Sync included.
    pub raw: [&'a [u8]; 2],
    /// When they came.
    pub since: Instant,
}

/// A unit that is being made, statement by statement.
pub struct Draft<'o> {
    steps: Vec<Step>,
    /// The row of the first statement, and those of the others.
    first: Option<Claim>,
    others: Vec<Claim>,
    /// Of the last statement: what it can be merged with.
    merge: Option<Merge>,
    out: &'o mut BytesMut,
}

impl Packed {
    /// A unit from a simple query: its statements, each with the places of its literals among those of the text.
    pub fn simple(
        parts: Parts<'_>,
        statements: Vec<(Plan, Range<usize>)>,
        shape: &Shape<'_>,
        out: &mut BytesMut,
    ) -> Self {
        let mut draft = Draft::new(out);
        for (plan, literals) in statements {
            draft.simple(plan, shape, literals);
        }
        draft.finish(parts)
    }

    /// A unit from extended queries up to a Sync.
    pub fn extended<'s>(
        parts: Parts<'_>,
        statements: impl Iterator<Item = (&'s Single<'s>, Plan)>,
        out: &mut BytesMut,
    ) -> Self {
        let mut draft = Draft::new(out);
        statements.for_each(|(single, plan)| draft.extended(plan, single));
        draft.finish(parts)
    }

    /// It is several statements: these are their rows. One that is only read is contended for by nobody.
    fn claim(&mut self, claims: impl Iterator<Item = Claim>) {
        let writes: Vec<bool> = self.runs().map(|run| run.packing.kind == classify::Kind::Write).collect();
        self.claims = claims.filter(|claim| writes[usize::from(claim.statement)]).collect();
        self.key = self.claims.iter().map(|claim| claim.key).min();
        self.merge = None;
    }

    /// Which lanes run it.
    pub fn kind(&self) -> Kind {
        let writes = |run: &Run| run.packing.kind == classify::Kind::Write;
        if self.runs().any(writes) { Kind::Write } else { Kind::Read }
    }

    /// Whether it moves a sequence that the session may ask for.
    pub fn touches_sequence(&self) -> bool {
        self.runs().any(|run| run.packing.touches_sequence)
    }

    /// All rows it is known to contend for.
    pub fn keys(&self) -> impl Iterator<Item = Key> + Clone {
        let only = if self.claims.is_empty() { self.key } else { None };
        only.into_iter().chain(self.claims.iter().map(|claim| claim.key))
    }

    /// Whether one of its statements may not be packed any more.
    pub fn has_lost_credit(&self) -> bool {
        self.runs().any(|run| !run.statement.has_credit())
    }

    /// Whether one of its statements writes and returns rows, and was never answered in a lane.
    pub fn is_unmeasured(&self) -> bool {
        self.runs().any(|run| {
            let returns = run.packing.kind == classify::Kind::Write && run.packing.returns_rows;
            returns && run.packing.merging.is_none() && run.statement.counts.of(Became::Packed) == 0
        })
    }

    /// The statements that the lane runs.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.steps.iter().filter_map(|step| match step {
            Step::Run(run) => Some(run),
            Step::Boundary(..) => None,
        })
    }

    /// Whether it is a call that may find nothing and wait, which its twin must be asked for.
    pub fn may_wait(&self) -> bool {
        self.runs().any(|run| may_wait(&run.packing))
    }

    /// Whether it may wait and can't be sent as a call of the twin: in a lane it would hold up all others.
    pub fn must_run_alone(&self) -> bool {
        self.may_wait() && self.merge.is_none_or(|merge| merge == Merge::NEVER)
    }

    /// Whether it is a transaction that would stay open if it failed: its COMMIT is not a message of its own, which would
    /// end it all the same.
    pub fn may_stay_open(&self) -> bool {
        self.readies() == 1 && matches!(self.steps.first(), Some(Step::Boundary(..)))
    }

    /// How many ReadyForQuery its client waits for.
    pub fn readies(&self) -> usize {
        let readies = self.steps.iter().filter(|step| match step {
            Step::Run(Run { form, .. }) | Step::Boundary(_, form) => form.ready,
        });
        readies.count().max(1)
    }

    /// Puts the gateway's own error in its place. True if the caller has to flush the mailbox.
    pub fn refuse(&self, problem: &Problem) -> bool {
        if self.changes_names {
            self.mailbox.refuses(self.slot);
        }
        self.mailbox.answer(self.slot, |out| put_refusals(problem, self.readies(), out))
    }

    /// How many statements the lane runs.
    pub fn statement_count(&self) -> u16 {
        u16::try_from(self.runs().count()).unwrap_or(u16::MAX)
    }

    /// A statement's messages for the lane, without Parse and Sync.
    pub fn frames(&self, run: &Run) -> &[u8] {
        &self.bytes[run.frames.clone()]
    }

    /// The statement and the parameters of a call that may be merged.
    pub fn call(&self) -> Option<(&Run, Bind<'_>)> {
        let run = self.runs().next()?;
        Some((run, bind_of(self.frames(run))?))
    }

    /// What came for a merged call of so many, of which this is the first; or what is wrong about it.
    pub fn rows<'b>(&self, bytes: &'b [u8], calls: usize) -> Option<Result<Rows<'b>, String>> {
        let (run, bind) = self.call()?;
        let returns = run.packing.merging.as_ref()?.returns;
        Some(Rows::read(bytes, returns, merged::is_lead_binary(&bind), calls))
    }

    /// Whether the row of its one statement can be locked before it runs.
    pub fn is_lockable(&self) -> bool {
        self.runs().any(|run| run.packing.ahead.is_some())
    }

    /// How the row of one of its statements is locked before it runs, and its parameters.
    pub fn lock(&self, statement: u16) -> Option<(&Ahead, Bind<'_>)> {
        let run = self.runs().nth(statement.into())?;
        let mut frames = self.frames(run);
        while let Ok(Some(frame)) = split(frames, |_| usize::MAX) {
            if frame.tag == frontend::tag::BIND {
                return run.packing.ahead.as_ref().zip(Bind::read(frame.body()).ok());
            }
            frames = &frames[frame.bytes.len()..];
        }
        None
    }

    /// The messages as the client sent them.
    pub fn raw(&self) -> &[u8] {
        &self.bytes[self.raw..]
    }

    /// What it weighs on the wire.
    pub fn weight(&self) -> usize {
        self.bytes.len()
    }

    /// Writes the client's answer from its row of a merged call.
    pub fn put_merged_answer(&self, rows: &Rows<'_>, place: usize, from_commit: &[u8], out: &mut BytesMut) {
        let Some(Run { form, .. }) = self.runs().next() else { return };
        form.put_before(out);
        if !form.simple {
            out.extend_from_slice(backend::BIND_COMPLETE);
        }
        rows.put(place, form.simple || form.describe == Describe::Portal, out);
        out.extend_from_slice(from_commit);
        form.put_behind(out);
        out.extend_from_slice(backend::READY_IDLE);
    }

    /// Writes the client's answer from what the lane's connection brought for each of its statements, and what it
    /// brought for the commit.
    pub fn put_answer<'a>(
        &self,
        mut from_lane: impl Iterator<Item = &'a [u8]>,
        from_commit: &[u8],
        out: &mut BytesMut,
    ) {
        for (place, step) in self.steps.iter().enumerate() {
            let form = match step {
                Step::Run(run) => {
                    run.form.put_before(out);
                    run.form.put(from_lane.next().unwrap_or_default(), out);
                    run.form
                }
                Step::Boundary(boundary, form) => {
                    form.put_before(out);
                    form.put_boundary(*boundary, out);
                    *form
                }
            };
            let is_last = place + 1 == self.steps.len();
            if is_last {
                out.extend_from_slice(from_commit);
            }
            form.put_behind(out);
            if form.ready && !is_last {
                out.extend_from_slice(backend::READY_IN_TRANSACTION);
            }
        }
        out.extend_from_slice(backend::READY_IDLE);
    }
}

impl<'o> Draft<'o> {
    /// Nothing yet. The messages for the lane are put together in this buffer.
    pub fn new(out: &'o mut BytesMut) -> Self {
        out.clear();
        Draft { steps: Vec::with_capacity(1), first: None, others: Vec::new(), merge: None, out }
    }

    /// Adds a statement that came in a simple query; its literals are those at these places, as far as there are any.
    pub fn simple(&mut self, plan: Plan, shape: &Shape<'_>, literals: Range<usize>) {
        let literals = literals.start..literals.end.min(shape.literals().len());
        let form = Form { simple: true, ..Form::default() };
        let (statement, packing) = match plan {
            Plan::Run(statement, packing) => (statement, packing),
            Plan::Boundary(_, boundary) => {
                return self.steps.push(Step::Boundary(boundary, form));
            }
        };
        let start = self.out.len();
        let values = shape.literals().skip(literals.start).take(literals.len()).map(|literal| literal.value);
        frontend::put_bind_text(self.out, &statement.name, values);
        if packing.returns_rows {
            self.out.extend_from_slice(frontend::DESCRIBE_PORTAL);
        }
        self.out.extend_from_slice(frontend::EXECUTE);
        let key = key_of(packing.key.as_ref(), |index| {
            let literal = shape.literal(literals.start + usize::from(index))?;
            Some(ParamValue { format: Format::Text, bytes: literal.value })
        });
        let bind = if packing.in_key_space { bind_of(&self.out[start..]) } else { None };
        let merge = merge_of(&packing, key, bind);
        self.add(statement, packing, form, start, key, merge);
    }

    /// Adds a statement that came by extended query.
    pub fn extended(&mut self, plan: Plan, single: &Single<'_>) {
        let count = |closes: &[Named<'_>]| u16::try_from(closes.len()).unwrap_or(u16::MAX);
        let closes = (count(&single.closes.0), count(&single.closes.1));
        let (parse, describe) = (single.parse.is_some(), single.describe);
        let mut form = Form { closes, parse, describe, ..Form::default() };
        let (statement, packing) = match plan {
            Plan::Run(statement, packing) => (statement, packing),
            Plan::Boundary(_, boundary) => {
                return self.steps.push(Step::Boundary(boundary, form));
            }
        };
        let start = self.out.len();
        let name: &[u8] = &statement.name;
        let describe_statement =
            |out: &mut BytesMut| Named { statement: true, name }.put(frontend::tag::DESCRIBE, out);
        if describe == Describe::StatementFirst {
            describe_statement(self.out);
        }
        single.bind.put(b"", name, self.out);
        match describe {
            Describe::Statement => describe_statement(self.out),
            Describe::Portal if packing.returns_rows => self.out.extend_from_slice(frontend::DESCRIBE_PORTAL),
            Describe::Portal => form.no_data = true,
            Describe::No | Describe::StatementFirst => {}
        }
        self.out.extend_from_slice(frontend::EXECUTE);
        let key = key_of(packing.key.as_ref(), |index| param(&single.bind, index));
        // The statement's description comes from its own call only.
        let bind = matches!(describe, Describe::No | Describe::Portal).then_some(single.bind);
        let merge = merge_of(&packing, key, bind);
        self.add(statement, packing, form, start, key, merge);
    }

    fn add(
        &mut self,
        statement: Arc<Statement>,
        packing: Arc<Packing>,
        form: Form,
        start: usize,
        key: Option<Key>,
        merge: Option<Merge>,
    ) {
        let number = self.steps.iter().filter(|step| matches!(step, Step::Run(_))).count();
        let claim = key.map(|key| Claim {
            key,
            statement: u16::try_from(number).unwrap_or(u16::MAX),
            rows_per_commit: packing.rows_per_commit,
            in_key_space: packing.in_key_space,
            lockable: packing.ahead.is_some(),
        });
        match number {
            0 => self.first = claim,
            _ => self.others.extend(claim),
        }
        self.merge = merge;
        self.steps.push(Step::Run(Run { statement, packing, frames: start..self.out.len(), form }));
    }

    /// The client has asked for an answer up to here before it asked for more.
    pub fn ready(&mut self) {
        if let Some(Step::Run(Run { form, .. }) | Step::Boundary(_, form)) = self.steps.last_mut() {
            form.ready = true;
        }
    }

    /// How many statements it is so far.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// The unit.
    pub fn finish(self, parts: Parts<'_>) -> Packed {
        let Draft { steps, first, others, merge, out } = self;
        let mut bytes = Vec::with_capacity(out.len() + parts.raw[0].len() + parts.raw[1].len());
        bytes.extend_from_slice(out);
        parts.raw.iter().for_each(|raw| bytes.extend_from_slice(raw));
        let mut packed = Packed {
            mailbox: parts.mailbox.clone(),
            slot: 0,
            key: first.map(|claim| claim.key),
            rows_per_commit: first.map_or(1, |claim| claim.rows_per_commit),
            merge,
            claims: Box::default(),
            came: parts.since,
            since: parts.since,
            deadline: None,
            mark: None,
            cancels: 0,
            changes_names: false,
            steps,
            bytes: bytes.into(),
            raw: out.len(),
        };
        if packed.steps.len() > 1 {
            packed.claim(first.into_iter().chain(others));
        }
        packed
    }
}

impl Form {
    fn put_before(self, out: &mut BytesMut) {
        (0..self.closes.0).for_each(|_| out.extend_from_slice(backend::CLOSE_COMPLETE));
        if self.parse {
            out.extend_from_slice(backend::PARSE_COMPLETE);
        }
    }

    fn put_behind(self, out: &mut BytesMut) {
        (0..self.closes.1).for_each(|_| out.extend_from_slice(backend::CLOSE_COMPLETE));
    }

    /// What the lane brought, as the client is to see it.
    fn put(self, from_lane: &[u8], out: &mut BytesMut) {
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
    fn put_boundary(self, boundary: Boundary, out: &mut BytesMut) {
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

/// Writes the gateway's own error in a unit's place, once for each ReadyForQuery that its client still waits for: none of
/// its messages has done what it was to do, its COMMIT least of all.
pub fn put_refusals(problem: &Problem, readies: usize, out: &mut BytesMut) {
    for _ in 0..readies {
        problem.put(out);
        out.extend_from_slice(backend::READY_IDLE);
    }
}

fn may_wait(packing: &Packing) -> bool {
    packing.merging.as_ref().is_some_and(|merging| merging.returns == Returns::RowsOrWait)
}

fn merge_of(packing: &Packing, key: Option<Key>, bind: Option<Bind<'_>>) -> Option<Merge> {
    (packing.in_key_space && key.is_some()).then(|| {
        let merging = packing.merging.as_ref().zip(bind);
        merging.map_or(Merge::NEVER, |(merging, bind)| merged::group(merging, &bind))
    })
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
