//! Holds back the writes of a transaction whose outcome is foretold, and gives a transaction that has nothing else to a lane.

use bytes::BytesMut;
use hotrow_wire::backend::{self, Status};
use hotrow_wire::frontend::{self, tag};
use hotrow_wire::split;

use super::begun::{Describes, is_bound_as_usual, is_usual};
use super::deferred::{self, Write};
use super::environment::Stop;
use super::names::{self, Unnamed};
use super::planning::{Handled, Planning};
use super::replies::put_ready;
use super::{Environment, Need, Session, Statement, StatementOf, Verdict};
use crate::classify::{Analysis, BlockCommand, Verb};
use crate::limits;
use crate::pack_mode::PackMode;
use crate::settings::Parsing;
use crate::unit::gather::{Describe, Gather, Gathered, Single};
use crate::unit::{Plan, UnitBuilder, param, put_command_answer};

/// A unit of one statement.
enum Unit<'a> {
    Simple(&'a str),
    Extended(&'a Single<'a>),
}

impl<E: Environment> Session<E> {
    /// If the bytes begin with a whole unit of the transaction under way that is a write with a foretold outcome, or the COMMIT
    /// of a transaction that has only such writes, handles it. Returns the number of its bytes.
    pub(super) fn defer(&mut self, planning: Planning, input: &[u8]) -> Result<Handled<usize>, Stop<E>> {
        let in_unit = self.phase.held().is_some_and(|holding| holding.expected.is_in_unit());
        if self.gather.is_empty() && !in_unit {
            self.deferred.begin_unit();
        }
        if !self.may_defer() {
            return Ok(Handled::Continue(planning));
        }
        let mut gather = Gather::default();
        let mut bytes = 0;
        while let Ok(Some(frame)) = split(&input[bytes..], |_| limits::UNIT_BYTES_MAX) {
            bytes += frame.bytes.len();
            match frame.tag {
                tag::QUERY if gather.is_empty() => {
                    let text = frontend::query(frame.body())?;
                    let Ok(text) = str::from_utf8(text) else { return Ok(Handled::Continue(planning)) };
                    return self.defer_unit(planning, &Unit::Simple(text), &input[..bytes]);
                }
                tag::PARSE | tag::BIND | tag::DESCRIBE | tag::EXECUTE | tag::CLOSE
                    if bytes <= limits::UNIT_BYTES_MAX =>
                {
                    gather.push(frame);
                }
                tag::SYNC => {
                    let runs = gather.messages().any(|(tag, _)| matches!(tag, tag::BIND | tag::EXECUTE));
                    if !runs {
                        // A client may wait for it before it goes on with a transaction that has locked a row of the writes.
                        self.deferred.let_pass();
                        return Ok(Handled::Continue(planning));
                    }
                    let Gathered::Single(single) = gather.form()? else {
                        return Ok(Handled::Continue(planning));
                    };
                    return self.defer_unit(planning, &Unit::Extended(&single), &input[..bytes]);
                }
                _ => return Ok(Handled::Continue(planning)),
            }
        }
        let may_be_whole = split(&input[bytes..], |_| limits::UNIT_BYTES_MAX).is_ok();
        match may_be_whole && input.len() <= limits::UNIT_BYTES_MAX && !self.deferred.is_empty() {
            true => Err(Stop::Need(Need::Event)), // until the unit is whole
            false => Ok(Handled::Continue(planning)),
        }
    }

    /// Whether writes of the transaction under way are held back.
    fn may_defer(&self) -> bool {
        let is_open = match (self.phase.begun(), self.phase.held()) {
            (Some(begun), _) => {
                let is_plain = !begun.has_failed && !begun.keeps_snapshot && !begun.has_modes;
                is_plain && begun.describes == Describes::Nothing
            }
            // A statement that the gateway prepares there now is one that it prepares anywhere.
            (None, Some(holding)) => {
                let is_known = !holding.marks.is_unproven() && holding.marks.parsing() == Parsing::AsPool;
                holding.status == Status::Transaction && is_known
            }
            (None, None) => false,
        };
        is_open
            && self.pack_mode() == PackMode::Deferred
            && self.is_as_pool()
            && self.names_as_pool()
            && self.is_settled()
            && self.gather.is_empty()
            && !self.skipping
            && self.deferred.accepts()
            && self.provided.no_connection.is_none()
    }

    fn defer_unit(
        &mut self,
        planning: Planning,
        unit: &Unit<'_>,
        raw: &[u8],
    ) -> Result<Handled<usize>, Stop<E>> {
        let (statement, resolved) = match unit {
            Unit::Simple(text) => (self.texts.simple(&self.env, text.as_bytes()), None),
            Unit::Extended(single) => {
                let (names, none) = (&self.names, (&[][..], &[][..]));
                match names::statement_of(&self.env, names, &mut self.texts, single, none, Unnamed::Kept) {
                    Some(bound) => bound,
                    None => return Ok(Handled::Continue(planning)),
                }
            }
        };
        let handled = match statement.ends_transaction() {
            Some((true, false)) => self.commit_deferred(planning, &statement, unit, raw)?,
            Some((true, true)) => Handled::Continue(planning),
            Some((false, _)) => {
                self.deferred.clear();
                Handled::Continue(planning)
            }
            // The savepoint is older than the writes: they have run before a SAVEPOINT.
            None if statement.goes_back() => {
                self.deferred.clear();
                Handled::Continue(planning)
            }
            None => {
                let types = resolved.map(|resolved| resolved.types.clone());
                self.defer_write(planning, &statement, types.as_deref(), unit)?
            }
        };
        Ok(handled.map_break(|()| raw.len()))
    }

