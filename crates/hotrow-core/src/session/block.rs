//! A transaction whose BEGIN, statements and COMMIT arrive as separate messages at once. It is one unit, like a
//! transaction in one message. If parts are missing or cannot be packed, each message is handled on its own.

use hotrow_wire::frontend::{self, tag};
use hotrow_wire::{Frame, split};

use super::environment::Stop;
use super::names::Unnamed;
use super::plan::PlanOf;
use super::planning::{Handled, Planning};
use super::{Environment, Session, StatementOf};
use crate::classify::{Analysis, BlockCommand, Pass};
use crate::limits;
use crate::unit::gather::{Gather, Gathered, Single};
use crate::unit::{Plan, UnitBuilder};

/// The plans for the statements of each part.
type PlansOf<E> = Vec<Vec<PlanOf<E>>>;

/// A part of a transaction that is answered by one ReadyForQuery.
enum Part<'a, S> {
    /// A Query of one statement: its text.
    Simple(&'a str, S),
    /// Extended queries up to their Sync.
    Extended(Gather),
}

impl<E: Environment> Session<E> {
    /// If the bytes begin with a BEGIN, and everything up to the COMMIT is there and can be packed, sends it to
    /// a lane. Returns the number of its bytes.
    pub(super) fn block(&mut self, planning: Planning, input: &[u8]) -> Result<Handled<usize>, Stop<E>> {
        // Without a connection, the separate messages meet and report this again.
        if self.provided.no_connection.is_some()
            || !self.gather.is_empty()
            || self.skipping
            || !self.plans_units()
        {
            return Ok(Handled::Continue(planning));
        }
        let mut offset = 0;
        while let Ok(Some(frame)) = split(&input[offset..], |_| limits::UNIT_BYTES_MAX)
            && offset <= limits::UNIT_BYTES_MAX
        {
            self.classify_long(&planning, frame, offset)?;
            offset += frame.bytes.len();
        }
        let Some((parts, bytes)) = self.parts_of_block(input) else { return Ok(Handled::Continue(planning)) };
        self.wait_for_blocks(&planning)?;
        self.renaming.settle(&self.env, &mut self.names);
        if !self.renaming.is_over() {
            self.lanes_done(&planning)?; // before this, the meaning of its names is not known
        }
        let Some(plans) = self.plan_block(&planning, &parts)? else { return Ok(Handled::Continue(planning)) };
        let count = plans.iter().map(Vec::len).sum();
        let mut builder = UnitBuilder::new(&mut self.scratch);
        for (part, plans) in parts.iter().zip(plans) {
            match part {
                Part::Simple(text, _) => {
                    let shape = self.texts.shape(text);
                    plans.into_iter().for_each(|plan| builder.simple(plan, &shape, 0..usize::MAX));
                }
                Part::Extended(gather) => {
                    let statements = statements(gather).unwrap_or_default();
                    statements.iter().zip(plans).for_each(|(single, plan)| builder.extended(plan, single));
                }
            }
            builder.ready();
        }
        let packed = builder.finish([&input[..bytes], &[]]);
        if !self.packs() {
            self.shadow(&packed, count);
            return Ok(Handled::Continue(planning)); // its messages are passed through one by one
        }
        let changes = self.renaming.unnamed_removal(&self.env, &mut self.names);
        self.submit(planning, packed, changes)?;
        Ok(Handled::Break(bytes))
    }

    /// The plans for the statements of each part. None if a transaction with them cannot be packed.
    fn plan_block(
        &mut self,
        planning: &Planning,
        parts: &[Part<'_, StatementOf<E>>],
    ) -> Result<Option<PlansOf<E>>, Stop<E>> {
        let (mut all, mut count) = (Vec::with_capacity(parts.len()), 0);
        for part in parts {
            let plans = match part {
                Part::Simple(_, statement) => self.plan(planning, statement)?.map(|plan| vec![plan]),
                Part::Extended(gather) => self.plan_extended(planning, gather)?,
            };
            let Some(plans) = plans else { return Ok(None) };
            count += plans.len();
            if count > limits::UNIT_STATEMENTS_MAX {
                return Ok(None);
            }
            all.push(plans);
        }
        Ok(Some(all))
    }

    /// The plans for the messages before one Sync. None if a transaction with them cannot be packed. Named
    /// statements cannot be packed, because the name would be valid before the statement is known to be correct.
    fn plan_extended(
        &mut self,
        planning: &Planning,
        gather: &Gather,
    ) -> Result<Option<Vec<PlanOf<E>>>, Stop<E>> {
        let names = |single: &Single<'_>| {
            single.parse.as_ref().is_some_and(|parse| !parse.name.is_empty())
                || !single.closes.0.is_empty()
                || !single.closes.1.is_empty()
                || !single.bind.portal.is_empty()
        };
        let Some(statements) = statements(gather) else { return Ok(None) };
        // No statement in it can use the unnamed statement, because the first Query removes it.
        let plans = self.plan_all(planning, &statements, Unnamed::Removed)?;
        Ok(plans.filter(|plans| {
            let is_nested = plans.iter().any(|plan| matches!(plan, Plan::BlockCommand(..)));
            !is_nested && !statements.iter().any(names)
        }))
    }

    /// The messages from a BEGIN up to its COMMIT, and the number of their bytes. None if they are incomplete.
    fn parts_of_block<'a>(&mut self, input: &'a [u8]) -> Option<(Vec<Part<'a, StatementOf<E>>>, usize)> {
        let mut parts = Vec::new();
        let mut gather = Gather::default();
        let mut bytes = 0;
        while parts.len() < limits::UNIT_STATEMENTS_MAX {
            let frame = split(&input[bytes..], |_| limits::UNIT_BYTES_MAX).ok()??;
            bytes += frame.bytes.len();
            if bytes > limits::UNIT_BYTES_MAX {
                return None;
            }
            match frame.tag {
                tag::QUERY if gather.is_empty() => {
                    let text = str::from_utf8(frontend::query(frame.body()).ok()?).ok()?;
                    let statement = self.texts.simple(&self.env, text.as_bytes());
                    let block_command = match &statement.analysis {
                        Analysis::Pass(Pass { block_command, .. }) => *block_command,
                        _ => None,
                    };
                    let begins = matches!(block_command, Some(BlockCommand::Begin(_)));
                    if begins != parts.is_empty() || !statement.pieces.is_empty() {
                        return None;
                    }
                    parts.push(Part::Simple(text, statement));
                    if block_command == Some(BlockCommand::Commit) {
                        return (parts.len() > 2).then_some((parts, bytes));
                    }
                }
                tag::PARSE | tag::BIND | tag::DESCRIBE | tag::EXECUTE | tag::CLOSE if !parts.is_empty() => {
                    gather.push(frame);
                }
                tag::SYNC if !parts.is_empty() => parts.push(Part::Extended(std::mem::take(&mut gather))),
                _ => return None,
            }
        }
        None
    }
}

fn statements(gather: &Gather) -> Option<Vec<Single<'_>>> {
    match gather.form() {
        Ok(Gathered::Single(single)) => Some(vec![single]),
        Ok(Gathered::Several(statements)) => Some(statements),
        _ => None,
    }
}

/// Whether this message, the first of these bytes, may be a Query that begins a transaction, and more bytes
/// follow. A cheap check.
pub(super) fn may_begin(frame: Frame<'_>, input: &[u8]) -> bool {
    let words: [&[u8]; 2] = [b"begin", b"start"];
    let begins =
        |word: &&[u8]| frame.body().get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word));
    frame.tag == tag::QUERY && frame.bytes.len() < input.len() && words.iter().any(begins)
}
