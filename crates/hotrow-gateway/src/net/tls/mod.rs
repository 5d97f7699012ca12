//! TLS on both sides: files, certificates and modes. `net::stream` carries the bytes.
//!
//! | file | contents |
//! |---|---|
//! | `files` | PEM files, read and checked |
//! | `server` | TLS for clients |
//! | `client` | TLS with the server, and which certificates are trusted |
//! | `verify` | two ways of verifying a certificate that rustls does not have |
//! | `certificate` | a certificate's common name and hash |

mod certificate;
pub mod client;
pub mod files;
pub mod server;
mod verify;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub use client::Client;
pub use files::Error;
pub use server::Server;

/// PostgreSQL's name for its own protocol in a TLS handshake.
const ALPN: &[u8] = b"postgresql";

/// The implementation of the cryptography.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
