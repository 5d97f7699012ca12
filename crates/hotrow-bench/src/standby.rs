//! A synchronous standby on the same machine. It runs only while a technique needs it, because a standby that follows the
//! server takes CPU time from all other techniques.

use crate::error::Error;
use crate::load::joined;
use hotrow_postgres::PrivateServer;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The standby of a private server.
#[derive(Debug)]
pub struct Standby {
    server: Arc<PrivateServer>,
    standby: Arc<PrivateServer>,
    follows: bool,
}

/// The slot keeps the WAL that the standby needs at its next start.
const CREATE_SLOT: &str = "select pg_create_physical_replication_slot('standby', true)";
const USE_SLOT: &str = "alter system set primary_slot_name = 'standby'";
const WAIT_FOR_IT: &str = "alter system set synchronous_standby_names = 'standby'";
const DO_NOT_WAIT: &str = "alter system reset synchronous_standby_names";
const RELOAD: &str = "select pg_reload_conf()";
/// Whether each commit waits for the standby, and the standby has everything.
const FOLLOWS: &str = "select count(*) = 1 from pg_stat_replication
    where sync_state = 'sync' and state = 'streaming' and replay_lsn >= pg_current_wal_flush_lsn()";
const STANDS_ALONE: &str = "select current_setting('synchronous_standby_names') = ''";

impl Standby {
    /// Copies the server, which is restarted. The standby does not run yet. Blocks.
    pub fn of(server: &Arc<PrivateServer>) -> Result<Self, Error> {
        let standby = server.standby()?;
        server.query(CREATE_SLOT)?;
        standby.query(USE_SLOT)?;
        standby.stop()?;
        Ok(Self { server: Arc::clone(server), standby: Arc::new(standby), follows: false })
    }

    /// Starts the standby and makes each commit of the server wait for it, or ends this wait and stops the standby.
    pub async fn set(&mut self, follows: bool) -> Result<(), Error> {
        if self.follows == follows {
            return Ok(());
        }
        self.follows = follows;
        let (server, standby) = (Arc::clone(&self.server), Arc::clone(&self.standby));
        let change = move || if follows { follow(&server, &standby) } else { part(&server, &standby) };
        joined(tokio::task::spawn_blocking(change).await)
    }
}

fn follow(server: &PrivateServer, standby: &PrivateServer) -> Result<(), Error> {
    standby.restart()?;
    server.query(WAIT_FOR_IT)?;
    server.query(RELOAD)?;
    wait(server, FOLLOWS)
}

fn part(server: &PrivateServer, standby: &PrivateServer) -> Result<(), Error> {
    server.query(DO_NOT_WAIT)?;
    server.query(RELOAD)?;
    wait(server, STANDS_ALONE)?;
    Ok(standby.stop()?)
}

/// Waits until a query returns true. The standby reads the whole WAL since its last run, which may be a few gigabytes.
fn wait(server: &PrivateServer, sql: &'static str) -> Result<(), Error> {
    const PATIENCE: Duration = Duration::from_secs(120);
    let deadline = Instant::now() + PATIENCE;
    while server.query(sql)?.first().is_none_or(|row| row[0].as_deref() != Some("t")) {
        if Instant::now() > deadline {
            return Err(Error::NoStandby { waited: PATIENCE });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Standby;
    use hotrow_postgres::PrivateServer;
    use std::sync::Arc;

    fn value(server: &PrivateServer, sql: &str) -> String {
        server.query(sql).unwrap()[0][0].clone().unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn commits_wait_for_the_standby_only_while_it_follows() {
        let server = Arc::new(PrivateServer::builder().label("bench-primary").start().unwrap());
        let mut standby = Standby::of(&server).unwrap();
        server.query("create table t (id int)").unwrap();
        standby.set(true).await.unwrap();
        server.query("insert into t values (1)").unwrap();

        standby.standby.freeze().unwrap();
        let waiting = Arc::clone(&server);
        let commit = std::thread::spawn(move || waiting.query("insert into t values (2)").unwrap());
        while value(&server, "select count(*) from pg_stat_activity where wait_event = 'SyncRep'") != "1" {
            assert!(!commit.is_finished(), "the commit did not wait for its standby");
        }
        standby.standby.thaw().unwrap();
        commit.join().unwrap();

        standby.set(false).await.unwrap();
        assert_eq!(standby.standby.postmaster_pid(), None);
        // The standby must find its WAL again after the server has removed what it does not need itself.
        server.query("insert into t values (3); select pg_switch_wal()").unwrap();
        server.query("checkpoint").unwrap();
        server.query("insert into t values (4); select pg_switch_wal()").unwrap();
        server.query("checkpoint").unwrap();
        standby.set(true).await.unwrap();
        assert_eq!(value(&standby.standby, "select count(*) from t"), "4");
        standby.set(false).await.unwrap();
    }
}
