//! The session's values of the gateway's settings `hotrow.pack` and `hotrow.reads`. Transactions keep or take back their
//! changes as PostgreSQL does with its own settings.

use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;

use super::SessionEnd;
use super::reads::Reads;
use crate::classify::{Step, Switch, SwitchChange, SwitchValue};
use crate::limits;
use crate::pack_mode::PackMode;

/// A value of each setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchValues {
    /// Whether statements are packed.
    pub pack: PackMode,
    /// Point reads run on replicas.
    pub reads_from_replica: bool,
}

impl Default for SwitchValues {
    fn default() -> Self {
        SwitchValues { pack: PackMode::Deferred, reads_from_replica: false }
    }
}

impl SwitchValues {
    /// Changes one.
    pub fn set(&mut self, value: SwitchValue) {
        match value {
            SwitchValue::Pack(mode) => self.pack = mode,
            SwitchValue::ReadsFromReplica(from_replica) => self.reads_from_replica = from_replica,
        }
    }

    fn get(self, switch: Switch) -> SwitchValue {
        match switch {
            Switch::Pack => SwitchValue::Pack(self.pack),
            Switch::Reads => SwitchValue::ReadsFromReplica(self.reads_from_replica),
        }
    }
}

/// The values in force, and those to which they can return.
#[derive(Debug)]
pub(super) struct Switches {
    at_start: SwitchValues,
    values: SwitchValues,
    /// The transaction under way, if it has changed a setting.
    changed: Option<Changed>,
}

/// A transaction that has changed a setting.
#[derive(Debug)]
struct Changed {
    before: SwitchValues,
    /// The values that COMMIT leaves: those without SET LOCAL.
    kept: SwitchValues,
    /// The savepoints since the first change. Before them, the values were those before the transaction.
    savepoints: Vec<Savepoint>,
}

#[derive(Debug)]
struct Savepoint {
    name: String,
    values: SwitchValues,
    kept: SwitchValues,
}

impl Changed {
    /// The latest savepoint with this name.
    fn place(&self, name: &str) -> Option<usize> {
        self.savepoints.iter().rposition(|savepoint| savepoint.name == name)
    }
}

/// A transaction has more savepoints than are recorded.
#[derive(Debug, PartialEq, Eq)]
struct TooManySavepoints;

impl Switches {
    /// The values at the start of a session.
    pub fn new(at_start: SwitchValues) -> Self {
        Switches { at_start, values: at_start, changed: None }
    }

    /// Whether statements are packed.
    pub fn pack(&self) -> PackMode {
        self.values.pack
    }

    /// Whether point reads run on replicas.
    pub fn reads_from_replica(&self) -> bool {
        self.values.reads_from_replica
    }

    /// Whether the transaction under way has changed a setting.
    pub(super) fn have_changed(&self) -> bool {
        self.changed.is_some()
    }

    /// A change of a setting, whether the gateway or the server answers it.
    pub(super) fn set(&mut self, change: SwitchChange, reads: &mut Reads) {
        self.change(change);
        reads.leave_replica();
    }

    /// The transaction under way has ended, or the statement outside of a transaction.
    pub(super) fn transaction_over(&mut self, commits: bool, reads: &mut Reads) {
        if self.changed.is_some() {
            self.end(commits);
            reads.leave_replica();
        }
    }

    /// RESET ALL or DISCARD ALL outside of a transaction.
    pub(super) fn reset(&mut self, reads: &mut Reads) {
        self.reset_all();
        self.transaction_over(true, reads);
    }

    /// The server reports a success with this command tag, of this step if it is one.
    pub(super) fn succeeded(
        &mut self,
        tag: &[u8],
        step: Option<Step>,
        reads: &mut Reads,
    ) -> Result<(), SessionEnd> {
        match (tag, step) {
            (b"COMMIT" | b"PREPARE TRANSACTION", _) => self.transaction_over(true, reads),
            (b"ROLLBACK", None | Some(Step::End)) => self.transaction_over(false, reads),
            // The server commits it at once, also if the rest of its unit fails.
            (b"DISCARD ALL", _) => self.reset(reads),
            (_, Some(step)) => {
                self.step(step).map_err(|TooManySavepoints| too_many_savepoints())?;
                reads.leave_replica();
            }
            _ => {}
        }
        Ok(())
    }

    /// A SET, RESET or SET LOCAL in the transaction under way.
    fn change(&mut self, SwitchChange { switch, value, is_local }: SwitchChange) {
        let values = self.values;
        let changed = self.changed.get_or_insert_with(|| Changed {
            before: values,
            kept: values,
            savepoints: Vec::new(),
        });
        let value = value.unwrap_or(self.at_start.get(switch));
        self.values.set(value);
        if !is_local {
            changed.kept.set(value);
        }
    }

    /// RESET ALL or DISCARD ALL. In most sessions it changes nothing, and then nothing is recorded.
    fn reset_all(&mut self) {
        if self.changed.is_none() && self.values == self.at_start {
            return;
        }
        for switch in [Switch::Pack, Switch::Reads] {
            self.change(SwitchChange { switch, value: None, is_local: false });
        }
    }

