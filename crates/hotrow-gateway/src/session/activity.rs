//! The present activity and the counts of a session for the console. Only the session writes them, without a lock.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hotrow_connect::lock::Lock;
use hotrow_core::classify::Effect;
use hotrow_wire::backend::Status;

use crate::metrics::{METRICS, Pins, microseconds};
use crate::session::state::ClientState;

/// A session's activity.
#[derive(Debug, Default)]
pub struct SessionActivity {
    /// Whether the session is at work on the connection that it holds, and the status of its transaction there.
    held: AtomicU32,
    /// Why the session keeps the connection that it holds: the bits of its [`Pins`]. The metrics count them.
    pins: AtomicU32,
    /// The status of the transaction that the session has begun without a connection.
    begun: AtomicU32,
    /// When the client last sent something, in milliseconds since the first use of the clock.
    since: AtomicU64,
    packed: AtomicU64,
    passed: AtomicU64,
    /// Units among the packed ones that went to replicas.
    on_replicas: AtomicU64,
    received: AtomicU64,
    /// When the unit that is passed through arrived, in microseconds since the first use of the clock. 0 if there is
    /// none.
    passed_since: AtomicU64,
    /// Number of channels to which it listens without a connection of its own.
    channels: AtomicUsize,
    name: Lock<String>,
}

const ACTIVE: u32 = 1;
const TRANSACTION: u32 = 1 << 1;
const FAILED: u32 = 1 << 2;

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

fn milliseconds(at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(*EPOCH).as_millis()).unwrap_or(u64::MAX)
}

impl SessionActivity {
    /// For a new session whose client has this name.
    pub fn new(name: &str) -> Self {
        let activity = SessionActivity::default();
        name.clone_into(&mut activity.name.lock());
        activity.message_received(Instant::now());
        activity
    }

    /// Notes that the client has sent something.
    pub fn message_received(&self, at: Instant) {
        self.since.store(milliseconds(at), Relaxed);
    }

    /// Time since the client last sent something.
    pub fn since_last_message(&self) -> Duration {
        Duration::from_millis(milliseconds(Instant::now()).saturating_sub(self.since.load(Relaxed)))
    }

    /// Notes the client's new name.
    pub fn rename(&self, name: &str) {
        name.clone_into(&mut self.name.lock());
    }

    /// The client's name.
    pub fn name(&self) -> String {
        self.name.lock().clone()
    }

    /// Counts a unit that goes to a lane.
    pub fn count_packed(&self) {
        self.packed.fetch_add(1, Relaxed);
    }

    /// Counts a unit that goes to a replica.
    pub fn count_on_replica(&self) {
        self.on_replicas.fetch_add(1, Relaxed);
    }

    /// Units that went to replicas so far.
    pub fn on_replicas(&self) -> u64 {
        self.on_replicas.load(Relaxed)
    }

    /// Counts a unit that is passed through.
    pub fn count_passed(&self) {
        self.passed.fetch_add(1, Relaxed);
    }

    /// The unit that is passed through arrived at this time. Of several under way, only the first counts.
    pub fn passed_since(&self, at: Instant) {
        if self.passed_since.load(Relaxed) == 0 {
            self.passed_since.store(microseconds(at.saturating_duration_since(*EPOCH)).max(1), Relaxed);
        }
    }

    /// The time of the unit that was passed through, and is answered now.
    pub fn passed_time(&self) -> Option<Duration> {
        let since = self.passed_since.swap(0, Relaxed);
        let now = microseconds(Instant::now().saturating_duration_since(*EPOCH));
        (since > 0).then(|| Duration::from_micros(now.saturating_sub(since)))
    }

    /// Counts bytes that the client has sent.
    pub fn received(&self, bytes: usize) {
        self.received.store(self.received.load(Relaxed) + bytes as u64, Relaxed);
    }

    /// Bytes that the client has sent.
    pub fn received_bytes(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// Units packed and passed through so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.packed.load(Relaxed), self.passed.load(Relaxed))
    }

    /// Notes the status of the transaction that the session has begun without a connection.
    pub fn set_begun(&self, status: Status) {
        self.begun.store(bit_of(status), Relaxed);
    }

