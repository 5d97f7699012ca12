//! The rate that a load would have through the gateway, in transactions per second.
//!
//! Each resource allows a rate, and the smallest is the answer:
//!
//! - the lane: a batch of `b` transactions takes `flush + begin + b * execution`;
//! - the cores, if the doctor knows them: they divide their time by that of a transaction, in the client, in the gateway and
//!   in the server;
//! - the sessions, by Little's law: each has one transaction under way, and then the pause of today.
//!
//! Transactions that are not packed run as today. If they meet on a row, the lock is held for a shorter time, because the
//! time of a handover grows with the queue, and the gateway keeps the queue short.

use crate::diagnosis::workload::Workload;

/// CPU times in microseconds, on a core that needs `PROBE_US` for the doctor's probe.
const PROBE_US: f64 = 151.0;
/// A change of a hot row in a batch, in the server: its page and its place in the index are in the core's cache.
const HOT_US: f64 = 9.0;
/// A change of any other row.
const CHANGE_US: f64 = 13.0;
/// A read of a row.
const READ_US: f64 = 9.0;
/// What a batch costs beside its transactions: messages, its commit, and waking the server and the gateway.
const BATCH_US: f64 = 60.0;
/// A packed transaction in the gateway: its first statement, and each further one.
const GATEWAY_US: f64 = 11.0;
const STATEMENT_US: f64 = 4.0;
/// A transaction in a client that does nothing else.
const CLIENT_US: f64 = 10.0;
/// A statement that the gateway passes through.
const PASSED_US: f64 = 20.0;
/// The way of a statement through the gateway and back, while its transaction holds a lock.
const HOP_US: f64 = 35.0;
/// A transaction's CPU time in the server today, without its statements: messages, snapshot, commit, changes of the
/// process. A batch does not pay for it.
const DIRECT_US: f64 = 180.0;
/// Transactions of a batch.
const BATCH_MAX: f64 = 256.0;
/// Versions of a row in one commit, if the gateway's bound is not known.
const VERSIONS_MAX: f64 = 100.0;
/// Transactions that meet on a row at the server, if the gateway lets few of them in.
const FEW: f64 = 2.0;
/// A lock is held for at least this part of today's time.
const HELD_MIN: f64 = 0.2;
/// A flush takes at least this part of today's time.
const FLUSH_MIN: f64 = 0.25;

/// What is uncertain.
#[derive(Debug)]
pub struct Case {
    /// Factor on CPU times.
    pub costs: f64,
    /// Factor on the time of a flush.
    pub flush: f64,
    /// The part of a wait for a core that a flush no longer contains. A session that has flushed today waits for a core among
    /// all others. With a gateway, few processes are at work.
    pub core_wait: f64,
    /// Factor on a client's measured CPU time. A gateway's answers to a batch arrive together, so a client that serves
    /// several sessions wakes up less often.
    pub client: f64,
    /// The part of the sessions whose transactions share a batch. The others' gather for the next one.
    pub queue: f64,
    /// The time of a handover for each session in the queue of a lock, in microseconds.
    pub handover_us: f64,
    /// Round trips through the gateway while a transaction that waits for its client holds the lock.
    pub hops: f64,
    /// Factor on the result: rates differ from one minute to the next.
    pub rate: f64,
}

/// The cautious end of the range.
pub const CAUTIOUS: Case = Case {
    costs: 1.35,
    flush: 1.2,
    core_wait: 0.5,
    client: 1.0,
    queue: 0.45,
    handover_us: 1.5,
    hops: 3.0,
    rate: 0.9,
};
/// Its optimistic end.
pub const OPTIMISTIC: Case = Case {
    costs: 0.75,
    flush: 0.8,
    core_wait: 1.0,
    client: 0.5,
    queue: 0.5,
    handover_us: 4.5,
    hops: 1.0,
    rate: 1.1,
};

pub fn rate(load: &Workload, today: f64, case: &Case) -> f64 {
    let packed = load.packable.clamp(0.0, 1.0);
    let mut time = 0.0;
    if packed > 0.0 {
        time += packed / packed_rate(load, today, case);
    }
    if packed < 1.0 {
        time += (1.0 - packed) / passed_rate(load, today, case);
    }
    case.rate / time
}

/// The factor between this core's CPU times and the constants.
fn speed(load: &Workload) -> f64 {
    load.probe_us.map_or(1.0, |probe| probe / PROBE_US)
}

