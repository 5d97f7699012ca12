//! The statements of a recording: their time, the gateway's decisions about them, and the transactions they run in.

use std::collections::{HashMap, HashSet};

use crate::diagnosis::load::Class;
use crate::recording::{Recording, Statement, Verdict};
use crate::sample::Session;

/// Time between the messages of one statement, such as Bind and Execute.
const MESSAGES_US: i64 = 150;
/// Statements in a report.
pub const STATEMENTS_MAX: usize = 30;

/// A statement's part of the load.
#[derive(Clone, Debug, Default)]
pub struct StatementLoad {
    /// Its index in the recording.
    pub statement: usize,
    /// Average number of sessions that run it.
    pub active: f64,
    /// Calls during the run: counted by the server, or those that were seen.
    pub calls: f64,
    /// The calls are counted.
    pub is_counted: bool,
    /// The share of its seen calls that ran in transactions that wait for their client.
    pub interactive: f64,
    /// The class in which it spends most of its time.
    pub waits: Option<Class>,
}

/// All statements.
#[derive(Clone, Debug, Default)]
pub struct StatementLoads {
    /// Those with the most sessions first. Statements that begin or end a transaction are omitted.
    pub top: Vec<StatementLoad>,
    /// The share of the calls that the gateway packs as they are.
    pub packable: f64,
    /// The share of the calls that run in transactions that wait for their client.
    pub interactive: f64,
    /// Whether calls were seen at all.
    pub is_known: bool,
    /// The share of the active sessions whose statements use SKIP LOCKED.
    pub skip_locked: f64,
}

#[derive(Default)]
struct Seen {
    samples: f64,
    calls: HashSet<(i32, Option<i64>)>,
    interactive: HashSet<(i32, Option<i64>)>,
    classes: HashMap<Class, usize>,
}

impl StatementLoads {
    /// The statements of a recording.
    pub fn of(recording: &Recording) -> StatementLoads {
        let interactive = interactive_sessions(recording);
        let mut seen: HashMap<usize, Seen> = HashMap::new();
        let (mut active, mut skip_locked) = (0.0, 0.0);
        for session in clients(recording).filter(|session| session.is_active()) {
            active += 1.0;
            let Some(index) = session.statement else { continue };
            let statement = &recording.statements[index];
            if statement.shape.to_ascii_lowercase().contains("skip locked") {
                skip_locked += 1.0;
            }
            let call = (session.pid, session.query_us);
            let seen = seen.entry(index).or_default();
            seen.samples += 1.0;
            seen.calls.insert(call);
            *seen.classes.entry(Class::of(session)).or_default() += 1;
            if interactive.contains(&session.pid) && follows_another(session) {
                seen.interactive.insert(call);
            }
        }
        let counted = recording.statements.iter().any(|statement| statement.counters.is_some());
        let samples = recording.samples.len().max(1) as f64;
        let loads = recording.statements.iter().enumerate().filter(|(_, statement)| !is_boundary(statement));
        let mut top: Vec<StatementLoad> = loads
            .filter_map(|(index, statement)| load(index, statement, seen.get(&index), samples, counted))
            .collect();
        let mut loads = StatementLoads::shares(recording, &top);
        loads.skip_locked = if active > 0.0 { skip_locked / active } else { 0.0 };
        top.sort_by(|left, right| {
            (right.active, right.calls)
                .partial_cmp(&(left.active, left.calls))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        top.truncate(STATEMENTS_MAX);
        loads.top = top;
        loads
    }

    fn shares(recording: &Recording, all: &[StatementLoad]) -> StatementLoads {
        let calls: f64 = all.iter().map(|load| load.calls).sum();
        let mut shares = StatementLoads { is_known: calls > 0.0, ..StatementLoads::default() };
        for load in all.iter().filter(|_| calls > 0.0) {
            let part = load.calls / calls;
            shares.interactive += part * load.interactive;
            if verdict(recording, load).is_some_and(Verdict::is_packed) {
                shares.packable += part * (1.0 - load.interactive);
            }
        }
        shares
    }
}

/// The gateway's decision about a statement.
pub fn verdict<'r>(recording: &'r Recording, load: &StatementLoad) -> Option<&'r Verdict> {
    recording.statements.get(load.statement)?.verdict.as_ref()
}

/// All clients' sessions in all samples.
pub fn clients(recording: &Recording) -> impl Iterator<Item = &Session> {
    recording.samples.iter().flat_map(|sample| &sample.sessions).filter(|session| session.is_client())
}

