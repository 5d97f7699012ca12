//! SCRAM-SHA-256 (RFC 5802, 7677): parts of the messages that both sides share.

pub mod client;
pub mod server;

#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The mechanism without channel binding.
pub const PLAIN: &str = "SCRAM-SHA-256";
/// The mechanism with channel binding.
pub const PLUS: &str = "SCRAM-SHA-256-PLUS";

/// The channel binding that a client declares in its first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// It does not support channel binding.
    None,
    /// It supports channel binding, but the server did not offer it.
    NotOffered,
    /// The login is valid on this TLS connection only. Contains the hash of the server's certificate.
    EndPoint(Vec<u8>),
}

impl Binding {
    /// The header before the first message.
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

/// Removes `name=value` from the front of a message.
fn attribute<'a>(message: &mut &'a str, name: char) -> Option<&'a str> {
    let mut after = *message;
    let (_, value) = any_attribute(&mut after).filter(|(found, _)| *found == name)?;
    *message = after;
    Some(value)
}

/// Removes an attribute from the front of a message. Its name is a letter.
fn any_attribute<'a>(message: &mut &'a str) -> Option<(char, &'a str)> {
    let (front, rest) = message.split_once(',').unwrap_or((message, ""));
    let name = front.chars().next().filter(char::is_ascii_alphabetic)?;
    let value = front[1..].strip_prefix('=')?;
    *message = rest;
    Some((name, value))
}

/// Whether a nonce consists of printable characters without a comma.
fn is_nonce(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
}
