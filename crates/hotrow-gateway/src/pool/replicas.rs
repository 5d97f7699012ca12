//! Asks the replicas of a pool's server how far they are, and the primary for its position; opens the lanes to replicas. What
//! follows from the answers is decided by `hotrow_core::replica`. Nothing is asked before a session of the pool reads from
//! replicas.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hotrow_connect::upstream::{Error, Rows, Upstream};
use hotrow_core::limits;
use hotrow_core::replica::{
    self, History, LsnBound, Position, Primary, ReadSource, ReplicaAnswer, ReplicaStatus,
};
use hotrow_lane::affinity::LaneId;
use tokio::task::AbortHandle;

use super::Pool;
use super::lanes::Lanes;
use crate::config::Config;
use crate::lane::{Packed, ReplicaTarget, ToLane};
use crate::metrics::METRICS;
use crate::server::replica::{Replica, Replicas, Report};

/// The replicas of a pool's server.
#[derive(Debug)]
pub struct PoolReplicas {
    known: Arc<Replicas>,
    /// The lanes to each of them, when its settings have been compared.
    lanes: Vec<OnceLock<Lanes>>,
    /// The tasks that ask them, since the first read.
    tasks: OnceLock<Vec<AbortHandle>>,
    question: tokio::sync::Mutex<Question>,
}

/// The connection on which the primary is asked for its position, and its last answer, with the time of the question.
#[derive(Debug, Default)]
struct Question {
    upstream: Option<Upstream>,
    last: Option<(Instant, Primary)>,
}

impl PoolReplicas {
    /// Nothing is asked yet.
    pub fn new(config: &Config) -> Self {
        PoolReplicas {
            known: Arc::new(Replicas::new(&config.replicas)),
            lanes: config.replicas.iter().map(|_| OnceLock::new()).collect(),
            tasks: OnceLock::new(),
            question: tokio::sync::Mutex::default(),
        }
    }

    pub fn lanes(&self, index: usize) -> Option<&Lanes> {
        self.lanes.get(index)?.get()
    }

    pub fn all_lanes(&self) -> impl Iterator<Item = &Lanes> {
        self.lanes.iter().filter_map(OnceLock::get)
    }

    /// Puts another configuration of the pool in force.
    pub fn set_config(&self, config: &Config) {
        for (index, lanes) in self.lanes.iter().enumerate() {
            if let Some(lanes) = lanes.get() {
                lanes.context.set_config(config.clone().of_replica(index));
            }
        }
    }

    /// The settings of the primary may have changed.
    pub fn doubt_settings(&self) {
        self.known.doubt_settings();
    }

    /// Closes the connection to the primary, unless a question is under way there.
    pub fn close_question(&self) {
        if let Ok(mut question) = self.question.try_lock() {
            question.upstream = None;
        }
    }

    /// Ends its tasks.
    pub fn end(&self) {
        self.tasks.get().into_iter().flatten().for_each(AbortHandle::abort);
        self.all_lanes().for_each(Lanes::end);
        self.known.all().iter().for_each(Replica::forget_lag);
    }

    /// All replicas with what is known about them.
    pub fn reports(&self) -> impl Iterator<Item = (&Replica, Report)> {
        self.known.all().iter().enumerate().map(|(index, replica)| (replica, self.known.report(index)))
    }
}

impl Pool {
    /// Where a read runs in a session whose earlier reads from a replica had this bound.
    pub fn read_source(self: &Arc<Self>, bound: Option<&LsnBound>, unit: &Packed) -> ReadSource {
        if self.replicas.known.all().is_empty()
            || !unit.runs().all(|run| run.statement.record.may_use_replicas())
        {
            return ReadSource::Primary;
        }
        self.replicas.tasks.get_or_init(|| {
            let follow = |index| tokio::spawn(follow(self.clone(), index)).abort_handle();
            (0..self.replicas.known.all().len()).map(follow).collect()
        });
        let serves = self.replicas.known.want();
        let source = replica::source(bound, serves.then(|| self.replica_epoch()));
        if source == ReadSource::Primary {
            METRICS.replica_fallbacks.inc();
        }
        source
    }

    /// The number of times that sessions had to catch up: the set of replicas that serve has changed, or the catalog through
    /// this gateway. Verdicts of the time after a change are not used with states of the time before.
    fn replica_epoch(&self) -> u64 {
        self.replicas.known.epoch() + self.catalog_epoch()
    }

    pub fn assign_replica(&self, index: usize, unit: &Packed) -> Option<LaneId> {
        let lanes = self.replicas.lanes(index)?;
        let lane = if lanes.context.packs() { lanes.context.assign(unit, None) } else { None };
        lane.map(|lane| LaneId { node: None, replica: Some(index), index: lane })
    }

