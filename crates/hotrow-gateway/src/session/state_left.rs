//! The state that a session has left on its connection: settings move the session to the pool whose clients have the same
//! ones, everything else keeps it on its connection.

use hotrow_core::session::{Moved, StateLeft};
use hotrow_core::settings::{self, Settings};
use hotrow_lane::cancel::WaitsFor;

use super::{Need, SessionTask};
use crate::pool::directory::NoPool;
use crate::server::held;

impl SessionTask {
    /// Queries the server for state that is left on the connection, or hands it over.
    pub(super) async fn hand_over(&mut self, need: Need) -> Result<(), held::Error> {
        match need {
            Need::TakeOver(takes_over) => {
                let is_over = self.take_over(takes_over).await?;
                self.session.took_over(is_over);
            }
            Need::Move(settings) => {
                let moved = self.move_to_pool_with(settings).await?;
                self.session.moved(moved);
            }
            Need::Restore => {
                let Some(held) = self.session.connection() else { return Ok(()) };
                held.set_settings(self.pool.identity.settings()).await?;
                self.session.restored();
            }
            _ => self.query_state_left().await?,
        }
        Ok(())
    }

    async fn query_state_left(&mut self) -> Result<(), held::Error> {
        let _ = self.try_write(); // the client gets its answer now; reading it shows an error
        let first_role = self.pool.first_role();
        let unjudged = self.session.unjudged();
        let Some(held) = self.session.connection() else { return Ok(()) };
        let hidden = self.pool.judge(&mut held.upstream, &unjudged).await?;
        self.session.judged(hidden);
        let Some(held) = self.session.connection() else { return Ok(()) };
        let text = include_str!("../../sql/left_behind.sql");
        let (user, plain) = (self.pool.identity.user(), settings::plain_names());
        let rows = held.upstream.query(text, &[user, &first_role, &plain]).await?;
        let row = rows.first().map(Vec::as_slice).unwrap_or_default();
        let found = StateLeft::read(row, self.pool.is_utf8_database(), held.upstream.speaks_utf8());
        held.listens |= found.channels.as_ref().is_some_and(|channels| !channels.is_empty());
        self.session.state_found(found);
        Ok(())
    }

    /// Moves the session to the pool with these settings, which its connection has. If there cannot be one more pool, it goes
    /// back to the pool of its login: nobody could use the one that it is in, if no other client has those settings. This may
    /// make the room that was missing.
    async fn move_to_pool_with(&mut self, settings: Settings) -> Result<Moved, held::Error> {
        if self.move_if_there_is_room(&settings).await? {
            return Ok(Moved::There);
        }
        let directory = self.session.env.directory.clone();
        let login = || directory.open_pool_with(&self.pool, Settings::default());
        let Some(used) = self.session.may_go_to_login().then(login).flatten() else {
            return Ok(Moved::Nowhere);
        };
        self.enter(used);
        Ok(if self.move_if_there_is_room(&settings).await? { Moved::There } else { Moved::ToLogIn })
    }

    async fn move_if_there_is_room(&mut self, settings: &Settings) -> Result<bool, held::Error> {
        let directory = self.session.env.directory.clone();
        let moves = self.moves;
        let Some(held) = self.session.connection() else { return Ok(true) };
        let used = match directory.pool_with(&self.pool, settings.clone(), moves, held).await {
            Ok(used) => used,
            Err(NoPool::Full(_)) => return Ok(false),
            Err(NoPool::Error(error)) => return Err(error),
        };
        // Nothing else of the session may stay on the connection.
        held.set_settings(used.pool().identity.settings()).await?;
        self.enter(used);
        Ok(true)
    }

    /// Moves the session, which holds no connection, to the pool with these settings if it is open.
    pub(super) async fn enter_pool_with(&mut self, settings: Settings) {
        let enter = self.session.env.directory.enter(&self.pool, settings);
        let Ok(found) = self.control.unless_cancelled(WaitsFor::Connection, enter).await else {
            return self.cancelled().await;
        };
        tokio::task::yield_now().await; // a client may send thousands of such SETs at once
        let parameters = found.map(|used| {
            self.enter(used);
            self.session.env.reported.compare(self.pool.id, self.pool.server_settings())
        });
        self.session.entered(parameters);
    }
}
