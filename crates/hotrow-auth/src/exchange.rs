//! A log-in as messages: what to ask a client next, and what its answer means. Whoever carries the messages decides nothing.

use std::sync::Arc;

use crate::account::{Account, ITERATIONS};
use crate::hba::Method;
use crate::md5::{md5_response, md5_secret};
use crate::scram::server::{Failure, Server, ServerFinal};
use crate::secret::{Key, Password};
use crate::stored::ProcessKey;
use crate::verifier::Verifier;

/// What is known before the first message.
#[derive(Debug)]
pub struct LoginContext {
    /// Who the client says it is.
    pub user: String,
    /// What is known of that user.
    pub account: Option<Arc<Account>>,
    /// For salts of users who aren't there.
    pub key: ProcessKey,
    /// Random.
    pub nonce: [u8; 18],
    /// The hash of our certificate, with TLS.
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

/// Where a log-in is. It has the last message to the client behind it and waits for the answer.
#[derive(Debug)]
pub struct Exchange(Box<State>);

#[derive(Debug)]
enum State {
    First(Server),
    Last(ServerFinal),
    Md5 { user: String, secret: Password, salt: [u8; 4] },
    Cleartext(LoginContext),
}

/// What comes of an answer.
#[derive(Debug)]
pub enum Step {
    /// Go on with this message.
    Continue(AuthMessage, Exchange),
    /// The client is who it says; tell it this, if anything.
    Done(Option<AuthMessage>, Proven),
}

/// What the client has shown that the server would like to see, too.
#[derive(Debug)]
pub enum Proven {
    /// Nothing that could be passed on.
    Nothing,
    /// The password.
    Password(Password),
    /// The key that makes SCRAM's proofs.
    Key(Key),
}

/// Why a client isn't let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The message isn't what it should be.
    #[error("{0}")]
    Protocol(&'static str),
    /// SCRAM's messages have a form of their own.
    #[error("malformed SCRAM message: {0}")]
    Malformed(&'static str),
    /// Nothing was typed.
    #[error("empty password returned by client")]
    Empty,
    /// Somebody between us says that we can't bind.
    #[error(
        "SCRAM channel binding negotiation error: the client believes that this side can't bind, and it can"
    )]
    Downgrade,
    /// Somebody between us passes the messages on.
    #[error("SCRAM channel binding check failed")]
    OtherConnection,
    /// The proof is wrong, or there is no such user: nobody learns which.
    #[error("password authentication failed for user \"{0}\"")]
    Wrong(String),
}

impl Exchange {
    /// The first message for this method; none where nothing has to be asked.
    pub fn begin(method: Method, context: LoginContext) -> Option<(AuthMessage, Self)> {
        match method {
            Method::Trust | Method::Reject | Method::Cert => None,
            Method::Password => Some((AuthMessage::Cleartext, Exchange(Box::new(State::Cleartext(context))))),
            Method::Md5 => {
                // As in PostgreSQL: md5 where that is what is known, SCRAM for the others and for those who aren't there.
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

    /// Whether the next answer takes a millisecond to check, and should not be checked where others wait.
    pub fn is_expensive(&self) -> bool {
        matches!(*self.0, State::Cleartext(_))
    }

    /// Takes the body of the client's answer. `user` is for the words of a refusal.
    pub fn answer(self, user: &str, body: &[u8]) -> Result<Step, Refusal> {
        let scram = |failure| match failure {
            Failure::Malformed(detail) => Refusal::Malformed(detail),
            Failure::Downgrade => Refusal::Downgrade,
            Failure::OtherConnection => Refusal::OtherConnection,
            Failure::Wrong => Refusal::Wrong(user.to_owned()),
        };
        match *self.0 {
            State::First(server) => {
                let (mechanism, message) = initial_response(body)?;
                let next = server.first(mechanism, message).map_err(scram)?;
                Ok(Step::Continue(
                    AuthMessage::SaslContinue(next.message().to_owned()),
                    Exchange(Box::new(State::Last(next))),
                ))
            }
            State::Last(server) => {
                let (message, key) = server.last(body).map_err(scram)?;
                Ok(Step::Done(Some(AuthMessage::SaslFinal(message)), Proven::Key(key)))
            }
            State::Md5 { user, secret, salt } => {
                let right = md5_response(&secret, salt) == password(body)?;
                if right { Ok(Step::Done(None, Proven::Nothing)) } else { Err(Refusal::Wrong(user)) }
            }
            State::Cleartext(context) => {
                let password = password(body)?;
                let right = is_password(&context, &password);
                if right {
                    Ok(Step::Done(None, Proven::Password(password)))
                } else {
                    Err(Refusal::Wrong(context.user))
                }
            }
        }
    }
}

/// The same work whether there is such a user or not.
fn is_password(context: &LoginContext, password: &Password) -> bool {
    let LoginContext { user, account, key, .. } = context;
    match account.as_ref().and_then(|account| account.verifier()) {
        Some(verifier) => verifier.is_of(password),
        None => {
            // What comes of it is of no use; that it takes its time is.
            let _ = Verifier::derive(password, &key.salt_for(user), ITERATIONS);
            let known = account.as_ref().and_then(|account| account.md5(user));
            known.is_some_and(|secret| secret == md5_secret(user, password))
        }
    }
}

fn password(body: &[u8]) -> Result<Password, Refusal> {
    match body.split_last() {
        Some((0, [])) => Err(Refusal::Empty),
        Some((0, password)) if !password.contains(&0) => Ok(Password::new(password.to_vec())),
        _ => Err(Refusal::Protocol("invalid password packet size")),
    }
}

fn initial_response(body: &[u8]) -> Result<(&str, &[u8]), Refusal> {
    let malformed = Refusal::Protocol("invalid SASL initial response");
    let end = body.iter().position(|byte| *byte == 0).ok_or(malformed.clone())?;
    let mechanism = std::str::from_utf8(&body[..end]).map_err(|_| malformed.clone())?;
    let (length, message) = body[end + 1..].split_first_chunk::<4>().ok_or(malformed.clone())?;
    let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| malformed.clone())?;
    if length == message.len() { Ok((mechanism, message)) } else { Err(malformed) }
}

#[cfg(test)]
mod tests;
