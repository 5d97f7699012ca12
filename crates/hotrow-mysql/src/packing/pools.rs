//! Clients that the server cannot tell apart share a lane: the same user, database, capabilities and settings.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotrow_gateway::lanes::{Inbox, LaneShared, Reader, ToLane, run};
use hotrow_lane::lane::LaneKind;
use hotrow_mysql_wire::native::{Hash, recover};

use crate::lane::{ServerLane, Statement, Target, probe};
use crate::limits;
use crate::own::Credentials;
use crate::packing::facts::Facts;
use crate::upstream::Upstream;

/// What the server can tell apart.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    pub user: Vec<u8>,
    pub database: Option<Vec<u8>>,
    pub capabilities: u32,
    pub collation: u8,
    pub sets: Vec<String>,
}

/// A lane of one kind of clients.
pub struct Pool {
    pub shared: Arc<LaneShared>,
    pub inbox: Arc<Inbox<ToLane<Statement>>>,
    pub fingerprint: String,
}

/// All lanes.
pub struct Pools {
    pub facts: Facts,
    upstream: Upstream,
    server_wait: Duration,
    pools: Mutex<HashMap<Identity, Option<Arc<Pool>>>>,
    sessions: AtomicU64,
}

impl Pools {
    pub fn new(upstream: Upstream, server_wait: Duration) -> Self {
        let facts = Facts::new(upstream.clone());
        Pools { facts, upstream, server_wait, pools: Mutex::default(), sessions: AtomicU64::new(0) }
    }

    /// A number for a session.
    pub fn next_session(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed)
    }

    /// The lane for clients of this kind. None if there is none, for a reason that is in the log.
    pub async fn of(&self, identity: &Identity, proof: &(Hash, Vec<u8>)) -> Option<Arc<Pool>> {
        {
            let pools = self.pools();
            if let Some(pool) = pools.get(identity) {
                return pool.clone();
            }
            if pools.len() >= limits::POOLS_MAX {
                return None;
            }
        }
        let pool = self.open(identity, proof).await;
        let mut pools = self.pools();
        // Another session of the kind may have been faster.
        pools.entry(identity.clone()).or_insert(pool).clone()
    }

    async fn open(&self, identity: &Identity, (nonce, proof): &(Hash, Vec<u8>)) -> Option<Arc<Pool>> {
        let key = match Hash::try_from(proof.as_slice()) {
            Ok(proof) => Some(self.key(&identity.user, nonce, &proof).await?),
            Err(_) if proof.is_empty() => None,
            Err(_) => return None,
        };
        let Identity { user, database, capabilities, collation, sets } = identity.clone();
        let credentials = Credentials { user, key, database, capabilities, collation };
        let fingerprint = probe(&self.upstream, &credentials, &sets).await;
        let fingerprint =
            fingerprint.inspect_err(|error| tracing::warn!(%error, "a lane's user cannot log in")).ok()?;
        let target = Target {
            upstream: self.upstream.clone(),
            credentials,
            sets,
            fingerprint: fingerprint.clone(),
            server_wait: self.server_wait,
        };
        let shared = Arc::new(LaneShared::new(1, Arc::default()));
        let inbox = Arc::<Inbox<_>>::default();
        let lane = ServerLane::new(Arc::new(target), shared.clone()).ok()?;
        tokio::spawn(run(lane, LaneKind::Write, 0, Reader::new(inbox.clone())));
        Some(Arc::new(Pool { shared, inbox, fingerprint }))
    }

    /// The client's key, from its proof and what the server keeps.
    async fn key(&self, user: &[u8], nonce: &Hash, proof: &Hash) -> Option<Hash> {
        let user = std::str::from_utf8(user).ok()?;
        let kept = self.facts.hashes(user).await;
        let kept =
            kept.inspect_err(|error| tracing::warn!(%error, "mysql.global_priv cannot be read")).ok()?;
        kept.iter().find_map(|kept| recover(nonce, proof, kept))
    }

    fn pools(&self) -> std::sync::MutexGuard<'_, HashMap<Identity, Option<Arc<Pool>>>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
