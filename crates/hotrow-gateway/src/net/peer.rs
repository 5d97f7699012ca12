//! Who is at the other end of a client's connection, as far as the connection itself tells.

use std::net::SocketAddr;

use bytes::Bytes;

/// The other end.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// Where it connects from; none on a Unix socket.
    pub address: Option<SocketAddr>,
    /// What TLS says of it; none without TLS.
    pub tls: Option<TlsPeer>,
    /// Whether it is this process itself, which has asked who its own clients are.
    pub internal: bool,
}

impl Peer {
    /// Whether it is on this machine: it connects from a loopback address, or over a Unix socket.
    pub fn is_local(&self) -> bool {
        self.address.is_none_or(|address| address.ip().to_canonical().is_loopback())
    }
}

/// What TLS says of it.
#[derive(Clone, Debug)]
pub struct TlsPeer {
    /// The hash of our certificate that binds a log-in to this connection (`tls-server-end-point`, RFC 5929); none
    /// where the certificate's signature has no one hash, as with Ed25519.
    pub end_point: Option<Bytes>,
    /// The common name in the client's certificate, if it has shown one and it was verified.
    pub client_name: Option<String>,
}
