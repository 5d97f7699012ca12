//! TLS with the server: libpq's `sslmode` and related parameters, with libpq's meaning.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hotrow_wire::startup;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection};

use super::files::{self, Error};
use super::verify::{Trust, Verifier};
use super::{ALPN, certificate, provider};
use crate::net::stream::HandshakeError;
use crate::net::{Address, ReadHalf, WriteHalf, stream};

/// The TLS parameters of an upstream URL.
pub const TLS_PARAMETERS: [&str; 5] = ["sslmode", "sslrootcert", "sslcert", "sslkey", "sslnegotiation"];

/// How the gateway asks the server for TLS, and which certificates it trusts.
#[derive(Clone, Debug)]
pub struct Client {
    /// Whether a connection without TLS is refused.
    required: bool,
    /// Whether TLS begins without a request.
    direct: bool,
    /// The parameters of the URL.
    parameters: Vec<(String, String)>,
    config: Arc<ClientConfig>,
}

/// Why a connection to the server has no TLS.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The network.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The handshake failed.
    #[error("the TLS handshake with the server failed: {0}")]
    Handshake(#[from] HandshakeError),
    /// The server does not offer TLS.
    #[error(
        "the server does not speak TLS, and sslmode requires it; set ssl = on there, or sslmode=disable here"
    )]
    Declined,
    /// Most likely an attacker between the gateway and the server.
    #[error(
        "the server sent unencrypted data after its answer to the request for TLS; an attacker may be in between"
    )]
    Injected,
}

impl ConnectError {
    /// Whether another host, or a retry, may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, ConnectError::Io(_) | ConnectError::Handshake(HandshakeError::Io(_)))
    }
}

