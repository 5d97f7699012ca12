//! The login at the server as a pool's user. Its secrets are kept with the pool, because lanes also log in when no
//! client does.

use std::sync::Arc;
use std::time::Instant;

use hotrow_auth::{
    Binding, Challenge, ClientFinal, ClientFirst, Credential, Keys, SCRAM_SHA_256, SCRAM_SHA_256_PLUS,
    ServerError,
};
use hotrow_wire::authentication::{self, Request};
use hotrow_wire::backend::tag;
use tokio_postgres::config::ChannelBinding;

use crate::lock::Lock;
use crate::upstream::{Error, Upstream};

/// A user of the server with its secrets.
#[derive(Debug)]
pub struct Login {
    user: String,
    secrets: Lock<Secrets>,
    /// A password is hashed once, even if several connections are made at a time.
    deriving: tokio::sync::Mutex<()>,
    /// Each open connection has a clone.
    connections: Arc<()>,
}

#[derive(Debug)]
struct Secrets {
    credential: Credential,
    /// The time of the login of the client that has brought it.
    since: Instant,
    /// The keys derived from the password with the server's salt.
    derived: Option<Derived>,
}

#[derive(Debug)]
struct Derived {
    salt: Vec<u8>,
    iterations: u32,
    keys: Keys,
}

/// The state of a SCRAM login.
enum Scram {
    First(ClientFirst),
    Last(ClientFinal),
}

impl Login {
    pub fn new(user: &str, credential: Credential) -> Self {
        Login::since(user, credential, Instant::now())
    }

    /// For the same user with the same credential.
    pub fn like(other: &Login) -> Self {
        let (credential, since) = other.latest();
        Login::since(&other.user, credential, since)
    }

    fn since(user: &str, credential: Credential, since: Instant) -> Self {
        let secrets = Lock::new(Secrets { credential, since, derived: None });
        let (deriving, connections) = (tokio::sync::Mutex::default(), Arc::default());
        Login { user: user.to_owned(), secrets, deriving, connections }
    }

    /// Counts a connection until the value is dropped.
    pub fn count(&self) -> Arc<()> {
        self.connections.clone()
    }

    /// Number of connections that are open or being opened.
    pub fn connections(&self) -> usize {
        Arc::strong_count(&self.connections) - 1
    }

    /// The credential of the user, and since when it is known.
    fn latest(&self) -> (Credential, Instant) {
        let secrets = self.secrets.lock();
        (secrets.credential.clone(), secrets.since)
    }

    /// Another client of this user has logged in: its credential is newer.
    pub fn renew(&self, newer: Credential) {
        self.renew_since(newer, Instant::now());
    }

    /// A client of this user comes from another pool, whose credential may be newer.
    pub fn renew_from(&self, other: &Login) {
        let (credential, since) = other.latest();
        self.renew_since(credential, since);
    }

    fn renew_since(&self, newer: Credential, since: Instant) {
        let mut secrets = self.secrets.lock();
        if since <= secrets.since {
            return;
        }
        secrets.since = since;
        let credential = secrets.credential.renewed(newer);
        if credential.password() != secrets.credential.password() {
            secrets.derived = None;
        }
        secrets.credential = credential;
    }

    /// Answers the server's requests until the login is complete.
    pub async fn authenticate(&self, upstream: &mut Upstream, binding: ChannelBinding) -> Result<(), Error> {
        let (mut scram, mut bound) = (None, false);
        loop {
            let frame = upstream.frame().await?;
            match frame[0] {
                tag::AUTHENTICATION => {}
                tag::ERROR => return Err(crate::upstream::refused(&frame)),
                tag::NOTICE => continue,
                other => return Err(Error::Protocol(format!("message {:?} at login", char::from(other)))),
            }
            match Request::read(&frame[5..])? {
                Request::Ok | Request::Cleartext | Request::Md5(_)
                    if binding == ChannelBinding::Require && !bound =>
                {
                    return Err(Error::NotBound);
                }
                Request::Ok if scram.is_none() => return Ok(()),
                Request::Ok => return Err(Error::Scram(ServerError::Impostor)),
                Request::Cleartext => {
                    let password = self.secrets.lock().credential.password().cloned();
                    let password = password.ok_or_else(|| self.missing_secret())?;
                    authentication::put_password(&mut upstream.output, password.bytes());
                }
                Request::Md5(salt) => {
                    let response = self.secrets.lock().credential.md5(&self.user, salt);
                    let response = response.ok_or_else(|| self.missing_secret())?;
                    authentication::put_password(&mut upstream.output, response.bytes());
                }
                Request::Sasl(mechanisms) => {
                    let (mechanism, channel) = mechanism(mechanisms, upstream, binding)?;
                    bound = mechanism == SCRAM_SHA_256_PLUS;
                    scram = Some(Scram::First(begin(mechanism, channel, upstream)?));
                }
                Request::SaslContinue(message) => {
                    let Some(Scram::First(first)) = scram else { return Err(OUT_OF_ORDER) };
                    let challenge = first.challenged(message)?;
                    let keys = self.keys(&challenge).await?;
                    let last = challenge.prove(&keys);
                    authentication::put_response(&mut upstream.output, last.message.as_bytes());
                    scram = Some(Scram::Last(last));
                }
                Request::SaslFinal(message) => {
                    let Some(Scram::Last(last)) = scram else { return Err(OUT_OF_ORDER) };
                    last.confirmed(message)?;
                    scram = None;
                }
                Request::Other(_) => return Err(Error::Authentication("an unknown kind of authentication")),
            }
            upstream.flush().await?;
        }
    }

