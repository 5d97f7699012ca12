//! The authentication exchange: the next message to a client, and the meaning of its answer. The caller that
//! carries the messages decides nothing.

use std::sync::Arc;

use crate::account::{Account, ITERATIONS};
use crate::hba::Method;
use crate::md5::{md5_response, md5_secret};
use crate::scram::server::{Failure, Server, ServerFinal};
use crate::secret::{Key, Password};
use crate::stored::ProcessKey;
use crate::verifier::Verifier;

/// The data that an exchange starts with.
#[derive(Debug)]
pub struct LoginContext {
    /// The user name from the startup packet.
    pub user: String,
    /// The user's account, if known.
    pub account: Option<Arc<Account>>,
    /// The key for salts of unknown users.
    pub key: ProcessKey,
    /// A random nonce.
    pub nonce: [u8; 18],
    /// The hash of the gateway's certificate, with TLS.
    pub end_point: Option<Vec<u8>>,
}

/// A message to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthMessage {
    /// AuthenticationSASL with these mechanisms.
    Sasl(&'static [&'static str]),
    /// AuthenticationSASLContinue.
    SaslContinue(String),
    /// AuthenticationSASLFinal.
    SaslFinal(String),
    /// AuthenticationMD5Password.
    Md5([u8; 4]),
    /// AuthenticationCleartextPassword.
    Cleartext,
}

/// An exchange that has sent its last message and waits for the client's answer.
#[derive(Debug)]
pub struct Exchange(Box<State>);

#[derive(Debug)]
enum State {
    First(Server),
    /// The client has chosen this mechanism, and sends its first message after an empty challenge.
    Chosen(Server, String),
    Last(ServerFinal),
    Md5 {
        user: String,
        secret: Password,
        salt: [u8; 4],
    },
    Cleartext(LoginContext),
}

/// The result of an answer.
#[derive(Debug)]
pub enum Step {
    Continue(AuthMessage, Exchange),
    /// The client is authenticated. Send it this message, if there is one.
    Done(Option<AuthMessage>, Proven),
}

/// Credentials that the client has proven and that the server may request too.
#[derive(Debug)]
pub enum Proven {
    /// Nothing that could be passed on.
    Nothing,
    Password(Password),
    /// The key with which SCRAM proofs are computed.
    Key(Key),
}

/// The reason why a client is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// An invalid message.
    #[error("{0}")]
    Protocol(&'static str),
    /// A malformed SCRAM message.
    #[error("malformed SCRAM message: {0}")]
    Malformed(&'static str),
    /// An empty password.
    #[error("empty password returned by client")]
    Empty,
    /// An attacker in between claims that this side does not support channel binding.
    #[error(
        "SCRAM channel binding negotiation error: the client supports SCRAM channel binding but thinks the server does not"
    )]
    Downgrade,
    /// An attacker in between relays the messages.
    #[error("SCRAM channel binding check failed")]
    OtherConnection,
    /// The proof is wrong, or the user does not exist. The message does not tell which.
    #[error("password authentication failed for user \"{0}\"")]
    Wrong(String),
}

impl Exchange {
    /// The first message of this method. `None` if the method needs no message.
    pub fn begin(method: Method, context: LoginContext) -> Option<(AuthMessage, Self)> {
        match method {
            Method::Trust | Method::Reject | Method::Cert => None,
            Method::Password => Some((AuthMessage::Cleartext, Exchange(Box::new(State::Cleartext(context))))),
            Method::Md5 => {
                // As in PostgreSQL: md5 if the secret is an md5 hash or a password, SCRAM for other secrets
                // and for unknown users.
                match context.account.as_ref().and_then(|account| account.md5(&context.user)) {
                    Some(secret) => {
                        let salt = *context.nonce.first_chunk().expect("18 bytes begin with 4");
                        let state = State::Md5 { user: context.user, secret, salt };
                        Some((AuthMessage::Md5(salt), Exchange(Box::new(state))))
                    }
                    None => Some(Self::scram(context)),
                }
            }
            Method::ScramSha256 => Some(Self::scram(context)),
        }
    }