/// A connection, and the hash of the server's certificate if the connection is under TLS and has one.
pub type Secured = (ReadHalf, WriteHalf, Option<Bytes>);

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Client {
    /// From these parameters, for servers at these addresses. None means no TLS.
    pub fn load<'a>(
        parameters: &[(String, String)],
        addresses: impl Iterator<Item = &'a Address>,
    ) -> Result<Option<Self>, Error> {
        let parameter = |name: &str| {
            parameters
                .iter()
                .rev()
                .find(|(parameter, _)| parameter == name)
                .map(|(_, value)| value.as_str())
                .filter(|value| !value.is_empty())
        };
        // Like libpq, a Unix socket never uses TLS.
        let hosts: Vec<_> = addresses.filter_map(Address::host).collect();
        if hosts.is_empty() {
            return Ok(None);
        }
        let root = parameter("sslrootcert");
        let mode = mode(parameter("sslmode"), root)?;
        let direct = match parameter("sslnegotiation") {
            None | Some("postgres") => false,
            Some("direct") if mode >= Mode::Require => true,
            Some("direct") => {
                return Err(Error::Setting("sslnegotiation=direct needs sslmode=require or a stronger one"));
            }
            Some(_) => return Err(Error::Setting("sslnegotiation is postgres or direct")),
        };
        if mode == Mode::Disable {
            return Ok(None);
        }
        if mode == Mode::VerifyFull && hosts.iter().any(|host| ServerName::try_from(*host).is_err()) {
            return Err(Error::Setting(
                "sslmode=verify-full needs a host name or address that a certificate can hold",
            ));
        }
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider has suites for both versions")
            .dangerous()
            .with_custom_certificate_verifier(Verifier::new(trust(mode, root)?));
        let mut config = match (parameter("sslcert"), parameter("sslkey")) {
            (Some(certificate), Some(key)) => {
                let certified_key = files::certified_key(Path::new(certificate), Path::new(key))?;
                builder.with_client_cert_resolver(certified_key)
            }
            (None, None) => builder.with_no_client_auth(),
            _ => return Err(Error::Setting("sslcert and sslkey are needed together")),
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Some(Client {
            required: mode >= Mode::Require,
            direct,
            parameters: parameters.to_vec(),
            config: Arc::new(config),
        }))
    }

    /// Puts a new connection to this host under TLS. Leaves it plain if the server has no TLS and none is required.
    pub async fn secure(
        &self,
        mut read: ReadHalf,
        write: WriteHalf,
        host: &str,
    ) -> Result<Secured, ConnectError> {
        if !self.direct {
            let mut out = BytesMut::new();
            startup::put_ssl_request(&mut out);
            write.drain(&mut out).await?;
            let mut answer = BytesMut::new();
            read.fill(&mut answer).await?;
            match answer[..] {
                [b'S'] => {}
                [b'S', ..] => return Err(ConnectError::Injected),
                [b'N'] if !self.required => return Ok((read, write, None)),
                [] => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                _ => return Err(ConnectError::Declined),
            }
        }
        let (secured, says_postgresql) = self.handshake(read, write, host).await?;
        if self.direct && !says_postgresql {
            return Err(HandshakeError::NoProtocol.into());
        }
        Ok(secured)
    }

    /// Whether a connection without TLS is refused.
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// Performs the handshake with a server that waits for it. Returns also whether the server named PostgreSQL's protocol.
    pub async fn handshake(
        &self,
        read: ReadHalf,
        write: WriteHalf,
        host: &str,
    ) -> Result<(Secured, bool), ConnectError> {
        let (ReadHalf::Tcp(read), WriteHalf::Tcp(write)) = (read, write) else {
            return Err(ConnectError::Declined);
        };
        // If no certificate can contain the host's name, the name is not checked: see `load`.
        let name = ServerName::try_from(host.to_owned())
            .unwrap_or(ServerName::IpAddress(Ipv4Addr::UNSPECIFIED.into()));
        let connection = ClientConnection::new(self.config.clone(), name).map_err(HandshakeError::from)?;
        let look = |connection: &Connection| {
            let shown = connection.peer_certificates().and_then(|certificates| certificates.first());
            let end_point = shown.and_then(|certificate| certificate::end_point(certificate));
            (end_point, connection.alpn_protocol() == Some(ALPN))
        };
        let ((read, write), (end_point, says_postgresql)) =
            stream::handshake(Connection::Client(connection), (read, write), &[], look).await?;
        Ok(((ReadHalf::Tls(read), WriteHalf::Tls(write), end_point), says_postgresql))
    }

    /// This configuration, with the files that `newer` has read if its parameters are the same.
    pub fn renewed(&self, newer: Option<&Self>) -> Self {
        newer.filter(|newer| newer.parameters == self.parameters).unwrap_or(self).clone()
    }

    /// Whether a connection without TLS is allowed after this failure: like libpq, if TLS is only preferred and both
    /// sides cannot agree on parameters.
    pub fn may_go_without(&self, error: &ConnectError) -> bool {
        !self.required && matches!(error, ConnectError::Handshake(HandshakeError::Tls(_)))
    }
}

fn mode(parameter: Option<&str>, root: Option<&str>) -> Result<Mode, Error> {
    let system = root == Some("system");
    Ok(match parameter {
        None if system => Mode::VerifyFull,
        Some("verify-full") => Mode::VerifyFull,
        _ if system => return Err(Error::Setting("sslrootcert=system needs sslmode=verify-full")),
        None | Some("prefer") => Mode::Prefer,
        Some("disable") => Mode::Disable,
        Some("require") => Mode::Require,
        Some("verify-ca") => Mode::VerifyCa,
        Some("allow") => {
            return Err(Error::Setting(
                "sslmode=allow is not supported: the same server is reached with prefer, which asks for TLS first",
            ));
        }
        Some(_) => {
            return Err(Error::Setting("sslmode is disable, prefer, require, verify-ca or verify-full"));
        }
    })
}

fn trust(mode: Mode, root: Option<&str>) -> Result<Option<Trust>, Error> {
    let name = mode == Mode::VerifyFull;
    match root {
        Some("system") => Ok(Some(Trust { roots: files::system_authorities()?, known: Vec::new(), name })),
        // Like libpq, a file that is named is trusted in every mode.
        Some(path) => {
            let known = files::certificates(Path::new(path))?;
            Ok(Some(Trust { roots: files::authorities(&known, Path::new(path))?, known, name }))
        }
        None if mode >= Mode::VerifyCa => Err(Error::Setting(
            "sslmode=verify-ca and verify-full need sslrootcert: a file with the authority's certificate, or system for those that the system trusts",
        )),
        None => Ok(None),
    }
}
