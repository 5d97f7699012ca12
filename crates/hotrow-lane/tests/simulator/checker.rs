//! Checks a finished run by its history alone: every outcome against the order of commits. It does not depend on
//! lanes or schedules, and can therefore be tested with a planted wrong history.

use std::collections::{BTreeMap, BTreeSet};

use hotrow_lane::key::Key;
use hotrow_lane::lane::{Changes, LaneKind, Outcome, Refusal};

use super::history::{Evidence, Fate, History, UnitOutcome};
use super::model::{Reply, START};
use super::server::{Entry, Seen, Txn};

/// All errors in a run, empty if there are none.
pub fn check(history: &History) -> Vec<String> {
    let mut wrong = history.complaints.clone();
    one_outcome_each(history, &mut wrong);
    nothing_twice_and_nothing_refused(history, &mut wrong);
    replay(history, &mut wrong);
    nothing_guessed(history, &mut wrong);
    session_order(history, &mut wrong);
    whole(history, &mut wrong);
    if history.calm {
        key_order(history, &mut wrong);
    }
    super::limits::check(history, &mut wrong);
    wrong
}

fn one_outcome_each(history: &History, wrong: &mut Vec<String>) {
    let mut outcomes = vec![0; history.units.len()];
    history.outcomes.iter().for_each(|one| outcomes[one.unit] += 1);
    for (unit, count) in outcomes.iter().enumerate().filter(|(_, count)| **count != 1) {
        wrong.push(format!("unit {unit} has {count} outcomes"));
    }
}

fn nothing_twice_and_nothing_refused(history: &History, wrong: &mut Vec<String>) {
    let mut applied = BTreeSet::new();
    for unit in durable_units(history) {
        if !applied.insert(unit) {
            wrong.push(format!("unit {unit} was applied twice"));
        }
    }
    for one in &history.outcomes {
        if one.fate == Fate::Left && applied.contains(&one.unit) {
            wrong.push(format!("unit {} was given back and applied", one.unit));
        }
        let Fate::Refused(refusal) = one.fate else { continue };
        let may_be_applied = matches!(refusal, Refusal::OutcomeUnknown | Refusal::WrittenElsewhere);
        if !may_be_applied && applied.contains(&one.unit) {
            wrong.push(format!("unit {} was refused with {refusal:?} and applied", one.unit));
        }
        let reason = match refusal {
            Refusal::Cancelled => history.cancels.contains(&history.units[one.unit].session),
            Refusal::NotSent => history.gave_up,
            Refusal::QueueFull => false, // no simulated workload fills a queue
            Refusal::Paused => false,    // no simulated lane gets this command
            Refusal::OutcomeUnknown | Refusal::WrittenElsewhere => {
                one.evidence.is_some_and(|evidence| unknowable(&evidence))
            }
        };
        if !reason {
            wrong.push(format!("unit {} was refused with {refusal:?} for no reason", one.unit));
        }
    }
}

fn durable_units(history: &History) -> impl Iterator<Item = usize> {
    history.log.iter().filter_map(|entry| match entry {
        Entry::Unit { unit, .. } => Some(*unit),
        Entry::Direct { .. } => None,
    })
}