    fn scram(context: LoginContext) -> (AuthMessage, Self) {
        let LoginContext { user, account, key, nonce, end_point } = context;
        let server = Server::new(&user, account.as_deref(), &key, nonce, end_point);
        (AuthMessage::Sasl(server.mechanisms()), Exchange(Box::new(State::First(server))))
    }

    /// Whether checking the next answer takes a millisecond. It should not run on a thread for which others
    /// wait.
    pub fn is_expensive(&self) -> bool {
        matches!(*self.0, State::Cleartext(_))
    }

    /// Processes the body of the client's answer. `user` is for the text of an error.
    pub fn answer(self, user: &str, body: &[u8]) -> Result<Step, Rejection> {
        let scram = |failure| match failure {
            Failure::Malformed(detail) => Rejection::Malformed(detail),
            Failure::Downgrade => Rejection::Downgrade,
            Failure::OtherConnection => Rejection::OtherConnection,
            Failure::Wrong => Rejection::Wrong(user.to_owned()),
        };
        match *self.0 {
            State::First(server) => match initial_response(body)? {
                (mechanism, None) if server.mechanisms().contains(&mechanism) => Ok(Step::Continue(
                    AuthMessage::SaslContinue(String::new()),
                    Exchange(Box::new(State::Chosen(server, mechanism.to_owned()))),
                )),
                (mechanism, message) => {
                    challenge(server.first(mechanism, message.unwrap_or_default()).map_err(scram)?)
                }
            },
            State::Chosen(server, mechanism) => challenge(server.first(&mechanism, body).map_err(scram)?),
            State::Last(server) => {
                let (message, key) = server.last(body).map_err(scram)?;
                Ok(Step::Done(Some(AuthMessage::SaslFinal(message)), Proven::Key(key)))
            }
            State::Md5 { user, secret, salt } => {
                let right = md5_response(&secret, salt) == password(body)?;
                if right { Ok(Step::Done(None, Proven::Nothing)) } else { Err(Rejection::Wrong(user)) }
            }
            State::Cleartext(context) => {
                let password = password(body)?;
                let right = is_password(&context, &password);
                if right {
                    Ok(Step::Done(None, Proven::Password(password)))
                } else {
                    Err(Rejection::Wrong(context.user))
                }
            }
        }
    }
}

fn challenge(next: ServerFinal) -> Result<Step, Rejection> {
    let message = AuthMessage::SaslContinue(next.message().to_owned());
    Ok(Step::Continue(message, Exchange(Box::new(State::Last(next)))))
}

/// Does the same work for known and unknown users.
fn is_password(context: &LoginContext, password: &Password) -> bool {
    let LoginContext { user, account, key, .. } = context;
    match account.as_ref().and_then(|account| account.verifier()) {
        Some(verifier) => verifier.is_of(password),
        None => {
            // The result is not used. The work takes the same time as for a known user.
            let _ = Verifier::derive(password, &key.salt_for(user), ITERATIONS);
            let known = account.as_ref().and_then(|account| account.md5(user));
            known.is_some_and(|secret| secret == md5_secret(user, password))
        }
    }
}

fn password(body: &[u8]) -> Result<Password, Rejection> {
    match body.split_last() {
        Some((0, [])) => Err(Rejection::Empty),
        Some((0, password)) if !password.contains(&0) => Ok(Password::new(password.to_vec())),
        _ => Err(Rejection::Protocol("invalid password packet size")),
    }
}

/// The mechanism, and the client's first message, if it is there.
fn initial_response(body: &[u8]) -> Result<(&str, Option<&[u8]>), Rejection> {
    let malformed = Rejection::Protocol("invalid SASL initial response");
    let end = body.iter().position(|byte| *byte == 0).ok_or(malformed.clone())?;
    let mechanism = std::str::from_utf8(&body[..end]).map_err(|_| malformed.clone())?;
    let (length, message) = body[end + 1..].split_first_chunk::<4>().ok_or(malformed.clone())?;
    match i32::from_be_bytes(*length) {
        -1 if message.is_empty() => Ok((mechanism, None)),
        length if usize::try_from(length) == Ok(message.len()) => Ok((mechanism, Some(message))),
        _ => Err(malformed),
    }
}

#[cfg(test)]
mod tests;
