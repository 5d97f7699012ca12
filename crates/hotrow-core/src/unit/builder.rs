//! Builds a unit, statement by statement: the messages for the lane, and the rows for which they contend.

use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use hotrow_lane::key::Key;
use hotrow_lane::lane::{Claim, Claimed, LaneKind, Merge, Reads};
use hotrow_wire::frontend::{self, Bind, ObjectName};

use super::framing::ReplyFraming;
use super::gather::{Describe, Single};
use super::{Packed, Run, Step, bind_of, may_wait, merged};
use crate::classify::{BlockCommand, Packing};
use crate::distribution::UnitNode;
use crate::key::{self, Format, ParamValue};
use crate::limits;
use crate::normalise::Shape;

/// A statement that lanes prepare on their connections.
pub trait Prepared {
    /// Its name on these connections.
    fn name(&self) -> &[u8];
}

impl<S: Prepared> Prepared for Arc<S> {
    fn name(&self) -> &[u8] {
        (**self).name()
    }
}

/// The role of one statement in a unit.
#[derive(Clone, Debug)]
pub enum Plan<S> {
    /// The lane runs it.
    Run(S, Arc<Packing>),
    /// BEGIN or COMMIT. The batch's transaction replaces it.
    BlockCommand(S, BlockCommand),
}

impl<S> Plan<S> {
    pub fn statement(&self) -> &S {
        match self {
            Plan::Run(statement, _) | Plan::BlockCommand(statement, _) => statement,
        }
    }
}

/// A unit under construction.
pub struct UnitBuilder<'o, S> {
    steps: Vec<Step<S>>,
    /// The row of the first statement, and the rows of the others.
    first: Option<Claim>,
    others: Vec<Claim>,
    /// The calls with which the last statement can be merged.
    merge: Option<Merge>,
    /// The nodes where it can run, and the shards that it changes there.
    node: UnitNode,
    shards: Vec<i64>,
    /// The rows of a statement are not known.
    is_unreadable: bool,
    out: &'o mut BytesMut,
}

impl<S: Prepared> Packed<S> {
    /// A unit from a simple query. Each statement has the range of its literals among the literals of the
    /// text.
    pub fn simple(
        raw: [&[u8]; 2],
        statements: Vec<(Plan<S>, Range<usize>)>,
        shape: &Shape<'_>,
        out: &mut BytesMut,
    ) -> Self {
        let mut builder = UnitBuilder::new(out);
        for (plan, literals) in statements {
            builder.simple(plan, shape, literals);
        }
        builder.finish(raw)
    }

    /// A unit from extended queries up to a Sync.
    pub fn extended<'s>(
        raw: [&[u8]; 2],
        statements: impl Iterator<Item = (&'s Single<'s>, Plan<S>)>,
        out: &mut BytesMut,
    ) -> Self {
        let mut builder = UnitBuilder::new(out);
        statements.for_each(|(single, plan)| builder.extended(plan, single));
        builder.finish(raw)
    }

    /// A unit of several statements or rows contends for these rows. A row that is only read is left out.
    fn claim(&mut self, claims: impl Iterator<Item = Claim>) {
        let writes: Vec<bool> = self.runs().map(|run| run.packing.kind == LaneKind::Write).collect();
        let (claims, reads): (Vec<_>, Vec<_>) =
            claims.partition(|claim| writes[usize::from(claim.statement)]);
        self.claimed.reads = self.reads(&claims, &reads);
        self.claimed.key = claims.iter().map(|claim| claim.key).min();
        self.claimed.claims = claims.into();
        self.claimed.merge = None;
    }

    /// What it reads without a lock, if it also writes.
    fn reads(&self, writes: &[Claim], reads: &[Claim]) -> Reads {
        let is_read = |run: &&Run<S>| run.packing.kind == LaneKind::Read;
        if self.runs().all(|run| is_read(&run)) {
            return Reads::Nothing;
        }
        let is_own = |read: &&Claim| {
            writes.iter().any(|write| write.key == read.key && write.statement < read.statement)
        };
        let has_claim = |number: usize| reads.iter().any(|read| usize::from(read.statement) == number);
        let reads_unknown = self.runs().enumerate().any(|(number, run)| {
            is_read(&run) && !has_claim(number) && run.packing.parts().any(|part| part.watch.is_some())
        });
        let mut others = reads.iter().filter(|read| !is_own(read));
        match (others.next(), others.next()) {
            _ if reads_unknown => Reads::Rows,
            (None, _) => Reads::Nothing,
            (Some(read), None) if read.statement == 0 => Reads::OneRowFirst,
            _ => Reads::Rows,
        }
    }
}

