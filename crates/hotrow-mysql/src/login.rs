//! The login of a client. The server itself authenticates the client: its random number is the client's, and the
//! client's proof is valid for it. Thus every plugin of the server works that needs no TLS, accounts mean what they mean
//! without a gateway, and the connection's ID is the one that KILL takes.

use std::time::Duration;

use hotrow_gateway::metrics::{METRICS, RefusalReason};
use hotrow_gateway::tls::Server;
use hotrow_mysql_client::Upstream;
use hotrow_mysql_client::own::{self, OwnError};
use hotrow_mysql_client::socket::{Socket, SocketError};
use hotrow_mysql_wire::capabilities::{DEPRECATE_EOF, RELAYED, SSL};
use hotrow_mysql_wire::handshake::{Greeting, Response, Switch};
use hotrow_mysql_wire::message::{EOF, ERR, Err as ErrPacket, OK, Ok as OkPacket};
use hotrow_mysql_wire::native::{self, Hash};
use hotrow_mysql_wire::packet::Packet;
use tokio::sync::Mutex;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::client_side::serve_tls;
use crate::config::Config;
use crate::limits;
use crate::logged_in::LoggedIn;
use crate::packing::Pools;
use crate::refusal::Refusal;

/// Logs a client in. None if the client or the server did not want to; the client has got the reason.
pub async fn login(
    mut client: Socket,
    config: &Config,
    pools: Option<&Pools>,
    aborted: &Mutex<()>,
) -> Option<LoggedIn> {
    let upstream = &config.upstream;
    let connected = timeout(config.server_wait, own::connect(upstream)).await;
    let (server, greeting) = match connected {
        Ok(Ok(connected)) => connected,
        Ok(Err(OwnError::Refused(error))) => {
            METRICS.refusals.add_because(RefusalReason::ServerRefuses, 1, &error);
            return refuse(&mut client, 0, &error.payload()).await;
        }
        Ok(Err(error)) => return refuse_without_server(&mut client, 0, upstream, &error.to_string()).await,
        Err(_) => {
            return refuse_without_server(&mut client, 0, upstream, "no greeting within server_wait_ms")
                .await;
        }
    };
    let login = Duration::from_millis(limits::LOGIN_MS);
    let tls = config.tls.as_deref();
    let Ok(Some(Responded { mut client, sequence, response })) =
        timeout(login, respond(client, &greeting, tls)).await
    else {
        finish(server, &greeting, upstream).await;
        return None;
    };
    // Before the server looks at them: a GRANT after the login is not for this session.
    let rights = match pools {
        Some(pools) => pools.rights_before_login(&response.user).await,
        None => None,
    };
    let sent = timeout(config.server_wait, own::respond(server, &greeting, upstream, response.clone())).await;
    let (mut server, sent) = match sent {
        Ok(Ok(sent)) => sent,
        failed => {
            let why = match failed {
                Ok(Err(error)) => error.to_string(),
                _ => "no TLS within server_wait_ms".to_owned(),
            };
            return refuse_without_server(&mut client, sequence.wrapping_add(1), upstream, &why).await;
        }
    };
    let is_native = response.plugin.as_deref() == Some(native::PLUGIN.as_bytes());
    let nonce = greeting.native_nonce().filter(|_| is_native);
    let mut proof = nonce.map(|nonce| (nonce, response.proof.clone()));
    // Under TLS, a login has one packet more on that side.
    let ahead = sequence.wrapping_sub(sent);
    let dialogue = authenticate(&mut client, &mut server, ahead, &mut proof);
    match timeout(login, dialogue).await {
        Ok(Ok(Decision::LoggedIn(status))) => Some(LoggedIn {
            client,
            server,
            deprecates_eof: response.capabilities & DEPRECATE_EOF != 0,
            response,
            proof,
            rights,
            thread: greeting.thread,
            status: Some(status),
        }),
        Ok(Ok(Decision::Denied)) => None, // the client has got the server's error
        _ => {
            reset(server, upstream, aborted).await;
            None
        }
    }
}

async fn refuse_without_server(
    client: &mut Socket,
    sequence: u8,
    upstream: &Upstream,
    why: &str,
) -> Option<LoggedIn> {
    METRICS.refusals.add_because(RefusalReason::NoServer, 1, &format!("{upstream}: {why}"));
    refuse(client, sequence, &Refusal::NoServer(why).payload()).await
}

async fn refuse(client: &mut Socket, sequence: u8, payload: &[u8]) -> Option<LoggedIn> {
    let _ = client.send(sequence, payload).await; // the client may be gone
    None
}

/// What a client has answered to the greeting.
struct Responded {
    client: Socket,
    /// The number of the packet.
    sequence: u8,
    response: Response,
}

