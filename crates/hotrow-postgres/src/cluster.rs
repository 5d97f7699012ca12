//! A private cluster of Citus: a coordinator and workers, each a private server, with the extension in the database
//! `postgres` of each.
use crate::{Binaries, Error, PrivateServer};
use std::path::Path;
use std::process::Command;

/// A coordinator and its workers.
#[derive(Debug)]
pub struct Cluster {
    /// The server to which applications connect.
    pub coordinator: PrivateServer,
    /// The servers that have the shards.
    pub workers: Vec<PrivateServer>,
}

/// Connections that each server accepts. A node connects to the others for its clients.
const CONNECTIONS: &str = "300";

impl Binaries {
    /// Binaries of a PostgreSQL that has Citus: those that HOTROW_CITUS_BIN names, or else the installed ones.
    pub fn with_citus() -> Option<Binaries> {
        let binaries = match std::env::var_os("HOTROW_CITUS_BIN").filter(|dir| !dir.is_empty()) {
            Some(dir) => Binaries::in_dir(Path::new(&dir)).ok()?,
            None => Binaries::installed().ok()??,
        };
        let beside = binaries.dir().parent().map(|dir| dir.join("lib"));
        let libraries = Command::new(binaries.dir().join("pg_config")).arg("--pkglibdir").output();
        let libraries = libraries.ok().map(|output| String::from_utf8_lossy(&output.stdout).trim().into());
        let has_citus = beside.into_iter().chain(libraries).any(|dir| dir.join("citus.so").is_file());
        has_citus.then_some(binaries)
    }
}

impl Cluster {
    /// Starts a cluster with this number of workers. `change` sets further properties of each server.
    pub fn start(
        binaries: &Binaries,
        workers: usize,
        change: impl Fn(crate::Builder) -> crate::Builder,
    ) -> Result<Self, Error> {
        let node = |label: &str| Self::node(binaries, label, &change);
        let coordinator = node("coordinator")?;
        let workers = (1..=workers)
            .map(|number| node(&format!("worker{number}")))
            .collect::<Result<Vec<_>, Error>>()?;
        coordinator
            .query(&format!("select citus_set_coordinator_host('127.0.0.1', {})", coordinator.port()))?;
        for worker in &workers {
            coordinator.query(&format!("select citus_add_node('127.0.0.1', {})", worker.port()))?;
        }
        Ok(Cluster { coordinator, workers })
    }

    /// Stops all servers.
    pub fn stop(&self) -> Result<(), Error> {
        self.servers().try_for_each(PrivateServer::stop)
    }

    /// Starts a copy of this cluster, whose servers are stopped.
    pub fn copy(&self) -> Result<Self, Error> {
        let copy = |server: &PrivateServer| server.copy("node", &[]);
        let mut copy = Cluster {
            coordinator: copy(&self.coordinator)?,
            workers: self.workers.iter().map(copy).collect::<Result<Vec<_>, Error>>()?,
        };
        copy.coordinator.find_port()?;
        copy.workers.iter_mut().try_for_each(PrivateServer::find_port)?;
        // Until then, the nodes look for each other at the ports of the originals, where nothing listens.
        let ports =
            self.servers().zip(copy.servers()).map(|(old, new)| format!("({}, {})", old.port(), new.port()));
        let ports = ports.collect::<Vec<_>>().join(", ");
        let change = format!(
            "update pg_dist_node set nodeport = p.now from (values {ports}) p (before, now) where nodeport = p.before"
        );
        copy.servers().try_for_each(|server| server.query(&change).map(drop))?;
        Ok(copy)
    }

    /// The coordinator and the workers.
    pub fn servers(&self) -> impl Iterator<Item = &PrivateServer> {
        std::iter::once(&self.coordinator).chain(&self.workers)
    }

    /// Starts a server that belongs to no cluster yet.
    pub fn node(
        binaries: &Binaries,
        label: &str,
        change: impl FnOnce(crate::Builder) -> crate::Builder,
    ) -> Result<PrivateServer, Error> {
        let builder = PrivateServer::builder()
            .binaries(binaries.clone())
            .label(label)
            .setting("shared_preload_libraries", "citus")
            .setting("max_connections", CONNECTIONS)
            .setting("max_prepared_transactions", CONNECTIONS)
            .setting("wal_level", "logical")
            // The private servers have no certificates.
            .setting("citus.node_conninfo", "sslmode=disable");
        let server = change(builder).start()?;
        server.query("create extension citus")?;
        Ok(server)
    }
}