impl<'o, S: Prepared> UnitBuilder<'o, S> {
    /// An empty builder. It writes the messages for the lane into this buffer.
    pub fn new(out: &'o mut BytesMut) -> Self {
        out.clear();
        UnitBuilder {
            steps: Vec::with_capacity(1),
            first: None,
            others: Vec::new(),
            merge: None,
            node: UnitNode::Anywhere,
            shards: Vec::new(),
            is_unreadable: false,
            out,
        }
    }

    /// Adds a statement of a simple query. `literals` is the range of its literals.
    pub fn simple(&mut self, plan: Plan<S>, shape: &Shape<'_>, literals: Range<usize>) {
        let literals = literals.start..literals.end.min(shape.literals().len());
        let framing = ReplyFraming { simple: true, ..ReplyFraming::default() };
        let (statement, packing) = match plan {
            Plan::Run(statement, packing) => (statement, packing),
            Plan::BlockCommand(_, block_command) => {
                return self.steps.push(Step::BlockCommand(block_command, framing));
            }
        };
        let start = self.out.len();
        let values = shape.literals().skip(literals.start).take(literals.len()).map(|literal| literal.value);
        frontend::put_bind_text(self.out, statement.name(), values);
        if packing.returns_rows {
            self.out.extend_from_slice(frontend::DESCRIBE_PORTAL);
        }
        self.out.extend_from_slice(frontend::EXECUTE);
        let param = |index| shape.param(literals.start + usize::from(index));
        let rows = Rows::of(&packing, param);
        let with = rows_of_with(&packing, param);
        self.is_unreadable |= has_too_many_rows(&packing, param);
        self.locate(&packing, packing.returns_rows, param);
        let bind = if packing.in_key_space { bind_of(&self.out[start..]) } else { None };
        self.merge = merge_of(&packing, &rows, bind);
        self.add(statement, packing, framing, start, (rows, with));
    }

    /// Adds a statement of an extended query.
    pub fn extended(&mut self, plan: Plan<S>, single: &Single<'_>) {
        let mut framing = ReplyFraming::of(single);
        let describe = framing.describe;
        let (statement, packing) = match plan {
            Plan::Run(statement, packing) => (statement, packing),
            Plan::BlockCommand(_, block_command) => {
                return self.steps.push(Step::BlockCommand(block_command, framing));
            }
        };
        let start = self.out.len();
        let name = statement.name();
        let describe_statement =
            |out: &mut BytesMut| ObjectName { statement: true, name }.put(frontend::tag::DESCRIBE, out);
        if describe == Describe::StatementFirst {
            describe_statement(self.out);
        }
        single.bind.put(b"", name, self.out);
        match describe {
            Describe::Statement => describe_statement(self.out),
            Describe::Portal if packing.returns_rows => self.out.extend_from_slice(frontend::DESCRIBE_PORTAL),
            Describe::Portal => framing.no_data = true,
            Describe::No | Describe::StatementFirst => {}
        }
        self.out.extend_from_slice(frontend::EXECUTE);
        let rows = Rows::of(&packing, |index| param(&single.bind, index));
        let with = rows_of_with(&packing, |index| param(&single.bind, index));
        self.is_unreadable |= has_too_many_rows(&packing, |index| param(&single.bind, index));
        let is_described = packing.returns_rows && describe == Describe::Portal;
        self.locate(&packing, is_described, |index| param(&single.bind, index));
        // The statement's description comes from its own Describe only.
        let bind = matches!(describe, Describe::No | Describe::Portal).then_some(single.bind);
        self.merge = merge_of(&packing, &rows, bind);
        self.add(statement, packing, framing, start, (rows, with));
    }

