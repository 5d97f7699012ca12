//! The statements that were seen: their load, and the gateway's decisions. Pure.

use std::collections::{HashMap, HashSet};

use crate::mariadb::load::{Class, Waits};
use crate::mariadb::recording::Recording;
use crate::mariadb::verdict::{Verdict, VerdictKind, is_of_gateway, judge};

/// Statements that are judged: those with the most sessions.
pub const STATEMENTS_MAX: usize = 200;

/// The load of a statement.
#[derive(Clone, Debug)]
pub struct StatementLoad {
    /// Its number in the recording.
    pub statement: usize,
    /// Average number of sessions that run it.
    pub active: f64,
    /// Average number of sessions that wait for a row in it.
    pub waiting: f64,
    /// The part of its sessions that were in a transaction of several statements.
    pub in_transaction: f64,
    pub verdict: Verdict,
}

/// The statements, those with the most sessions first.
pub fn statements(recording: &Recording) -> Vec<StatementLoad> {
    #[derive(Default)]
    struct Counted {
        seen: usize,
        waiting: usize,
        in_transaction: usize,
    }
    let mut counted: HashMap<usize, Counted> = HashMap::new();
    let several = of_several_statements(recording);
    for sample in &recording.samples {
        let waits = Waits::of(sample);
        let transactions: HashMap<u64, &str> = sample
            .transactions
            .iter()
            .map(|transaction| (transaction.thread, transaction.id.as_str()))
            .collect();
        for session in &sample.sessions {
            let Some(statement) = session.statement else { continue };
            let one = counted.entry(statement).or_default();
            one.seen += 1;
            one.waiting += usize::from(waits.class(session) == Class::Row);
            let transaction = transactions.get(&session.thread);
            one.in_transaction +=
                usize::from(transaction.is_some_and(|id| several.contains(&(session.thread, *id))));
        }
    }
    let samples = recording.samples.len().max(1) as f64;
    let mut order: Vec<(usize, Counted)> = counted.into_iter().collect();
    order.sort_by_key(|(statement, one)| (std::cmp::Reverse(one.seen), *statement));
    let load = |(statement, one): (usize, Counted)| {
        let text = recording.statements.get(statement)?;
        Some(StatementLoad {
            statement,
            active: one.seen as f64 / samples,
            waiting: one.waiting as f64 / samples,
            in_transaction: one.in_transaction as f64 / one.seen.max(1) as f64,
            verdict: judge(recording, text),
        })
    };
    order.into_iter().take(STATEMENTS_MAX).filter_map(load).collect()
}

/// The connections of a gateway's lanes. Their transactions are batches.
pub fn lanes(recording: &Recording) -> HashSet<u64> {
    let is_lane =
        |statement: usize| recording.statements.get(statement).is_some_and(|one| is_of_gateway(&one.shape));
    let sessions = recording.samples.iter().flat_map(|sample| &sample.sessions);
    sessions.filter(|session| session.statement.is_some_and(is_lane)).map(|session| session.thread).collect()
}

/// Transactions, by connection and ID, that were seen idle, in two statements, or in a wait after they had changed rows.
fn of_several_statements(recording: &Recording) -> HashSet<(u64, &str)> {
    let lanes = lanes(recording);
    let mut found = HashSet::new();
    let mut first: HashMap<(u64, &str), usize> = HashMap::new();
    for sample in &recording.samples {
        let statements: HashMap<u64, usize> =
            sample.sessions.iter().filter_map(|session| Some((session.thread, session.statement?))).collect();
        for transaction in &sample.transactions {
            let key = (transaction.thread, transaction.id.as_str());
            let statement = statements.get(&transaction.thread);
            let is_other =
                statement.is_some_and(|statement| first.entry(key).or_insert(*statement) != statement);
            let has_waited = transaction.has_changed && transaction.waits_for.is_some();
            let is_several = !transaction.is_running || has_waited || is_other;
            if is_several && !lanes.contains(&transaction.thread) {
                found.insert(key);
            }
        }
    }
    found
}

/// Parts of the calls that were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calls {
    /// Those that are packed as they are.
    pub packed: f64,
    /// Those in transactions of several statements.
    pub in_transaction: f64,
}

/// The parts of the calls, weighted by the sessions that run them. None if no statement was seen.
pub fn calls(statements: &[StatementLoad]) -> Option<Calls> {
    let work =
        |load: &&StatementLoad| !matches!(load.verdict.kind, VerdictKind::Transaction | VerdictKind::Gateway);
    let all: f64 = statements.iter().filter(work).map(|load| load.active).sum();
    if all == 0.0 {
        return None;
    }
    let mut calls = Calls::default();
    for load in statements.iter().filter(work) {
        let part = load.active / all;
        calls.in_transaction += part * load.in_transaction;
        if load.verdict.kind == VerdictKind::Packed {
            calls.packed += part * (1.0 - load.in_transaction);
        }
    }
    Some(calls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mariadb::recording::{Sample, Session, Statement, Transaction};

    fn recording(samples: Vec<Sample>) -> Recording {
        let statement = |text: &str| Statement {
            shape: text.to_owned(),
            example: text.to_owned(),
            ..Statement::default()
        };
        let statements =
            vec![statement("select 1"), statement("commit"), statement("call hotrow.mark(?, …)")];
        Recording { samples, statements, ..Recording::default() }
    }

    fn sample(statement: Option<usize>, transaction: Transaction) -> Sample {
        let sessions = statement.map(|one| Session { thread: 1, statement: Some(one), ..Session::default() });
        Sample {
            sessions: sessions.into_iter().collect(),
            transactions: vec![Transaction { thread: 1, ..transaction }],
            ..Sample::default()
        }
    }

    fn transaction(id: &str, is_running: bool) -> Transaction {
        Transaction { id: id.to_owned(), is_running, ..Transaction::default() }
    }

    #[test]
    fn a_transaction_that_was_seen_idle_has_several_statements() {
        let several = recording(vec![
            sample(Some(0), transaction("a", true)),
            sample(None, transaction("a", false)),
            sample(Some(0), transaction("b", true)),
        ]);
        let loads = statements(&several);
        assert_eq!((loads.len(), loads[0].in_transaction), (1, 0.5));
        let calls = calls(&loads).unwrap();
        assert_eq!((calls.packed, calls.in_transaction), (0.0, 0.5));
    }

    #[test]
    fn a_transaction_that_waits_after_a_change_has_several_statements() {
        let mut waits = transaction("a", true);
        (waits.has_changed, waits.waits_for) = (true, Some("lock".to_owned()));
        let loads = statements(&recording(vec![sample(Some(0), waits)]));
        assert_eq!((loads[0].in_transaction, loads[0].waiting), (1.0, 1.0));
        let other =
            recording(vec![sample(Some(0), transaction("a", true)), sample(Some(1), transaction("a", true))]);
        assert!(statements(&other).iter().any(|load| load.in_transaction == 1.0));
    }

    #[test]
    fn the_transactions_of_lanes_are_batches() {
        let both =
            recording(vec![sample(Some(0), transaction("a", true)), sample(Some(2), transaction("a", true))]);
        let loads = statements(&both);
        assert!(loads.iter().all(|load| load.in_transaction == 0.0), "{loads:?}");
        let calls = calls(&loads).unwrap();
        assert_eq!((calls.packed, calls.in_transaction, lanes(&both).len()), (0.0, 0.0, 1));
    }

    #[test]
    fn commits_are_no_calls() {
        let loads = statements(&recording(vec![sample(Some(1), transaction("a", true))]));
        assert_eq!(calls(&loads), None);
    }
}
