//! The task of a listening connection: it opens, replaces and reads it, and carries statements and notifications.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hotrow_connect::upstream::{self, Upstream, refused};
use hotrow_core::limits;
use hotrow_core::notifications::{MARKER_CHANNEL, listen, notify};
use hotrow_wire::backend::{Notification, Problem, Report, tag};
use hotrow_wire::{HEADER_BYTES, SqlState, frontend};
use tokio::time::{sleep, timeout};

use super::SharedListener;
use crate::lane::LaneContext;
use crate::metrics::METRICS;
use crate::pool::identity::Identity;

/// Why the connection ends.
enum End {
    /// It has had no subscriber for a while.
    Unused,
    /// An operator has paused the database.
    Paused,
    /// It is lost, or cannot be opened.
    Lost(upstream::Error),
}

impl From<upstream::Error> for End {
    fn from(error: upstream::Error) -> Self {
        End::Lost(error)
    }
}

/// Listens until no subscriber is left or the connection is lost.
pub async fn run(listener: Arc<SharedListener>, context: Arc<LaneContext>, identity: Identity) {
    let end = match open_and_serve(&listener, &context, &identity).await {
        Ok(()) | Err(End::Unused) => None,
        Err(End::Paused) => Some(Problem::fatal(
            SqlState::AdminShutdown,
            "an operator has paused the database, and the client would miss notifications",
            "Connect again, LISTEN again, and then check for what the missed notifications were about.",
        )),
        Err(End::Lost(error)) => {
            tracing::warn!(%error, clients = identity.describe(), "a listening connection was lost");
            Some(super::lost())
        }
    };
    listener.end(end.as_ref());
}

async fn open_and_serve(
    listener: &SharedListener,
    context: &LaneContext,
    identity: &Identity,
) -> Result<(), End> {
    let patience = context.config().server_wait;
    let _use = context.database.enter(patience).await.ok_or(End::Paused)?;
    let mut upstream = open(context, identity, &listen(std::iter::once(MARKER_CHANNEL))).await?;
    let _gauge = METRICS.listening_connections.enter();
    loop {
        let text = {
            let mut state = listener.state.lock();
            if context.database.is_paused() {
                return Err(End::Paused);
            }
            state.hub.next_statement()
        };
        if let Some(text) = text {
            frontend::put_query(&mut upstream.output, &text);
            upstream.flush().await?;
        }
        let (is_unused, renewing) = {
            let mut state = listener.state.lock();
            // A statement under way is answered first.
            let renews = !state.hub.is_busy();
            state.leaves &= state.hub.is_empty();
            if renews && state.leaves {
                *state = Default::default();
                return Err(End::Unused);
            }
            (state.hub.is_empty(), if renews { std::mem::take(&mut state.renewing) } else { Vec::new() })
        };
        if !renewing.is_empty() {
            upstream = replace(listener, context, identity, upstream).await?;
            drop(renewing); // the waiting callers see it
            continue;
        }
        let idle = context.config().held_idle;
        tokio::select! {
            frame = upstream.frame() => handle(listener, &frame?)?,
            () = listener.changed.notified() => {}
            () = sleep(idle), if is_unused => {
                let mut state = listener.state.lock();
                if state.hub.is_empty() {
                    // Under the lock: a subscriber that comes now opens another one.
                    *state = Default::default();
                    return Err(End::Unused);
                }
            }
        }
    }
}

/// A connection that runs this text first.
async fn open(context: &LaneContext, identity: &Identity, text: &str) -> Result<Upstream, upstream::Error> {
    let parameters = [
        ("user", identity.user()),
        ("database", identity.database_there()),
        ("client_encoding", "UTF8"),
        ("application_name", "hotrow listener"),
    ];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = context.config().clone();
    let mut upstream = Upstream::connect(&config.upstream, &parameters, &context.login, false).await?;
    upstream.query(include_str!("../../../sql/listen_shared.sql"), &[]).await?;
    upstream.run(text).await?;
    Ok(upstream)
}

/// Handles a message of the server.
fn handle(listener: &SharedListener, frame: &Bytes) -> Result<(), upstream::Error> {
    let body = frame.slice(HEADER_BYTES..);
    match frame[0] {
        tag::NOTIFICATION => deliver(listener, &body)?,
        tag::ERROR => {
            if !Report::read(&body)?.is_error() {
                return Err(refused(frame));
            }
            tracing::warn!(error = %refused(frame), "a listening connection cannot listen");
            listener.state.lock().hub.failed();
        }
        tag::READY => {
            let (waiters, has_succeeded) = listener.state.lock().hub.complete();
            for waiter in waiters {
                let _ = waiter.send(has_succeeded); // it may have left
            }
        }
        _ => {}
    }
    Ok(())
}

fn deliver(listener: &SharedListener, body: &Bytes) -> Result<(), upstream::Error> {
    let notification = Notification::read(body)?;
    let is_marker = notification.channel == MARKER_CHANNEL.as_bytes();
    for subscriber in listener.state.lock().hub.notified(&notification) {
        subscriber.notified(body);
        METRICS.notifications.add(u64::from(!is_marker));
    }
    Ok(())
}

/// Replaces the connection by a new one. A marker of the new one stands at one place in the order of all notifications:
/// the old one reports those before it, the new one those after it.
async fn replace(
    listener: &SharedListener,
    context: &LaneContext,
    identity: &Identity,
    mut old: Upstream,
) -> Result<Upstream, upstream::Error> {
    let text = listener.state.lock().hub.listen_to_all();
    let mut new = open(context, identity, &text).await?;
    let marker = super::marker();
    let is_marker = |body: &[u8]| {
        Notification::read(body).is_ok_and(|notification| notification.payload == marker.as_bytes())
    };
    frontend::put_query(&mut new.output, &notify(&marker));
    new.flush().await?;
    let switch = async {
        loop {
            let frame = old.frame().await?;
            if frame[0] == tag::NOTIFICATION && is_marker(&frame[HEADER_BYTES..]) {
                break;
            }
            handle(listener, &frame)?;
        }
        let mut begun = false;
        loop {
            let frame = new.frame().await?;
            match frame[0] {
                tag::ERROR => return Err(refused(&frame)),
                tag::READY => return Ok(()), // after the marker, like all notifications of a connection itself
                tag::NOTIFICATION if begun => deliver(listener, &frame.slice(HEADER_BYTES..))?,
                tag::NOTIFICATION => begun = is_marker(&frame[HEADER_BYTES..]),
                _ => {}
            }
        }
    };
    match timeout(Duration::from_millis(limits::MARKER_WAIT_MS), switch).await {
        Ok(switched) => switched.map(|()| new),
        // The new server is another one.
        Err(_) => Err(upstream::Error::Timeout {
            address: (*new.address).clone(),
            limit: Duration::from_millis(limits::MARKER_WAIT_MS),
        }),
    }
}