    /// Adds a write of which the client was told, with its messages for the lane.
    pub fn told(&mut self, statement: S, packing: Arc<Packing>, frames: &[u8]) {
        let start = self.out.len();
        self.out.extend_from_slice(frames);
        let bind = bind_of(frames);
        let param = |index| bind.as_ref().and_then(|bind| param(bind, index));
        let rows = Rows::of(&packing, param);
        self.locate(&packing, false, param);
        let framing = ReplyFraming { told: true, ..ReplyFraming::default() };
        self.add(statement, packing, framing, start, (rows, Vec::new()));
    }

    /// Adds a statement with its rows, and those of the other statements in its WITH.
    fn add(
        &mut self,
        statement: S,
        packing: Arc<Packing>,
        framing: ReplyFraming,
        start: usize,
        (rows, with): (Rows, Vec<Rows>),
    ) {
        let number = self.steps.iter().filter(|step| matches!(step, Step::Run(_))).count();
        for (place, (part, rows)) in packing.parts().zip(std::iter::once(rows).chain(with)).enumerate() {
            let claim = |key| Claim {
                key,
                statement: u16::try_from(number).unwrap_or(u16::MAX),
                rows_per_commit: part.rows_per_commit,
                in_key_space: part.in_key_space,
                lockable: part.lock_statement.is_some(),
                takes_any: false,
            };
            let claim_any = |key, rows: u16| Claim {
                rows_per_commit: (part.rows_per_commit / rows.max(1)).max(1),
                takes_any: true,
                ..claim(key)
            };
            match rows {
                Rows::One(key) if number == 0 && place == 0 => self.first = key.map(claim),
                Rows::One(key) => self.others.extend(key.map(claim)),
                Rows::Any(key, rows) if number == 0 && place == 0 => {
                    self.first = key.map(|key| claim_any(key, rows));
                }
                Rows::Any(key, rows) => self.others.extend(key.map(|key| claim_any(key, rows))),
                Rows::Several(keys) => self.others.extend(keys.into_iter().map(claim)),
                Rows::Unreadable => self.is_unreadable = true,
            }
        }
        self.steps.push(Step::Run(Run { statement, packing, frames: start..self.out.len(), framing }));
    }

    /// Finds the node of a statement's rows. The description of a read of several shards has the table's OID, which differs
    /// from node to node.
    fn locate<'p>(
        &mut self,
        packing: &'p Packing,
        is_described: bool,
        param: impl Fn(u16) -> Option<ParamValue<'p>>,
    ) {
        let Some(distribution) = &packing.distribution else {
            let uses_data = packing.parts().any(|part| part.watch.is_some()) || packing.in_key_space;
            return self.node = self.node.and(if uses_data { UnitNode::Own } else { UnitNode::Anywhere });
        };
        let shards = packing.key.as_ref().and_then(|key| distribution.shards(key, param)).unwrap_or_default();
        let node = shards.iter().fold(UnitNode::Anywhere, |node, shard| {
            let is_own = shard.node == distribution.local_node;
            node.and(if is_own { UnitNode::Own } else { UnitNode::Node(shard.node) })
        });
        let is_of_several = shards.windows(2).any(|pair| pair[0].id != pair[1].id);
        let has_oid = is_described && packing.kind == LaneKind::Read && is_of_several;
        let is_nowhere = node == UnitNode::Anywhere || has_oid;
        self.node = self.node.and(if is_nowhere { UnitNode::Nowhere } else { node });
        if packing.kind == LaneKind::Write {
            self.shards.extend(shards.iter().map(|shard| shard.id));
        }
    }

    /// The client has requested a reply to the statements so far.
    pub fn ready(&mut self) {
        if let Some(Step::Run(Run { framing, .. }) | Step::BlockCommand(_, framing)) = self.steps.last_mut() {
            framing.ready = true;
        }
    }

    /// Number of statements so far.
    pub fn statements(&self) -> usize {
        self.steps.len()
    }

    pub fn finish(self, raw: [&[u8]; 2]) -> Packed<S> {
        let UnitBuilder { steps, first, others, merge, node, shards, is_unreadable, out } = self;
        let mut bytes = Vec::with_capacity(out.len() + raw[0].len() + raw[1].len());
        bytes.extend_from_slice(out);
        raw.iter().for_each(|raw| bytes.extend_from_slice(raw));
        let runs = || super::runs(&steps);
        let claimed = Claimed {
            key: first.map(|claim| claim.key),
            rows_per_commit: first.map_or(1, |claim| claim.rows_per_commit),
            merge,
            may_wait: runs().any(|run| may_wait(&run.packing)),
            may_leave: false,
            lockable: runs().any(|run| run.packing.lock_statement.is_some()),
            takes_any: first.is_some_and(|claim| claim.takes_any),
            reads: Reads::Nothing,
            statements: u16::try_from(runs().count()).unwrap_or(u16::MAX),
            claims: Box::default(),
            bytes: bytes.len(),
        };
        let mut packed = Packed {
            claimed,
            node,
            shards: shards.into(),
            parent: None,
            is_unreadable: is_unreadable || others.len() > limits::UNIT_ROWS_MAX,
            steps,
            bytes: bytes.into(),
            raw: out.len(),
        };
        if packed.steps.len() > 1 || !others.is_empty() {
            packed.claim(first.into_iter().chain(others));
        }
        packed
    }
}

