//! Logins to an open pool. From time to time the gateway checks at the server that the pool's user may log in, and
//! that the name means the same role with the same settings. If something has changed, the pool's connections are
//! replaced.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hotrow_connect::upstream;
use hotrow_core::admission;
use hotrow_core::classify::{Alters, differ_in_tables_only};
use hotrow_core::limits;

use crate::pool::Pool;
use crate::server::held;

impl Pool {
    /// A client logs in. If the last login of the pool's user is not recent, a connection is made to check that the
    /// user can still log in. Otherwise the client is admitted at once, and the connection is made when the last login
    /// is no longer recent. A client therefore does not use connections of a former role for long.
    pub async fn login(&self) -> Result<(), held::Error> {
        if self.is_due() {
            return self.prove_login().await;
        }
        self.login_soon();
        Ok(())
    }

    /// A client is admitted. Whether the user can still log in is checked soon.
    pub fn login_soon(&self) {
        self.unproven.notify_one();
    }

    async fn prove_login(&self) -> Result<(), held::Error> {
        let came = Instant::now();
        let patience = self.config().server_wait.max(Duration::from_millis(limits::CONNECT_TIMEOUT_MS));
        let Ok(_one_at_a_time) = tokio::time::timeout(patience, self.logging_in.lock()).await else {
            return Err(held::Error::NoLogIn(patience));
        };
        // A login that began after this client arrived proves the same for it, however long the login took.
        if !self.is_due() || self.last_login().0 >= came {
            return Ok(());
        }
        let asked = (Instant::now(), self.catalog_epoch());
        match self.look_again().await {
            Err(held::Error::Paused) => return Ok(()),
            Err(held::Error::Upstream(upstream::Error::Refused { code, message, .. }))
                if !admission::keeps_out(&code, self.context.login.connections()) =>
            {
                tracing::debug!(code, message, clients = self.identity.describe(), "no further connection");
            }
            result => result?,
        }
        *self.logged_in.lock() = asked;
        Ok(())
    }

    /// No connection is made during a pause. Connections that are made later show whether the user can log in.
    fn is_due(&self) -> bool {
        let (at, epoch) = self.last_login();
        admission::is_due(at.elapsed(), !differ_in_tables_only(epoch, self.catalog_epoch()))
            && !self.database_state().is_paused()
    }

    fn last_login(&self) -> (Instant, u64) {
        *self.logged_in.lock()
    }

    async fn look_again_alone(&self) -> Result<(), held::Error> {
        let _one_at_a_time = self.logging_in.lock().await;
        self.look_again().await
    }

    /// Makes a connection, and compares the server's settings there with the known ones.
    async fn look_again(&self) -> Result<(), held::Error> {
        let config = self.config().clone();
        let mut probe = self.held.probe(&config, self.database_state(), self.startup()).await?;
        let now = probe.upstream().server_settings().await?;
        drop(probe);
        // If a value has changed and changed back, the connections that were made in between have to go, too.
        let is_outdated =
            self.context.take_strange_connection() | self.context.server().are_outdated_by(&now);
        // Also if nothing differs: a value may have changed and changed back, and a client was told of the first change only.
        self.context.set_server(now);
        if is_outdated {
            tracing::info!(
                pool = self.id,
                clients = self.identity.describe(),
                "the role or its settings have changed: connections are replaced"
            );
            if self.context.unpackable().is_some() {
                self.context.stop_packing();
            }
            self.database_state().retire_connections();
            self.catalog_changed(Alters::Anything);
            self.close_idle();
            // New units wait for the lanes' new connections.
            drop(self.renew());
        }
        self.context.decide_packing();
        Ok(())
    }
}

/// Checks the logins of clients that were admitted because another client had logged in shortly before, as long as the
/// pool is open.
pub async fn follow_logins(pool: Arc<Pool>) {
    loop {
        pool.unproven.notified().await;
        tokio::time::sleep(Duration::from_millis(limits::LOGIN_AGE_MS)).await;
        if pool.is_due()
            && let Err(error) = pool.prove_login().await
        {
            tracing::debug!(%error, clients = pool.identity.describe(), "the server no longer admits a pool's user");
        }
    }
}

/// Asks the server again whenever its settings have changed, as long as the pool is open.
pub async fn follow_settings(pool: Arc<Pool>) {
    loop {
        pool.context.settings_changed.notified().await;
        while let Err(error) = pool.look_again_alone().await {
            tracing::debug!(%error, clients = pool.identity.describe(), "the server could not be asked again");
            // Clients that log in meanwhile get the server's error.
            tokio::time::sleep(Duration::from_millis(limits::RECONNECT_MAX_MS)).await;
        }
        // Servers that share a name and disagree must not keep the pool busy with new connections.
        tokio::time::sleep(Duration::from_millis(limits::LOGIN_AGE_MS)).await;
    }
}