/// Transactions in a batch. A row's versions of one commit have to fit its page.
pub fn batch(load: &Workload, case: &Case) -> f64 {
    let share = load.hot.first().copied().unwrap_or(0.0).max(1e-3);
    let versions = load.batch_max.unwrap_or(VERSIONS_MAX) / share;
    (load.sessions * case.queue).min(versions).clamp(1.0, BATCH_MAX)
}

/// The execution of a transaction in a batch. Its computations beside the usual cost of a transaction
/// take the same time there. If sessions wait for a row, the queue computes, and the transaction's part is not known.
pub fn execution_us(load: &Workload, case: &Case) -> f64 {
    let changes = load.changes.max(1.0);
    let hot = (load.hot.iter().sum::<f64>() / changes).min(1.0);
    let change_us = hot * HOT_US + (1.0 - hot) * CHANGE_US;
    let rows_us = load.writing * changes * change_us + (1.0 - load.writing) * READ_US;
    let usual = (DIRECT_US + load.writing * (changes - 1.0) * CHANGE_US) * speed(load);
    let known = load.execution_us.filter(|_| load.waiting < 1.0).unwrap_or(0.0);
    rows_us * speed(load) * case.costs + (known - usual).max(0.0)
}

/// The time of a WAL flush.
pub fn flush_us(load: &Workload, case: &Case) -> Option<f64> {
    let today = load.flush_us?;
    let core_wait = load.core_wait_us.unwrap_or(0.0) * case.core_wait;
    Some((today - core_wait).max(today * FLUSH_MIN) * case.flush)
}

/// What a batch costs beside its transactions.
pub fn batch_us(load: &Workload, case: &Case) -> f64 {
    BATCH_US * speed(load) * case.costs
}

/// The CPU time of a packed transaction in the gateway.
pub fn gateway_us(load: &Workload, case: &Case) -> f64 {
    let statements = load.writing * (load.changes - 1.0).max(0.0);
    (GATEWAY_US + STATEMENT_US * statements) * speed(load) * case.costs
}

fn packed_rate(load: &Workload, today: f64, case: &Case) -> f64 {
    let batch = batch(load, case);
    let (execution, each_batch) = (execution_us(load, case), batch_us(load, case));
    let flush = flush_us(load, case).unwrap_or(0.0);
    let of_batch = |flush: f64| flush + each_batch + batch * execution;
    let time = load.writing * of_batch(flush) + (1.0 - load.writing) * of_batch(0.0);
    let lane = 1e6 * batch / time;

    let gateway = gateway_us(load, case);
    let cores = match load.cores {
        Some(cores) => {
            cores * 1e6 / (client_us(load, today, case) + gateway + execution + each_batch / batch)
        }
        None => 1e6 / gateway,
    };

    // Without a free core, a pause is also a wait for a core.
    let alone = flush * load.writing + each_batch + execution;
    let pause = if load.is_saturated() { 0.0 } else { load.pause_us };
    let sessions = 1e6 * load.sessions.max(1.0) / (pause + alone);
    lane.min(cores).min(sessions)
}

/// The CPU time of a transaction in its client, if that is on the same machine. If
/// sessions wait for a row, the rate is low, and the rest of the machine's work is mostly not the clients'.
pub fn client_us(load: &Workload, today: f64, case: &Case) -> f64 {
    if !load.local_clients {
        return 0.0;
    }
    let all = load.busy_cores.filter(|_| load.waiting < 1.0).map(|busy| 1e6 * busy / today);
    let rest = all.zip(load.execution_us).map(|(all, server)| all - server);
    let usual = CLIENT_US * speed(load) * case.costs;
    rest.map_or(usual, |rest| usual.max(rest * case.client))
}

/// What is passed through.
fn passed_rate(load: &Workload, today: f64, case: &Case) -> f64 {
    let costs = speed(load) * case.costs;
    let of_row = load.hot.first().map(|share| share * load.writing * today);
    if let Some(of_row) = of_row.filter(|rate| load.waiting >= 1.0 && load.interactive > 0.0 && *rate > 0.0) {
        let held = 1e6 / of_row;
        let handover = case.handover_us * speed(load) * (load.waiting - FEW).max(0.0);
        let through = (held - handover).max(held * HELD_MIN) + case.hops * HOP_US * speed(load);
        return today * held / through;
    }
    let statements = if load.interactive > 0.0 { load.changes + 2.0 } else { 1.0 };
    match load.busy_cores.filter(|_| load.is_saturated()) {
        Some(busy) => {
            let direct = 1e6 * busy / today;
            today * direct / (direct + PASSED_US * statements * costs)
        }
        None => today,
    }
}
