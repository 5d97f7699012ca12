//! One client's login: carries the messages between the client and `hotrow-auth`, which decides.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use hotrow_auth::{
    Account, AuthMessage, Certificate, Credential, Exchange, LoginAttempt, LoginContext, Method, Proven,
    Rejection, Rule, Step,
};
use hotrow_connect::net::{ReadHalf, WriteHalf};
use hotrow_core::limits;
use hotrow_wire::SqlState;
use hotrow_wire::authentication::{self, Request};
use hotrow_wire::backend::Problem;
use hotrow_wire::split;
use zeroize::{Zeroize, Zeroizing};

use super::Authentication;
use crate::config::Config;
use crate::config::routes::Route;
use crate::metrics::METRICS;
use crate::net::peer::Peer;
use crate::server::held;
use crate::session::problems::{login_problem, no_random_numbers};

/// A client that asks to log in.
#[derive(Clone, Copy, Debug)]
pub struct LoginRequest<'a> {
    /// The other end of the connection.
    pub peer: &'a Peer,
    /// The user that the client names.
    pub user: &'a str,
    /// The database that the client names.
    pub database: &'a str,
    pub console: bool,
    /// Where the clients of the database get to. Its server is asked for secrets.
    pub route: &'a Route,
}

/// The connection to the client.
#[derive(Debug)]
pub struct Channel<'a> {
    pub read: &'a mut ReadHalf,
    /// The half that is written.
    pub write: &'a WriteHalf,
    /// Bytes that were read and are not processed.
    pub input: &'a mut BytesMut,
    /// Bytes to be written.
    pub out: &'a mut BytesMut,
}

/// Why a client is not logged in.
#[derive(Debug)]
pub enum LoginFailure {
    /// It gets this error.
    Refused(Problem),
    /// It has disconnected.
    Left,
}

impl Authentication {
    /// Asks a client for the proof that the access file demands. Returns the credential to log in at the server as this
    /// user, or as the user that the database's table sets.
    pub async fn authenticate(
        &self,
        config: &Config,
        request: LoginRequest<'_>,
        channel: Channel<'_>,
    ) -> Result<Credential, LoginFailure> {
        let lists = self.lists.load_full();
        if request.peer.internal {
            let forced = forced_credential(request.route, &lists.accounts);
            return Ok(forced.unwrap_or_else(|| request.route.server.upstream.credential()));
        }
        let method = self.rule(request)?;
        let account = match method {
            Method::Trust | Method::Cert | Method::Reject => lists.accounts.get(request.user).cloned(),
            Method::ScramSha256 | Method::Md5 | Method::Password => self
                .account(config, &request.route.server, request.user)
                .await
                .map_err(|error| LoginFailure::Refused(login_problem(&held::Error::Upstream(error))))?,
        };
        let mut nonce = [0; 18];
        getrandom::fill(&mut nonce).map_err(|error| {
            tracing::error!(%error, "the system gives no random numbers");
            LoginFailure::Refused(no_random_numbers())
        })?;
        let offer = LoginContext {
            user: request.user.to_owned(),
            account: account.clone(),
            key: self.key.clone(),
            nonce,
            end_point: request.peer.tls.as_ref().and_then(|tls| Some(tls.end_point.as_ref()?.to_vec())),
        };
        let proven = match Exchange::begin(method, offer) {
            None => Proven::Nothing,
            Some((ask, exchange)) => self.converse(request, channel, ask, exchange).await?,
        };
        let server = &request.route.server.upstream;
        if let Some(credential) = forced_credential(request.route, &lists.accounts) {
            return Ok(credential);
        }
        let is_own_user = request.user == server.user || method == Method::Trust;
        let fallback = server.password.clone().filter(|_| is_own_user);
        Ok(Credential::new(account.as_deref(), proven, fallback))
    }

    /// The method of the access file's rule for this client.
    fn rule(&self, request: LoginRequest<'_>) -> Result<Method, LoginFailure> {
        let LoginRequest { peer, user, database, console, .. } = request;
        let asking = LoginAttempt {
            address: peer.address.map(|address| address.ip()),
            tls: peer.tls.is_some(),
            user,
            database,
            console,
        };
        let lists = self.lists.load();
        let rule = lists.hba.decide(&asking);
        let host =
            peer.address.map_or("[local]".to_owned(), |address| address.ip().to_canonical().to_string());
        let encryption = if peer.tls.is_some() { "SSL encryption" } else { "no encryption" };
        let client = format!("host \"{host}\", user \"{user}\", database \"{database}\", {encryption}");
        let result = match rule {
            None => Err(refuse(
                SqlState::InvalidAuthorizationSpecification,
                format!("no pg_hba.conf entry for {client}"),
                HBA_HINT,
            )),
            Some(Rule { method: Method::Reject, .. }) => Err(refuse(
                SqlState::InvalidAuthorizationSpecification,
                format!("pg_hba.conf rejects connection for {client}"),
                HBA_HINT,
            )),
            Some(rule) => certificate(rule.certificate, peer, user).map(|()| rule.method),
        };
        let line = rule.map(|rule| rule.line);
        match &result {
            Ok(method) => tracing::debug!(client, line, %method, "authenticating a client"),
            Err(_) => {
                METRICS.logins_failed.inc();
                tracing::info!(client, line, "the access file rejects a client");
            }
        }
        result
    }

