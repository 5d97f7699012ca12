//! How the server is asked for TLS: libpq's `sslmode` and its companions, with libpq's meaning.

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

/// The words of an upstream URL that are about TLS.
pub const TLS_PARAMETERS: [&str; 5] = ["sslmode", "sslrootcert", "sslcert", "sslkey", "sslnegotiation"];

/// How, and what is believed.
#[derive(Clone, Debug)]
pub struct Client {
    /// Whether there is no connection without TLS.
    required: bool,
    /// Whether TLS begins without asking.
    direct: bool,
    /// What was asked for.
    parameters: Vec<(String, String)>,
    config: Arc<ClientConfig>,
}

/// Why a connection to the server has no TLS.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The network.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It begins, and fails.
    #[error("TLS with the server fails: {0}")]
    Handshake(#[from] HandshakeError),
    /// There is none.
    #[error(
        "the server does not speak TLS, and sslmode requires it; set ssl = on there, or sslmode=disable here"
    )]
    Declined,
    /// Somebody stands in between, most likely.
    #[error("the server said more than its answer to the request for TLS, unencrypted")]
    Injected,
}

impl ConnectError {
    /// Whether another host, or the same one in a moment, may do better.
    pub fn is_retryable(&self) -> bool {
        matches!(self, ConnectError::Io(_) | ConnectError::Handshake(HandshakeError::Io(_)))
    }
}

/// A connection, and the hash of the server's certificate if it is under TLS and has one.
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
    /// What these words mean for servers at these addresses. None means no TLS.
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
        // As with libpq, a Unix socket needs no TLS, whatever is asked for.
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

    /// Puts a new connection to this host under TLS, or leaves it as it is where the server has none and none is required.
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
        let (ReadHalf::Tcp(read), WriteHalf::Tcp(write)) = (read, write) else {
            return Err(ConnectError::Declined);
        };
        // A name that no certificate can hold is one that nobody looks at: see `load`.
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
        if self.direct && !says_postgresql {
            return Err(HandshakeError::NoProtocol.into());
        }
        Ok((ReadHalf::Tls(read), WriteHalf::Tls(write), end_point))
    }

    /// This one, with the files as they were when `newer` was made if it asks for the same.
    pub fn renewed(&self, newer: Option<&Self>) -> Self {
        newer.filter(|newer| newer.parameters == self.parameters).unwrap_or(self).clone()
    }

    /// Whether a connection without TLS will do after this failure: as with libpq, where TLS is only preferred and
    /// both sides can't agree on how.
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
        // As with libpq, a file that is named is believed in whatever mode.
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