    /// The transaction has ended.
    fn end(&mut self, commits: bool) {
        if let Some(changed) = self.changed.take() {
            self.values = if commits { changed.kept } else { changed.before };
        }
    }

    /// A step of the transaction has succeeded.
    fn step(&mut self, step: Step) -> Result<(), TooManySavepoints> {
        if let Step::Set(change) = step {
            self.change(change);
            return Ok(());
        }
        if step == Step::ResetAll {
            self.reset_all();
            return Ok(());
        }
        let Some(changed) = &mut self.changed else { return Ok(()) };
        match step {
            Step::Savepoint(_) if changed.savepoints.len() == limits::SAVEPOINTS_MAX => {
                return Err(TooManySavepoints);
            }
            Step::Savepoint(name) => {
                changed.savepoints.push(Savepoint { name, values: self.values, kept: changed.kept });
            }
            Step::Release(name) => {
                let place = changed.place(&name);
                changed.savepoints.truncate(place.unwrap_or(0));
            }
            Step::RollBackTo(name) => match changed.place(&name) {
                Some(place) => {
                    changed.savepoints.truncate(place + 1);
                    let savepoint = &changed.savepoints[place];
                    (self.values, changed.kept) = (savepoint.values, savepoint.kept);
                }
                None => self.end(false), // it is older than the first change
            },
            Step::Set(_) | Step::ResetAll | Step::End => {}
        }
        Ok(())
    }
}

/// The error for a session whose transaction has too many savepoints after a change of a setting.
fn too_many_savepoints() -> SessionEnd {
    let max = limits::SAVEPOINTS_MAX;
    SessionEnd::Problem(Problem::fatal(
        SqlState::ConfigurationLimitExceeded,
        format!("more than {max} savepoints in a transaction that has changed a setting of the gateway"),
        "Release savepoints that are not needed any more, or set hotrow.pack and hotrow.reads outside of transactions.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(packs: bool, is_local: bool) -> Step {
        let value = SwitchValue::Pack(if packs { PackMode::On } else { PackMode::Off });
        Step::Set(SwitchChange { switch: Switch::Pack, value: Some(value), is_local })
    }

    fn named(step: fn(String) -> Step, name: &str) -> Step {
        step(name.to_owned())
    }

    /// The values of `hotrow.pack` in the transaction, after COMMIT, and after ROLLBACK.
    fn values(steps: Vec<Step>) -> [bool; 3] {
        let mut switches = Switches::new(SwitchValues::default());
        steps.into_iter().for_each(|step| switches.step(step).unwrap());
        let within = switches.pack();
        let changed = switches.changed.as_ref();
        let (kept, before) =
            changed.map_or((within, within), |changed| (changed.kept.pack, changed.before.pack));
        switches.end(true);
        assert_eq!(switches.pack(), kept);
        [within, kept, before].map(|mode| mode >= PackMode::On)
    }

    #[test]
    fn a_change_lasts_as_long_as_its_transaction_and_savepoints_say() {
        use Step::{Release, RollBackTo, Savepoint};
        let (off, local) = (set(false, false), set(false, true));
        let (a, to_a, release_a) = (named(Savepoint, "a"), named(RollBackTo, "a"), named(Release, "a"));
        let (b, to_b) = (named(Savepoint, "b"), named(RollBackTo, "b"));
        for (steps, expected) in [
            (vec![off.clone()], [false, false, true]),
            (vec![local.clone()], [false, true, true]),
            (vec![off.clone(), set(true, true)], [true, false, true]),
            (vec![local.clone(), set(true, false)], [true, true, true]),
            (vec![off.clone(), Step::ResetAll], [true, true, true]),
            (vec![local.clone(), Step::ResetAll], [true, true, true]),
            (vec![off.clone(), a.clone(), Step::ResetAll, to_a.clone()], [false, false, true]),
            (vec![a.clone(), off.clone(), to_a.clone()], [true, true, true]),
            (vec![a.clone(), off.clone(), release_a.clone()], [false, false, true]),
            (vec![a.clone(), off.clone(), a.clone(), to_a.clone()], [false, false, true]),
            (vec![a.clone(), off.clone(), a.clone(), release_a.clone(), to_a.clone()], [true, true, true]),
            (vec![off.clone(), a.clone(), set(true, false), b, to_a, to_b.clone()], [true, true, true]),
            (vec![a, off, named(Savepoint, "b"), set(true, false), to_b], [false, false, true]),
        ] {
            assert_eq!(values(steps.clone()), expected, "{steps:?}");
        }
    }

    #[test]
    fn savepoints_are_recorded_after_the_first_change_and_have_a_bound() {
        let mut switches = Switches::new(SwitchValues::default());
        let savepoint = |number: usize| Step::Savepoint(number.to_string());
        switches.step(Step::ResetAll).unwrap();
        (0..=limits::SAVEPOINTS_MAX).for_each(|number| switches.step(savepoint(number)).unwrap());
        switches.step(set(false, true)).unwrap();
        (0..limits::SAVEPOINTS_MAX).for_each(|number| switches.step(savepoint(number)).unwrap());
        assert_eq!(switches.step(savepoint(0)), Err(TooManySavepoints));
    }
}
