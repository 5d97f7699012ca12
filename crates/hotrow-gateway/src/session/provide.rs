//! Provides what the session needs before it can go on.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use hotrow_connect::upstream;
use hotrow_core::key::KeyName;
use hotrow_core::limits;
use hotrow_core::session::SessionEnd;
use hotrow_lane::cancel::WaitsFor;
use hotrow_lane::row_queue::Request;
use hotrow_wire::backend::Problem;
use tokio::sync::oneshot;

use super::gone::hung_up;
use super::{Need, SessionTask};
use crate::lane::{Envelope, Returned, Unblock};
use crate::metrics::{METRICS, Traffic, microseconds};
use crate::server::held::{self, HeldConnection};
use crate::session::control::BackendKey;
use crate::session::problems::no_connection;
use crate::statements::Statement;

impl SessionTask {
    /// Provides anything but events. What can take long and has no effect on a connection of the session is a wait that a
    /// cancel request ends. During everything else, requests wait.
    pub(super) async fn provide(&mut self, need: Need) -> Result<(), SessionEnd> {
        match need {
            Need::Event => return Ok(()),
            Need::Reply => {
                let unread = self.try_write()?.unread;
                return self.relay_alone(unread).await;
            }
            Need::Lanes => return self.next_from_lanes().await,
            _ => self.control.busy(),
        }
        match need {
            Need::Event | Need::Reply | Need::Lanes => {}
            Need::Connection => self.provide_connection().await,
            Need::Turn(request, name) => self.provide_turn(request, name).await,
            // The futures are boxed, so sessions that do not need them, idle ones above all, have no memory for them.
            Need::Verdict(statement) => Box::pin(self.provide_verdict(statement)).await,
            Need::Classified(text) => Box::pin(self.classify(text)).await,
            Need::Replica => Box::pin(self.provide_replica()).await,
            Need::Notifications => Box::pin(self.provide_notifications()).await?,
            Need::Prepared(statements) => Box::pin(self.provide_prepared(statements)).await?,
            Need::Rename => Box::pin(self.provide_name()).await?,
            Need::Enter(settings) => Box::pin(self.enter_pool_with(settings)).await,
            Need::StateLeft | Need::TakeOver(_) | Need::Move(_) | Need::Restore => {
                let handed = Box::pin(self.without_cancels(async |task| task.hand_over(need).await));
                match handed.await {
                    Ok(()) => {}
                    // For example, the client has set a very short timeout.
                    Err(held::Error::Upstream(upstream::Error::Refused { .. })) => {
                        self.session.state_unknown()
                    }
                    // The session's settings may be lost with the connection.
                    Err(_) => self.session.server_gone()?,
                }
                if !self.session.hands_over() {
                    self.relay_received()?;
                }
            }
            Need::Release { connection, reusable } => {
                self.control.activity.holds_none();
                self.control.leave().await;
                if reusable {
                    self.pool.give_back(connection);
                }
            }
        }
        Ok(())
    }

    async fn provide_verdict(&mut self, statement: Arc<Statement>) {
        let pool = self.pool.clone();
        let Ok(verdict) = self.wait_for(WaitsFor::Catalog, pool.verdict(&statement)).await else {
            return self.cancelled().await;
        };
        self.session.decided(statement, verdict);
    }

    async fn provide_replica(&mut self) {
        let pool = self.pool.clone();
        match self.wait_for(WaitsFor::Replica, pool.find_replica()).await {
            Ok(found) => self.session.replica_found(found),
            Err(_) => self.cancelled().await,
        }
    }

    /// Waits for the notifications before the client's next statement, or before the end of the unit that its connection has
    /// answered.
    async fn provide_notifications(&mut self) -> Result<(), SessionEnd> {
        if self.session.connection().is_some() {
            return self.catch_up().await;
        }
        let subscription = self.session.env.subscription.clone();
        let arrive = async {
            if let Some(subscription) = &subscription {
                subscription.catch_up().await;
            }
        };
        match self.wait_for(WaitsFor::Notifications, arrive).await {
            Ok(()) => self.caught_up(),
            Err(_) => {
                self.cancelled().await;
                Ok(())
            }
        }
    }

    async fn provide_name(&mut self) -> Result<(), SessionEnd> {
        let name = self.session.first_name().to_owned();
        let renamed = self.without_cancels(async |task| match task.session.connection() {
            Some(held) => held.restore_name(&name).await,
            None => Ok(()),
        });
        match renamed.await {
            Ok(()) => {
                self.session.renamed();
                self.relay_received()
            }
            Err(error) => {
                let problem = no_connection(&error.into(), true);
                self.session.failed(SessionEnd::Problem(problem))
            }
        }
    }

