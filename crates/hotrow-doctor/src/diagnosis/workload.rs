//! The shape of a load: all that the prediction and `hotrow bench --like` need to know about it.

use serde::{Deserialize, Serialize};

use crate::diagnosis::blocking::Blocking;
use crate::diagnosis::hold::Hold;
use crate::diagnosis::load::{Class, Load};
use crate::diagnosis::rows::RowWaits;
use crate::diagnosis::statements::{self, StatementLoads};
use crate::diagnosis::throughput::Throughput;
use crate::recording::Recording;

/// Hot rows that are listed.
const HOT_MAX: usize = 4;
/// Sessions that wait for a row on average, below which it is not hot.
const HOT_MIN: f64 = 0.2;

/// The shape of a load. `None`: not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workload {
    /// Sessions that work: those in a statement or transaction, and those that have been idle for less than a second.
    pub sessions: f64,
    /// Those in a statement or transaction.
    pub busy: f64,
    /// Those that wait for a row, or for the lock manager while others wait for a row.
    pub waiting: f64,
    /// Transactions per second.
    pub transactions: Option<f64>,
    /// The share of the transactions that write.
    pub writing: f64,
    /// Rows that a writing transaction changes.
    pub changes: f64,
    /// The share of the writing transactions that change each of the hottest rows.
    pub hot: Vec<f64>,
    /// The largest number of changes of one row that fit a commit of the gateway.
    pub batch_max: Option<f64>,
    /// The share of the calls that the gateway packs as they are.
    pub packable: f64,
    /// The share of the calls in transactions that wait for their client.
    pub interactive: f64,
    /// The time that such a transaction waits for its client, in microseconds.
    pub client_us: f64,
    /// The time between two transactions of a session, in microseconds.
    pub pause_us: f64,
    /// The time of a WAL flush, in microseconds.
    pub flush_us: Option<f64>,
    /// CPU time of a transaction in the server, in microseconds.
    pub execution_us: Option<f64>,
    /// The time of a small piece of work on the server's core, in microseconds.
    pub probe_us: Option<f64>,
    /// Cores of the server's machine.
    pub cores: Option<f64>,
    pub busy_cores: Option<f64>,
    /// The time for which a process of the server that can run waits for a core, in microseconds.
    pub core_wait_us: Option<f64>,
    /// The number of processes of the server that can run and wait for a core.
    pub core_queue: Option<f64>,
    /// The clients are on the server's machine.
    pub local_clients: bool,
}

/// The parts of a diagnosis from which the shape is made.
pub struct Known<'k> {
    /// The sessions.
    pub load: &'k Load,
    /// The rows that they wait for.
    pub rows: &'k RowWaits,
    /// The sessions that block others.
    pub blocking: &'k Blocking,
    pub statements: &'k StatementLoads,
    /// Commits, flushes and WAL.
    pub throughput: &'k Throughput,
}

impl Workload {
    /// The shape of a recorded load.
    pub fn of(recording: &Recording, known: &Known<'_>) -> Workload {
        let Known { load, statements, throughput, .. } = known;
        let busy = load.active + load.idle_in_transaction();
        let resting = resting(recording).unwrap_or(load.sessions - busy);
        let sessions = busy + resting;
        let writes = throughput.writes.unwrap_or(0.0);
        let commits = throughput.usual_commits.or(throughput.commits);
        let transactions = commits.map(|commits| commits.max(writes)).filter(|rate| *rate > 0.0);
        let each_us = |sessions: f64| transactions.map_or(0.0, |rate| 1e6 * sessions / rate);
        let interactive = statements.interactive;
        let client_us =
            if interactive > 0.0 { each_us(load.idle_in_transaction()) / interactive } else { 0.0 };
        let machine = recording.machine.as_ref();
        let computing = machine.and_then(|machine| machine.server).unwrap_or(load.class(Class::Cpu));
        let batch_max = statements.top.iter().filter_map(|load| {
            statements::verdict(recording, load).and_then(|verdict| verdict.rows_per_commit)
        });
        Workload {
            sessions: round(sessions),
            busy: round(busy),
            waiting: round(waiting(known)),
            transactions: transactions.map(round),
            writing: round(transactions.map_or(0.0, |rate| (writes / rate).min(1.0))),
            changes: round(changes(throughput)),
            hot: hot(known),
            batch_max: batch_max.max().map(f64::from),
            packable: round(if statements.is_known { statements.packable } else { 1.0 }),
            interactive: round(interactive),
            client_us: round(client_us),
            pause_us: round(each_us(resting)),
            flush_us: flush_us(load, throughput).map(round),
            execution_us: transactions.map(|_| round(each_us(computing))),
            probe_us: recording.probe_us,
            cores: machine.map(|machine| machine.cores as f64),
            busy_cores: machine.and_then(|machine| machine.busy).map(round),
            core_wait_us: machine.and_then(|machine| machine.core_wait_us).map(round),
            core_queue: machine.and_then(|machine| machine.queue).map(round),
            local_clients: local_clients(recording),
        }
    }

    /// Whether the machine has no free core. A crowd that waits for cores shows it too: while many short pieces of work move
    /// from core to core, each core is idle for moments.
    pub fn is_saturated(&self) -> bool {
        const BUSY: f64 = 0.85;
        const QUEUE: f64 = 2.0;
        let reaches = |part: Option<f64>, bound: f64| {
            self.cores.zip(part).is_some_and(|(cores, part)| part >= bound * cores)
        };
        reaches(self.busy_cores, BUSY) || reaches(self.core_queue, QUEUE)
    }
}

