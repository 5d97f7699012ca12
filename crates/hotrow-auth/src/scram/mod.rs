//! SCRAM-SHA-256 (RFC 5802, 7677): what both sides share of its messages.

pub mod client;
pub mod server;

#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The mechanism without channel binding.
pub const PLAIN: &str = "SCRAM-SHA-256";
/// The mechanism with it.
pub const PLUS: &str = "SCRAM-SHA-256-PLUS";

/// What a client says of the connection below, before everything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// It has nothing to bind to.
    None,
    /// It could bind, but the server did not offer to.
    NotOffered,
    /// The log-in holds on this TLS connection only: the hash of the server's certificate.
    EndPoint(Vec<u8>),
}

impl Binding {
    /// The header that goes before the first message.
    fn header(&self) -> &'static str {
        match self {
            Binding::None => "n,,",
            Binding::NotOffered => "y,,",
            Binding::EndPoint(_) => "p=tls-server-end-point,,",
        }
    }

    /// The value of `c=`.
    fn echo(&self) -> String {
        let hash: &[u8] = if let Binding::EndPoint(hash) = self { hash } else { &[] };
        STANDARD.encode([self.header().as_bytes(), hash].concat())
    }
}

/// Takes `name=value` off the front of a message.
fn attribute<'a>(message: &mut &'a str, name: char) -> Option<&'a str> {
    let (front, rest) = message.split_once(',').unwrap_or((message, ""));
    let value = front.strip_prefix(name)?.strip_prefix('=')?;
    *message = rest;
    Some(value)
}

/// A nonce has printable letters, without a comma.
fn is_nonce(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
}
