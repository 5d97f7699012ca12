//! Scripts of events for one lane and its actions: `submit 1a 2b -> connect`. They test exact sequences. The
//! simulator tests many cases.
//!
//! A unit is written as its session, its key (a letter, a capital letter for table 2, `-` for none) and, if
//! needed, a number that distinguishes it from other units of its session: `1a`, `12-`, `3B2`. `1..9a` are
//! the units of sessions 1 to 9. `1a+b` is a unit of two statements on two rows, and `fails-at 1a+b/2` means
//! that the second one failed. `1ab` is a unit of one statement on two rows. In a batch, `{a b}` are rows that are locked first. `1a@500` has 500 bytes. Of
//! `1a%2`, two fit one commit. `1a#2` is a call of a function with a merge rule, in group 2, of which four
//! can become one. `1a?#2` is a call that can wait, and `waits 1a?` says that it does. `1a&` can fail without the others, and `leaves 1a&` says that it does.
//! `1a~` has waited before. `1a$` first reads one row without a lock, and `1a$$` reads others. `1a^` takes any of several rows, whose key is `a`. In a batch, `[1a 2b]`
//! is one call. `*` is the whole of table 1.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use hotrow_lane::key::Key;
use hotrow_lane::lane::{
    Action, Batch, Changes, Claim, Claimed, Doubt, Event, Failure, Lane, LaneKind, Leaving, Merge, Outcome,
    Reads, Refusal, Times, Unit,
};

/// Runs a script with one line for each event, and compares the lane's actions with those after the arrow.
pub fn script(kind: LaneKind, lines: &str) {
    let mut interpreter = Interpreter {
        lane: Lane::new(kind),
        pending: BTreeSet::new(),
        given_back: BTreeMap::new(),
        actions: Vec::new(),
    };
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (events, due) = line.split_once("->").expect("every line has an arrow");
        events.split(',').for_each(|event| interpreter.happens(event.trim()));
        assert_eq!(interpreter.actions(), due.trim(), "at `{line}`");
    }
}

struct Interpreter {
    lane: Lane<String>,
    /// Units under way, by session and name.
    pending: BTreeSet<(u64, String)>,
    /// Units that the lane returned, to be submitted again.
    given_back: BTreeMap<String, Unit<String>>,
    actions: Vec<Action<String>>,
}

impl Interpreter {
    fn happens(&mut self, event: &str) {
        let (verb, rest) = event.split_once(' ').unwrap_or((event, ""));
        let number = || rest.parse::<u64>().unwrap_or_else(|_| panic!("{event}: a number is missing"));
        match verb {
            "submit" => rest.split_whitespace().flat_map(spread).for_each(|name| self.submit(name)),
            "again" => {
                let unit = self.given_back.remove(rest).unwrap_or_else(|| panic!("{rest} was not returned"));
                self.step(Event::Submit(Unit { first: true, ..unit }));
            }
            "done" => assert!(self.pending.remove(&named(rest)), "{rest} is not on its way"),
            "cancel" => self.step(Event::Cancel(number())),
            "impatient" => self.step(Event::Impatient(number())),
            "slow" => self.step(Event::Slow),
            "measured" => self.lane.measured(|name| !name.contains(rest)),
            "gone" => self.step(Event::Gone(number())),
            "connected" => self.step(Event::Connected),
            "no-connection" => self.step(Event::ConnectFailed { give_up: false }),
            "give-up" => self.step(Event::ConnectFailed { give_up: true }),
            "written" => self.written(),
            "locked" => (0..rest.parse().unwrap_or(1)).for_each(|_| self.step(Event::Locked)),
            "answered" => self.answered(rest, Changes::None),
            "changed" => self.answered(rest, Changes::Rows),
            "hidden" => self.answered(rest, Changes::Hidden),
            "waits" => {
                let place = self.index(rest);
                self.step(Event::Waits(place));
            }
            "leaves" => {
                let place = self.index(rest);
                self.step(Event::Leaves(place, Failure::Error));
            }
            "leaves-blocked" => {
                let place = self.index(rest);
                self.step(Event::Leaves(place, Failure::Blocked));
            }
            "xid" => self.step(Event::TransactionId(rest.parse().ok())),
            "behind" => self.step(Event::Failed(Failure::Behind)),
            "error" => self.step(Event::Failed(Failure::Error)),
            "uncertain" => self.step(Event::Failed(Failure::Uncertain)),
            "too-slow" => self.step(Event::Failed(Failure::TooSlow)),
            "blocked" => self.step(Event::Failed(Failure::Blocked)),
            "ready" => self.step(Event::Ready),
            "took" => self.took(Times { commit: Some(Duration::from_millis(number())), ..Times::default() }),
            "executed" => self.took(Times { execution: Duration::from_millis(number()), commit: None }),
            "queue-wait" => self.lane.set_queue_wait(Duration::from_millis(number())),
            "over" => self.step(Event::HoldOver),
            "pause" => self.step(Event::Pause),
            "resume" => self.step(Event::Resume),
            // Sessions up to this number have waited for too long.
            "expire" => {
                let last = number();
                self.lane.expire(|unit| unit.session <= last, &mut self.actions);
            }
            "rests" => assert!(self.lane.is_at_rest(), "the lane is not at rest"),
            "lost" => self.step(Event::Lost),
            "committed" => self.step(Event::Resolved(Outcome::Committed)),
            "aborted" => self.step(Event::Resolved(Outcome::Aborted)),
            "unknown" => self.step(Event::Resolved(Outcome::Unknown)),
            "unblocked" => self.step(Event::Unblocked(
                rest.chars().find_map(key).unwrap_or(Key { table: 0, hash: u64::MAX }),
            )),
            _ => self.sequence(verb, rest),
        }
    }