/// The rows for which a statement contends.
enum Rows {
    /// One, if it is known.
    One(Option<Key>),
    /// At most this number of those that the key stands for.
    Any(Option<Key>, u16),
    /// Those of a list of values.
    Several(Vec<Key>),
    /// The list is too long or cannot be read.
    Unreadable,
}

impl Rows {
    fn of<'p>(packing: &'p Packing, param: impl Fn(u16) -> Option<ParamValue<'p>>) -> Self {
        if let Some(limit) = &packing.takes {
            let limit =
                limit.value(&param).and_then(ParamValue::integer).and_then(|limit| u16::try_from(limit).ok());
            return match limit.filter(|limit| usize::from(*limit) <= limits::UNIT_ROWS_MAX) {
                Some(limit) => Rows::Any(packing.key.as_ref().and_then(|key| key.key(param)), limit),
                None => Rows::Unreadable,
            };
        }
        match packing.key.as_ref() {
            None => Rows::One(None),
            Some(spec) if spec.is_single() => Rows::One(spec.key(param)),
            Some(spec) => match spec.rows(param) {
                Some(rows) => Rows::Several(rows.into_iter().map(|row| row.key).collect()),
                None => Rows::Unreadable,
            },
        }
    }
}

/// The rows of the other statements in its WITH.
fn rows_of_with<'p>(packing: &'p Packing, param: impl Fn(u16) -> Option<ParamValue<'p>> + Copy) -> Vec<Rows> {
    packing.with.iter().map(|part| Rows::of(part, param)).collect()
}

/// Whether the arrays that a statement inserts are too long, or their length is not known.
fn has_too_many_rows<'p>(packing: &Packing, param: impl Fn(u16) -> Option<ParamValue<'p>>) -> bool {
    let mut arrays = packing.parts().flat_map(|part| &part.arrays).filter_map(|index| param(*index));
    arrays.any(|array| key::count(array).is_none())
}

fn merge_of(packing: &Packing, rows: &Rows, bind: Option<Bind<'_>>) -> Option<Merge> {
    (packing.in_key_space && matches!(rows, Rows::One(Some(_)))).then(|| {
        let merging = packing.merging.as_ref().zip(bind);
        merging.map_or(Merge::NEVER, |(merging, bind)| merged::group(merging, &bind))
    })
}

/// The value of a parameter. `None` for NULL.
pub(crate) fn param<'a>(bind: &Bind<'a>, index: u16) -> Option<ParamValue<'a>> {
    let value = bind.value(usize::from(index))?;
    let format = if value.binary { Format::Binary } else { Format::Text };
    Some(ParamValue { format, bytes: value.bytes? })
}
