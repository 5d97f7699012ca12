//! The replicas of the server, as far as a pool knows them: which of them serve reads, and how far they have replayed the WAL.
//! `pool/replicas.rs` asks them.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Instant;

use hotrow_connect::config::{Hosts, UpstreamConfig};
use hotrow_connect::lock::Lock;
use hotrow_connect::upstream::Rows;
use hotrow_core::replica::{
    self, Choice, History, KnownReplica, LagMeter, LsnBound, Position, Primary, ReplicaAnswer, ReplicaStatus,
};
use tokio::sync::Notify;

use crate::metrics::{Counter, Lag, METRICS, milliseconds_since_start};

/// The replicas of a pool's server.
#[derive(Debug, Default)]
pub struct Replicas {
    all: Vec<Replica>,
    /// The number of changes in the set of those that serve.
    epoch: AtomicU64,
    serving: AtomicUsize,
    turn: AtomicUsize,
    /// When a session last wanted to read, in milliseconds.
    wanted: AtomicU64,
    /// Sessions that wait for a replica to replay more.
    waiting: AtomicUsize,
    /// A replica has replayed more, or its status has changed.
    progress: Notify,
    /// How often the settings of the primary may have changed.
    settings_changes: AtomicU64,
}

#[derive(Debug)]
pub struct Replica {
    /// Its address.
    pub hosts: Hosts,
    /// Reads that it has answered.
    pub reads: Counter,
    /// Its settings must be these, on the server that is asked. None while that is not known.
    settings: Lock<Option<Rows>>,
    state: Lock<State>,
    /// It has to be asked at once.
    wake: Notify,
}

#[derive(Debug, Default)]
struct State {
    report: Report,
    history: History,
    started: i64,
    meter: LagMeter,
}

/// What is known about a replica.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Whether it serves.
    pub status: ReplicaStatus,
    /// How far it has replayed the WAL.
    pub replayed: Position,
    /// How far it was behind the primary when it was last asked, if that is known.
    pub lag_ms: Option<u64>,
    /// The same in bytes of WAL.
    pub lag_bytes: u64,
}

/// A session that waits for a replica, until it is dropped.
struct Waits<'r>(&'r Replicas);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

impl Replica {
    /// The metrics show its lag, as long as it is known.
    fn show_lag(&self, report: &Report) {
        let is_known = matches!(report.status, ReplicaStatus::Serves | ReplicaStatus::Lags);
        if let Some(milliseconds) = report.lag_ms.filter(|_| is_known) {
            let lag = Lag { milliseconds, bytes: report.lag_bytes };
            METRICS.replica_lags.set(self.hosts.to_string(), lag);
        }
    }

    /// A connection with these settings can serve reads. None while that is not known.
    pub fn settings(&self) -> Option<Rows> {
        self.settings.lock().clone()
    }

    /// Its lag is not known, or not measured any longer.
    pub fn forget_lag(&self) {
        METRICS.replica_lags.forget(&self.hosts.to_string());
    }
}

impl Replicas {
    /// None of them has been asked.
    pub fn new(upstreams: &[UpstreamConfig]) -> Self {
        let replica = |upstream: &UpstreamConfig| Replica {
            hosts: upstream.hosts.clone(),
            reads: Counter::default(),
            settings: Lock::default(),
            state: Lock::default(),
            wake: Notify::new(),
        };
        Replicas { all: upstreams.iter().map(replica).collect(), ..Replicas::default() }
    }

    pub fn all(&self) -> &[Replica] {
        &self.all
    }

    /// Notes that a session wants to read. Returns whether a replica serves.
    pub fn want(&self) -> bool {
        let before = self.wanted.swap(milliseconds_since_start(Instant::now()).max(1), Relaxed);
        if before == 0 {
            self.all.iter().for_each(|replica| replica.wake.notify_one());
        }
        self.serving.load(SeqCst) > 0
    }