/// Rows that a writing transaction changes. Sessions report these numbers late, those of an earlier load too. The log of a
/// transaction bounds the number.
fn changes(throughput: &Throughput) -> f64 {
    const COMMIT_BYTES: f64 = 46.0;
    const ROW_BYTES: f64 = 70.0;
    const MAX: f64 = 100.0;
    let Some(writes) = throughput.writes.filter(|rate| *rate >= 1.0) else { return 1.0 };
    let changes = throughput.usual_changes.or(throughput.changes);
    let reported = changes.map_or(1.0, |changes| changes / writes);
    let of_log = throughput.wal.map_or(MAX, |bytes| (bytes / writes - COMMIT_BYTES) / ROW_BYTES);
    reported.min(of_log).clamp(1.0, MAX)
}

/// Idle sessions that have worked within the last second.
fn resting(recording: &Recording) -> Option<f64> {
    let counts: Vec<f64> =
        recording.samples.iter().filter_map(|sample| sample.resting).map(f64::from).collect();
    (!counts.is_empty()).then(|| counts.iter().sum::<f64>() / counts.len() as f64)
}

/// A crowd that waits for one row also waits for the lock manager's own locks.
fn waiting(known: &Known<'_>) -> f64 {
    let manager = known.load.wait("LWLock:LockManager") + known.load.wait("LWLock:lock_manager");
    if known.rows.waiting >= HOT_MIN { known.rows.waiting + manager } else { known.rows.waiting }
}

/// The time of a flush: one session at a time flushes, so by Little's law it is the number of sessions that flush,
/// divided by the flushes per second. A standby's confirmation takes longer for all sessions at once.
fn flush_us(load: &Load, throughput: &Throughput) -> Option<f64> {
    let names = ["IO:WALSync", "IO:WalSync", "IO:WALWrite", "IO:WalWrite"];
    let flushing: f64 = names.iter().map(|name| load.wait(name)).sum();
    let seen = throughput.flushes.or(throughput.writes).filter(|rate| *rate > 0.0);
    let own = throughput.flush_ms.map(|ms| ms * 1e3).or(seen.map(|rate| 1e6 * flushing / rate))?;
    let writes = throughput.writes.filter(|rate| *rate > 0.0)?;
    Some(own + 1e6 * load.wait("IPC:SyncRep") / writes)
}

/// The shares of the hottest rows in all writes.
fn hot(known: &Known<'_>) -> Vec<f64> {
    let writes = known.throughput.writes.unwrap_or(0.0).max(1e-3);
    let rows = known.rows.rows.iter().filter(|row| row.waiting >= HOT_MIN);
    let rate = |row| Hold::of(row, known.rows, known.blocking, known.throughput).map(|hold| hold.per_second);
    let mut shares: Vec<f64> = rows.filter_map(rate).map(|rate| round((rate / writes).min(1.0))).collect();
    shares.sort_by(|left, right| right.total_cmp(left));
    shares.truncate(HOT_MAX);
    shares
}

/// Whether most clients' sessions come from the server's machine.
fn local_clients(recording: &Recording) -> bool {
    let (mut local, mut all) = (0, 0);
    for session in statements::clients(recording).filter(|session| session.state.is_some()) {
        local += usize::from(session.is_local);
        all += 1;
    }
    all > 0 && local * 2 > all
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_session_at_a_time_flushes() {
        let load = Load {
            by_wait: vec![("IO:WALSync".into(), 0.6), ("IPC:SyncRep".into(), 3.0)],
            ..Load::default()
        };
        let mut throughput =
            Throughput { flushes: Some(2_000.0), writes: Some(6_000.0), ..Throughput::default() };
        assert_eq!(flush_us(&load, &throughput), Some(300.0 + 500.0));
        throughput.flush_ms = Some(0.25);
        assert_eq!(flush_us(&load, &throughput), Some(250.0 + 500.0), "the server measures it");
        throughput.writes = Some(0.0);
        assert_eq!(flush_us(&load, &throughput), None, "reads wait for no flush");
    }

    #[test]
    fn changes_that_the_log_cannot_hold_are_those_of_an_earlier_load() {
        let throughput = |changes: f64, wal: f64| Throughput {
            changes: Some(changes),
            wal: Some(wal),
            writes: Some(100.0),
            ..Throughput::default()
        };
        assert_eq!(changes(&throughput(400.0, 60_000.0)), 4.0);
        assert_eq!(changes(&throughput(4_000.0, 18_600.0)), 2.0);
        assert_eq!(changes(&throughput(0.0, 18_600.0)), 1.0);
    }

    #[test]
    fn a_crowd_at_the_lock_manager_waits_for_the_row() {
        let load = Load { by_wait: vec![("LWLock:LockManager".into(), 40.0)], ..Load::default() };
        let (blocking, statements, throughput) =
            (Blocking::default(), StatementLoads::default(), Throughput::default());
        let of = |waiting: f64| {
            let rows = RowWaits { waiting, ..RowWaits::default() };
            super::waiting(&Known {
                load: &load,
                rows: &rows,
                blocking: &blocking,
                statements: &statements,
                throughput: &throughput,
            })
        };
        assert_eq!((of(20.0), of(0.0)), (60.0, 0.0));
    }
}
