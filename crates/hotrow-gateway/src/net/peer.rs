//! The other end of a client's connection, as the connection itself shows it.

use std::net::SocketAddr;

use bytes::Bytes;

/// The other end.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// Its address; none on a Unix socket.
    pub address: Option<SocketAddr>,
    /// What TLS shows; none without TLS.
    pub tls: Option<TlsPeer>,
    /// Whether it is this process itself, which has authenticated its own clients.
    pub internal: bool,
}

impl Peer {
    /// Whether it is on this machine: it connects from a loopback address, or over a Unix socket.
    pub fn is_local(&self) -> bool {
        self.address.is_none_or(|address| address.ip().to_canonical().is_loopback())
    }
}

/// What TLS shows about the other end.
#[derive(Clone, Debug)]
pub struct TlsPeer {
    /// The hash of the gateway's certificate that binds a login to this connection (`tls-server-end-point`, RFC 5929).
    /// None if the certificate's signature has no single hash, as with Ed25519.
    pub end_point: Option<Bytes>,
    /// The common name in the client's verified certificate, if it has sent one.
    pub client_name: Option<String>,
}
