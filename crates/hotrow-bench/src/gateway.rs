//! Hotrow as the benchmark sees it: a program that is started before a server; nothing of its inside.

use crate::certificate::Certificate;
use crate::child::Child;
use crate::endpoint::Endpoint;
use crate::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use tokio::process::Command;

/// A gateway that this benchmark started.
#[derive(Debug)]
pub struct Gateway {
    child: Child,
    _certificate: Certificate,
    /// Where its clients connect to.
    pub endpoint: Endpoint,
}

impl Gateway {
    /// Starts it before the server at `upstream_url`, on a free port.
    pub async fn start(program: &Path, upstream_url: &str, upstream: &Endpoint) -> Result<Self, Error> {
        let certificate = Certificate::new()?;
        let mut child = Child::start(program, command(program, upstream_url, &certificate))?;
        let (host, port) = child.ready(|line| address(WIRE, line)).await?;
        Ok(Self { child, _certificate: certificate, endpoint: upstream.at(&host, port) })
    }

    /// The same with the schema pack over HTTP, on another free port.
    pub async fn start_with_http(
        program: &Path,
        upstream_url: &str,
        upstream: &Endpoint,
    ) -> Result<(Self, SocketAddr), Error> {
        let certificate = Certificate::new()?;
        let mut command = command(program, upstream_url, &certificate);
        command.args(["--http", "127.0.0.1:0"]);
        let mut child = Child::start(program, command)?;
        let (mut wire, mut http) = (None, None);
        let both = |line: &str| {
            wire = wire.take().or_else(|| address(WIRE, line));
            http = http.or_else(|| line.strip_prefix(HTTP)?.trim().parse().ok());
            Some((wire.clone()?, http?))
        };
        let ((host, port), http) = child.ready(both).await?;
        Ok((Self { child, _certificate: certificate, endpoint: upstream.at(&host, port) }, http))
    }

    /// If it has ended by itself: how, and its last words.
    pub fn obituary(&mut self) -> Option<String> {
        self.child.obituary()
    }

    /// Ends it.
    pub async fn stop(self) -> Result<(), Error> {
        self.child.stop().await
    }
}

/// How the lines begin with which it says that it is ready.
const WIRE: &str = "hotrow: listening on ";
const HTTP: &str = "hotrow: serving HTTP on ";

fn command(program: &Path, upstream_url: &str, certificate: &Certificate) -> Command {
    let mut command = Command::new(program);
    command.args(["serve", "--upstream", upstream_url, "--listen", "127.0.0.1:0"]);
    command.arg("--tls-cert-file").arg(certificate.chain()).arg("--tls-key-file").arg(certificate.key());
    command
}

/// The address in a line that begins like this.
fn address(beginning: &str, line: &str) -> Option<(String, u16)> {
    let (host, port) = line.strip_prefix(beginning)?.trim().rsplit_once(':')?;
    Some((host.trim_matches(['[', ']']).to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{WIRE, address};

    #[test]
    fn only_the_line_that_says_where_it_listens_is_taken() {
        assert_eq!(address(WIRE, "hotrow: listening on 127.0.0.1:6432"), Some(("127.0.0.1".into(), 6432)));
        assert_eq!(address(WIRE, "hotrow: listening on [::1]:6432"), Some(("::1".into(), 6432)));
        assert_eq!(address(WIRE, "hotrow: listening on soon"), None);
        assert_eq!(address(WIRE, "upstream: listening on 127.0.0.1:6432"), None);
    }
}