    /// What the session does while it holds no connection and waits for its client.
    pub fn idle_state(&self) -> ClientState {
        let idle = if self.listens() { ClientState::Listens } else { ClientState::Idle };
        transaction(self.begun.load(Relaxed)).unwrap_or(idle)
    }

    /// Notes to how many channels the session listens without a connection of its own.
    pub fn set_channels(&self, count: usize) {
        self.channels.store(count, Relaxed);
    }

    fn listens(&self) -> bool {
        self.channels.load(Relaxed) > 0
    }

    /// Notes why the session holds a connection.
    pub fn set_held(&self, active: bool, status: Status, pack: bool, left: Effect) {
        self.held.store(bit_of(status) | (u32::from(active) * ACTIVE), Relaxed);
        self.set_pins(Pins::new(left, pack));
    }

    /// The session holds no connection.
    pub fn holds_none(&self) {
        self.set_pins(Pins::NONE);
    }

    fn set_pins(&self, pins: Pins) {
        let before = self.pins();
        if pins != before {
            self.pins.store(pins.bits(), Relaxed);
            METRICS.pinned_clients.replace(before, pins);
        }
    }

    fn pins(&self) -> Pins {
        Pins::from_bits(self.pins.load(Relaxed))
    }

    /// Why the session holds a connection.
    pub fn held_state(&self) -> ClientState {
        let bits = self.held.load(Relaxed);
        match (transaction(bits), self.pins()) {
            _ if bits & ACTIVE != 0 => ClientState::Active,
            (Some(transaction), _) => transaction,
            (None, Pins::NONE) => ClientState::Active,
            (None, pins) => ClientState::Pinned(pins),
        }
    }
}

impl Drop for SessionActivity {
    fn drop(&mut self) {
        self.holds_none();
    }
}

fn bit_of(status: Status) -> u32 {
    match status {
        Status::Idle => 0,
        Status::Transaction => TRANSACTION,
        Status::Failed => FAILED,
    }
}

fn transaction(bits: u32) -> Option<ClientState> {
    match (bits & TRANSACTION, bits & FAILED) {
        (0, 0) => None,
        (_, 0) => Some(ClientState::InTransaction),
        _ => Some(ClientState::InFailedTransaction),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_for_holding_a_connection_is_described() {
        let activity = SessionActivity::new("x");
        let reported_settings = |active, status, pack, left| {
            activity.set_held(active, status, pack, left);
            activity.held_state().to_string()
        };
        assert_eq!(reported_settings(true, Status::Transaction, true, Effect::NONE), "active");
        assert_eq!(reported_settings(false, Status::Transaction, true, Effect::NONE), "idle in transaction");
        assert_eq!(
            reported_settings(false, Status::Failed, true, Effect::NONE),
            "idle in transaction (aborted)"
        );
        let left = Effect { temporary: true, listen: true, ..Effect::NONE };
        assert_eq!(reported_settings(false, Status::Idle, true, left), "pinned: temporary table, LISTEN");
        assert_eq!(reported_settings(false, Status::Idle, false, Effect::NONE), "pinned: hotrow.pack is off");
        let left = Effect { unlisted_settings: true, unknown: true, ..Effect::NONE };
        assert_eq!(
            reported_settings(false, Status::Idle, false, left),
            "pinned: custom setting, something unknown, hotrow.pack is off"
        );
    }

    #[test]
    fn the_metrics_count_a_session_while_it_keeps_its_connection() {
        let count = || {
            let all = METRICS.pinned_clients.all().find(|(reason, _)| *reason == "statement read after SET");
            all.unwrap().1
        };
        let activity = SessionActivity::new("x");
        let left = Effect { read_here: true, ..Effect::NONE }; // no other test here has this state
        for active in [true, false] {
            activity.set_held(active, Status::Idle, true, left);
            assert_eq!(count(), 1);
        }
        activity.holds_none();
        assert_eq!(count(), 0);
        activity.set_held(false, Status::Idle, true, left);
        drop(activity);
        assert_eq!(count(), 0);
    }
}
