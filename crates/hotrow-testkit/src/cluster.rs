//! Clusters of Citus. A new cluster, and the distribution of the hotrow schema, take many seconds of CPU time, so each kind of
//! cluster is made once for all tests that run at about the same time, and each test gets a copy of its own.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hotrow_postgres::{Binaries, Cluster};

use crate::not_run;

/// A kind of cluster: the original of the copies that tests get.
pub struct Original {
    make: fn() -> Option<Cluster>,
    /// The original is removed with its last copy. If another test wants a copy later, the original is made again.
    made: Mutex<Weak<Cluster>>,
}

/// A cluster of one test.
pub struct OwnCluster {
    cluster: Cluster,
    _original: Arc<Cluster>,
}

impl Original {
    /// `make` starts the original; None if there is no Citus on this machine.
    pub const fn new(make: fn() -> Option<Cluster>) -> Self {
        Self { make, made: Mutex::new(Weak::new()) }
    }

    /// A running copy. None if there is no Citus on this machine.
    pub fn copy(&self) -> Option<OwnCluster> {
        let original = self.original()?;
        Some(OwnCluster { cluster: original.copy().unwrap(), _original: original })
    }

    fn original(&self) -> Option<Arc<Cluster>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(original) = made.upgrade() {
            return Some(original);
        }
        let original = (self.make)()?;
        original.stop().unwrap();
        let original = Arc::new(original);
        *made = Arc::downgrade(&original);
        Some(original)
    }
}

impl OwnCluster {
    /// The cluster, to make another kind of it.
    pub fn into_cluster(self) -> Cluster {
        self.cluster
    }
}

impl Deref for OwnCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

/// The binaries with which clusters are made. None, and a message, if there is no Citus on this machine.
pub fn citus() -> Option<Binaries> {
    let binaries = Binaries::with_citus();
    if binaries.is_none() {
        not_run("no PostgreSQL with Citus here; set HOTROW_CITUS_BIN to the folder of its binaries");
    }
    binaries
}
