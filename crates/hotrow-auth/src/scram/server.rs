//! The server's side of SCRAM: requests a proof from a client and checks it. An unknown user gets the same
//! messages and costs the same hashes, and then fails.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Binding, PLAIN, PLUS, any_attribute, attribute, is_nonce};
use crate::account::{Account, ITERATIONS};
use crate::hash;
use crate::secret::Key;
use crate::stored::ProcessKey;
use crate::verifier::Verifier;

/// The reason why a login fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A malformed message.
    Malformed(&'static str),
    /// Both sides support channel binding, and the client was told that the gateway does not.
    Downgrade,
    /// The proof belongs to another connection.
    OtherConnection,
    /// The proof is wrong, or the user does not exist.
    Wrong,
}

/// Waits for the client's first message.
#[derive(Debug)]
pub struct Server {
    verifier: Verifier,
    /// The verifier of an unknown user. No proof matches it.
    doomed: bool,
    pub(super) nonce: String,
    end_point: Option<Vec<u8>>,
}

/// Waits for the proof.
#[derive(Debug)]
pub struct ServerFinal {
    server: Server,
    binding: Binding,
    client_first_bare: String,
    message: String,
    nonce: String,
}

impl Server {
    /// For this user. `account` is `None` for an unknown user. `nonce` must be random. `end_point` is the
    /// value for channel binding.
    pub fn new(
        user: &str,
        account: Option<&Account>,
        key: &ProcessKey,
        nonce: [u8; 18],
        end_point: Option<Vec<u8>>,
    ) -> Self {
        // Derived for every user. Known users therefore take no longer than unknown ones.
        let salt = key.salt_for(user).to_vec();
        let nothing = Key::new([0; 32]);
        let mock =
            Verifier { iterations: ITERATIONS, salt, stored_key: nothing.clone(), server_key: nothing };
        let verifier = account.and_then(Account::verifier);
        Server {
            doomed: verifier.is_none(),
            verifier: verifier.cloned().unwrap_or(mock),
            nonce: STANDARD.encode(nonce),
            end_point,
        }
    }

    /// The mechanisms to offer, the preferred one first.
    pub fn mechanisms(&self) -> &'static [&'static str] {
        if self.end_point.is_some() { &[PLUS, PLAIN] } else { &[PLAIN] }
    }

    /// Processes the first message. The result contains the answer.
    pub fn first(self, mechanism: &str, message: &[u8]) -> Result<ServerFinal, Failure> {
        if !self.mechanisms().contains(&mechanism) {
            return Err(Failure::Malformed("Client selected an invalid SASL authentication mechanism."));
        }
        let text = std::str::from_utf8(message).map_err(|_| Failure::Malformed("It is not valid UTF-8."))?;
        let (flag, rest) = text.split_once(',').ok_or(Failure::Malformed("It has no comma."))?;
        let binding = self.binding(mechanism, flag)?;
        let bare = rest.strip_prefix(',').ok_or(Failure::Malformed("Client uses authorization identity."))?;
        let mut rest = bare;
        // The user name here is ignored. The startup packet contains the valid one.
        attribute(&mut rest, 'n').ok_or(Failure::Malformed("Attribute \"n\" expected."))?;
        let client_nonce = attribute(&mut rest, 'r').filter(|nonce| is_nonce(nonce));
        let client_nonce = client_nonce.ok_or(Failure::Malformed("Attribute \"r\" expected."))?;
        let nonce = format!("{client_nonce}{}", self.nonce);
        let salt = STANDARD.encode(&self.verifier.salt);
        let message = format!("r={nonce},s={salt},i={}", self.verifier.iterations);
        Ok(ServerFinal { server: self, binding, client_first_bare: bare.to_owned(), message, nonce })
    }

    fn binding(&self, mechanism: &str, flag: &str) -> Result<Binding, Failure> {
        match (&self.end_point, flag) {
            (Some(end_point), "p=tls-server-end-point") if mechanism == PLUS => {
                Ok(Binding::EndPoint(end_point.clone()))
            }
            _ if mechanism == PLUS => Err(Failure::Malformed("Channel binding was selected and not used.")),
            (Some(_), "y") => Err(Failure::Downgrade),
            (None, "y") => Ok(Binding::NotOffered),
            (_, "n") => Ok(Binding::None),
            _ => Err(Failure::Malformed("Unexpected channel-binding flag.")),
        }
    }
}

impl ServerFinal {
    /// The answer to the first message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Processes the proof. If it is right, returns the last message and the client's key.
    pub fn last(self, message: &[u8]) -> Result<(String, Key), Failure> {
        let text = std::str::from_utf8(message).map_err(|_| Failure::Malformed("It is not valid UTF-8."))?;
        let mut rest = text;
        let echo = attribute(&mut rest, 'c').ok_or(Failure::Malformed("Attribute \"c\" expected."))?;
        let nonce = attribute(&mut rest, 'r').ok_or(Failure::Malformed("Attribute \"r\" expected."))?;
        // Extensions are read over, as by PostgreSQL. The proof is the last attribute, and covers all before it.
        while !rest.starts_with("p=") {
            any_attribute(&mut rest).ok_or(Failure::Malformed("Attribute \"p\" expected."))?;
        }
        let without_proof = text.strip_suffix(rest).and_then(|before| before.strip_suffix(','));
        let (without_proof, proof) = without_proof
            .zip(rest.strip_prefix("p="))
            .ok_or(Failure::Malformed("Attribute \"p\" expected."))?;
        if echo != self.binding.echo() {
            return Err(Failure::OtherConnection);
        }
        if nonce != self.nonce {
            return Err(Failure::Malformed("The nonce does not match."));
        }
        let proof: Option<[u8; 32]> = STANDARD.decode(proof).ok().and_then(|proof| proof.try_into().ok());
        let proof = Key::new(proof.ok_or(Failure::Malformed("The proof has not 32 bytes in base64."))?);
        let Verifier { stored_key, server_key, .. } = &self.server.verifier;
        let said = [
            self.client_first_bare.as_bytes(),
            b",",
            self.message.as_bytes(),
            b",",
            without_proof.as_bytes(),
        ];
        let client_key = proof.xor(&hash::hmac(stored_key.bytes(), &said));
        let right = hash::sha256(client_key.bytes()) == *stored_key;
        if !right || self.server.doomed {
            return Err(Failure::Wrong);
        }
        let signature = hash::hmac(server_key.bytes(), &said);
        Ok((format!("v={}", STANDARD.encode(signature.bytes())), client_key))
    }
}