/// Replays the log and compares each answer with the correct answer at that position.
fn replay(history: &History, wrong: &mut Vec<String>) {
    let outcomes: BTreeMap<usize, &UnitOutcome> =
        history.outcomes.iter().map(|one| (one.unit, one)).collect();
    let mut seen: BTreeMap<(usize, Txn), Vec<&Seen>> = BTreeMap::new();
    history.seen.iter().for_each(|one| seen.entry((one.after, one.txn)).or_default().push(one));
    let mut seen_by_length: BTreeMap<usize, Vec<&Seen>> = BTreeMap::new();
    history.seen.iter().for_each(|one| seen_by_length.entry(one.after).or_default().push(one));
    let mut rows: BTreeMap<Key, i64> = BTreeMap::new();
    let mut confirmed = BTreeSet::new();
    for length in 0..=history.log.len() {
        for one in seen_by_length.get(&length).into_iter().flatten() {
            let statement = history.units[one.unit].statement;
            let (reply, _) = statement.alone(value(&rows, statement.row()));
            if let Some(UnitOutcome { fate: Fate::Answered(txn, given), .. }) = outcomes.get(&one.unit)
                && *txn == one.txn
            {
                confirmed.insert(one.unit);
                compare(one.unit, *given, reply, wrong);
            }
        }
        match history.log.get(length) {
            Some(Entry::Direct { row, n }) => *rows.entry(*row).or_insert(START) += n,
            Some(Entry::Unit { txn, unit, .. }) => {
                let statement = history.units[*unit].statement;
                let (reply, change) = statement.alone(value(&rows, statement.row()));
                if let (Some(row), Some(change)) = (statement.row(), change) {
                    rows.insert(row, change);
                }
                let Some(UnitOutcome { fate: Fate::Answered(from, given), log, .. }) = outcomes.get(unit)
                else {
                    continue;
                };
                if from != txn {
                    wrong.push(format!("unit {unit} was applied by {txn} and answered from {from}"));
                } else if *log <= length {
                    wrong.push(format!("unit {unit} was answered before it was durable"));
                }
                confirmed.insert(*unit);
                compare(*unit, *given, reply, wrong);
            }
            None => {}
        }
    }
    for one in history.outcomes.iter().filter(|one| !confirmed.contains(&one.unit)) {
        if matches!(one.fate, Fate::Answered(..) | Fate::Nothing) {
            wrong.push(format!("unit {} got {:?} and never ran with this result", one.unit, one.fate));
        }
    }
}

fn value(rows: &BTreeMap<Key, i64>, row: Option<Key>) -> i64 {
    row.and_then(|row| rows.get(&row).copied()).unwrap_or(START)
}

fn compare(unit: usize, given: Reply, due: Reply, wrong: &mut Vec<String>) {
    if given != due {
        wrong.push(format!("unit {unit} got {given:?} and not {due:?}"));
    }
}

/// No part of the batch can be durable, now or later.
fn undone(evidence: &Evidence) -> bool {
    evidence.kind == LaneKind::Read
        || !evidence.written
        || evidence.failed
        || evidence.resolved == Some(Outcome::Aborted)
}

/// The whole batch is durable, or it has written nothing. A transaction without an ID proves the latter only if no reply
/// shows a change. If rows were changed and the server's own transaction has changed none, nothing is proven.
fn done(evidence: &Evidence) -> bool {
    let proven = match (evidence.xid, evidence.changes) {
        (Some(None), Changes::None) => true,
        (Some(None), Changes::Hidden) => evidence.ready,
        (Some(None), Changes::Rows) => false,
        _ => evidence.ready || evidence.resolved == Some(Outcome::Committed),
    };
    !evidence.failed && proven
}

/// Neither is proven, and the outcome could not be asked for.
fn unknowable(evidence: &Evidence) -> bool {
    let asked_in_vain = evidence.gave_up || evidence.resolved == Some(Outcome::Unknown);
    let is_elsewhere = evidence.xid == Some(None) && evidence.changes != Changes::None;
    !undone(evidence) && !done(evidence) && (evidence.xid.is_none() || asked_in_vain || is_elsewhere)
}

fn nothing_guessed(history: &History, wrong: &mut Vec<String>) {
    for (unit, evidence) in history.again.iter().filter(|(_, evidence)| !undone(evidence)) {
        wrong.push(format!("unit {unit} was run again on a guess: {evidence:?}"));
    }
    for one in &history.outcomes {
        let Some(evidence) = one.evidence else { continue };
        let proven = match one.fate {
            Fate::Answered(..) | Fate::Nothing => done(&evidence),
            Fate::Refused(Refusal::OutcomeUnknown | Refusal::WrittenElsewhere) => true, // checked with the other refusals
            Fate::Refused(_) | Fate::Left => undone(&evidence),
        };
        if !proven {
            wrong.push(format!("unit {} got {:?} on a guess: {evidence:?}", one.unit, one.fate));
        }
    }
}

