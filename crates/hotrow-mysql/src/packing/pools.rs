//! Clients that the server cannot tell apart share lanes: the same user, database, capabilities and settings.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hotrow_gateway::lanes::{Inbox, LaneShared, Reader, ToLane, run};
use hotrow_lane::key::Key;
use hotrow_lane::lane::LaneKind;
use hotrow_mysql_client::Upstream;
use hotrow_mysql_client::own::Credentials;
use hotrow_mysql_wire::native::{Hash, recover};
use tokio::task::JoinHandle;

use crate::counting;
use crate::crowd::Crowd;
use crate::lane::{Refused, ServerLane, Statement, Target, probe};
use crate::limits;
use crate::pace::Pace;
use crate::packing::facts::Facts;

/// What the server can tell apart.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    pub user: Vec<u8>,
    pub database: Option<Vec<u8>>,
    pub capabilities: u32,
    pub collation: u8,
    /// The settings that the session has made, each with its statement.
    pub sets: Vec<(&'static str, String)>,
    /// The settings and rights that result.
    pub fingerprint: String,
}

type ToOneLane = Arc<Inbox<ToLane<Statement>>>;

/// The lanes of one kind of clients. While one of them waits for its commit to reach the disk, another one executes.
pub struct Pool {
    pub target: Arc<Target>,
    shared: Arc<LaneShared>,
    lanes: Vec<(ToOneLane, JoinHandle<()>)>,
}

impl Pool {
    /// The lane for a statement with these keys, which counts there from now on.
    pub fn assign(&self, keys: impl Iterator<Item = Key> + Clone) -> &ToOneLane {
        let is_alone = self.target.others.is_recent();
        let full = if is_alone { usize::MAX } else { self.target.pace.lane_full() };
        let index = self.shared.assign_within(LaneKind::Write, keys, full);
        &self.lanes[index].0
    }

    /// A session has gone, or sends nothing more.
    pub fn leave(&self, session: u64) {
        for (inbox, _) in &self.lanes {
            inbox.send(ToLane::Gone(session));
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for (_, task) in &self.lanes {
            task.abort();
        }
    }
}

/// Lanes, or when they could not be opened.
type Known = Result<Arc<Pool>, Instant>;

/// All lanes.
pub struct Pools {
    pub facts: Facts,
    pub crowd: Arc<Crowd>,
    upstream: Upstream,
    server_wait: Duration,
    pools: Mutex<HashMap<Identity, Known>>,
    sessions: AtomicU64,
    /// The rights of users, and when they were last seen.
    rights: Mutex<HashMap<Vec<u8>, (Instant, String)>>,
    /// Sessions with a statement in a lane, by the ID of their connection.
    in_lanes: Mutex<HashMap<u32, (u64, ToOneLane)>>,
}

impl Pools {
    pub fn new(upstream: Upstream, server_wait: Duration, pack_from: usize) -> Self {
        let facts = Facts::new(upstream.clone());
        Pools {
            facts,
            crowd: Crowd::new(pack_from),
            upstream,
            server_wait,
            pools: Mutex::default(),
            sessions: AtomicU64::new(0),
            rights: Mutex::default(),
            in_lanes: Mutex::default(),
        }
    }

    /// A number for a session.
    pub fn next_session(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed)
    }

    /// The rights of this user, as they were seen shortly before now. None if they cannot be read.
    pub async fn rights_before_login(&self, user: &[u8]) -> Option<String> {
        let since = self.seen_rights().get(user).map(|(when, _)| when.elapsed());
        if since.is_none_or(|since| since > Duration::from_millis(limits::RIGHTS_AGE_MS)) {
            let rights = self.facts.rights(std::str::from_utf8(user).ok()?).await;
            let rights =
                rights.inspect_err(|error| tracing::warn!(%error, "the rights of a user cannot be read"));
            self.note_rights(user, &rights.ok()??);
        }
        self.rights(user)
    }

    /// The rights of this user when they were last seen.
    pub fn rights(&self, user: &[u8]) -> Option<String> {
        self.seen_rights().get(user).map(|(_, rights)| rights.clone())
    }

    /// The rights of this user now.
    pub fn note_rights(&self, user: &[u8], rights: &str) {
        let mut seen = self.seen_rights();
        if seen.len() >= limits::USERS_MAX && !seen.contains_key(user) {
            seen.clear();
        }
        seen.insert(user.to_vec(), (Instant::now(), rights.to_owned()));
    }