    /// The index of a unit in the earliest batch.
    fn index(&self, name: &str) -> usize {
        let batch = self.lane.under_way().front().expect("a batch is under way");
        let place = batch.units.iter().position(|unit| unit.payload == name);
        place.unwrap_or_else(|| panic!("{name} is not in the batch"))
    }

    fn took(&mut self, times: Times) {
        self.step(Event::Took(times));
    }

    /// The usual sequences of events for the earliest batch.
    fn sequence(&mut self, verb: &str, rest: &str) {
        match verb {
            "commits" => {
                self.runs(usize::MAX);
                self.step(Event::TransactionId(Some(7)));
                self.step(Event::Ready);
            }
            // All calls are answered, and then the catalog may have changed, or has.
            "stale" | "outdated" => {
                self.runs(usize::MAX);
                let is_known = verb == "outdated";
                self.step(Event::Failed(if is_known { Failure::Changed } else { Failure::Stale }));
                self.step(Event::Ready);
            }
            "fails-at" | "blocks-at" | "table-blocks-at" | "slow-at" => {
                self.runs(self.place(rest));
                let failure = match verb {
                    "fails-at" => Failure::Error,
                    "blocks-at" => Failure::Blocked,
                    "table-blocks-at" => Failure::TableBlocked,
                    _ => Failure::TooSlow,
                };
                self.step(Event::Failed(failure));
                self.step(Event::Ready);
            }
            _ => panic!("unknown event `{verb} {rest}`"),
        }
    }

    fn submit(&mut self, name: String) {
        let session = session(&name);
        let earlier = self.pending.range((session, String::new())..).next();
        let unit = unit(&name, earlier.is_none_or(|(other, _)| *other != session));
        assert!(self.pending.insert(named(&unit.payload)), "{name} is under way already");
        self.step(Event::Submit(unit));
    }

    fn step(&mut self, event: Event<String>) {
        self.lane.step(event, &mut self.actions);
    }

    /// All batches under way are written.
    fn written(&mut self) {
        let numbers: Vec<_> = self.lane.under_way().iter().map(|batch| batch.number).collect();
        numbers.into_iter().for_each(|number| self.step(Event::Written(number)));
    }

    /// This number of calls is answered, or one.
    fn answered(&mut self, number: &str, changes: Changes) {
        (0..number.parse().unwrap_or(1)).for_each(|_| self.step(Event::Answered(changes)));
    }

