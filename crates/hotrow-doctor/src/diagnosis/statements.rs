//! The statements of a recording: their time, the gateway's decisions about them, and the transactions they run in.

use std::collections::{HashMap, HashSet};

use crate::diagnosis::load::Class;
use crate::recording::{RecordedVerdict, Recording, Statement};
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
    pub fn of(recording: &Recording) -> StatementLoads {
        let interactive = Interactive::of(recording);
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
            if interactive.contains(session) {
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
            if verdict(recording, load).is_some_and(RecordedVerdict::is_packed) {
                shares.packable += part * (1.0 - load.interactive);
            }
        }
        shares
    }
}

/// The gateway's decision about a statement.
pub fn verdict<'r>(recording: &'r Recording, load: &StatementLoad) -> Option<&'r RecordedVerdict> {
    recording.statements.get(load.statement)?.verdict.as_ref()
}

/// All clients' sessions in all samples.
pub fn clients(recording: &Recording) -> impl Iterator<Item = &Session> {
    recording.samples.iter().flat_map(|sample| &sample.sessions).filter(|session| session.is_client())
}

/// Whether a statement begins or ends a transaction.
fn is_boundary(statement: &Statement) -> bool {
    statement.verdict.as_ref().is_some_and(RecordedVerdict::is_boundary) || begins_or_ends(&statement.shape)
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

/// The time from the beginning of a session's transaction to that of its statement, in microseconds.
fn gap_us(session: &Session) -> Option<i64> {
    session.xact_us.zip(session.query_us).map(|(begun, sent)| sent - begun)
}

/// The transactions that wait for their client.
struct Interactive {
    /// Sessions that were seen between two statements of a transaction, or at its beginning or end as a statement of its
    /// own.
    sessions: HashSet<i32>,
    /// Statements after which sessions were seen to wait for their client, with the shortest time from BEGIN to the statement.
    /// Other sessions run the same program: if few samples were taken, many of them were never seen at such a moment.
    statements: HashMap<usize, i64>,
}

impl Interactive {
    /// Sessions that are idle in a transaction, for each sample, below which statements such as BEGIN are those of a
    /// pipeline.
    const IDLE_MIN: f64 = 0.02;

    fn of(recording: &Recording) -> Interactive {
        let idle: Vec<&Session> =
            clients(recording).filter(|session| session.is_idle_in_transaction()).collect();
        let is_rare = (idle.len() as f64) < Self::IDLE_MIN * recording.samples.len() as f64;
        let is_boundary_at = |session: &Session| {
            let statement = session.statement.and_then(|index| recording.statements.get(index));
            session.is_active() && statement.is_some_and(is_boundary)
        };
        let at_boundary = clients(recording).filter(|session| !is_rare && is_boundary_at(session));
        let mut statements = HashMap::new();
        for session in &idle {
            if let Some(statement) = session.statement {
                let gap = gap_us(session).unwrap_or(MESSAGES_US).min(MESSAGES_US);
                let shortest = statements.entry(statement).or_insert(gap);
                *shortest = gap.min(*shortest);
            }
        }
        Interactive {
            statements,
            sessions: idle.iter().copied().chain(at_boundary).map(|session| session.pid).collect(),
        }
    }

    /// Whether a session's statement is part of such a transaction: it began so long after its transaction that the client
    /// sent something else before. The messages of a single statement begin within a shorter time. A client that answers
    /// faster than that is known by the time from its BEGIN to the same statement.
    fn contains(&self, session: &Session) -> bool {
        let shortest = session.statement.and_then(|statement| self.statements.get(&statement));
        let Some(gap) = gap_us(session) else { return self.sessions.contains(&session.pid) };
        let is_of_session = self.sessions.contains(&session.pid) && gap > MESSAGES_US;
        is_of_session || shortest.is_some_and(|shortest| gap >= *shortest)
    }
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
        let packed = RecordedVerdict { name: "packed".into(), ..RecordedVerdict::default() };
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

    #[test]
    fn a_client_that_answers_fast_is_known_by_the_time_after_its_begin() {
        let session = |pid, state: &str, gap| Session {
            pid,
            state: Some(state.into()),
            statement: Some(0),
            xact_us: Some(0),
            query_us: Some(gap),
            ..Session::default()
        };
        let sessions =
            vec![session(1, "idle in transaction", 90), session(2, "active", 110), session(3, "active", 30)];
        let recording = Recording {
            samples: vec![Sample { sessions, ..Sample::default() }],
            statements: vec![Statement { shape: "update t set n = n + 1".into(), ..Statement::default() }],
            ..Recording::default()
        };
        let loads = StatementLoads::of(&recording);
        assert_eq!(loads.interactive, 0.5, "the messages of a single statement take less time");
    }

    #[test]
    fn sessions_that_were_never_seen_idle_run_the_same_transactions() {
        let packed = RecordedVerdict { name: "packed".into(), ..RecordedVerdict::default() };
        let statement = |shape: &str| Statement {
            shape: shape.into(),
            verdict: Some(packed.clone()),
            ..Statement::default()
        };
        let session = |pid, state: &str, statement, query_us| Session {
            pid,
            state: Some(state.into()),
            statement: Some(statement),
            xact_us: Some(0),
            query_us: Some(query_us),
            ..Session::default()
        };
        let recording = |first: Session| Recording {
            samples: vec![Sample {
                sessions: vec![first, session(2, "active", 0, 5_000), session(3, "active", 0, 9_000)],
                ..Sample::default()
            }],
            statements: vec![statement("update t set n = n + 1 where id = $1"), statement("begin")],
            ..Recording::default()
        };
        let idle = StatementLoads::of(&recording(session(1, "idle in transaction", 0, 1)));
        assert_eq!((idle.interactive, idle.packable), (1.0, 0.0));
        // A pipeline begins with BEGIN too, and its transaction is as old, but no session waits for its client.
        let pipeline = StatementLoads::of(&recording(session(1, "active", 1, 1)));
        assert_eq!((pipeline.interactive, pipeline.packable), (0.0, 1.0));
    }
}