    fn seen_rights(&self) -> MutexGuard<'_, HashMap<Vec<u8>, (Instant, String)>> {
        self.rights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A statement of this connection goes to a lane.
    pub fn enters(&self, thread: u32, session: u64, lane: &ToOneLane) {
        self.in_lanes().insert(thread, (session, lane.clone()));
    }

    /// It has come back.
    pub fn leaves(&self, thread: u32) {
        self.in_lanes().remove(&thread);
    }

    /// Somebody has killed this connection or its statement.
    pub fn cancel(&self, thread: u32) {
        if let Some((session, lane)) = self.in_lanes().get(&thread) {
            lane.send(ToLane::Cancel(*session));
        }
    }

    fn in_lanes(&self) -> MutexGuard<'_, HashMap<u32, (u64, ToOneLane)>> {
        self.in_lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lanes for clients of this kind. None if there is none, for a reason that is in the log.
    pub async fn of(&self, identity: &Identity, proof: &(Hash, Vec<u8>)) -> Option<Arc<Pool>> {
        {
            let mut pools = self.pools();
            match pools.get(identity) {
                Some(Ok(pool)) => return Some(pool.clone()),
                Some(Err(since)) if since.elapsed() < Duration::from_millis(limits::FAILED_POOL_MS) => {
                    return None;
                }
                _ => {}
            }
            if pools.len() >= limits::POOLS_MAX {
                // Those that no session uses.
                pools.retain(|_, known| known.as_ref().is_ok_and(|pool| Arc::strong_count(pool) > 1));
            }
            if pools.len() >= limits::POOLS_MAX {
                return None;
            }
        }
        let opened = self.open(identity, proof).await;
        let mut pools = self.pools();
        if let Some(Ok(pool)) = pools.get(identity) {
            return Some(pool.clone()); // another session of the kind was faster
        }
        pools.insert(identity.clone(), opened.clone().ok_or_else(Instant::now));
        opened
    }

    async fn open(&self, identity: &Identity, (nonce, proof): &(Hash, Vec<u8>)) -> Option<Arc<Pool>> {
        let key = match Hash::try_from(proof.as_slice()) {
            Ok(proof) => Some(self.key(&identity.user, nonce, &proof).await?),
            Err(_) if proof.is_empty() => None,
            Err(_) => return None,
        };
        let traffic = counting::traffic(&identity.user, identity.database.as_deref());
        let Identity { user, database, capabilities, collation, sets, fingerprint } = identity.clone();
        let target = Target {
            upstream: self.upstream.clone(),
            credentials: Credentials { user, key, database, capabilities, collation },
            sets: sets.into_iter().map(|(_, set)| set).collect(),
            fingerprint,
            server_wait: self.server_wait,
            first: Refused::default(),
            others: Refused::default(),
            pace: Pace::default(),
        };
        let target = Arc::new(target);
        match probe(&target).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::debug!("a new connection differs from that of a session: it is not packed");
                return None;
            }
            Err(error) => {
                tracing::warn!(%error, "a lane's user cannot log in");
                return None;
            }
        }
        let shared = Arc::new(LaneShared::new(limits::LANES, traffic));
        let mut pool = Pool { target, shared, lanes: Vec::new() };
        for index in 0..limits::LANES {
            let inbox = ToOneLane::default();
            let lane = ServerLane::new(pool.target.clone(), pool.shared.clone(), index).ok()?;
            let task = tokio::spawn(run(lane, LaneKind::Write, index, Reader::new(inbox.clone())));
            pool.lanes.push((inbox, task));
        }
        Some(Arc::new(pool))
    }

    /// The client's key, from its proof and what the server keeps.
    async fn key(&self, user: &[u8], nonce: &Hash, proof: &Hash) -> Option<Hash> {
        let user = std::str::from_utf8(user).ok()?;
        let kept = self.facts.hashes(user).await;
        let kept =
            kept.inspect_err(|error| tracing::warn!(%error, "mysql.global_priv cannot be read")).ok()?;
        kept.iter().find_map(|kept| recover(nonce, proof, kept))
    }

    fn pools(&self) -> MutexGuard<'_, HashMap<Identity, Known>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
