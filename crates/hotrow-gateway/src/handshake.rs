//! From a client's start-up packet to its session: who it is, what it is told of the server.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use hotrow_auth::Credential;
use hotrow_core::limits;
use hotrow_wire::backend::{self, Problem};
use hotrow_wire::startup::Packet;
use tokio::time::Instant;

use crate::authentication::client::{Channel, Newcomer, Stopped};
use crate::console;
use crate::gateway::Shared;
use crate::held;
use crate::mailbox::Mailbox;
use crate::metrics::METRICS;
use crate::net::{ReadHalf, WriteHalf};
use crate::opening::{self, Opened};
use crate::peer::Peer;
use crate::pool::{Identity, Pool};
use crate::session::{Session, Start, stopping};
use crate::upstream;

/// Serves one client from start to end.
pub async fn serve_client(shared: Arc<Shared>, read: ReadHalf, write: WriteHalf, peer: Peer) {
    // One for all that comes before the log-in is done: who has not shown who he is takes a client's place away.
    let deadline = Instant::now() + Duration::from_millis(limits::STARTUP_TIMEOUT_MS);
    let tls = shared.config().tls.clone();
    let opened = tokio::time::timeout_at(deadline, opening::open(tls.as_deref(), read, write, peer)).await;
    let Ok(Some(Opened { packet, mut read, write, mut input, peer })) = opened else { return };
    tracing::trace!(?peer, "a client connects");
    match packet {
        Packet::Cancel { process_id, secret } => shared.controls.cancel(process_id, &secret).await,
        Packet::Start { minor, parameters } => {
            let mut out = BytesMut::new();
            negotiate(minor, &parameters, &mut out);
            let channel = Channel { read: &mut read, write: &write, input: &mut input, out: &mut out };
            let credential =
                tokio::time::timeout_at(deadline, let_in(&shared, &peer, &parameters, channel)).await;
            let log_in = match credential {
                Ok(Ok(_)) if is_console(&parameters) => {
                    return console::serve(shared, (read, write, input), out).await;
                }
                Ok(Ok(credential)) => open(&shared, &parameters, credential).await,
                Ok(Err(Stopped::Refused(problem))) => Err(Refused::Problem(problem)),
                Ok(Err(Stopped::Left)) | Err(_) => return,
            };
            match log_in {
                Ok(pool) => begin(shared, pool, (&parameters, peer), out, (read, write, input)).await,
                Err(Refused::Problem(problem)) => {
                    METRICS.refused.inc();
                    send_away(&write, &problem).await;
                }
                Err(Refused::Frame(frame)) => {
                    out.extend_from_slice(&frame);
                    let _ = write.drain(&mut out).await;
                }
            }
        }
        Packet::Unsupported { major, minor } => {
            let message =
                format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0");
            send_away(&write, &Problem::fatal("0A000", message, "")).await;
        }
        Packet::Ssl | Packet::GssEnc => {}
    }
}

/// Tells a client that it can't stay.
pub async fn send_away(write: &WriteHalf, problem: &Problem) {
    let mut out = BytesMut::new();
    problem.put(&mut out);
    let _ =
        tokio::time::timeout(Duration::from_millis(limits::STARTUP_TIMEOUT_MS), write.drain(&mut out)).await;
}

/// Newer clients are told that we speak 3.0 and which of their options we don't know.
fn negotiate(minor: u32, parameters: &[(String, String)], out: &mut BytesMut) {
    let unknown = parameters.iter().map(|(name, _)| name.as_str()).filter(|name| name.starts_with("_pq_."));
    if minor > 0 || unknown.clone().next().is_some() {
        backend::put_negotiate(out, 0, unknown);
    }
}

/// Whether a client wants to talk to the gateway itself.
fn is_console(parameters: &[(String, String)]) -> bool {
    Identity::new(parameters).database() == console::DATABASE
}

enum Refused {
    Problem(Problem),
    Frame(bytes::Bytes),
}

/// Finds out who a client is.
async fn let_in(
    shared: &Shared,
    peer: &Peer,
    parameters: &[(String, String)],
    channel: Channel<'_>,
) -> Result<Credential, Stopped> {
    let get = |wanted| parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let refuse = |code, message: &str, hint: &str| Err(Stopped::Refused(Problem::fatal(code, message, hint)));
    let Some(user) = get("user").filter(|user| !user.is_empty()) else {
        return refuse("28000", "no PostgreSQL user name specified in startup packet", "");
    };
    if get("replication").is_some_and(|value| !matches!(value, "false" | "off" | "no" | "0")) {
        let hint = "Connect to the server itself for replication.";
        return refuse("0A000", "replication connections don't go through the gateway", hint);
    }
    let database = get("database").filter(|database| !database.is_empty()).unwrap_or(user);
    shared.authentication.let_in(&shared.config(), Newcomer { peer, user, database }, channel).await
}

/// The pool of a client that has come in.
async fn open(
    shared: &Shared,
    parameters: &[(String, String)],
    credential: Credential,
) -> Result<Arc<Pool>, Refused> {
    let mut parameters = parameters.to_vec();
    shared.put_settings(&mut parameters);
    shared.pool(Identity::new(&parameters), credential).await.map_err(|error| match error {
        None => Refused::Problem(Problem::fatal(
            "53300",
            format!("more than {} combinations of user, database and start-up settings", limits::POOLS_MAX),
            "Let clients start with the same settings.",
        )),
        Some(held::Error::Upstream(upstream::Error::Refused { code, message, frame })) => {
            tracing::warn!(code, message, "the server refused the gateway's log-in for a client");
            Refused::Frame(frame)
        }
        Some(error) => Refused::Problem(crate::session::no_connection(&error)),
    })
}

async fn begin(
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    (parameters, peer): (&[(String, String)], Peer),
    mut out: BytesMut,
    (read, write, input): (ReadHalf, WriteHalf, BytesMut),
) {
    let application_name = parameters
        .iter()
        .find(|(name, _)| name == "application_name")
        .map_or("", |(_, value)| value)
        .to_owned();
    let _member = match shared.join(&pool) {
        Ok(member) => member,
        Err((most, whose)) => {
            METRICS.refused.inc();
            let message = format!("sorry, too many clients already: {whose} may have {most}");
            let hint = "Raise clients_max in their [[pool]] table, or share connections.";
            return send_away(&write, &Problem::fatal("53300", message, hint)).await;
        }
    };
    let mut secret = [0; 4];
    if let Err(error) = getrandom::fill(&mut secret) {
        tracing::error!(%error, "the system gives no random numbers");
        let problem = Problem::fatal("XX000", "the gateway's system gives no random numbers", "");
        return send_away(&write, &problem).await;
    }
    let session = shared.next_session();
    let mailbox = Mailbox::new(session, write);
    let control = shared.controls.register(mailbox.clone(), pool.clone(), secret, (peer, &application_name));
    out.extend_from_slice(backend::AUTHENTICATION_OK);
    for (name, value) in &pool.parameters() {
        let value = if name == "application_name" { &application_name } else { value };
        backend::put_parameter_status(&mut out, name, value);
    }
    backend::put_backend_key_data(&mut out, control.process_id, &secret);
    out.extend_from_slice(backend::READY_IDLE);
    mailbox.append(|bytes| bytes.extend_from_slice(&out));
    let process_id = control.process_id;
    let _client = METRICS.clients.enter();
    let start = Start { pool, mailbox, control, read, input, application_name, stop: shared.stopping() };
    if shared.is_stopping() {
        send_away(&start.mailbox.write, &stopping()).await;
    } else {
        Session::new(start).run().await;
    }
    shared.controls.remove(process_id);
}
