//! The URL of the server: `mysql://user:password@host:port/database?sslmode=...`.

use std::fmt;
use std::str::FromStr;

use hotrow_auth::Password;
use hotrow_connect::net::Address;
use hotrow_connect::net::tls::client::Client;
use hotrow_connect::net::tls::files;
use percent_encoding::percent_decode_str;

const SCHEME: &str = "mysql://";
const PORT: u16 = 3306;

/// A server, and the gateway's own user there.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The gateway's own user.
    pub user: String,
    /// That user's password, empty if the URL has none.
    pub password: Password,
    /// The database of the gateway's own connections.
    pub database: Option<String>,
    /// How TLS is asked for. None if it is not wanted.
    pub tls: Option<Client>,
}

/// Why the URL cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// Its form.
    #[error("upstream {0}; write it as mysql://user:password@host:port/database")]
    Form(&'static str),
    /// A parameter that it cannot have.
    #[error("upstream has the parameter {0}; it can have sslmode, sslrootcert, sslcert and sslkey")]
    Parameter(String),
    /// TLS.
    #[error(transparent)]
    Tls(#[from] files::Error),
}

/// Its parameters, which mean the same as in the URL of a PostgreSQL server.
const PARAMETERS: [&str; 4] = ["sslmode", "sslrootcert", "sslcert", "sslkey"];

impl Upstream {
    /// Whether the text names a server that speaks MySQL's protocol.
    pub fn is_meant_by(text: &str) -> bool {
        text.starts_with(SCHEME)
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let rest = text.strip_prefix(SCHEME).ok_or(UpstreamError::Form("does not begin with mysql://"))?;
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let parameters = parameters.split('&').filter(|one| !one.is_empty()).map(parameter);
        let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
        if rest.contains('#') {
            return Err(UpstreamError::Form("has a fragment"));
        }
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, place) = place.rsplit_once('@').ok_or(UpstreamError::Form("names no user"))?;
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        if user.is_empty() {
            return Err(UpstreamError::Form("names no user"));
        }
        let (host, port) = match place.strip_prefix('[') {
            Some(place) => {
                place.split_once(']').ok_or(UpstreamError::Form("has an address without its end"))?
            }
            None => place.find(':').map_or((place, ""), |at| place.split_at(at)),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| UpstreamError::Form("has a port that is not a number"))?,
            None if port.is_empty() => PORT,
            None => return Err(UpstreamError::Form("has text after the address")),
        };
        if host.is_empty() {
            return Err(UpstreamError::Form("names no host"));
        }
        let database = Some(decoded(database)?).filter(|database| !database.is_empty());
        let password = Password::new(percent_decode_str(password).collect());
        let address = Address::Tcp(host.to_owned(), port);
        let tls = Client::load(&parameters, std::iter::once(&address))?;
        Ok(Upstream { host: host.to_owned(), port, user: decoded(user)?, password, database, tls })
    }
}

/// A name and its value.
fn parameter(text: &str) -> Result<(String, String), UpstreamError> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    match PARAMETERS.contains(&name) {
        true => Ok((name.to_owned(), decoded(value)?)),
        false => Err(UpstreamError::Parameter(name.to_owned())),
    }
}

fn decoded(text: &str) -> Result<String, UpstreamError> {
    let decoded = percent_decode_str(text).decode_utf8();
    Ok(decoded.map_err(|_| UpstreamError::Form("is not UTF-8"))?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_its_parts() {
        let parse = |text: &str| text.parse::<Upstream>().unwrap();
        let full = parse("mysql://a%40b:p%3Aw:x@db.example:3307/shop");
        assert_eq!((full.user.as_str(), full.password.bytes()), ("a@b", &b"p:w:x"[..]));
        assert_eq!(
            (full.host.as_str(), full.port, full.database.as_deref()),
            ("db.example", 3307, Some("shop"))
        );
        let short = parse("mysql://gate@[::1]");
        assert_eq!((short.host.as_str(), short.port, short.database), ("::1", 3306, None));
        assert!(short.password.bytes().is_empty());
        assert!(!format!("{full:?}").contains("p:w"));
    }

    #[test]
    fn a_wrong_url_is_refused_with_the_right_form() {
        for (text, reason) in [
            ("mysql://host/db", "names no user"),
            ("mysql://:p@host/db", "names no user"),
            ("mysql://u@/db", "names no host"),
            ("mysql://u@host:x/db", "port"),
            ("mysql://u@[::1/db", "without its end"),
            ("postgres://u@host/db", "does not begin"),
        ] {
            let error = text.parse::<Upstream>().unwrap_err().to_string();
            assert!(
                error.contains(reason) && error.contains("mysql://user:password@host"),
                "{text}: {error}"
            );
        }
        let error = |text: &str| text.parse::<Upstream>().unwrap_err().to_string();
        assert!(error("mysql://u@host/db?ssl=1").contains("the parameter ssl; it can have sslmode"));
        assert!(error("mysql://u@host/db?sslmode=some").contains("sslmode is disable"));
    }

    #[test]
    fn tls_is_preferred_unless_the_url_says_otherwise() {
        let tls = |text: &str| text.parse::<Upstream>().unwrap().tls.map(|tls| tls.is_required());
        assert_eq!(tls("mysql://u@host/db"), Some(false));
        assert_eq!(tls("mysql://u@host/db?sslmode=require"), Some(true));
        assert_eq!(tls("mysql://u@host?sslmode=disable"), None);
    }
}