/// The position of a unit in the order of commits: its earliest and latest possible position.
#[derive(Clone, Copy)]
struct Place {
    txn: Txn,
    run: u64,
    first: usize,
    last: usize,
}

fn session_order(history: &History, wrong: &mut Vec<String>) {
    let outcomes = history.outcomes.iter().filter_map(|one| match one.fate {
        Fate::Answered(txn, _) => Some(((one.unit, txn), one.unit)),
        _ => None,
    });
    let outcomes: BTreeMap<(usize, Txn), usize> = outcomes.collect();
    let mut places: BTreeMap<usize, Place> = BTreeMap::new();
    for Seen { txn, unit, run, after } in &history.seen {
        if outcomes.contains_key(&(*unit, *txn)) {
            places.insert(*unit, Place { txn: *txn, run: *run, first: *after, last: *after });
        }
    }
    for (index, entry) in history.log.iter().enumerate() {
        if let Entry::Unit { txn, unit, run } = entry
            && outcomes.contains_key(&(*unit, *txn))
        {
            places.insert(*unit, Place { txn: *txn, run: *run, first: index, last: index + 1 });
        }
    }
    let mut of_session: BTreeMap<usize, Vec<(usize, Place)>> = BTreeMap::new();
    for (unit, place) in places {
        let earlier = of_session.entry(history.units[unit].session).or_default();
        for (before, one) in earlier.iter() {
            let in_order = if one.txn == place.txn { one.run < place.run } else { one.last <= place.first };
            if !in_order {
                wrong.push(format!("unit {unit} overtook unit {before} of its session"));
            }
        }
        earlier.push((unit, place));
    }
}

/// The answers of a unit with two statements come from one transaction, without another statement in between.
fn whole(history: &History, wrong: &mut Vec<String>) {
    let outcomes: BTreeMap<usize, Fate> = history.outcomes.iter().map(|one| (one.unit, one.fate)).collect();
    let mut runs: BTreeMap<Txn, BTreeMap<u64, usize>> = BTreeMap::new();
    for entry in &history.log {
        if let Entry::Unit { txn, unit, run } = entry {
            runs.entry(*txn).or_default().insert(*run, *unit);
        }
    }
    for one in &history.seen {
        runs.entry(one.txn).or_default().insert(one.run, one.unit);
    }
    for (unit, work) in history.units.iter().enumerate() {
        let Some(then) = work.then else { continue };
        match (outcomes.get(&unit), outcomes.get(&then)) {
            (Some(Fate::Answered(txn, first)), Some(Fate::Answered(other, second))) => {
                let run: Vec<usize> =
                    runs.get(txn).into_iter().flat_map(|runs| runs.values().copied()).collect();
                let is_whole = run.windows(2).any(|pair| pair == [unit, then]);
                let failed = *first == Reply::Error && *second == Reply::Error;
                if txn != other || !is_whole && !failed {
                    wrong.push(format!("unit {unit} was split"));
                }
            }
            (first, second) if first == second => {}
            _ => wrong.push(format!("unit {unit} has two fates")),
        }
    }
}

/// Without disturbances, the units of a key commit in order of arrival. For calls that can be merged, this
/// holds within a group. A unit with several rows is sorted by one of them.
fn key_order(history: &History, wrong: &mut Vec<String>) {
    let turn: BTreeMap<usize, usize> =
        history.submitted.iter().enumerate().map(|(turn, unit)| (*unit, turn)).collect();
    let mut last: BTreeMap<(Key, Option<u64>), usize> = BTreeMap::new();
    for unit in durable_units(history) {
        let Some(key) = history.units[unit].key else { continue };
        if history.units[unit].then.is_some() || !turn.contains_key(&unit) {
            continue;
        }
        let group = history.units[unit].merge.map(|merge| merge.group);
        let before = last.insert((key, group), turn[&unit]);
        if before.is_some_and(|before| before > turn[&unit]) {
            wrong.push(format!("unit {unit} was overtaken by a later unit of its key"));
        }
    }
}
