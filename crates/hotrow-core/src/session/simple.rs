//! Simple queries.

use std::ops::Range;

use bytes::BytesMut;
use hotrow_wire::backend::{self, Problem, Status};
use hotrow_wire::{Frame, SqlState, frontend, put_frame};

use super::environment::Stop;
use super::plan::{PlanOf, is_transaction};
use super::planning::{Handled, Performing, Planning};
use super::replies::put_ready;
use super::{Environment, Session, StatementOf};
use crate::classify::{Analysis, Switch, SwitchChange, SwitchValue};
use crate::limits;
use crate::pack_mode::PackMode;
use crate::unit::{Packed, Plan};

/// The plan for each statement of a text, with the range of its literals.
type Plans<E> = Vec<(PlanOf<E>, Range<usize>)>;

impl<E: Environment> Session<E> {
    /// Handles a Query while no connection is held.
    pub(super) fn query(
        &mut self,
        planning: Planning,
        frame: Frame<'_>,
        behind: &[u8],
    ) -> Result<(), Stop<E>> {
        self.wait_for_blocks(&planning)?;
        let text = frontend::query(frame.body())?;
        let statement = self.texts.simple(&self.env, text);
        if matches!(&statement.analysis, Analysis::Deallocate(_)) {
            self.lanes_done(&planning)?;
        }
        let handled = match self.answer_here(planning, &statement, self.begun_status())? {
            Handled::Continue(planning) => self.begin_by_query(planning, &statement)?,
            Handled::Break(_) => Handled::Break(()),
        };
        let Handled::Continue(planning) = handled else {
            self.query_answered(&statement);
            return Ok(());
        };
        if frame.bytes.len() <= limits::UNIT_BYTES_MAX && self.provided.no_connection.is_none() {
            match self.plan_query(&planning, &statement) {
                Ok(Some(plans)) => {
                    let shape = self.texts.shape(str::from_utf8(text).unwrap_or_default());
                    let packed = Packed::simple([frame.bytes, &[]], plans, &shape, &mut self.scratch);
                    if self.packs() {
                        let changes = self.renaming.unnamed_removal(&self.env, &mut self.names);
                        return self.submit(planning, packed, changes);
                    }
                    self.shadow(&packed, 1);
                }
                Ok(None) => {}
                Err(stop) => return Err(stop),
            }
        }
        if let Some(verdict) = self.waits_for_turn(&planning, &statement)? {
            let is_alone = self.works_alone();
            let shape = self.texts.shape(str::from_utf8(text).unwrap_or_default());
            let param = |index| shape.param(usize::from(index));
            return Err(self.places.turn(&planning, statement.id, &verdict, is_alone, param));
        }
        let problem = self.connect(&planning)?;
        self.refuse_text(planning, &statement, &problem, behind)
    }

    /// The gateway has answered a Query: it drops what the server drops at a Query that succeeds.
    pub(super) fn query_answered(&mut self, statement: &E::Statement) {
        self.renaming.remove(&self.env, &mut self.names, b"");
        if !statement.is_empty() {
            self.close_begun_portal();
        }
    }

    /// The plans for running the statements of a text in a lane. None if they cannot run there.
    fn plan_query(
        &self,
        planning: &Planning,
        statement: &StatementOf<E>,
    ) -> Result<Option<Plans<E>>, Stop<E>> {
        if statement.pieces.is_empty() {
            return Ok(self.run_in_lane(planning, statement)?.map(|plan| vec![(plan, 0..usize::MAX)]));
        }
        if !self.plans_units() || statement.pieces.len() > limits::UNIT_STATEMENTS_MAX {
            return Ok(None);
        }
        let mut plans = Vec::with_capacity(statement.pieces.len());
        for (piece, _) in &statement.pieces {
            let Some(plan) = self.plan(planning, piece)? else { return Ok(None) };
            plans.push(plan);
        }
        let literals = statement.pieces.iter().map(|(_, literals)| literals.clone());
        Ok(is_transaction(&plans).then(|| plans.into_iter().zip(literals).collect()))
    }

    /// Answers the commands that the gateway handles itself, in their turn. `status` is the session's.
    pub(super) fn answer_here(
        &mut self,
        planning: Planning,
        statement: &E::Statement,
        status: Status,
    ) -> Result<Handled<Performing>, Stop<E>> {
        if statement.is_answered_here() {
            self.catch_up(&planning)?;
        }
        if status == Status::Failed {
            return Ok(Handled::Continue(planning)); // the server refuses it
        }
        let command = match &statement.analysis {
            // Outside of a transaction it has no effect, and the server warns.
            Analysis::Set(SwitchChange { is_local: true, .. }) if status == Status::Idle => {
                return Ok(Handled::Continue(planning));
            }
            Analysis::Set(_) => "SET",
            Analysis::Reset(_) => "RESET",
            Analysis::SetWrong(switch) if status == Status::Idle => {
                let problem = wrong_value(*switch);
                let performing = planning.perform();
                self.append_in_turn(&performing, |out| {
                    problem.put(out);
                    put_ready(status, out);
                });
                return Ok(Handled::Break(performing));
            }
            Analysis::Show(switch) => {
                let performing = planning.perform();
                self.show_switch(&performing, *switch, status);
                return Ok(Handled::Break(performing));
            }
            Analysis::Deallocate(name) if self.names.contains_key(name.as_bytes()) => {
                self.names.remove(name.as_bytes());
                "DEALLOCATE"
            }
            _ => return Ok(Handled::Continue(planning)),
        };
        if let Some(change) = statement.switch_change() {
            self.switches.set(change, &mut self.reads);
        }
        if status == Status::Idle {
            self.switches.transaction_over(true, &mut self.reads);
        }
        let performing = planning.perform();
        self.append_in_turn(&performing, |out| {
            backend::put_command_complete(out, command);
            put_ready(status, out);
        });
        Ok(Handled::Break(performing))
    }

    /// Answers SHOW of a setting of the gateway.
    fn show_switch(&self, performing: &Performing, switch: Switch, status: Status) {
        let value = match switch {
            Switch::Pack if !self.is_as_pool() => SwitchValue::Pack(PackMode::Off),
            Switch::Pack => SwitchValue::Pack(self.pack_mode()),
            Switch::Reads => SwitchValue::ReadsFromReplica(self.switches.reads_from_replica()),
        };
        let value = value.shown();
        self.append_in_turn(performing, |out| {
            put_shown(switch.name(), value, out);
            backend::put_command_complete(out, "SHOW");
            put_ready(status, out);
        });
    }
}

/// Appends the description and the row of a shown setting.
pub(super) fn put_shown(name: &str, value: &str, out: &mut BytesMut) {
    put_frame(out, backend::tag::ROW_DESCRIPTION, |out| {
        out.extend_from_slice(b"\0\x01");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\0");
        // No table, no column; text, variable length, no modifier, text format.
        out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
    });
    put_frame(out, backend::tag::DATA_ROW, |out| {
        out.extend_from_slice(&[0, 1, 0, 0, 0, value.len() as u8]);
        out.extend_from_slice(value.as_bytes());
    });
}

/// The error for a value that a setting of the gateway cannot have.
pub fn wrong_value(switch: Switch) -> Problem {
    let message = format!("invalid value for parameter \"{}\"", switch.name());
    Problem::error(
        SqlState::InvalidParameterValue,
        message,
        format!("Available values: {}.", switch.values()),
    )
}

/// A plan that runs in a lane and returns rows.
pub(super) fn returns_rows<S>(plan: &Plan<S>) -> bool {
    matches!(plan, Plan::Run(_, packing) if packing.returns_rows)
}