    async fn provide_prepared(&mut self, missing: Vec<Arc<Statement>>) -> Result<(), SessionEnd> {
        match self.without_cancels(async |task| task.prepare_all(missing).await).await {
            Ok(prepared) => {
                self.session.prepared(&prepared);
                Ok(())
            }
            Err(_) => self.session.server_gone(),
        }
    }

    /// Handles everything up to the next event, without more messages of the client.
    pub(super) async fn settle(&mut self) -> Result<(), SessionEnd> {
        while let Some(need) = self.session.last_need()? {
            self.provide(need).await?;
        }
        Ok(())
    }

    /// The client sends no more: its earlier messages are still run and answered.
    pub(super) async fn finish(&mut self) -> Result<(), SessionEnd> {
        if !self.session.terminate() {
            return Ok(());
        }
        // Until the last answer, or until the server or the client closes its connection.
        while self.session.connection().is_some() {
            let left = self.try_write()?;
            self.relay_alone(left.unread).await?;
            self.settle().await?;
        }
        Ok(())
    }

    /// Most sessions get a connection at once, or wait only for a processor permit. Others wait in a boxed future.
    async fn provide_connection(&mut self) {
        if let Some(held) = self.pool.try_take(self.session.application_name(), None) {
            return self.acquired(held).await;
        }
        Box::pin(self.wait_for_connection()).await;
    }

    async fn wait_for_connection(&mut self) {
        let _wait = ServerWait { since: Instant::now(), traffic: self.pool.context.shared.traffic.clone() };
        let (pool, name) = (self.pool.clone(), self.session.application_name().to_owned());
        let undecided = self.session.env.undecided.lock().take();
        // Without a verdict, the session would come back here at once: if too many statements wait for one, or the catalog could
        // not be asked.
        let judged = async {
            if let Some(statement) = &undecided {
                loop {
                    statement.judged().await;
                    if pool.known_verdict(statement).is_some() {
                        return;
                    }
                    // The facts may have aged before this look at them: then the verdict is made again.
                    if !statement.awaits_verdict.load(SeqCst) {
                        break;
                    }
                }
            }
            std::future::pending().await
        };
        let take = async {
            match pool.processor_permit().await.and_then(|permit| pool.try_take(&name, Some(permit))) {
                Some(held) => Ok(held),
                None => Box::pin(pool.take(&name)).await,
            }
        };
        let taken = async {
            tokio::select! {
                biased;
                () = judged => None,
                taken = take => Some(taken),
            }
        };
        match self.wait_for(WaitsFor::Connection, taken).await {
            Ok(Some(Ok(held))) => self.acquired(held).await,
            Ok(Some(Err(error))) => self.refuse_connection(no_connection(&error, false)).await,
            Ok(None) => {} // the statement is looked at again: a lane may run it without this connection
            Err(taken) => {
                if let Some(Some(Ok(held))) = taken {
                    self.pool.give_back(held);
                }
                self.cancelled().await;
            }
        }
    }

    /// Most transactions work at once. Others wait in a boxed future.
    async fn provide_turn(&mut self, request: Request, name: Option<Box<KeyName>>) {
        let place = match self.pool.database_state().rows.join(request, name) {
            Ok(place) => place,
            Err(waiting) => {
                let patience = self.pool.server_settings().row_patience();
                match Box::pin(self.wait_for(WaitsFor::Row, waiting.place(patience))).await {
                    Ok(place) => place,
                    Err(_) => return self.cancelled().await,
                }
            }
        };
        self.session.placed(request.queue, place);
    }

    /// Prepares statements on the session's connection. Returns those that the server has not refused.
    async fn prepare_all(
        &mut self,
        missing: Vec<Arc<Statement>>,
    ) -> Result<Vec<Arc<Statement>>, upstream::Error> {
        let Some(held) = self.session.connection() else { return Ok(Vec::new()) };
        let mut prepared = Vec::new();
        for statement in missing {
            let refusal = held.upstream.prepare(&statement.name, &statement.text, &statement.types).await?;
            if refusal.is_none() {
                prepared.push(statement);
            }
        }
        Ok(prepared)
    }