/// Whether a statement begins or ends a transaction.
fn is_boundary(statement: &Statement) -> bool {
    statement.verdict.as_ref().is_some_and(Verdict::is_boundary) || begins_or_ends(&statement.shape)
}

fn begins_or_ends(text: &str) -> bool {
    let word =
        text.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty()).unwrap_or_default();
    let single = !text.trim_end_matches([';', ' ']).contains(';');
    single
        && ["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"]
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known))
}

/// Whether a statement began so long after its transaction that the client sent something else before. The messages of a
/// single statement begin within a shorter time.
fn follows_another(session: &Session) -> bool {
    session.xact_us.zip(session.query_us).is_none_or(|(begun, sent)| begun + MESSAGES_US < sent)
}

/// Sessions that were seen between two statements of a transaction, or at its beginning or end as a statement of its
/// own: their transactions wait for their client.
fn interactive_sessions(recording: &Recording) -> HashSet<i32> {
    let boundaries: HashSet<usize> = recording
        .statements
        .iter()
        .enumerate()
        .filter(|(_, statement)| is_boundary(statement))
        .map(|(index, _)| index)
        .collect();
    let waits = |session: &&Session| {
        let at_boundary =
            session.is_active() && session.statement.is_some_and(|statement| boundaries.contains(&statement));
        session.is_idle_in_transaction() || at_boundary
    };
    clients(recording).filter(waits).map(|session| session.pid).collect()
}

fn load(
    index: usize,
    statement: &Statement,
    seen: Option<&Seen>,
    samples: f64,
    counted: bool,
) -> Option<StatementLoad> {
    let counters = statement.counters.as_ref();
    let seen_calls = seen.map_or(0.0, |seen| seen.calls.len() as f64);
    // Statements that the server does not count are few calls next to those that it counts.
    let calls = counters.map_or(seen_calls, |counters| counters.calls as f64);
    if calls == 0.0 {
        return None;
    }
    let interactive = seen.map_or(0.0, |seen| seen.interactive.len() as f64);
    let waits = seen.and_then(|seen| seen.classes.iter().max_by_key(|(class, count)| (**count, **class)));
    Some(StatementLoad {
        statement: index,
        active: seen.map_or(0.0, |seen| seen.samples / samples),
        calls,
        is_counted: counted && counters.is_some(),
        interactive: if seen_calls > 0.0 { interactive / seen_calls } else { 0.0 },
        waits: waits.map(|(class, _)| *class),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    #[test]
    fn only_a_single_command_is_a_boundary() {
        for text in ["begin", "START TRANSACTION READ WRITE", " commit;", "end"] {
            assert!(begins_or_ends(text), "{text}");
        }
        for text in ["begin; update t set a = 1; commit", "select 1", "", "ending()"] {
            assert!(!begins_or_ends(text), "{text}");
        }
    }

    #[test]
    fn a_session_seen_idle_in_a_transaction_is_interactive() {
        let session = |pid, state: &str, statement, query_us| Session {
            pid,
            state: Some(state.into()),
            statement: Some(statement),
            query_us: Some(query_us),
            ..Session::default()
        };
        let packed = Verdict { name: "packed".into(), ..Verdict::default() };
        let statement = |shape: &str| Statement {
            shape: shape.into(),
            verdict: Some(packed.clone()),
            ..Statement::default()
        };
        let alone = Session { xact_us: Some(7), ..session(1, "active", 0, 7) };
        let mut recording = Recording {
            samples: vec![
                Sample {
                    sessions: vec![session(1, "active", 0, 1), session(2, "active", 0, 1)],
                    ..Sample::default()
                },
                Sample {
                    sessions: vec![session(1, "idle in transaction", 0, 1), session(2, "active", 0, 2)],
                    ..Sample::default()
                },
            ],
            statements: vec![statement("update t set n = n + 1 where id = $1")],
            ..Recording::default()
        };
        let loads = StatementLoads::of(&recording);
        assert_eq!(loads.top[0].calls, 3.0);
        recording.samples.push(Sample { sessions: vec![alone], ..Sample::default() });
        let mixed = StatementLoads::of(&recording);
        assert_eq!(mixed.interactive, 0.25, "a statement without BEGIN of the same session");
        assert!((loads.interactive - 1.0 / 3.0).abs() < 1e-9 && (loads.packable - 2.0 / 3.0).abs() < 1e-9);
    }
}
