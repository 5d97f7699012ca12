//! TLS with the server, and the parts that TLS for clients shares with it. `net::stream` carries the bytes.
//!
//! | file | contents |
//! |---|---|
//! | `files` | PEM files, read and checked |
//! | `client` | TLS with the server, and which certificates are trusted |
//! | `verify` | two ways of verifying a certificate that rustls does not have |
//! | `certificate` | a certificate's common name and hash |

pub mod certificate;
pub mod client;
pub mod files;
mod verify;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub use client::Client;
pub use files::Error;

/// PostgreSQL's name for its own protocol in a TLS handshake.
pub const ALPN: &[u8] = b"postgresql";

/// The implementation of the cryptography.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