    async fn converse(
        &self,
        request: LoginRequest<'_>,
        mut channel: Channel<'_>,
        mut ask: AuthMessage,
        mut exchange: Exchange,
    ) -> Result<Proven, LoginFailure> {
        loop {
            put(&ask, channel.out);
            channel.write.drain(channel.out).await.map_err(|_| LoginFailure::Left)?;
            let body = response(&mut channel).await?;
            match self.check(request, exchange, body).await? {
                Step::Continue(next, behind) => (ask, exchange) = (next, behind),
                Step::Done(last, proven) => {
                    if let Some(last) = last {
                        put(&last, channel.out);
                    }
                    return Ok(proven);
                }
            }
        }
    }

    async fn check(
        &self,
        request: LoginRequest<'_>,
        exchange: Exchange,
        body: Zeroizing<Vec<u8>>,
    ) -> Result<Step, LoginFailure> {
        let answer = if exchange.is_expensive() {
            let _permit = self.hashing.acquire().await.expect("the semaphore is never closed");
            let user: Arc<str> = request.user.into();
            let hash = move || exchange.answer(&user, &body);
            tokio::task::spawn_blocking(hash).await.map_err(|_| LoginFailure::Left)?
        } else {
            exchange.answer(request.user, &body)
        };
        answer.map_err(|refusal| {
            METRICS.logins_failed.inc();
            self.query(&request.route.server).forget(request.user);
            let address = request.peer.address.map_or("[local]".to_owned(), |address| address.to_string());
            tracing::info!(user = request.user, address, %refusal, "a client failed to authenticate");
            LoginFailure::Refused(problem(&refusal))
        })
    }
}

/// The credential of the user that the database's table sets, if it sets one: with the table's password, else with the
/// secret in users_file.
fn forced_credential(route: &Route, accounts: &HashMap<String, Arc<Account>>) -> Option<Credential> {
    let user = route.forced_user()?;
    let password = route.password();
    let account = accounts.get(user).filter(|_| password.is_none());
    Some(Credential::new(account.map(Arc::as_ref), Proven::Nothing, password))
}

const HBA_HINT: &str = "The gateway's access file decides: change hba_file and reload. Without hba_file, only clients on this machine are admitted.";

fn refuse(code: SqlState, message: impl Into<String>, hint: &str) -> LoginFailure {
    LoginFailure::Refused(Problem::fatal(code, message, hint))
}

fn problem(refusal: &Rejection) -> Problem {
    let code = match refusal {
        Rejection::Protocol(_) | Rejection::Malformed(_) => SqlState::ProtocolViolation,
        Rejection::Empty | Rejection::Wrong(_) => SqlState::InvalidPassword,
        Rejection::Downgrade | Rejection::OtherConnection => SqlState::InvalidAuthorizationSpecification,
    };
    Problem::fatal(code, refusal.to_string(), "")
}

fn certificate(wanted: Certificate, peer: &Peer, user: &str) -> Result<(), LoginFailure> {
    let name = peer.tls.as_ref().and_then(|tls| tls.client_name.as_deref());
    match (wanted, name) {
        (Certificate::NotNeeded, _) | (Certificate::Verified, Some(_)) => Ok(()),
        (Certificate::OfUser, Some(name)) if name == user => Ok(()),
        (Certificate::OfUser, Some(_)) => {
            let message = format!("certificate authentication failed for user \"{user}\"");
            Err(refuse(
                SqlState::InvalidAuthorizationSpecification,
                message,
                "Connect as the user in the certificate's common name, or set sslcert to a certificate of this user.",
            ))
        }
        (Certificate::Verified | Certificate::OfUser, None) => {
            let hint = "Set sslcert and sslkey to a certificate of an authority in the gateway's tls_client_ca_file.";
            Err(refuse(
                SqlState::InvalidAuthorizationSpecification,
                "connection requires a valid client certificate",
                hint,
            ))
        }
    }
}

fn put(ask: &AuthMessage, out: &mut BytesMut) {
    match ask {
        AuthMessage::Sasl(names) => Request::Sasl(&authentication::mechanism_list(names)).put(out),
        AuthMessage::SaslContinue(message) => Request::SaslContinue(message.as_bytes()).put(out),
        AuthMessage::SaslFinal(message) => Request::SaslFinal(message.as_bytes()).put(out),
        AuthMessage::Md5(salt) => Request::Md5(*salt).put(out),
        AuthMessage::Cleartext => Request::Cleartext.put(out),
    }
}

/// The body of the client's answer. The buffer is overwritten, because the answer may be a password.
async fn response(channel: &mut Channel<'_>) -> Result<Zeroizing<Vec<u8>>, LoginFailure> {
    loop {
        match split(channel.input, |_| limits::SMALL_MESSAGE_BYTES_MAX) {
            Ok(Some(frame)) if frame.tag == authentication::RESPONSE => {
                let (body, length) = (Zeroizing::new(frame.body().to_vec()), frame.bytes.len());
                channel.input[..length].zeroize();
                channel.input.advance(length);
                return Ok(body);
            }
            Ok(Some(frame)) => {
                let message = format!("expected password response, got message type {}", frame.tag);
                return Err(refuse(SqlState::ProtocolViolation, message, ""));
            }
            Ok(None) => match channel.read.fill(channel.input).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Err(LoginFailure::Left),
            },
            Err(error) => return Err(refuse(SqlState::ProtocolViolation, error.to_string(), "")),
        }
    }
}
