//! One task that makes one event a second for all streams. Without streams it only reads the counters, for the history.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::limits;
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Source;
use super::history::{History, Point};

/// The events that all streams share.
pub struct Sampler {
    source: Arc<dyn Source>,
    history: Mutex<History>,
    /// The last event. It is replaced, so a client that reads slowly skips events.
    events: watch::Sender<Bytes>,
}

#[derive(Serialize)]
struct Event<'a> {
    #[serde(flatten)]
    point: Point,
    #[serde(flatten)]
    state: &'a serde_json::Map<String, serde_json::Value>,
}

impl Sampler {
    /// Samples in the background, until `stop` is ready.
    pub fn start(source: Arc<dyn Source>, stop: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let history = Mutex::new(History::new(source.counters()));
        let sampler = Arc::new(Sampler { source, history, events: watch::Sender::new(Bytes::new()) });
        let running = sampler.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = running.run() => {}
                () = stop => {}
            }
        });
        sampler
    }

    /// The data of the events, from the next one on.
    pub fn events(&self) -> watch::Receiver<Bytes> {
        self.events.subscribe()
    }

    /// The points of the last 15 minutes as JSON.
    pub async fn history(&self) -> Vec<u8> {
        serde_json::to_vec(self.history.lock().await.points()).expect("points are numbers with names")
    }

    async fn run(&self) {
        let mut ticks = interval(Duration::from_millis(limits::LIVE_MS));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before = ticks.tick().await;
        loop {
            ticks.tick().await;
            let state = if self.events.receiver_count() > 0 { Some(self.source.state().await) } else { None };
            let now = Instant::now();
            let seconds = (now - before).as_secs_f64();
            before = now;
            let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
            let flushes = state.as_ref().and_then(|state| state.flushes_per_second);
            let point = self.history.lock().await.add(at, seconds, self.source.counters(), flushes);
            if let Some(state) = state {
                let event = serde_json::to_vec(&Event { point, state: &state.fields });
                // Fails only without receivers.
                let _ = self.events.send(event.expect("the fields are JSON already").into());
            }
        }
    }
}
