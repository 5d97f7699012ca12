//! Starts Hotrow as a program in front of a server. It uses nothing of the gateway's internals.

use crate::child::Child;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::files::{temporary_folder, write_private};
use crate::http::{Connection, Post};
use hotrow_postgres::free_port;
use hyper::Method;
use hyper::body::Bytes;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::timeout;

/// A gateway that this benchmark started.
#[derive(Debug)]
pub struct Gateway {
    /// The process.
    pub child: Child,
    /// The address for its clients.
    pub endpoint: Endpoint,
    /// The address of its HTTP server, if it has one.
    pub http: Option<SocketAddr>,
    /// The address of its metrics.
    pub metrics: SocketAddr,
}

/// What a gateway has done so far, and its memory.
#[derive(Debug, Clone, Copy)]
pub struct Footprint {
    /// Rounds of questions to the catalog.
    pub questions: u64,
    /// Resident memory.
    pub bytes: u64,
    /// CPU time.
    pub cpu_us: u64,
}

/// The option of a gateway that serves the hotrow schema over HTTP, on a free port.
pub const WITH_HTTP: [&str; 2] = ["--http", "127.0.0.1:0"];
/// The option of a gateway whose transactions hold back writes.
pub const DEFERRING: [&str; 2] = ["--pack", "deferred"];

/// The beginnings of the lines that show that the gateway is ready.
const WIRE: &str = "hotrow: listening on ";
const HTTP: &str = "hotrow: serving HTTP on ";

impl Gateway {
    /// Starts a gateway with these options in front of the server at `upstream_url`, on a free port.
    pub async fn start(
        program: &Path,
        upstream_url: &str,
        upstream: &Endpoint,
        options: &[&str],
    ) -> Result<Self, Error> {
        let folder = temporary_folder()?;
        let (chain, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
        make_certificate(&chain, &key)?;
        let mut command = Command::new(program);
        command.args(["serve", "--upstream", upstream_url, "--listen", "127.0.0.1:0"]);
        let metrics = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        command.arg("--metrics").arg(metrics.to_string());
        command.arg("--tls-cert-file").arg(chain).arg("--tls-key-file").arg(key);
        command.args(options);
        let with_http = options == WITH_HTTP;
        let mut child = Child::start_with(program, command, folder)?;
        let (mut wire, mut http) = (None, None);
        let ready = |line: &str| {
            wire = wire.take().or_else(|| address(WIRE, line));
            http = http.or_else(|| line.strip_prefix(HTTP)?.trim().parse().ok());
            (http.is_some() || !with_http).then(|| wire.clone()).flatten()
        };
        let (host, port) = child.ready(ready).await?;
        Ok(Self { child, endpoint: upstream.at(&host, port), http, metrics })
    }

    /// The values of metrics without labels. `None` if the gateway does not answer or lacks one of them.
    pub async fn counts(&self, names: &[&str]) -> Option<Vec<u64>> {
        let page = Post { path: "/metrics".into(), idempotency_key: None, body: Bytes::new() };
        let mut connection = Connection::open(self.metrics).await.ok()?;
        let (_, text) = connection.send(&Method::GET, &page).await.ok()?;
        let text = String::from_utf8_lossy(&text);
        let value = |line: &str, name| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        names.iter().map(|name| text.lines().find_map(|line| value(line, name))).collect()
    }

    /// Its footprint. `None` if this program has no metrics, or if the system does not show its memory.
    pub async fn footprint(&self) -> Option<Footprint> {
        const QUESTIONS: [&str; 2] = ["hotrow_catalog_questions_total", "hotrow_table_comparisons_total"];
        let questions = self.counts(&QUESTIONS).await?.into_iter().sum();
        let process = format!("/proc/{}", self.child.id()?);
        let status = std::fs::read_to_string(format!("{process}/status")).ok()?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = resident.trim().trim_end_matches(" kB").parse().ok()?;
        let cpu_us = cpu_us(&std::fs::read_to_string(format!("{process}/stat")).ok()?)?;
        Some(Footprint { questions, bytes: kilobytes << 10, cpu_us })
    }
}

/// The CPU time in a file `/proc/PID/stat`, of the program and of the kernel for it.
fn cpu_us(stat: &str) -> Option<u64> {
    /// The unit is a hundredth of a second on every Linux.
    const TICK_US: u64 = 10_000;
    // The name of the program is in parentheses, and can contain spaces. The state is the first field after it.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) * TICK_US)
}

/// Writes a certificate, which no client has to trust, and its key.
fn make_certificate(chain: &Path, key: &Path) -> Result<(), Error> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])
        .map_err(|error| Error::system("make a certificate")(std::io::Error::other(error)))?;
    write_private(chain, &made.cert.pem())?;
    write_private(key, &made.signing_key.serialize_pem())
}

fn address(beginning: &str, line: &str) -> Option<(String, u16)> {
    let (host, port) = line.strip_prefix(beginning)?.trim().rsplit_once(':')?;
    Some((host.trim_matches(['[', ']']).to_owned(), port.parse().ok()?))
}

/// Whether a gateway accepts TLS. A program that does not answer this request does not.
pub async fn accepts_tls(endpoint: &Endpoint) -> bool {
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
    use super::{WIRE, accepts_tls, address, cpu_us, make_certificate};
    use crate::endpoint::Endpoint;
    use crate::files::temporary_folder;
    use std::os::unix::fs::PermissionsExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[test]
    fn only_the_line_with_the_listening_address_is_used() {
        assert_eq!(address(WIRE, "hotrow: listening on 127.0.0.1:6432"), Some(("127.0.0.1".into(), 6432)));
        assert_eq!(address(WIRE, "hotrow: listening on [::1]:6432"), Some(("::1".into(), 6432)));
        assert_eq!(address(WIRE, "hotrow: listening on soon"), None);
        assert_eq!(address(WIRE, "upstream: listening on 127.0.0.1:6432"), None);
    }

    #[test]
    fn cpu_time_is_that_of_program_and_kernel() {
        let stat = "7 (a) name) S 1 7 7 0 -1 4194560 1 2 3 4 25 17 0 0 20 0";
        assert_eq!(cpu_us(stat), Some(420_000));
        assert_eq!(cpu_us("7 (name"), None);
    }

    #[test]
    fn other_users_cannot_read_the_key() {
        let folder = temporary_folder().unwrap();
        let (chain, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
        make_certificate(&chain, &key).unwrap();
        let mode = std::fs::metadata(&key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(std::fs::read_to_string(key).unwrap().contains("PRIVATE KEY"));
        assert!(std::fs::read_to_string(chain).unwrap().contains("BEGIN CERTIFICATE"));
    }

    #[tokio::test]
    async fn only_a_server_that_answers_yes_offers_tls() {
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
            assert_eq!(accepts_tls(&endpoint).await, speaks);
        }
    }
}
