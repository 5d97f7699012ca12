//! Folds a counter's history to its value, and finds contradictions in it. Uses neither server nor clock.

use std::time::SystemTime;

/// How a counter keeps its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Each entry has the value after it.
    Ledger,
    /// Commands only.
    Log,
}

/// A counter's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The form of its history.
    pub strategy: Strategy,
    /// The smallest value.
    pub min: Option<i64>,
    /// The largest value.
    pub max: Option<i64>,
    /// The version of the last command.
    pub version: i64,
    /// The value, which only a ledger's row has.
    pub value: i64,
}

/// One accepted command of the history.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The form of the history that has it.
    pub kept_in: Strategy,
    /// Its position in the order.
    pub version: i64,
    /// `increment` or `drain`.
    pub command: &'a str,
    /// The added amount.
    pub amount: Option<i64>,
    /// The value after it, in a ledger.
    pub value: Option<i64>,
    /// The amount that a drain returned, in a ledger.
    pub returned: Option<i64>,
    pub at: SystemTime,
}

/// A value at a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The number of commands up to it.
    pub version: i64,
    /// The value after these commands.
    pub value: i64,
    /// The time of the last command; none before the first.
    pub at: Option<SystemTime>,
}

const START: State = State { version: 0, value: 0, at: None };

/// The first place where a history contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("version {version}: {what}")]
pub struct Difference {
    pub version: i64,
    pub what: String,
}

fn differs<T>(version: i64, what: impl Into<String>) -> Result<T, Difference> {
    Err(Difference { version, what: what.into() })
}

/// Folds one counter's history, in order.
#[derive(Debug)]
pub struct Fold {
    head: Head,
    state: Option<State>,
    /// The number of commands that agreed.
    pub commands: u64,
    /// The number of snapshots that agreed with the commands before them.
    pub snapshots: u64,
}

impl Fold {
    /// Starts at the counter's first command, or at the first entry if older ones were deleted.
    pub fn new(head: Head, from_the_start: bool) -> Self {
        Self { head, state: from_the_start.then_some(START), commands: 0, snapshots: 0 }
    }

    /// The state up to now; none before a value is known.
    pub fn state(&self) -> Option<State> {
        self.state
    }

    /// The next command.
    pub fn command(&mut self, entry: &Entry<'_>) -> Result<(), Difference> {
        if entry.kept_in != self.head.strategy {
            return differs(entry.version, "a command is in the history of the other strategy");
        }
        let before = self.before(entry)?;
        follows(before.version, entry.version)?;
        let value = self.value_behind(before.value, entry)?;
        if entry.value.is_some_and(|written| written != value) {
            return differs(
                entry.version,
                format!("the value is {value}, the ledger says {}", text(entry.value)),
            );
        }
        if before.at.is_some_and(|at| entry.at < at) {
            return differs(entry.version, "it is older than the command before it");
        }
        if self.head.min.is_some_and(|min| value < min) || self.head.max.is_some_and(|max| value > max) {
            return differs(entry.version, format!("the value {value} is out of bounds"));
        }
        self.state = Some(State { version: entry.version, value, at: Some(entry.at) });
        self.commands += 1;
        Ok(())
    }

    /// The state before this command. If the beginning of a ledger was deleted, the first entry implies the state before it.
    fn before(&self, entry: &Entry<'_>) -> Result<State, Difference> {
        let earlier = |value| State { version: entry.version - 1, value, at: None };
        match (self.state, entry) {
            (Some(state), _) => Ok(state),
            (None, Entry { version: 1, .. }) => Ok(START),
            (None, Entry { returned: Some(returned), .. }) => Ok(earlier(*returned)),
            (None, Entry { value: Some(value), amount: Some(amount), .. }) => {
                Ok(earlier(value.wrapping_sub(*amount)))
            }
            _ => differs(entry.version, "the value before it is unknown"),
        }
    }

    fn value_behind(&self, before: i64, entry: &Entry<'_>) -> Result<i64, Difference> {
        let wanted = match self.head.strategy {
            Strategy::Ledger if entry.command == "drain" => Some(before),
            _ => None,
        };
        if entry.returned != wanted {
            let (wanted, written) = (text(wanted), text(entry.returned));
            return differs(entry.version, format!("it returned {wanted}, the ledger says {written}"));
        }
        match (entry.command, entry.amount) {
            ("drain", None) => Ok(0),
            ("increment", Some(amount)) => before.checked_add(amount).ok_or_else(|| Difference {
                version: entry.version,
                what: format!("the sum of {before} and {amount} does not fit a bigint"),
            }),
            (command, amount) => differs(entry.version, format!("{command} {} is no command", text(amount))),
        }
    }

    /// The next snapshot: the first known state, or a state to compare with.
    pub fn snapshot(&mut self, version: i64, value: i64, at: SystemTime) -> Result<(), Difference> {
        if self.head.strategy == Strategy::Ledger {
            return differs(version, "a counter with a ledger has a snapshot");
        }
        match self.state {
            None => self.state = Some(State { version, value, at: Some(at) }),
            Some(state) if state.version != version => follows(state.version, version + 1)?,
            Some(state) if state.value != value => {
                return differs(
                    version,
                    format!("the commands make {}, the snapshot says {value}", state.value),
                );
            }
            Some(_) => self.snapshots += 1,
        }
        Ok(())
    }