    /// A replica that has all that is committed by now. None if none gets there in time.
    pub async fn find_replica(&self) -> Option<LsnBound> {
        METRICS.replica_searches.inc();
        let find = async {
            let epoch = self.replica_epoch();
            let primary = self.ask_primary().await?;
            self.replicas.known.caught_up(&primary, epoch).await
        };
        let found = tokio::time::timeout(self.config().replica_wait, find).await.ok().flatten();
        if found.is_none() {
            METRICS.replica_fallbacks.inc();
        }
        found
    }

    /// The primary's position now. Sessions that ask at the same time share a question, which is sent after they came.
    async fn ask_primary(&self) -> Option<Primary> {
        let came = Instant::now();
        let mut question = self.replicas.question.lock().await;
        // A pause waits for the answer, and closes the connection.
        let _database_use = self.database_state().try_enter()?;
        if let Some((at, primary)) = &question.last
            && *at > came
        {
            return Some(primary.clone());
        }
        let config = self.config().clone();
        // Another host may have become the primary, and the old one may not know it.
        let serves = config.upstream.hosts.in_turn().next();
        let known = question.upstream.take().filter(|upstream| Some(&*upstream.address) == serves);
        let mut upstream = match known {
            Some(upstream) => upstream,
            None => Box::pin(self.connect_as_own(&config, true)).await.ok()?,
        };
        let at = Instant::now();
        match position(&mut upstream).await {
            Ok(primary) => {
                question.last = primary.clone().map(|primary| (at, primary));
                question.upstream = Some(upstream);
                primary
            }
            Err(error) => {
                tracing::debug!(%error, "the primary could not be asked for its position");
                None
            }
        }
    }

    /// Asks a replica for as long as sessions want to read from replicas.
    async fn follow_once(&self, index: usize) -> Result<(), ReplicaStatus> {
        let known = &self.replicas.known;
        if self.database_state().is_paused() {
            return Err(ReplicaStatus::NoPrimary);
        }
        let changes = known.settings_changes();
        let config = Config::clone(&self.config()).of_replica(index);
        let mut there =
            self.connect_as_own(&config, false).await.map_err(|error| unreachable(index, &error))?;
        let settings = self.compare_settings(&mut there).await?;
        known.begins(index);
        let is_same_server = known.all()[index].settings().as_ref() == Some(&settings);
        known.set_settings(index, settings.clone(), changes);
        if let Some(lanes) = self.replicas.lanes(index).filter(|_| !is_same_server) {
            lanes.send_all(&|| ToLane::Abandon);
        }
        self.open_replica(index, config, &mut there).await.map_err(|error| unreachable(index, &error))?;
        loop {
            if known.unwanted_ms().is_none_or(|since| u128::from(since) > self.config().held_idle.as_millis())
            {
                known.rest();
                return Err(ReplicaStatus::Unknown);
            }
            if known.settings_changes() != changes {
                return Ok(());
            }
            let has_left = self.replicas.lanes(index).is_some_and(|lanes| !lanes.context.packs());
            if has_left && self.packs() {
                return Err(ReplicaStatus::OtherSettings); // a lane was told of another value
            }
            self.look(index, &mut there, &settings).await?;
        }
    }