    /// Runs a query of the gateway on the session's connection. A cancel request of the client is not for this query: it waits.
    async fn without_cancels<R>(&mut self, query: impl AsyncFnOnce(&mut Self) -> R) -> R {
        self.control.quiet().await;
        let result = query(self).await;
        // The server may have reported a change in its answer to the gateway.
        if let Some((held, env)) = self.session.connection_and_environment() {
            let changed = env.reported.takes(&held.upstream.parameters, |_| true);
            self.put_settings(&changed);
        }
        result
    }

    /// A connection is there, unless a cancel request has come meanwhile.
    async fn acquired(&mut self, mut held: HeldConnection) {
        if !self.session.shared_channels().is_empty()
            && let Err(error) = Box::pin(self.listen_on(&mut held)).await
        {
            let problem = no_connection(&error.into(), false);
            return self.refuse_connection(problem).await;
        }
        if self.control.works(backend_key(&held)) {
            self.tell_settings_of(&mut held);
            return self.session.connected(held);
        }
        self.pool.give_back(held);
        self.cancelled().await;
    }

    /// Tells the client the settings of a connection that differ from what it knows.
    fn tell_settings_of(&mut self, held: &mut HeldConnection) {
        let (reported, upstream) = (&mut self.session.env.reported, &mut held.upstream);
        if upstream.agrees_with.as_ref().is_some_and(|known| Arc::ptr_eq(known, reported.values())) {
            return;
        }
        let changed = reported.takes(&upstream.parameters, |_| false);
        let agrees = reported.agree_with(&upstream.parameters);
        upstream.agrees_with = agrees.then(|| reported.values().clone());
        self.put_settings(&changed);
    }

    async fn refuse_connection(&mut self, problem: Problem) {
        self.read_now().await;
        self.session.no_connection(problem);
    }

    /// Waits until one more unit in the lanes is answered, or handles one that is given back.
    pub(super) async fn next_from_lanes(&mut self) -> Result<(), SessionEnd> {
        self.control.at_events();
        let _ = self.try_write(); // the client gets its answers even if later units still wait
        self.mailbox.watch(true);
        if let Some((slot, returned)) = self.mailbox.answers(|answers| answers.take_returned()) {
            self.handle_returned(slot, returned).await?;
        } else if self.mailbox.pending() > 0 {
            let ends_work = self.ends_work();
            tokio::select! {
                biased;
                () = self.mailbox.task_notify.notified() => {}
                () = hung_up(&mut self.read, &mut self.input), if ends_work => self.gone(),
            }
        }
        self.mailbox.watch(false);
        Ok(())
    }

    /// Handles a unit that a lane has given back. It is the earliest unfinished unit.
    async fn handle_returned(&mut self, slot: u64, returned: Returned) -> Result<(), SessionEnd> {
        match returned {
            Returned::Resubmit(envelope) => {
                // the lane may have given it back because the client does not read
                self.wait_for_room().await?;
                self.session.resubmit(envelope, self.control.is_meant(slot));
            }
            Returned::Wait(envelope, wait) => Box::pin(self.wait_with_call(envelope, wait)).await?,
            Returned::Refuse(envelope, problem) => self.session.refuse_returned(&envelope, &problem),
            Returned::RunAlone(mut envelope, unblock) => {
                envelope.blocks = unblock.map(|unblock| block_while_alone(&envelope, unblock));
                self.session.begin_alone(envelope);
            }
        }
        Ok(())
    }
}

/// A wait for a connection, which is counted when it ends.
struct ServerWait {
    since: Instant,
    traffic: Arc<Traffic>,
}

impl Drop for ServerWait {
    fn drop(&mut self) {
        let time = microseconds(self.since.elapsed());
        METRICS.server_wait_microseconds.record(time);
        self.traffic.wait_microseconds.add(time);
    }
}

/// The backend that works for the session.
fn backend_key(held: &HeldConnection) -> BackendKey {
    let upstream = &held.upstream;
    BackendKey {
        process_id: upstream.process_id,
        secret: upstream.secret.clone(),
        address: upstream.address.clone(),
    }
}

/// Keeps the unit's key blocked in its lane while the unit runs alone: until the returned value is dropped. A call that
/// may wait and takes long has the lock and waits, and other calls no longer wait for it.
fn block_while_alone(envelope: &Envelope, unblock: Unblock) -> oneshot::Sender<()> {
    let limit = envelope.unit.claimed.may_wait.then_some(Duration::from_millis(limits::WAITING_ALONE_MS_MAX));
    let (blocks, done) = oneshot::channel();
    tokio::spawn(async move {
        match limit {
            Some(limit) => drop(tokio::time::timeout(limit, done).await),
            None => drop(done.await),
        }
        drop(unblock);
    });
    blocks
}