    /// The earliest batch is written, and `answers` of its calls are answered.
    fn runs(&mut self, answers: usize) {
        self.written();
        let ahead = self.lane.under_way().front().map_or(0, |batch| batch.ahead.len());
        (0..ahead).for_each(|_| self.step(Event::Locked));
        let calls = self.lane.under_way().front().map_or(0, |batch| batch.call_count);
        (0..calls.min(answers)).for_each(|_| self.step(Event::Answered(Changes::None)));
    }

    /// Number of answers before the answer of a unit, or of one of its statements.
    fn place(&self, name: &str) -> usize {
        let (name, statement) = name.split_once('/').unwrap_or((name, "1"));
        let batch = self.lane.under_way().front().expect("a batch is under way");
        let of_call = |call: &Range<usize>| batch.units[call.clone()].iter().any(|unit| unit.payload == name);
        assert!(batch.calls().any(|call| of_call(&call)), "{name} is not in the batch");
        let before = batch.calls().take_while(|call| !of_call(call));
        let answers: usize = before.map(|call| batch.answers_owed(&call)).sum();
        answers + statement.parse::<usize>().expect("a statement's number") - 1
    }

    /// The lane's actions since the last call.
    fn actions(&mut self) -> String {
        let actions: Vec<_> = self.actions.drain(..).collect();
        let actions: Vec<String> = actions.into_iter().map(|action| self.text(action)).collect();
        actions.join("; ")
    }

    fn text(&mut self, action: Action<String>) -> String {
        match action {
            Action::Connect => "connect".to_owned(),
            Action::Disconnect => "disconnect".to_owned(),
            Action::Hold(time) => format!("hold {}", time.as_millis()),
            Action::Write(number) => {
                let batch = self.lane.batch(number);
                format!("write {}", batch.map_or(String::new(), calls))
            }
            Action::Answer(Batch { mut units, waits, is_too_slow, .. }) => {
                let mut text = Vec::new();
                for place in waits.iter().rev() {
                    let unit = units.remove(*place);
                    text.insert(0, format!("waits {}", unit.payload));
                    self.given_back.insert(unit.payload.clone(), unit);
                }
                if !units.is_empty() {
                    let verb = if is_too_slow { "answer-slow" } else { "answer" };
                    text.insert(0, format!("{verb} {}", self.end(&units)));
                }
                text.join("; ")
            }
            Action::Alone(unit, None) => match unit.leaving {
                Leaving::TooSlow => format!("too-slow {}", unit.payload),
                Leaving::Changed => format!("outdated {}", unit.payload),
                Leaving::Failed | Leaving::Blocked => format!("alone {}", unit.payload),
            },
            Action::Alone(unit, Some(key)) => format!("alone {} blocking {}", unit.payload, key_name(key)),
            Action::Return(unit) => {
                let name = unit.payload.clone();
                self.given_back.insert(name.clone(), unit);
                format!("return {name}")
            }
            Action::Refuse(units, refusal) => {
                let why = match refusal {
                    Refusal::OutcomeUnknown => "unknown",
                    Refusal::WrittenElsewhere => "elsewhere",
                    Refusal::NotSent => "not-sent",
                    Refusal::QueueFull => "full",
                    Refusal::Cancelled => "cancelled",
                    Refusal::Paused => "paused",
                };
                format!("{why} {}", self.end(&units))
            }
            Action::Resolve(Doubt::Id(id)) => format!("resolve {id}"),
            Action::Resolve(Doubt::IdAfter(None)) => "resolve any".to_owned(),
            Action::Resolve(Doubt::IdAfter(Some(id))) => format!("resolve after {id}"),
        }
    }

    fn end(&mut self, units: &[Unit<String>]) -> String {
        units.iter().for_each(|unit| {
            self.pending.remove(&named(&unit.payload));
        });
        names(units)
    }
}

/// `1..3a` means `1a`, `2a` and `3a`.
fn spread(name: &str) -> Vec<String> {
    let Some((from, rest)) = name.split_once("..") else { return vec![name.to_owned()] };
    let (to, key) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).expect("a key"));
    let range = from.parse::<u64>().expect("a session")..=to.parse().expect("a session");
    range.map(|session| format!("{session}{key}")).collect()
}