    /// Asks the primary and a replica once, and then the replica alone as long as sessions wait for it.
    async fn look(&self, index: usize, there: &mut Upstream, settings: &Rows) -> Result<(), ReplicaStatus> {
        let known = &self.replicas.known;
        let limit = Duration::from_millis(limits::REPLICA_ANSWER_MS);
        let lag_max = self.config().replica_lag_max;
        let earlier = known.report(index).replayed;
        let Some(primary) = tokio::time::timeout(limit, self.ask_primary()).await.ok().flatten() else {
            return Err(ReplicaStatus::NoPrimary);
        };
        let present = in_time(limit, there.query_catalog(SETTINGS, &[])).await;
        if present.map_err(|error| unreachable(index, &error))? != *settings {
            return Err(ReplicaStatus::OtherSettings);
        }
        let seen = in_time(limit, state(there)).await.map_err(|error| unreachable(index, &error))?;
        known.note(index, earlier, &seen, &primary, u64::try_from(lag_max.as_millis()).unwrap_or(u64::MAX));
        let next = Instant::now() + (lag_max / 4).min(Duration::from_millis(limits::REPLICA_PROBE_MS));
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => return Ok(()),
                () = known.woken(index) => {}
            }
            if !known.has_waiting() {
                return Ok(());
            }
            let seen = in_time(limit, state(there)).await.map_err(|error| unreachable(index, &error))?;
            known.note_progress(index, &seen);
            tokio::time::sleep(Duration::from_millis(limits::REPLICA_POLL_MS)).await;
            if Instant::now() >= next {
                return Ok(());
            }
        }
    }

    /// The settings of the replica, if the primary has the same.
    async fn compare_settings(&self, there: &mut Upstream) -> Result<Rows, ReplicaStatus> {
        let config = self.config().clone();
        // A pause waits for the answer.
        let _database_use = self.database_state().try_enter().ok_or(ReplicaStatus::NoPrimary)?;
        let ask = async {
            let mut here = self.connect_as_own(&config, true).await?;
            here.query_catalog(SETTINGS, &[]).await
        };
        let here = ask.await.map_err(|_| ReplicaStatus::NoPrimary)?;
        let present = there.query_catalog(SETTINGS, &[]).await.map_err(|_| ReplicaStatus::Unreachable)?;
        // The last column tells the two servers apart.
        let settings = |rows: &Rows| rows.first().map(|row| row[..row.len() - 1].to_vec());
        let differs =
            settings(&here) != settings(&present) || self.context.server().contradicts(&there.parameters);
        if differs { Err(ReplicaStatus::OtherSettings) } else { Ok(present) }
    }

    /// Makes sure that the replica has lanes.
    async fn open_replica(&self, index: usize, config: Config, there: &mut Upstream) -> Result<(), Error> {
        let server = there.server_settings().await?;
        if let Some(lanes) = self.replicas.lanes(index) {
            lanes.context.set_server(server);
            lanes.context.decide_packing();
            return Ok(());
        }
        let target = ReplicaTarget { replicas: self.replicas.known.clone(), index };
        let lanes = self.replicas.lanes[index]
            .get_or_init(|| Lanes::start(Arc::new(self.context.to(target, config, server))));
        if self.database_state().is_paused() {
            // The pause may have begun before it could find these lanes.
            drop(lanes.ask(&ToLane::Pause));
        }
        Ok(())
    }
}

const SETTINGS: &str = include_str!("../../sql/replica_settings.sql");

/// Follows a replica for as long as the pool is open.
async fn follow(pool: Arc<Pool>, index: usize) {
    let known = pool.replicas.known.clone();
    loop {
        while known.unwanted_ms().is_none() {
            known.woken(index).await;
        }
        if let Err(status) = pool.follow_once(index).await {
            known.set_status(index, status);
            if status == ReplicaStatus::Unreachable
                && let Some(lanes) = pool.replicas.lanes(index)
            {
                lanes.send_all(&|| ToLane::Abandon);
            }
            let pause = if status == ReplicaStatus::Unknown { 0 } else { limits::REPLICA_PROBE_MS };
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }
}

async fn in_time<T>(limit: Duration, ask: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match tokio::time::timeout(limit, ask).await {
        Ok(answer) => answer,
        Err(_) => Err(Error::Protocol("no answer in time".to_owned())),
    }
}

fn unreachable(index: usize, error: &Error) -> ReplicaStatus {
    tracing::debug!(replica = index, %error, "a replica could not be asked");
    ReplicaStatus::Unreachable
}

async fn position(upstream: &mut Upstream) -> Result<Option<Primary>, Error> {
    let rows = upstream.query(include_str!("../../sql/primary_position.sql"), &[]).await?;
    let Some([position, timeline, cluster]) = values(rows) else { return Ok(None) };
    Ok((|| {
        let history = History { cluster: cluster?, timeline: timeline?.parse().ok()? };
        Some(Primary { position: position?.parse().ok()?, history })
    })())
}

async fn state(upstream: &mut Upstream) -> Result<ReplicaAnswer, Error> {
    let rows = upstream.query(include_str!("../../sql/replica_state.sql"), &[]).await?;
    let [in_recovery, replayed, timeline, cluster, started] = values(rows).unwrap_or_default();
    let timeline = timeline.and_then(|timeline| timeline.parse().ok()).unwrap_or_default();
    Ok(ReplicaAnswer {
        is_in_recovery: in_recovery.as_deref() == Some("t"),
        replayed: replayed.and_then(|position| position.parse::<Position>().ok()),
        history: History { cluster: cluster.unwrap_or_default(), timeline },
        started: started.and_then(|started| started.parse().ok()).unwrap_or_default(),
    })
}

fn values<const N: usize>(rows: Rows) -> Option<[Option<String>; N]> {
    rows.into_iter().next()?.try_into().ok()
}
