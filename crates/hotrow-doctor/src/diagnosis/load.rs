//! What the sessions did: average active sessions by wait, in total and over time.

use std::collections::BTreeMap;

use crate::recording::Recording;
use crate::sample::{Sample, Session};

/// Points of a series over time.
const POINTS_MAX: usize = 60;

/// What a session does at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// It computes, or waits for a core.
    Cpu,
    /// It waits for a row that another transaction has changed or locked.
    RowLock,
    /// It waits for another lock.
    Lock,
    /// It waits until the WAL is on disk or at a standby.
    Flush,
    /// It reads or writes files.
    Io,
    /// It waits for a page or another structure in memory.
    Memory,
    /// It has an open transaction and waits for its client.
    Client,
    /// Anything else.
    Other,
}

impl Class {
    /// All classes in the order of charts.
    pub const ALL: [Class; 8] = [
        Class::RowLock,
        Class::Lock,
        Class::Flush,
        Class::Io,
        Class::Memory,
        Class::Cpu,
        Class::Other,
        Class::Client,
    ];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Class::Cpu => "CPU",
            Class::RowLock => "row lock",
            Class::Lock => "other lock",
            Class::Flush => "WAL flush",
            Class::Io => "I/O",
            Class::Memory => "memory",
            Class::Client => "idle in transaction",
            Class::Other => "other",
        }
    }

    pub fn of(session: &Session) -> Class {
        if session.is_idle_in_transaction() {
            return Class::Client;
        }
        let (Some(kind), Some(wait)) = (session.wait_type.as_deref(), session.wait.as_deref()) else {
            return Class::Cpu;
        };
        match (kind, wait) {
            ("Lock", "transactionid" | "tuple") => Class::RowLock,
            ("Lock", _) => Class::Lock,
            ("IO", "WALSync" | "WALWrite" | "WalSync" | "WalWrite" | "XactSync")
            | ("LWLock", "WALWrite" | "WALWriteLock")
            | ("IPC", "SyncRep") => Class::Flush,
            ("IO" | "BufferPin" | "BufferIO", _) | ("IPC", "BufferIO" | "BufferIo") => Class::Io,
            ("LWLock" | "Buffer", _) => Class::Memory,
            ("Client", _) => Class::Client,
            _ => Class::Other,
        }
    }
}

/// The load of the server.
#[derive(Clone, Debug, Default)]
pub struct Load {
    pub samples: usize,
    /// Time from the first sample to the last.
    pub seconds: f64,
    /// Clients' sessions, idle ones included.
    pub sessions: f64,
    /// Sessions that run a statement.
    pub active: f64,
    /// Average number of sessions by class.
    pub by_class: BTreeMap<Class, f64>,
    /// Average number of sessions by wait event, the largest first.
    pub by_wait: Vec<(String, f64)>,
    /// By class over time.
    pub series: Vec<BTreeMap<Class, f64>>,
    /// By wait event at the same points of time.
    pub wait_series: Vec<BTreeMap<String, f64>>,
    /// Sessions of other databases.
    pub elsewhere: f64,
    /// Sessions that the doctor's role cannot see.
    pub hidden: f64,
    /// Vacuum workers.
    pub vacuums: f64,
}

impl Load {
    pub fn of(recording: &Recording) -> Load {
        let samples = &recording.samples;
        let count = samples.len().max(1) as f64;
        let mut load = Load { samples: samples.len(), seconds: seconds(samples), ..Load::default() };
        for session in samples.iter().flat_map(|sample| &sample.sessions) {
            if session.kind.as_deref() == Some("autovacuum worker") {
                load.vacuums += 1.0 / count;
            }
            if session.state.is_none() && session.kind.as_deref() != Some("parallel worker") {
                load.hidden += 1.0 / count;
            }
            if !session.is_client() || session.state.is_none() {
                continue;
            }
            load.active += if session.is_active() { 1.0 / count } else { 0.0 };
            if session.database.as_deref() != Some(recording.abilities.database.as_str()) {
                load.elsewhere += 1.0 / count;
            }
        }
        let idle: f64 = samples.iter().map(|sample| f64::from(sample.idle)).sum::<f64>() / count;
        load.by_class = averages(samples, Class::of);
        load.by_wait = averages(samples, wait_name).into_iter().collect();
        load.sessions = idle + load.by_wait.iter().map(|(_, sessions)| sessions).sum::<f64>();
        load.by_wait.sort_by(|left, right| right.1.total_cmp(&left.1));
        let length = samples.len().div_ceil(POINTS_MAX).max(1);
        load.series = samples.chunks(length).map(|part| averages(part, Class::of)).collect();
        load.wait_series = samples.chunks(length).map(|part| averages(part, wait_name)).collect();
        load
    }

    /// Average number of sessions of a class.
    pub fn class(&self, class: Class) -> f64 {
        self.by_class.get(&class).copied().unwrap_or(0.0)
    }

    /// Average number of sessions with this wait event.
    pub fn wait(&self, name: &str) -> f64 {
        self.by_wait.iter().find(|(known, _)| known == name).map_or(0.0, |(_, sessions)| *sessions)
    }

    /// Average number of sessions that wait for their client within a transaction.
    pub fn idle_in_transaction(&self) -> f64 {
        self.wait("idle in transaction")
    }

    /// The share of a class in the active sessions.
    pub fn share(&self, class: Class) -> f64 {
        if self.active > 0.0 { self.class(class) / self.active } else { 0.0 }
    }
}

/// The time between the first sample and the last.
pub fn seconds(samples: &[Sample]) -> f64 {
    match samples {
        [first, .., last] => (last.at_us - first.at_us) as f64 / 1e6,
        _ => 0.0,
    }
}

/// Average number of clients' sessions by what `key` says of each.
fn averages<K: Ord>(samples: &[Sample], key: impl Fn(&Session) -> K) -> BTreeMap<K, f64> {
    let mut averages = BTreeMap::new();
    let sessions = samples.iter().flat_map(|sample| &sample.sessions);
    for session in sessions.filter(|session| session.is_client() && session.state.is_some()) {
        *averages.entry(key(session)).or_default() += 1.0 / samples.len() as f64;
    }
    averages
}

/// The name of a session's wait in reports and in the JSON.
fn wait_name(session: &Session) -> String {
    if session.is_idle_in_transaction() {
        return "idle in transaction".to_owned();
    }
    match (&session.wait_type, &session.wait) {
        (Some(kind), Some(wait)) => format!("{kind}:{wait}"),
        _ => "CPU".to_owned(),
    }
}
