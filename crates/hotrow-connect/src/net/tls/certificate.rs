//! The fields of a certificate that PostgreSQL uses besides trust: its owner's name, and the hash that binds a login
//! to it.

use bytes::Bytes;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_cert::Certificate;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode, Encode, asn1};

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// Signature algorithms by the hash that RFC 5929 requires: SHA-256 replaces MD5 and SHA-1.
const SHA_256: [ObjectIdentifier; 5] = [
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.4"), // RSA with MD5
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.5"), // RSA with SHA-1
    ObjectIdentifier::new_unwrap("1.2.840.10045.4.1"),    // ECDSA with SHA-1
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11"),
    ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2"),
];
const SHA_384: [ObjectIdentifier; 2] = [
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.12"),
    ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3"),
];
const SHA_512: [ObjectIdentifier; 2] = [
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13"),
    ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.4"),
];

/// The hash of a certificate that binds a login to it (`tls-server-end-point`, RFC 5929). None if its signature has no
/// single hash, as with Ed25519: such a login is not bound.
pub fn end_point(certificate: &[u8]) -> Option<Bytes> {
    let algorithm = Certificate::from_der(certificate).ok()?.signature_algorithm().oid;
    let hash = if SHA_256.contains(&algorithm) {
        Sha256::digest(certificate).to_vec()
    } else if SHA_384.contains(&algorithm) {
        Sha384::digest(certificate).to_vec()
    } else if SHA_512.contains(&algorithm) {
        Sha512::digest(certificate).to_vec()
    } else {
        return None;
    };
    Some(hash.into())
}

/// The common name of a certificate's owner: the first one, like PostgreSQL.
pub fn common_name(certificate: &[u8]) -> Option<String> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let attributes =
        certificate.tbs_certificate().subject().iter().find(|attribute| attribute.oid == COMMON_NAME)?;
    let value = &attributes.value;
    let text = value
        .decode_as::<asn1::Utf8StringRef<'_>>()
        .map(|text| text.as_str().to_owned())
        .or_else(|_| value.decode_as::<asn1::PrintableStringRef<'_>>().map(|text| text.as_str().to_owned()))
        .or_else(|_| value.decode_as::<asn1::TeletexStringRef<'_>>().map(|text| text.as_str().to_owned()))
        .ok()?;
    // A reader of C strings would see another name if it contained a zero byte.
    (!text.is_empty() && !text.contains('\0')).then_some(text)
}

/// The key of a certificate of any version. `openssl x509 -req` makes version 1 by default, which the library that
/// verifies chains cannot read.
pub fn public_key(certificate: &[u8]) -> Result<SubjectPublicKeyInfoDer<'static>, rustls::CertificateError> {
    let bad = |_| rustls::CertificateError::BadEncoding;
    let certificate = Certificate::from_der(certificate).map_err(bad)?;
    let key = certificate.tbs_certificate().subject_public_key_info().to_der().map_err(bad)?;
    Ok(key.into())
}

/// Whether a certificate is valid at this time.
pub fn is_in_force(certificate: &[u8], unix_seconds: u64) -> Result<bool, rustls::CertificateError> {
    let certificate =
        Certificate::from_der(certificate).map_err(|_| rustls::CertificateError::BadEncoding)?;
    let validity = certificate.tbs_certificate().validity();
    let (from, until) = (validity.not_before.to_unix_duration(), validity.not_after.to_unix_duration());
    Ok((from.as_secs()..=until.as_secs()).contains(&unix_seconds))
}