/// The reverse: neighbours with one key are written as a range.
fn names(units: &[Unit<String>]) -> String {
    let mut runs: Vec<(u64, u64, &str)> = Vec::new();
    for unit in units {
        let key = &unit.payload[unit.session.to_string().len()..];
        match runs.last_mut() {
            Some((_, to, same)) if *to + 1 == unit.session && *same == key => *to += 1,
            _ => runs.push((unit.session, unit.session, key)),
        }
    }
    let names = runs.iter().map(|(from, to, key)| match to - from {
        0 => format!("{from}{key}"),
        1 => format!("{from}{key} {to}{key}"),
        _ => format!("{from}..{to}{key}"),
    });
    names.collect::<Vec<_>>().join(" ")
}

/// A batch's units, those of a merged call in brackets.
fn calls(batch: &Batch<String>) -> String {
    let mut parts: Vec<String> = Vec::new();
    let rows: Vec<_> = batch.ahead.iter().map(|(key, ..)| key_name(*key)).collect();
    parts.extend((!rows.is_empty()).then(|| format!("{{{}}}", rows.join(" "))));
    let mut singles = 0..0;
    for call in batch.calls() {
        if call.len() == 1 {
            singles.end = call.end;
            continue;
        }
        parts.extend((!singles.is_empty()).then(|| names(&batch.units[singles.clone()])));
        singles = call.end..call.end;
        parts.push(format!("[{}]", names(&batch.units[call])));
    }
    parts.extend((!singles.is_empty()).then(|| names(&batch.units[singles])));
    parts.join(" ")
}

fn named(name: &str) -> (u64, String) {
    (session(name), name.to_owned())
}

fn session(name: &str) -> u64 {
    let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
    name[..digits].parse().expect("a unit begins with its session")
}

fn key(name: char) -> Option<Key> {
    match name {
        '*' => Some(Key { table: 1, hash: u64::MAX }),
        c if c.is_ascii_lowercase() => Some(Key { table: 1, hash: c.into() }),
        c if c.is_ascii_uppercase() => Some(Key { table: 2, hash: c.into() }),
        _ => None,
    }
}

fn key_name(key: Key) -> String {
    match key {
        Key { table: 0, .. } => "-".to_owned(),
        Key { hash: u64::MAX, .. } => "*".to_owned(),
        Key { hash, .. } => char::from(hash as u8).to_string(),
    }
}

fn unit(text: &str, first: bool) -> Unit<String> {
    let (text, bytes) =
        text.split_once('@').map_or((text, 100), |(name, bytes)| (name, bytes.parse().unwrap()));
    let (name, rows) = text.split_once('%').map_or((text, 128), |(name, rows)| (name, rows.parse().unwrap()));
    let (name, group) =
        name.split_once('#').map_or((name, None), |(name, group)| (name, Some(group.parse().unwrap())));
    let merge = group.map(|group| if group == 0 { Merge::NEVER } else { Merge { group, most: 4 } });
    let session = session(name);
    let statements: Vec<_> = name[session.to_string().len()..].split('+').collect();
    let takes_any = name.contains('^');
    let claim = |(statement, rows_of): (usize, &&str)| {
        let keys: Vec<Key> = rows_of.chars().filter_map(key).collect();
        let statement = statement as u16;
        let claim = move |key| Claim {
            key,
            statement,
            rows_per_commit: rows,
            in_key_space: false,
            lockable: true,
            takes_any,
        };
        keys.into_iter().map(claim)
    };
    let claims: Vec<Claim> = statements.iter().enumerate().flat_map(claim).collect();
    let claimed = Claimed {
        key: claims.iter().map(|claim| claim.key).min(),
        rows_per_commit: rows,
        merge,
        may_wait: name.contains('?'),
        may_leave: name.contains('&'),
        lockable: merge.is_none(),
        takes_any,
        reads: match name.matches('$').count() {
            0 => Reads::Nothing,
            1 => Reads::OneRowFirst,
            _ => Reads::Rows,
        },
        statements: statements.len() as u16,
        claims: if statements.len() > 1 || claims.len() > 1 { claims.into() } else { Box::default() },
        bytes,
    };
    Unit {
        has_waited: name.contains('~'),
        unmeasured: name.contains('!'),
        ..Unit::new(session, first, claimed, name.to_owned())
    }
}