    /// The verdict to pack a statement that is held back, if its outcome is foretold.
    fn defer_write(
        &mut self,
        planning: Planning,
        statement: &StatementOf<E>,
        types: Option<&[u8]>,
        unit: &Unit<'_>,
    ) -> Result<Handled, Stop<E>> {
        let Analysis::Candidate(candidate) = &statement.analysis else {
            return Ok(Handled::Continue(planning));
        };
        if !statement.pieces.is_empty() || !statement.has_credit() || statement.is_superseded() {
            return Ok(Handled::Continue(planning));
        }
        let Verdict::Packed(packing) = self.verdict(&planning, statement)? else {
            return Ok(Handled::Continue(planning));
        };
        if types.is_some_and(|types| statement.parameter_types().as_deref() != Some(types)) {
            return Ok(Handled::Continue(planning));
        }
        let command = if candidate.verb == Verb::Insert { "INSERT 0 1" } else { "UPDATE 1" };
        let row = match unit {
            Unit::Simple(text) => {
                let shape = self.texts.shape(text);
                deferred::row(statement, &packing, |index| shape.param(usize::from(index)))
            }
            Unit::Extended(single) if !is_told_as_usual(single) => None,
            Unit::Extended(single) => deferred::row(statement, &packing, |index| param(&single.bind, index)),
        };
        let Some(row) = row.filter(|row| statement.foretold.tells(*row)) else {
            return Ok(Handled::Continue(planning));
        };
        let counted = self.env.counted(statement);
        let mut frames = BytesMut::new();
        match unit {
            Unit::Simple(text) => {
                let shape = self.texts.shape(text);
                let values = shape.literals().map(|literal| literal.value);
                frontend::put_bind_text(&mut frames, &counted.name, values);
            }
            Unit::Extended(single) => single.bind.put(b"", &counted.name, &mut frames),
        }
        frames.extend_from_slice(frontend::EXECUTE);
        if !counted.has_credit() || !self.deferred.has_room(frames.len()) {
            return Ok(Handled::Continue(planning));
        }
        let performing = planning.perform();
        match unit {
            Unit::Simple(_) => {
                self.renaming.remove(&self.env, &mut self.names, b"");
                self.append_in_turn(&performing, |out| backend::put_command_complete(out, command));
            }
            Unit::Extended(single) => {
                let (parsing, names) = (self.parsing(), &mut self.names);
                let run = [(*single, statement)].into_iter();
                let changes = self.renaming.changes(&self.env, names, parsing, run)?;
                changes.into_iter().for_each(|change| names::apply(names, change));
                self.append_in_turn(&performing, |out| {
                    put_command_answer(single, |out| backend::put_command_complete(out, command), out);
                });
            }
        }
        self.append_in_turn(&performing, |out| put_ready(Status::Transaction, out));
        self.close_begun_portal();
        let write = Write { counted, packing, frames: frames.freeze() };
        self.deferred.push(write, (statement.clone(), row));
        self.env.write_deferred();
        Ok(Handled::Break(()))
    }

    /// The COMMIT of a transaction of which the server knows nothing: a lane runs its writes.
    fn commit_deferred(
        &mut self,
        planning: Planning,
        statement: &StatementOf<E>,
        unit: &Unit<'_>,
        raw: &[u8],
    ) -> Result<Handled, Stop<E>> {
        let is_usual = match unit {
            Unit::Simple(_) => true,
            Unit::Extended(single) => is_usual(single, &statement.types),
        };
        let has_connection = self.phase.is_held() || self.phase.begun().is_none();
        if has_connection || self.deferred.is_empty() || self.switches.have_changed() || !is_usual {
            return Ok(Handled::Continue(planning));
        }
        self.catch_up(&planning)?;
        self.lanes_done(&planning)?;
        let changes = match unit {
            Unit::Simple(_) => self.renaming.unnamed_removal(&self.env, &mut self.names),
            Unit::Extended(single) => {
                let run = [(*single, statement)].into_iter();
                self.renaming.changes(&self.env, &self.names, self.parsing(), run)?
            }
        };
        let mut builder = UnitBuilder::new(&mut self.scratch);
        self.deferred.put(&mut builder);
        let plan = Plan::BlockCommand(statement.clone(), BlockCommand::Commit);
        match unit {
            Unit::Simple(text) => builder.simple(plan, &self.texts.shape(text), 0..0),
            Unit::Extended(single) => builder.extended(plan, single),
        }
        let packed = builder.finish([raw, &[]]);
        self.phase.take_begun();
        self.submit(planning, packed, changes)?;
        Ok(Handled::Break(()))
    }
}

/// Whether the gateway can tell the client the outcome of a statement that is run like this.
fn is_told_as_usual(single: &Single<'_>) -> bool {
    is_bound_as_usual(single) && matches!(single.describe, Describe::No | Describe::Portal)
}