    /// The number of changes in the set of those that serve.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(SeqCst)
    }

    /// For how many milliseconds no session has wanted to read. None if none ever has, or since the last call of `rest`.
    pub fn unwanted_ms(&self) -> Option<u64> {
        let wanted = self.wanted.load(Relaxed);
        (wanted > 0).then(|| milliseconds_since_start(Instant::now()).saturating_sub(wanted))
    }

    /// No session has wanted to read for long: the next one wakes the replicas.
    pub fn rest(&self) {
        self.wanted.store(0, Relaxed);
    }

    /// The settings of the primary may have changed: no replica serves before they are compared again.
    pub fn doubt_settings(&self) {
        self.settings_changes.fetch_add(1, SeqCst);
        for index in 0..self.all.len() {
            *self.all[index].settings.lock() = None;
            self.set_status(index, ReplicaStatus::Unknown);
            self.all[index].wake.notify_one();
        }
    }

    /// How often the settings of the primary may have changed.
    pub fn settings_changes(&self) -> u64 {
        self.settings_changes.load(SeqCst)
    }

    /// The settings of a replica that has those of the primary.
    pub fn set_settings(&self, index: usize, settings: Rows, changes: u64) {
        let mut known = self.all[index].settings.lock();
        if self.settings_changes() == changes {
            *known = Some(settings);
        }
    }

    /// A replica has failed a read or has lost a connection: it is asked at once.
    pub fn ask_soon(&self, index: usize, is_lost: bool) {
        if is_lost {
            self.set_status(index, ReplicaStatus::Unreachable);
        }
        self.all[index].wake.notify_one();
    }

    /// Waits until a replica has to be asked at once.
    pub async fn woken(&self, index: usize) {
        self.all[index].wake.notified().await;
    }

    /// Whether sessions wait for a replica to replay more.
    pub fn has_waiting(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// The replica cannot serve.
    pub fn set_status(&self, index: usize, status: ReplicaStatus) {
        let mut state = self.all[index].state.lock();
        self.change(index, &mut state, status);
    }

    fn change(&self, index: usize, state: &mut State, status: ReplicaStatus) {
        let before = std::mem::replace(&mut state.report.status, status);
        if before == status {
            return;
        }
        let server = &self.all[index].hosts;
        match status {
            ReplicaStatus::Serves => {
                self.serving.fetch_add(1, SeqCst);
                tracing::info!(%server, "a replica serves reads");
            }
            ReplicaStatus::Unknown => tracing::debug!(%server, "a replica is not used for now"),
            _ => {
                let lag_ms = state.report.lag_ms;
                tracing::warn!(%server, why = status.word(), lag_ms, "a replica serves no reads");
            }
        }
        if before == ReplicaStatus::Serves {
            self.serving.fetch_sub(1, SeqCst);
        }
        if !matches!(status, ReplicaStatus::Serves | ReplicaStatus::Lags) {
            self.all[index].forget_lag();
        }
        self.epoch.fetch_add(1, SeqCst);
        self.progress.notify_waiters();
    }

    /// A replica is asked for the first time, or after a pause: its lag is not known.
    pub fn begins(&self, index: usize) {
        self.all[index].state.lock().meter = LagMeter::default();
    }

    /// A replica was asked after the primary, and had replayed the WAL up to `earlier` before.
    pub fn note(
        &self,
        index: usize,
        earlier: Position,
        seen: &ReplicaAnswer,
        primary: &Primary,
        lag_max_ms: u64,
    ) {
        let mut state = self.all[index].state.lock();
        let now = milliseconds_since_start(Instant::now());
        let replayed = seen.replayed.unwrap_or_default();
        state.meter.primary(now, primary.position);
        state.report.lag_ms = state.meter.replayed(now, replayed);
        state.report.lag_bytes = primary.position.0.saturating_sub(replayed.0);
        state.report.replayed = replayed;
        state.history = seen.history.clone();
        state.started = seen.started;
        let status = match self.all[index].settings.lock().is_some() {
            true => ReplicaStatus::of(seen, earlier, primary, state.report.lag_ms, lag_max_ms),
            false => ReplicaStatus::OtherSettings,
        };
        self.change(index, &mut state, status);
        self.all[index].show_lag(&state.report);
        self.progress.notify_waiters();
    }

    /// A replica was asked alone, because sessions wait for it.
    pub fn note_progress(&self, index: usize, seen: &ReplicaAnswer) {
        self.all[index].state.lock().report.replayed = seen.replayed.unwrap_or_default();
        self.progress.notify_waiters();
    }

    /// What is known about a replica.
    pub fn report(&self, index: usize) -> Report {
        self.all[index].state.lock().report
    }

    fn candidate(&self, replica: &Replica, history: &History) -> KnownReplica {
        let state = replica.state.lock();
        let serves = state.report.status == ReplicaStatus::Serves && state.history == *history;
        KnownReplica { serves, replayed: state.report.replayed }
    }

    /// Waits for a replica that has replayed the WAL up to the primary's position. None if no replica serves.
    /// `epoch` is that of the time before the primary was asked.
    pub async fn caught_up(&self, primary: &Primary, epoch: u64) -> Option<LsnBound> {
        let turn = self.turn.fetch_add(1, Relaxed);
        self.waiting.fetch_add(1, Relaxed);
        let _waits = Waits(self);
        loop {
            let mut progress = pin!(self.progress.notified());
            progress.as_mut().enable();
            let candidates: Vec<_> =
                self.all.iter().map(|replica| self.candidate(replica, &primary.history)).collect();
            match replica::choose(&candidates, primary.position, turn) {
                Choice::Replica(index) => {
                    let started = self.all[index].state.lock().started;
                    return Some(LsnBound::at(index, started, primary.position, epoch));
                }
                Choice::Primary => return None,
                Choice::Wait => {
                    let serving = self.all.iter().zip(&candidates).filter(|(_, candidate)| candidate.serves);
                    serving.for_each(|(replica, _)| replica.wake.notify_one());
                    progress.await;
                }
            }
        }
    }
}
