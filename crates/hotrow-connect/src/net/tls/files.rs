//! Reads certificates and keys from PEM files, with an error for each fault of a file.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, RootCertStore};

use super::{certificate, provider};

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file has the wrong content.
    #[error("{} is wrong: {why}", path.display())]
    Pem {
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// A private key that other users can read or write.
    #[error(
        "the private key {} can be read or written by others (mode {mode:04o}): give it mode 0600, or 0640 where root owns it",
        path.display()
    )]
    Open { path: PathBuf, mode: u32 },
    /// Certificate and key do not fit together.
    #[error("the certificate {} cannot be used: {error}", path.display())]
    Unusable {
        /// The certificate's path.
        path: PathBuf,
        /// The reason.
        error: rustls::Error,
    },
    /// The certificates of the authorities cannot be used.
    #[error("{what} cannot be used: {why}")]
    Authorities {
        /// Their source.
        what: String,
        /// The reason.
        why: String,
    },
    /// A setting requires another one, or does not fit another one.
    #[error("{0}")]
    Setting(&'static str),
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| Error::Read { path: path.to_owned(), error })
}

fn wrong(path: &Path, why: impl ToString) -> Error {
    Error::Pem { path: path.to_owned(), why: why.to_string() }
}

/// All certificates of a file, at least one.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&read(path)?)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(path, error))?;
    if certificates.is_empty() {
        return Err(wrong(path, "it holds no certificate; it should begin with -----BEGIN CERTIFICATE-----"));
    }
    Ok(certificates)
}

/// A certificate with its intermediate certificates and its key.
pub fn certified_key(path: &Path, key: &Path) -> Result<Arc<SingleCertAndKey>, Error> {
    let unusable = |error| Error::Unusable { path: path.to_owned(), error };
    let certificates = certificates(path)?;
    let own = certificates.first().map(|certificate| certificate::public_key(certificate)).transpose();
    let own = own.map_err(|error| unusable(error.into()))?;
    let key = provider().key_provider.load_private_key(private_key(key)?).map_err(unusable)?;
    if key.public_key().is_some() && key.public_key() != own {
        return Err(unusable(InconsistentKeys::KeyMismatch.into()));
    }
    Ok(Arc::new(CertifiedKey::new(certificates, key).into()))
}

/// The private key of a file that other users cannot access.
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let metadata = std::fs::metadata(path).map_err(|error| Error::Read { path: path.to_owned(), error })?;
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & forbidden != 0 {
        return Err(Error::Open { path: path.to_owned(), mode: metadata.mode() & 0o7777 });
    }
    let text = read(path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound if text.windows(9).any(|word| word == b"ENCRYPTED") => wrong(
            path,
            "the key is encrypted, and the gateway cannot ask for its passphrase; decrypt it with openssl pkey",
        ),
        pem::Error::NoItemsFound => {
            wrong(path, "it holds no private key; it should begin with -----BEGIN PRIVATE KEY-----")
        }
        error => wrong(path, error),
    })
}

/// The certificate authorities of a file.
pub fn authorities(certificates: &[CertificateDer<'static>], path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.clone()).map_err(|error| wrong(path, error))?;
    }
    Ok(roots)
}

/// The certificate authorities that this system trusts.
pub fn system_authorities() -> Result<RootCertStore, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(roots);
    }
    let why = found.errors.first().map_or("there are none".to_owned(), ToString::to_string);
    Err(Error::Authorities {
        what: "the system's certificate authorities (sslrootcert=system)".to_owned(),
        why,
    })
}