/// Sends the greeting, and reads the client's response to it, under TLS if the client asks for it.
async fn respond(mut client: Socket, greeting: &Greeting, tls: Option<&Server>) -> Option<Responded> {
    let mut offered = greeting.clone().limited_to(RELAYED);
    if tls.is_some() {
        offered.capabilities |= SSL;
    }
    client.send(0, &offered.payload()).await.ok()?;
    let mut packet = client.next().await.ok()?;
    let wants_tls = packet.payload.first_chunk().is_some_and(|flags| u32::from_le_bytes(*flags) & SSL != 0);
    if let Some(tls) = tls.filter(|_| wants_tls) {
        let secured = serve_tls(client, tls).await;
        client =
            secured.inspect_err(|error| tracing::debug!(%error, "no TLS handshake with a client")).ok()?;
        packet = client.next().await.ok()?;
    }
    let Packet { sequence, payload } = packet;
    let why = match Response::read(&payload) {
        _ if wants_tls && tls.is_none() => {
            "the gateway has no certificate (tls_cert_file); connect without TLS".to_owned()
        }
        Ok(mut response) => {
            response.capabilities &= offered.capabilities & RELAYED;
            return Some(Responded { client, sequence, response });
        }
        Err(error) => error.to_string(),
    };
    METRICS.refusals.add_because(RefusalReason::Other, 1, &why);
    refuse(&mut client, sequence.wrapping_add(1), &Refusal::BadLogIn(&why).payload()).await;
    None
}

/// What the server says to a login.
enum Decision {
    /// Its status.
    LoggedIn(u16),
    Denied,
    /// It cannot use what the client has sent.
    Failed,
}

/// The error of a wrong name or password.
const ACCESS_DENIED: u16 = 1045;

/// Relays the dialogue up to the server's decision, and notes the last proof. The client's packets have greater numbers by `ahead`.
async fn authenticate(
    client: &mut Socket,
    server: &mut Socket,
    ahead: u8,
    proof: &mut Option<(Hash, Vec<u8>)>,
) -> Result<Decision, SocketError> {
    loop {
        tokio::select! {
            packet = server.next() => {
                let Packet { sequence, payload } = packet?;
                client.send(sequence.wrapping_add(ahead), &payload).await?;
                match payload.first() {
                    Some(&OK) => return Ok(Decision::LoggedIn(OkPacket::read(&payload)?.status)),
                    Some(&ERR) => {
                        METRICS.logins_failed.inc();
                        let code = ErrPacket::read(&payload)?.code;
                        return Ok(if code == ACCESS_DENIED { Decision::Denied } else { Decision::Failed });
                    }
                    Some(&EOF) => {
                        let switch = Switch::read(&payload).ok();
                        let nonce = switch.filter(|switch| switch.plugin == native::PLUGIN.as_bytes());
                        *proof = nonce.and_then(|switch| Some((switch.native_nonce()?, Vec::new())));
                    }
                    _ => *proof = None, // a dialogue of another plugin
                }
            }
            packet = client.next() => {
                let Packet { sequence, payload } = packet?;
                if let Some((_, proof)) = proof {
                    *proof = payload.to_vec();
                }
                server.send(sequence.wrapping_sub(ahead), &payload).await?;
            }
        }
    }
}

/// After a login that has ended in disorder, which the server counts as an interrupted connection, logs in as the gateway's own user.
/// That ends the count, at which the server would block the gateway's address (`max_connect_errors`). One at a time, so that many
/// cannot be counted together.
async fn reset(server: Socket, upstream: &Upstream, aborted: &Mutex<()>) {
    let _one = aborted.lock().await;
    drop(server);
    let fresh = async {
        let (server, greeting) = own::connect(upstream).await?;
        own::login_and_leave(server, &greeting, upstream).await
    };
    report(timeout(Duration::from_millis(limits::LOGIN_MS), fresh).await, upstream);
}

/// Ends a login that the client has abandoned, as the gateway's own user. Otherwise the server would count an
/// interrupted connection, and block the gateway's address after `max_connect_errors` of them.
async fn finish(server: Socket, greeting: &Greeting, upstream: &Upstream) {
    let own = own::login_and_leave(server, greeting, upstream);
    report(timeout(Duration::from_millis(limits::LOGIN_MS), own).await, upstream);
}

fn report(own: Result<Result<(), OwnError>, Elapsed>, upstream: &Upstream) {
    match own {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(server = %upstream, "the gateway's own user cannot log in: {error}"),
        Err(_) => tracing::warn!(server = %upstream, "the gateway's own user cannot log in in time"),
    }
}
