//! From a client's first byte to its session: start-up packets, who it is, what it is told of the server.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use hotrow_core::limits;
use hotrow_wire::backend::{self, Problem};
use hotrow_wire::startup::{self, Packet};

use crate::gateway::Shared;
use crate::held;
use crate::mailbox::Mailbox;
use crate::metrics::METRICS;
use crate::net::{ReadHalf, WriteHalf};
use crate::pool::{Identity, Pool};
use crate::session::{Session, Start, stopping};
use crate::upstream;

/// The answer to a request for encryption: not here.
const NO_ENCRYPTION: &[u8] = b"N";

/// Serves one client from start to end.
pub async fn serve_client(shared: Arc<Shared>, mut read: ReadHalf, write: WriteHalf) {
    let mut input = BytesMut::new();
    let limit = Duration::from_millis(limits::STARTUP_TIMEOUT_MS);
    let packet = match tokio::time::timeout(limit, first_packet(&mut read, &write, &mut input)).await {
        Ok(Ok(Some(packet))) => packet,
        Ok(Ok(None)) | Err(_) => return,
        Ok(Err(problem)) => return send_away(&write, &problem).await,
    };
    match packet {
        Packet::Cancel { process_id, secret } => shared.controls.cancel(process_id, &secret).await,
        Packet::Start { minor, parameters } => {
            let mut out = BytesMut::new();
            negotiate(minor, &parameters, &mut out);
            match log_in(&shared, &parameters).await {
                Ok(pool) => begin(shared, pool, &parameters, out, (read, write, input)).await,
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

/// The first packet that isn't a request for encryption; none if the client leaves.
async fn first_packet(
    read: &mut ReadHalf,
    write: &WriteHalf,
    input: &mut BytesMut,
) -> Result<Option<Packet>, Problem> {
    loop {
        match startup::split(input, limits::STARTUP_BYTES_MAX) {
            Ok(Some((packet, length))) => {
                input.advance(length);
                match packet {
                    Packet::Ssl | Packet::GssEnc => {
                        let _ = write.drain(&mut BytesMut::from(NO_ENCRYPTION)).await;
                    }
                    packet => return Ok(Some(packet)),
                }
            }
            Ok(None) => match read.fill(input).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Ok(None),
            },
            Err(error) => {
                let hint = "Speak PostgreSQL's protocol, version 3, to this port.";
                return Err(Problem::fatal("08P01", error.to_string(), hint));
            }
        }
    }
}

/// Newer clients are told that we speak 3.0 and which of their options we don't know.
fn negotiate(minor: u32, parameters: &[(String, String)], out: &mut BytesMut) {
    let unknown = parameters.iter().map(|(name, _)| name.as_str()).filter(|name| name.starts_with("_pq_."));
    if minor > 0 || unknown.clone().next().is_some() {
        backend::put_negotiate(out, 0, unknown);
    }
}

enum Refused {
    Problem(Problem),
    Frame(bytes::Bytes),
}

async fn log_in(shared: &Shared, parameters: &[(String, String)]) -> Result<Arc<Pool>, Refused> {
    let get = |wanted| parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let refuse = |code, message: &str, hint: &str| Err(Refused::Problem(Problem::fatal(code, message, hint)));
    if get("user").is_none_or(str::is_empty) {
        return refuse("28000", "no PostgreSQL user name specified in startup packet", "");
    }
    if get("replication").is_some_and(|value| !matches!(value, "false" | "off" | "no" | "0")) {
        let hint = "Connect to the server itself for replication.";
        return refuse("0A000", "replication connections don't go through the gateway", hint);
    }
    shared.pool(Identity::new(parameters)).await.map_err(|error| match error {
        None => Refused::Problem(Problem::fatal(
            "53300",
            format!("more than {} combinations of user, database and start-up settings", limits::POOLS_MAX),
            "Let clients start with the same settings.",
        )),
        Some(held::Error::Upstream(upstream::Error::Refused { frame, .. })) => Refused::Frame(frame),
        Some(error) => Refused::Problem(crate::session::no_connection(&error)),
    })
}

async fn begin(
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    parameters: &[(String, String)],
    mut out: BytesMut,
    (read, write, input): (ReadHalf, WriteHalf, BytesMut),
) {
    let application_name = parameters
        .iter()
        .find(|(name, _)| name == "application_name")
        .map_or("", |(_, value)| value)
        .to_owned();
    let mut secret = [0; 4];
    if let Err(error) = getrandom::fill(&mut secret) {
        tracing::error!(%error, "the system gives no random numbers");
        let problem = Problem::fatal("XX000", "the gateway's system gives no random numbers", "");
        return send_away(&write, &problem).await;
    }
    let session = shared.next_session();
    let mailbox = Mailbox::new(session, write);
    let control = shared.controls.register(mailbox.clone(), pool.clone(), secret);
    out.extend_from_slice(backend::AUTHENTICATION_OK);
    for (name, value) in &pool.parameters {
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
