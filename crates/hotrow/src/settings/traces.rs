//! The URL of the collector of traces.

use std::str::FromStr;

use hyper::Uri;

/// A collector that takes spans as OTLP over HTTP.
#[derive(Debug, PartialEq, Eq)]
pub struct Collector {
    /// HOST:PORT to connect to.
    pub address: String,
    /// The host as requests name it.
    pub host: String,
    /// The path of requests.
    pub path: String,
}

/// Why a URL cannot be that of a collector. The URL is not shown, because it may have a password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "traces must be http://HOST:PORT/PATH without a user, for example http://127.0.0.1:4318/v1/traces (a collector of OpenTelemetry with OTLP over HTTP)"
    )]
    Url,
    #[error(
        "traces begins with https://, and the gateway sends traces without TLS; run a collector on this machine that passes them on over TLS, and write for example traces = \"http://127.0.0.1:4318/v1/traces\""
    )]
    Tls,
}

impl FromStr for Collector {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self, Error> {
        let uri: Uri = url.trim().parse().map_err(|_| Error::Url)?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(Error::Tls),
            _ => return Err(Error::Url),
        }
        let authority =
            uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or(Error::Url)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        if authority.host().is_empty() || path == "/" {
            return Err(Error::Url);
        }
        let port = match authority.port_u16() {
            Some(port) => port,
            None if authority.as_str() == authority.host() => 80,
            None => return Err(Error::Url),
        };
        Ok(Collector {
            address: format!("{}:{port}", authority.host()),
            host: authority.to_string(),
            path: path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_has_a_host_and_a_path() {
        let parsed = |url: &str| {
            let Collector { address, host, path } = url.parse().unwrap();
            [address, host, path]
        };
        assert_eq!(
            parsed("http://127.0.0.1:4318/v1/traces"),
            ["127.0.0.1:4318", "127.0.0.1:4318", "/v1/traces"]
        );
        assert_eq!(parsed("http://otel/v1/traces?x=1"), ["otel:80", "otel", "/v1/traces?x=1"]);
        assert_eq!(parsed("http://[::1]:4318/x"), ["[::1]:4318", "[::1]:4318", "/x"]);
        for url in [
            "",
            "127.0.0.1:4318",
            "http://",
            "http://otel",
            "http://otel:4318/",
            "grpc://otel:4317/x",
            "http://a:b@otel/x",
            "http://otel:99999/x",
        ] {
            let error = url.parse::<Collector>().unwrap_err().to_string();
            assert!(error.contains("http://127.0.0.1:4318/v1/traces"), "{url}");
            assert!(!error.contains("a:b"), "{error}");
        }
        let tls = "https://otel.example/v1/traces".parse::<Collector>().unwrap_err().to_string();
        assert!(tls.contains("a collector on this machine"), "{tls}");
    }
}
