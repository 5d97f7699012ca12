//! A certificate for the gateways of one benchmark, and whether somebody speaks TLS; nobody is asked to trust it.

use crate::endpoint::Endpoint;
use crate::error::Error;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A certificate and its key, in files that are gone when this is dropped.
#[derive(Debug)]
pub struct Certificate {
    folder: TempDir,
}

impl Certificate {
    /// Makes one.
    pub fn new() -> Result<Self, Error> {
        let system = |what, error: &dyn std::fmt::Display| Error::System {
            what,
            source: std::io::Error::other(error.to_string()),
        };
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])
            .map_err(|error| system("make a certificate", &error))?;
        let folder = tempfile::Builder::new().prefix("hotrow-bench-").tempdir();
        let folder = folder.map_err(|error| system("make a temporary folder", &error))?;
        let certificate = Self { folder };
        write(&certificate.chain(), &made.cert.pem())?;
        write(&certificate.key(), &made.signing_key.serialize_pem())?;
        Ok(certificate)
    }

    /// The certificate's file.
    pub fn chain(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    /// Its key's file.
    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }
}

/// A file that nobody else may read.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|source| Error::File {
        what: "write",
        path: path.to_owned(),
        source,
    })
}

/// Asks whether clients may speak TLS there. Whoever doesn't answer this does not.
pub async fn speaks_tls(endpoint: &Endpoint) -> bool {
    const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
    let asked = async {
        let mut stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
        stream.write_all(&SSL_REQUEST).await?;
        stream.read_u8().await
    };
    matches!(timeout(Duration::from_secs(5), asked).await, Ok(Ok(b'S')))
}

#[cfg(test)]
mod tests {
    use super::{Certificate, speaks_tls};
    use crate::endpoint::Endpoint;
    use std::os::unix::fs::PermissionsExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[test]
    fn nobody_else_may_read_the_key() {
        let certificate = Certificate::new().unwrap();
        let mode = std::fs::metadata(certificate.key()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(std::fs::read_to_string(certificate.key()).unwrap().contains("PRIVATE KEY"));
        assert!(std::fs::read_to_string(certificate.chain()).unwrap().contains("BEGIN CERTIFICATE"));
    }

    #[tokio::test]
    async fn only_who_says_yes_speaks_tls() {
        for (answer, speaks) in [(Some(b'S'), true), (Some(b'N'), false), (None, false)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            tokio::spawn(async move {
                let (mut client, _) = listener.accept().await.unwrap();
                let mut request = [0; 8];
                client.read_exact(&mut request).await.unwrap();
                assert_eq!(i32::from_be_bytes(request[4..].try_into().unwrap()), 80_877_103);
                if let Some(answer) = answer {
                    client.write_all(&[answer]).await.unwrap();
                }
            });
            let endpoint = Endpoint::parse(&format!("postgres://ann@127.0.0.1:{port}/shop")).unwrap();
            assert_eq!(speaks_tls(&endpoint).await, speaks);
        }
    }
}
