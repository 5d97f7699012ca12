//! The addresses of the HTTP API and of the metrics, and the tokens that clients of them need. Addresses that other machines
//! can reach need tokens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use hotrow_http::Tokens;

use super::{Error, Settings};

/// The HTTP server's address and tokens, and what its page shows.
pub struct Http {
    pub address: SocketAddr,
    /// The accepted tokens; if there are none, every client that reaches the address is accepted.
    pub tokens: Option<Tokens>,
    /// Whether the page shows values of keys and queries.
    pub shows_values: bool,
    /// The server's URL, for the page's own connection.
    pub upstream_url: String,
}

/// The address of the metrics.
#[derive(Clone)]
pub struct MetricsPage {
    pub address: SocketAddr,
    /// The accepted tokens. On loopback there are none, because programs on this machine read metrics without one.
    pub tokens: Option<Tokens>,
}

impl Settings {
    /// Where programs on this machine reach the health of a gateway with these settings and this file: the address of `metrics`, or
    /// else that of `http`. No other setting is checked.
    pub fn health_address(self, file: Option<&Path>) -> Result<Option<SocketAddr>, Error> {
        let (address, _) = self.resolve_by(file, |settings| {
            let metrics = settings.metrics.map(|text| address("metrics", text)).transpose()?;
            let http = settings.http.map(|text| address("http", text)).transpose()?;
            Ok(metrics.or(http))
        })?;
        Ok(address.map(on_this_machine))
    }
}

/// The address to connect to: that of this machine, if the gateway listens on all of its addresses.
fn on_this_machine(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// The settings `http`, `metrics` and `http_token_file`.
pub fn resolve(
    (http, metrics): (Option<String>, Option<String>),
    token_file: Option<&Path>,
    shows_values: bool,
    upstream_url: String,
) -> Result<(Option<Http>, Option<MetricsPage>), Error> {
    let http = http.map(|text| address("http", text)).transpose()?;
    let metrics = metrics.map(|text| address("metrics", text)).transpose()?;
    let is_used = http.is_some() || metrics.is_some();
    let tokens = token_file.filter(|_| is_used).map(Tokens::read).transpose()?;
    for (name, address) in [("http", http), ("metrics", metrics)] {
        if let Some(address) = address.filter(|address| tokens.is_none() && !address.ip().is_loopback()) {
            return Err(Error::OpenAddress { name, address });
        }
    }
    let metrics = metrics.map(|address| MetricsPage {
        address,
        tokens: tokens.clone().filter(|_| !address.ip().is_loopback()),
    });
    Ok((http.map(|address| Http { address, tokens, shows_values, upstream_url }), metrics))
}

fn address(name: &'static str, text: String) -> Result<SocketAddr, Error> {
    let parsed = text.replace("localhost:", "127.0.0.1:").parse();
    parsed.map_err(|_| Error::Address { name, value: text })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "a-token-of-many-letters";

    fn resolved(
        http: &str,
        metrics: &str,
        token: &str,
    ) -> Result<(Option<Http>, Option<MetricsPage>), String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        std::fs::write(&file, token).unwrap();
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let file = Some(file.as_path()).filter(|_| !token.is_empty());
        resolve((given(http), given(metrics)), file, false, String::new()).map_err(|error| error.to_string())
    }

    #[test]
    fn addresses_that_other_machines_reach_need_tokens() {
        let error = |http, metrics| resolved(http, metrics, "").err().unwrap();
        assert!(error("0.0.0.0:80", "").contains("http is 0.0.0.0:80, which other machines can reach"));
        let metrics = error("", "[::]:9187");
        assert!(metrics.contains("metrics is [::]:9187") && metrics.contains("http_token_file"), "{metrics}");
        assert!(error("", "somewhere:9187").contains("HOST:PORT"));
        assert!(resolved("localhost:1", "localhost:2", "").is_ok());
    }

    #[test]
    fn the_health_is_asked_on_this_machine() {
        let asked = |metrics: &str, http: &str| {
            let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let settings = Settings { metrics: given(metrics), http: given(http), ..Settings::default() };
            settings.health_address(None).unwrap().map(|address| address.to_string())
        };
        assert_eq!(asked("0.0.0.0:1", "127.0.0.1:2").unwrap(), "127.0.0.1:1");
        assert_eq!(asked("", "[::]:2").unwrap(), "[::1]:2");
        assert_eq!(asked("10.0.0.7:1", "").unwrap(), "10.0.0.7:1");
        assert_eq!(asked("", ""), None);
    }

    #[test]
    fn metrics_need_a_token_beyond_loopback_only() {
        let needs = |metrics| resolved("", metrics, LONG).unwrap().1.unwrap().tokens.is_some();
        assert!(needs("0.0.0.0:9187") && !needs("127.0.0.1:9187"));
        let (http, metrics) = resolved("127.0.0.1:1", "", LONG).unwrap();
        assert!(http.unwrap().tokens.is_some() && metrics.is_none());
        assert!(resolved("", "", "short").is_ok(), "a file that no address uses is not read");
    }
}
