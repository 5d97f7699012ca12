//! TLS on both sides: which files, which certificates, which modes. What carries the bytes is `net::tls`.
//!
//! | file | holds |
//! |---|---|
//! | `files` | PEM files, read and checked |
//! | `server` | what clients are shown and may show |
//! | `client` | how the server is asked for TLS, and whether it is believed |
//! | `verify` | the two ways of believing a certificate that rustls does not have |
//! | `certificate` | what PostgreSQL takes from a certificate: its name, its hash |

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

/// What does the cryptography.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
