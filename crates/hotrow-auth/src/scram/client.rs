//! The client's side of SCRAM: the gateway proves its client's identity to the server. The server has to
//! authenticate too.

use crate::limits;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Binding, attribute, is_nonce};
use crate::hash;
use crate::verifier::Keys;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// Its message is malformed.
    #[error("malformed SCRAM message from the server: {0}")]
    Malformed(&'static str),
    /// It requests too many iterations.
    #[error(
        "the server requests {0} SCRAM iterations, more than the maximum of {max}: set the password again with a lower scram_iterations",
        max = limits::SCRAM_ITERATIONS_MAX
    )]
    Iterations(u32),
    /// It does not know the password.
    #[error("the server cannot prove that it knows the password: check the server's address")]
    Impostor,
}

/// The client's first message.
#[derive(Debug)]
pub struct ClientFirst {
    binding: Binding,
    nonce: String,
}

/// The server's challenge.
#[derive(Debug)]
pub struct Challenge {
    first: ClientFirst,
    server_first: String,
    nonce: String,
    /// The salt of the password's hash.
    pub salt: Vec<u8>,
    /// Number of iterations of the hash.
    pub iterations: u32,
}

/// The proof, and the expected answer of the server.
#[derive(Debug)]
pub struct ClientFinal {
    pub message: String,
    expected: String,
}

impl ClientFirst {
    /// `nonce` must be random.
    pub fn new(nonce: [u8; 18], binding: Binding) -> Self {
        ClientFirst { binding, nonce: STANDARD.encode(nonce) }
    }

    fn bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    pub fn message(&self) -> String {
        format!("{}{}", self.binding.header(), self.bare())
    }

    /// Processes the server's answer.
    pub fn challenged(self, message: &[u8]) -> Result<Challenge, ServerError> {
        let text =
            std::str::from_utf8(message).map_err(|_| ServerError::Malformed("it is not valid UTF-8"))?;
        let mut rest = text;
        let nonce = attribute(&mut rest, 'r')
            .filter(|nonce| {
                is_nonce(nonce) && nonce.len() > self.nonce.len() && nonce.starts_with(&self.nonce)
            })
            .ok_or(ServerError::Malformed("its nonce does not begin with ours"))?;
        let salt = attribute(&mut rest, 's').and_then(|salt| STANDARD.decode(salt).ok());
        let salt = salt.ok_or(ServerError::Malformed("it has no salt"))?;
        let iterations = attribute(&mut rest, 'i').and_then(|iterations| iterations.parse().ok());
        let iterations = iterations.ok_or(ServerError::Malformed("it has no number of iterations"))?;
        if !(1..=limits::SCRAM_ITERATIONS_MAX).contains(&iterations) {
            return Err(ServerError::Iterations(iterations));
        }
        Ok(Challenge {
            nonce: nonce.to_owned(),
            server_first: text.to_owned(),
            first: self,
            salt,
            iterations,
        })
    }
}

impl Challenge {
    /// Computes the proof from these keys.
    pub fn prove(self, keys: &Keys) -> ClientFinal {
        let without_proof = format!("c={},r={}", self.first.binding.echo(), self.nonce);
        let bare = self.first.bare();
        let said = [bare.as_bytes(), b",", self.server_first.as_bytes(), b",", without_proof.as_bytes()];
        let stored_key = hash::sha256(keys.client_key.bytes());
        let proof = keys.client_key.xor(&hash::hmac(stored_key.bytes(), &said));
        let signature = hash::hmac(keys.server_key.bytes(), &said);
        ClientFinal {
            message: format!("{without_proof},p={}", STANDARD.encode(proof.bytes())),
            expected: format!("v={}", STANDARD.encode(signature.bytes())),
        }
    }
}

impl ClientFinal {
    /// Processes the server's last message. Only a server with the password's verifier can produce it.
    pub fn confirmed(self, message: &[u8]) -> Result<(), ServerError> {
        let same = subtle::ConstantTimeEq::ct_eq(message, self.expected.as_bytes());
        if same.into() { Ok(()) } else { Err(ServerError::Impostor) }
    }
}