    /// The keys for a proof: those that a client has proven if they fit, else those of the password.
    async fn keys(&self, challenge: &Challenge) -> Result<Keys, Error> {
        if let Some(keys) = self.known_keys(challenge) {
            return Ok(keys);
        }
        let _one_at_a_time = self.deriving.lock().await;
        if let Some(keys) = self.known_keys(challenge) {
            return Ok(keys);
        }
        let password = self.secrets.lock().credential.password().cloned();
        let password = password.ok_or_else(|| self.missing_secret())?;
        let (salt, iterations) = (challenge.salt.clone(), challenge.iterations);
        let hash = move || (Keys::derive(&password, &salt, iterations), salt);
        let (keys, salt) = tokio::task::spawn_blocking(hash)
            .await
            .map_err(|error| Error::Protocol(format!("a password could not be hashed: {error}")))?;
        self.secrets.lock().derived = Some(Derived { salt, iterations, keys: keys.clone() });
        Ok(keys)
    }

    fn known_keys(&self, challenge: &Challenge) -> Option<Keys> {
        let secrets = self.secrets.lock();
        let derived = secrets.derived.as_ref();
        let fits = |it: &&Derived| it.salt == challenge.salt && it.iterations == challenge.iterations;
        secrets
            .credential
            .keys(challenge)
            .or_else(|| derived.filter(fits).map(|derived| derived.keys.clone()))
    }

    fn missing_secret(&self) -> Error {
        let user = self.user.clone();
        if self.secrets.lock().credential.has_key() {
            Error::OtherVerifier(user)
        } else {
            Error::NoPassword(user)
        }
    }
}

const OUT_OF_ORDER: Error = Error::Authentication("SASL messages out of order");

/// The mechanism of the login, bound to the server's certificate if both sides support it. If the server does not
/// offer it, the gateway tells the server that it could: the server can then detect that an attacker has hidden its
/// offer.
fn mechanism(
    offered: &[u8],
    upstream: &Upstream,
    binding: ChannelBinding,
) -> Result<(&'static str, Binding), Error> {
    let offers = |wanted: &str| authentication::mechanisms(offered).any(|name| name == wanted.as_bytes());
    let end_point = upstream.end_point.as_ref().filter(|_| binding != ChannelBinding::Disable);
    match end_point {
        Some(hash) if offers(SCRAM_SHA_256_PLUS) => {
            Ok((SCRAM_SHA_256_PLUS, Binding::EndPoint(hash.to_vec())))
        }
        _ if binding == ChannelBinding::Require => Err(Error::NotBound),
        _ if !offers(SCRAM_SHA_256) => Err(Error::Authentication("an unknown SASL mechanism")),
        Some(_) => Ok((SCRAM_SHA_256, Binding::NotOffered)),
        None => Ok((SCRAM_SHA_256, Binding::None)),
    }
}

fn begin(mechanism: &str, channel: Binding, upstream: &mut Upstream) -> Result<ClientFirst, Error> {
    let mut nonce = [0; 18];
    getrandom::fill(&mut nonce).map_err(|error| Error::Protocol(format!("no random numbers: {error}")))?;
    let first = ClientFirst::new(nonce, channel);
    let message = first.message();
    authentication::put_initial_response(&mut upstream.output, mechanism, message.as_bytes());
    Ok(first)
}
