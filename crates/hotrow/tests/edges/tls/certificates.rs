//! Authorities and certificates, generated for each test.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SigningKey};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// An authority that signs certificates.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    /// A certificate for these host names and addresses.
    pub fn issue(&self, common_name: &str, names: &[&str]) -> Pair {
        self.issue_as(common_name, names, |_| {})
    }

    /// A certificate that has expired.
    pub fn issue_expired(&self, common_name: &str, names: &[&str]) -> Pair {
        self.issue_as(common_name, names, |params| {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        })
    }

    fn issue_as(
        &self,
        common_name: &str,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Pair {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// The configuration of a client that trusts this authority and offers PostgreSQL's protocol.
    pub fn trust(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        config
    }
}

/// A self-signed certificate, as `openssl req -x509` makes it.
pub fn self_signed(names: &[&str]) -> Pair {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    Pair { certificate: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

/// A self-signed certificate of version 1, without names, as `openssl x509 -req` makes it without `-extfile`.
pub fn version_1() -> Pair {
    let key = KeyPair::generate().unwrap();
    let newer = CertificateParams::default().self_signed(&key).unwrap();
    let [whole] = elements(newer.der())[..] else { panic!("one sequence") };
    let [contents, algorithm, _] = elements(body(whole))[..] else { panic!("three parts") };
    // Version 1 has neither a version field nor extensions.
    let kept = elements(body(contents)).into_iter().filter(|part| !matches!(part[0], 0xa0 | 0xa3));
    let contents = element(0x30, &kept.collect::<Vec<_>>().concat());
    let signature = element(0x03, &[&[0], &key.sign(&contents).unwrap()[..]].concat());
    let certificate = element(0x30, &[&contents[..], algorithm, &signature].concat());
    let text = STANDARD.encode(certificate);
    let certificate = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
    Pair { certificate, key: key.serialize_pem() }
}

/// The elements of DER, each with its header.
fn elements(mut der: &[u8]) -> Vec<&[u8]> {
    let mut elements = Vec::new();
    while !der.is_empty() {
        let (element, rest) = der.split_at(der.len() - body(der).len() + length(der));
        elements.push(element);
        der = rest;
    }
    elements
}

fn length(der: &[u8]) -> usize {
    let long = usize::from(der[1].saturating_sub(0x80));
    if long == 0 {
        return usize::from(der[1]);
    }
    der[2..2 + long].iter().fold(0, |length, byte| length << 8 | usize::from(*byte))
}

/// The contents after the header.
fn body(der: &[u8]) -> &[u8] {
    &der[2 + usize::from(der[1].saturating_sub(0x80))..]
}

fn element(tag: u8, body: &[u8]) -> Vec<u8> {
    let header = match u16::try_from(body.len()).unwrap().to_be_bytes() {
        [0, short @ ..0x80] => vec![tag, short],
        [0, byte] => vec![tag, 0x81, byte],
        [high, low] => vec![tag, 0x82, high, low],
    };
    [&header, body].concat()
}

impl Pair {
    /// Writes both files and returns their paths.
    pub fn write(&self, folder: &Path, name: &str) -> (String, String) {
        let path = |ending: &str| folder.join(format!("{name}.{ending}"));
        std::fs::write(path("crt"), &self.certificate).unwrap();
        std::fs::write(path("key"), &self.key).unwrap();
        std::fs::set_permissions(path("key"), std::fs::Permissions::from_mode(0o600)).unwrap();
        let text = |ending| path(ending).to_str().unwrap().to_owned();
        (text("crt"), text("key"))
    }
}
