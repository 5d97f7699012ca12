//! Verifies a server's certificate in PostgreSQL's three degrees: not at all, by its authority, or by its authority and
//! its name.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::{certificate, provider};

/// Verifies a server's certificate.
#[derive(Debug)]
pub struct Verifier {
    trust: Option<Trust>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// The certificates that are trusted.
#[derive(Debug)]
pub struct Trust {
    /// The authorities.
    pub roots: RootCertStore,
    /// Certificates that are trusted as they are: a server with a self-signed certificate is its own authority.
    pub known: Vec<CertificateDer<'static>>,
    /// Whether the name is verified.
    pub name: bool,
}

impl Verifier {
    /// A verifier for this trust. Without one it accepts every certificate.
    pub fn new(trust: Option<Trust>) -> Arc<Self> {
        Arc::new(Verifier { trust, algorithms: provider().signature_verification_algorithms })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trust) = &self.trust else { return Ok(ServerCertVerified::assertion()) };
        if trust.known.contains(certificate) {
            if !certificate::is_in_force(certificate, now.as_secs())? {
                return Err(CertificateError::Expired.into());
            }
        } else {
            let (parsed, algorithms) = (ParsedCertificate::try_from(certificate)?, self.algorithms.all);
            verify_server_cert_signed_by_trust_anchor(&parsed, &trust.roots, others, now, algorithms)?;
        }
        if trust.name {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = certificate::public_key(certificate)?;
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
