//! From a client's startup packet to its session: the login, and the settings that the client is told.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use hotrow_auth::Credential;
use hotrow_connect::net::{ReadHalf, WriteHalf};
use hotrow_connect::upstream;
use hotrow_core::admission::ReportedSettings;
use hotrow_core::limits;
use hotrow_core::session::SwitchValues;
use hotrow_wire::SqlState;
use hotrow_wire::backend::{self, Problem};
use hotrow_wire::startup::Packet;
use tokio::time::Instant;

use crate::authentication::client::{Channel, LoginFailure, LoginRequest};
use crate::config::routes::Route;
use crate::front::opening::{self, Opened, send_away};
use crate::front::startup::Startup;
use crate::lane::Mailbox;
use crate::metrics::{METRICS, RefusalReason};
use crate::net::peer::Peer;
use crate::operator::console::{self, Operator};
use crate::pool::directory::NoPool;
use crate::pool::pools::{Full, PoolUse};
use crate::server::held;
use crate::server::problems::reason;
use crate::session::problems::stopping;
use crate::session::{SessionTask, Start};
use crate::shared::Shared;

/// Serves one client from its first byte to its last.
pub async fn serve_client(shared: Arc<Shared>, read: ReadHalf, write: WriteHalf, peer: Peer) {
    // The steps before the session are boxed, because the task of every client is as large as its largest step. One
    // deadline for all of them, because a client that has not logged in occupies a client's permit.
    let deadline = Instant::now() + Duration::from_millis(limits::STARTUP_TIMEOUT_MS);
    let tls = shared.config().tls.clone();
    let opened =
        tokio::time::timeout_at(deadline, Box::pin(opening::open(tls.as_deref(), read, write, peer))).await;
    let Ok(Some(Opened { packet, mut read, write, mut input, peer })) = opened else { return };
    tracing::trace!(?peer, "a client connects");
    match packet {
        Packet::Cancel { process_id, secret } => shared.controls.cancel(process_id, &secret).await,
        Packet::Start { minor, parameters } => {
            let mut out = BytesMut::new();
            negotiate(minor, &parameters, &mut out);
            let channel = Channel { read: &mut read, write: &write, input: &mut input, out: &mut out };
            let start = Startup::new(&parameters);
            let route = shared.config().routes.find(&start.database).cloned();
            let login = Box::pin(authenticate(&shared, &peer, &start, route.as_deref(), channel));
            let credential = tokio::time::timeout_at(deadline, login).await;
            let login = match credential {
                Ok(Ok(_)) if start.console && !peer.internal => {
                    let operator = Operator { user: start.user, is_local: peer.is_local() };
                    if let Some(problem) = operator.refusal(&shared) {
                        METRICS.refusals.add(RefusalReason::Other, 1);
                        return send_away(&write, &problem).await;
                    }
                    return Box::pin(console::serve(shared, operator, (read, write, input), out)).await;
                }
                Ok(Ok(credential)) => match route {
                    Some(route) => Box::pin(open(&shared, &start, route, credential)).await,
                    None => {
                        METRICS.refusals.add(RefusalReason::Other, 1);
                        Err(Refused::Problem(no_database(&start.database)))
                    }
                },
                Ok(Err(LoginFailure::Refused(problem))) => {
                    METRICS.refusals.add(RefusalReason::Other, 1);
                    Err(Refused::Problem(problem))
                }
                Ok(Err(LoginFailure::Left)) | Err(_) => return,
            };
            match login {
                Ok((used, named)) => begin(shared, used, named, peer, out, (read, write, input)).await,
                Err(Refused::Problem(problem)) => {
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
            send_away(
                &write,
                &Problem::fatal(
                    SqlState::FeatureNotSupported,
                    message,
                    "Use a client that supports protocol version 3.0.",
                ),
            )
            .await;
        }
        Packet::Ssl | Packet::GssEnc => {}
    }
}

/// Tells clients of newer protocol versions that the gateway speaks 3.0, and which of their options it does not know.
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

/// Authenticates a client.
async fn authenticate(
    shared: &Shared,
    peer: &Peer,
    start: &Startup,
    route: Option<&Route>,
    channel: Channel<'_>,
) -> Result<Credential, LoginFailure> {
    let refuse =
        |code, message: &str, hint: &str| Err(LoginFailure::Refused(Problem::fatal(code, message, hint)));
    if start.user.is_empty() {
        return refuse(
            SqlState::InvalidAuthorizationSpecification,
            "no PostgreSQL user name specified in startup packet",
            "",
        );
    }
    let replication = start.parameters.iter().find(|(name, _)| name == "replication");
    if replication.is_some_and(|(_, value)| !matches!(value.as_str(), "false" | "off" | "no" | "0")) {
        let hint = "Connect to the server itself for replication.";
        return refuse(
            SqlState::FeatureNotSupported,
            "replication connections do not go through the gateway",
            hint,
        );
    }
    let config = shared.config();
    // A client of an unknown database is told so after it has logged in, so strangers learn no names.
    let route = route.unwrap_or(config.routes.first());
    let (user, database, console) = (&*start.user, &*start.database, start.console);
    let request = LoginRequest { peer, user, database, console, route };
    shared.authentication.authenticate(&config, request, channel).await
}

/// The pool of a client that has logged in, the client's name, and its values of the gateway's settings.
async fn open(
    shared: &Shared,
    start: &Startup,
    route: Arc<Route>,
    credential: Credential,
) -> Result<(PoolUse, (String, SwitchValues)), Refused> {
    let switches = start.switch_values().map_err(Refused::Problem)?;
    let identity = shared.directory.identity(route, &start.parameters);
    let role = identity.user().to_owned();
    let refused = |error| match error {
        NoPool::Full(full) => {
            METRICS.refusals.add(RefusalReason::TooManyPools, 1);
            Refused::Problem(no_room(&full, &role))
        }
        NoPool::Error(held::Error::Upstream(error @ upstream::Error::Refused { .. })) => {
            METRICS.refusals.add_because(reason(&error), 1, &error);
            let reason = error.to_string();
            tracing::warn!(reason, "the server refused the gateway's login for a client");
            Refused::Frame(error.into_frame())
        }
        NoPool::Error(error) => Refused::Problem(crate::session::problems::login_problem(&error)),
    };
    let used = shared.directory.pool(identity, credential).await.map_err(refused)?;
    let name = used.pool().client_name(start.application_name.clone()).await;
    let name = name.map_err(|error| refused(NoPool::Error(error)))?;
    Ok((used, (name, switches)))
}

/// The error for a client of a database that no table of the settings names.
fn no_database(name: &str) -> Problem {
    Problem::fatal(
        SqlState::UndefinedDatabase,
        format!("database \"{name}\" is not in the gateway's settings"),
        "Add a [[database]] table with this name to the gateway's settings and reload, or one with name = \"*\" for all databases of a server.",
    )
}

/// The error for a client whose pool cannot be opened beside those in use.
fn no_room(full: &Full, role: &str) -> Problem {
    match full {
        Full::All => Problem::fatal(
            SqlState::TooManyConnections,
            format!(
                "all {} combinations of user, database and startup settings are in use",
                limits::POOLS_MAX
            ),
            "Use the same startup settings in all clients, or disconnect the clients of some combinations.",
        ),
        Full::Role => Problem::fatal(
            SqlState::TooManyConnections,
            format!(
                "role \"{role}\" uses all {} combinations of database and startup settings that one role may have",
                limits::POOLS_PER_ROLE_MAX
            ),
            "Use the same startup settings in the role's clients, or disconnect the clients of some combinations.",
        ),
    }
}

async fn begin(
    shared: Arc<Shared>,
    used: PoolUse,
    (application_name, switches): (String, SwitchValues),
    peer: Peer,
    mut out: BytesMut,
    (read, write, input): (ReadHalf, WriteHalf, BytesMut),
) {
    let pool = used.pool().clone();
    let member = match shared.directory.join(&pool) {
        Ok(member) => member,
        Err((most, whose)) => {
            METRICS.refusals.add(RefusalReason::TooManyClients, 1);
            let message = format!("sorry, too many clients already: {whose} may have {most}");
            let hint = "Disconnect clients, or raise clients_max in the [[pool]] table.";
            return send_away(&write, &Problem::fatal(SqlState::TooManyConnections, message, hint)).await;
        }
    };
    let mut secret = [0; 4];
    if let Err(error) = getrandom::fill(&mut secret) {
        tracing::error!(%error, "the system gives no random numbers");
        let problem = crate::session::problems::no_random_numbers();
        return send_away(&write, &problem).await;
    }
    let session = shared.next_session();
    let mailbox = Mailbox::new(session, write);
    let control = shared.controls.register(mailbox.clone(), pool.clone(), secret, (peer, &application_name));
    out.extend_from_slice(backend::AUTHENTICATION_OK);
    let server_settings = pool.server_settings();
    for (name, value) in &server_settings.parameters {
        let value = if name == "application_name" { &application_name } else { value };
        backend::put_parameter_status(&mut out, name, value);
    }
    backend::put_backend_key_data(&mut out, control.process_id, &secret);
    out.extend_from_slice(backend::READY_IDLE);
    mailbox.answers(|answers| answers.append(|bytes| bytes.extend_from_slice(&out)));
    let process_id = control.process_id;
    let _client = METRICS.clients.enter();
    let start = Start {
        membership: (used, member),
        directory: shared.directory.clone(),
        mailbox,
        control,
        read,
        input,
        application_name,
        switches,
        reported: ReportedSettings::new(pool.id, server_settings),
        stop: shared.stopping(),
    };
    if shared.is_stopping() {
        send_away(&start.mailbox.write, &stopping()).await;
    } else {
        SessionTask::new(start).run().await;
    }
    if let Some(control) = shared.controls.remove(process_id) {
        let traffic = &control.pool().context.shared.traffic;
        traffic.received_bytes.add(control.activity.received_bytes());
        traffic.sent_bytes.add(control.mailbox.sent_bytes());
    }
}
