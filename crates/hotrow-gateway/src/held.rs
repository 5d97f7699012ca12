//! Upstream connections that sessions hold for a while: found again, made, waited for, given back, closed when
//! nobody needs them. What goes over them is the session's business.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Config;
use crate::metrics::{GaugeGuard, METRICS};
use crate::upstream::{self, Upstream};

/// The connections of all pools.
#[derive(Debug)]
pub struct HeldConnections {
    /// As many as may be in use at once.
    in_use: Arc<Semaphore>,
    open_max: usize,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// By pool number; the one given back last is taken first.
    pools: HashMap<u64, Vec<(Open, Instant)>>,
    count: usize,
}

#[derive(Debug)]
struct Open {
    upstream: Upstream,
    application_name: Option<String>,
    sequences: Option<u64>,
    _gauge: GaugeGuard,
}

/// A connection in somebody's hands. Dropped, it is closed; to be used again it has to be given back.
#[derive(Debug)]
pub struct Held {
    /// The connection.
    pub upstream: Upstream,
    /// The session whose sequence values its backend remembers.
    pub sequences: Option<u64>,
    /// The name the server knows it by, where that is known.
    application_name: Option<String>,
    pool: u64,
    _permit: OwnedSemaphorePermit,
    _gauge: GaugeGuard,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// All are in use.
    #[error("no upstream connection became free within {} ms", .0.as_millis())]
    AllInUse(Duration),
    /// The server did not give one.
    #[error(transparent)]
    Upstream(#[from] upstream::Error),
}

impl HeldConnections {
    /// None yet.
    pub fn new(config: &Config) -> Self {
        HeldConnections {
            in_use: Arc::new(Semaphore::new(config.held_connections_max)),
            open_max: config.held_connections_max,
            idle: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().expect("nothing panics while it holds the idle connections")
    }

    /// A connection of this pool, with this application name.
    pub async fn take(
        &self,
        config: &Config,
        pool: u64,
        parameters: &[(String, String)],
        application_name: &str,
    ) -> Result<Held, Error> {
        let permit = match self.in_use.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => tokio::time::timeout(config.held_wait, self.in_use.clone().acquire_owned())
                .await
                .map_err(|_| Error::AllInUse(config.held_wait))?
                .expect("the semaphore is never closed"),
        };
        while let Some(mut open) = self.take_idle(pool, application_name) {
            if !open.upstream.is_quiet() {
                continue; // the server has closed it, or said something that nobody asked for
            }
            let mut held = open.into_held(pool, permit);
            held.rename(application_name).await?;
            return Ok(held);
        }
        self.make_room();
        let mut parameters = parameters.to_vec();
        parameters.push(("application_name".to_owned(), application_name.to_owned()));
        let upstream = Upstream::connect(&config.upstream, &parameters).await?;
        let gauge = METRICS.held_connections.enter();
        let open = Open {
            upstream,
            application_name: Some(application_name.to_owned()),
            sequences: None,
            _gauge: gauge,
        };
        Ok(open.into_held(pool, permit))
    }

    fn take_idle(&self, pool: u64, application_name: &str) -> Option<Open> {
        let mut idle = self.lock();
        let connections = idle.pools.get_mut(&pool)?;
        let same_name = connections
            .iter()
            .rposition(|(open, _)| open.application_name.as_deref() == Some(application_name));
        let index = same_name.or(connections.len().checked_sub(1))?;
        let (open, _) = connections.remove(index);
        idle.count -= 1;
        Some(open)
    }

    /// Open connections are in use or idle; those in use are at most the limit, so that one idle connection less
    /// makes room for a new one.
    fn make_room(&self) {
        let in_use = self.open_max - self.in_use.available_permits();
        let mut idle = self.lock();
        if in_use + idle.count > self.open_max
            && let Some(connections) = idle.pools.values_mut().find(|connections| !connections.is_empty())
        {
            connections.remove(0);
            idle.count -= 1;
        }
    }

    /// Gives back a connection that nothing is left behind on.
    pub fn give_back(&self, held: Held) {
        let Held { upstream, sequences, application_name, pool, _permit, _gauge } = held;
        let open = Open { upstream, application_name, sequences, _gauge };
        let mut idle = self.lock();
        idle.pools.entry(pool).or_default().push((open, Instant::now()));
        idle.count += 1;
    }

    /// Closes those that nobody has used for so long; how many are left.
    pub fn close_unused(&self, age: Duration) -> usize {
        let mut idle = self.lock();
        for connections in idle.pools.values_mut() {
            connections.retain(|(_, since)| since.elapsed() < age);
        }
        idle.pools.retain(|_, connections| !connections.is_empty());
        idle.count = idle.pools.values().map(Vec::len).sum();
        idle.count
    }
}

impl Open {
    fn into_held(self, pool: u64, permit: OwnedSemaphorePermit) -> Held {
        let Open { upstream, application_name, sequences, _gauge } = self;
        Held { upstream, sequences, application_name, pool, _permit: permit, _gauge }
    }
}

impl Held {
    /// The client has named itself; none if nobody knows what the connection's name is now.
    pub fn set_name(&mut self, name: Option<String>) {
        self.application_name = name;
    }

    async fn rename(&mut self, application_name: &str) -> Result<(), upstream::Error> {
        if self.application_name.as_deref() != Some(application_name) {
            self.upstream.query(include_str!("../sql/set_application_name.sql"), &[application_name]).await?;
            self.application_name = Some(application_name.to_owned());
        }
        Ok(())
    }
}
