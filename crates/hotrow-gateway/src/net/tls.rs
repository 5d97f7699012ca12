//! TLS for clients: the gateway's certificate, and the verification of clients' certificates. The files are read again
//! at each reload. Connected clients keep their TLS state.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use hotrow_connect::net::stream::HandshakeError;
use hotrow_connect::net::tls::files::{self, Error};
use hotrow_connect::net::tls::{ALPN, certificate, provider};
use hotrow_connect::net::{ReadHalf, WriteHalf, stream};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{Connection, ServerConfig, ServerConnection};

use crate::net::peer::TlsPeer;

/// The files' paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The certificate with its intermediate certificates.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities of clients' certificates; none means that clients are not asked for one.
    pub client_authorities: Option<PathBuf>,
}

/// Certificate, key and authorities, ready for clients.
#[derive(Debug)]
pub struct Server {
    config: Arc<ServerConfig>,
    end_point: Option<Bytes>,
}

impl Files {
    /// The files named by these settings: a certificate and a key, or neither.
    pub fn new(
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
        client_authorities: Option<PathBuf>,
    ) -> Result<Option<Self>, Error> {
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(Files { certificate, key, client_authorities })),
            (None, None) if client_authorities.is_some() => {
                Err(Error::Setting("tls_client_ca_file needs tls_cert_file and tls_key_file"))
            }
            (None, None) => Ok(None),
            _ => Err(Error::Setting("tls_cert_file and tls_key_file are needed together")),
        }
    }
}

impl Server {
    /// Reads the files.
    pub fn load(files: &Files) -> Result<Self, Error> {
        let certified_key = files::certified_key(&files.certificate, &files.key)?;
        let certificates = files::certificates(&files.certificate)?;
        let end_point = certificates.first().and_then(|certificate| certificate::end_point(certificate));
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider has suites for both versions");
        let builder = match &files.client_authorities {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = files::authorities(&files::certificates(path)?, path)?;
                // The access file decides whether a client must have a certificate.
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| Error::Authorities {
                        what: path.display().to_string(),
                        why: error.to_string(),
                    })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_cert_resolver(certified_key);
        config.alpn_protocols = vec![ALPN.to_vec()];
        // Like PostgreSQL, sessions are not resumed: each client authenticates again.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Server { config: Arc::new(config), end_point })
    }

    /// Performs the handshake with a client that has already sent `first`. A client that begins with TLS directly must
    /// name PostgreSQL's protocol.
    pub async fn accept(
        &self,
        read: ReadHalf,
        write: WriteHalf,
        first: &[u8],
    ) -> Result<(ReadHalf, WriteHalf, TlsPeer), HandshakeError> {
        let (read, write, peer, says_postgresql) = self.handshake(read, write, first).await?;
        if !first.is_empty() && !says_postgresql {
            return Err(HandshakeError::NoProtocol);
        }
        Ok((read, write, peer))
    }

    /// Performs the handshake with a client that has asked for it, and has already sent `first`. Returns also whether the client
    /// named PostgreSQL's protocol.
    pub async fn handshake(
        &self,
        read: ReadHalf,
        write: WriteHalf,
        first: &[u8],
    ) -> Result<(ReadHalf, WriteHalf, TlsPeer, bool), HandshakeError> {
        let (ReadHalf::Tcp(read), WriteHalf::Tcp(write)) = (read, write) else {
            return Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into());
        };
        let connection = Connection::Server(ServerConnection::new(self.config.clone())?);
        let look = |connection: &Connection| {
            let client_name = connection
                .peer_certificates()
                .and_then(|certificates| certificates.first())
                .and_then(|certificate| certificate::common_name(certificate));
            (client_name, connection.alpn_protocol() == Some(ALPN))
        };
        let ((read, write), (client_name, says_postgresql)) =
            stream::handshake(connection, (read, write), first, look).await?;
        let peer = TlsPeer { end_point: self.end_point.clone(), client_name };
        Ok((ReadHalf::Tls(read), WriteHalf::Tls(write), peer, says_postgresql))
    }
}