    /// After the last command: compares with the counter's row. A ledger without entries agrees with any row.
    pub fn end(&mut self) -> Result<State, Difference> {
        let (version, value) = (self.head.version, self.head.value);
        let state = match (self.state, self.head.strategy) {
            (Some(state), _) => state,
            (None, Strategy::Log) if version > 0 => {
                return differs(version, "there are neither commands nor a snapshot for its value");
            }
            (None, _) => State { version, value, at: None },
        };
        if state.version != version {
            let last = state.version;
            return differs(last, format!("the history ends here, the counter's row says version {version}"));
        }
        let written = if self.head.strategy == Strategy::Ledger { state.value } else { 0 };
        if value != written {
            return differs(version, format!("the value is {written}, the counter's row says {value}"));
        }
        self.state = Some(state);
        Ok(state)
    }
}

fn follows(before: i64, version: i64) -> Result<(), Difference> {
    match version - before {
        1 => Ok(()),
        2 => differs(before + 1, "the command is missing"),
        gap if gap > 2 => {
            differs(before + 1, format!("the commands up to version {} are missing", version - 1))
        }
        _ => differs(version, "the version is there twice"),
    }
}

fn text(value: Option<i64>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(strategy: Strategy, version: i64, value: i64) -> Head {
        Head { strategy, min: Some(-5), max: Some(9), version, value }
    }

    fn ledger(version: i64, amount: i64, value: i64) -> Entry<'static> {
        let (amount, value, at) = (Some(amount), Some(value), SystemTime::UNIX_EPOCH);
        Entry { kept_in: Strategy::Ledger, version, command: "increment", amount, value, returned: None, at }
    }

    fn log(version: i64, amount: i64) -> Entry<'static> {
        Entry { kept_in: Strategy::Log, value: None, ..ledger(version, amount, 0) }
    }

    fn drained(version: i64, returned: i64) -> Entry<'static> {
        Entry { command: "drain", amount: None, returned: Some(returned), ..ledger(version, 0, 0) }
    }

    fn fold(head: Head, whole: bool, entries: &[Entry<'_>]) -> Result<(i64, i64), String> {
        let mut fold = Fold::new(head, whole);
        let folded = entries.iter().try_for_each(|entry| fold.command(entry)).and_then(|()| fold.end());
        folded.map(|state| (state.version, state.value)).map_err(|difference| difference.to_string())
    }

    #[test]
    fn a_sound_ledger_agrees_from_the_start_and_from_the_middle() {
        let entries = [ledger(1, 5, 5), drained(2, 5), ledger(3, -2, -2)];
        assert_eq!(fold(head(Strategy::Ledger, 3, -2), true, &entries), Ok((3, -2)));
        assert_eq!(fold(head(Strategy::Ledger, 3, -2), false, &entries[1..]), Ok((3, -2)));
        assert_eq!(fold(head(Strategy::Ledger, 3, -2), false, &entries[2..]), Ok((3, -2)));
        assert_eq!(fold(head(Strategy::Ledger, 3, -2), false, &[]), Ok((3, -2)));
    }

    #[test]
    fn every_contradiction_is_named_where_it_is() {
        let of = |entries: &[Entry<'_>], version, value| {
            fold(head(Strategy::Ledger, version, value), true, entries).unwrap_err()
        };
        assert_eq!(of(&[ledger(1, 5, 6)], 1, 6), "version 1: the value is 5, the ledger says 6");
        assert_eq!(of(&[ledger(2, 5, 5)], 2, 5), "version 1: the command is missing");
        assert_eq!(of(&[ledger(4, 5, 5)], 4, 5), "version 1: the commands up to version 3 are missing");
        assert_eq!(of(&[ledger(1, 5, 5), ledger(1, 5, 5)], 1, 5), "version 1: the version is there twice");
        assert_eq!(of(&[ledger(1, 10, 10)], 1, 10), "version 1: the value 10 is out of bounds");
        assert_eq!(
            of(&[ledger(1, 5, 5), drained(2, 4)], 2, 0),
            "version 2: it returned 5, the ledger says 4"
        );
        assert_eq!(of(&[ledger(1, 5, 5)], 1, 4), "version 1: the value is 5, the counter's row says 4");
        let ends = "version 1: the history ends here, the counter's row says version 2";
        assert_eq!(of(&[ledger(1, 5, 5)], 2, 5), ends);
        let other = "version 1: a command is in the history of the other strategy";
        assert_eq!(of(&[log(1, 5)], 1, 5), other);
        let odd = Entry { command: "reset", ..ledger(1, 5, 5) };
        assert_eq!(of(&[odd], 1, 5), "version 1: reset 5 is no command");
        let late =
            Entry { at: SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1), ..ledger(1, 1, 1) };
        assert_eq!(of(&[late, ledger(2, 1, 2)], 2, 2), "version 2: it is older than the command before it");
    }

    #[test]
    fn a_log_needs_a_state_to_begin_with_and_compares_the_next_ones() {
        let unknown = "version 3: the value before it is unknown";
        assert_eq!(fold(head(Strategy::Log, 3, 0), false, &[log(3, 1)]), Err(unknown.to_owned()));

        let at = SystemTime::UNIX_EPOCH;
        let mut fold = Fold::new(head(Strategy::Log, 4, 0), false);
        fold.snapshot(2, 7, at).unwrap();
        fold.command(&log(3, 1)).unwrap();
        fold.snapshot(3, 8, at).unwrap();
        let lies = fold.snapshot(3, 9, at).unwrap_err().to_string();
        assert_eq!(lies, "version 3: the commands make 8, the snapshot says 9");
        assert_eq!(
            fold.snapshot(5, 9, at).unwrap_err().to_string(),
            "version 4: the commands up to version 5 are missing"
        );
        fold.command(&log(4, -3)).unwrap();
        assert_eq!((fold.end().unwrap().value, fold.commands, fold.snapshots), (5, 2, 1));
    }
}
