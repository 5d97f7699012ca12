//! The URL of the server: `mysql://user:password@host:port/database`.

use std::fmt;
use std::str::FromStr;

use hotrow_auth::Password;
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
}

/// Why the URL cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("upstream {0}; write it as mysql://user:password@host:port/database")]
pub struct UpstreamError(&'static str);

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
        let rest = text.strip_prefix(SCHEME).ok_or(UpstreamError("does not begin with mysql://"))?;
        if rest.contains(['?', '#']) {
            return Err(UpstreamError("has parameters, and none are supported"));
        }
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, place) = place.rsplit_once('@').ok_or(UpstreamError("names no user"))?;
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        if user.is_empty() {
            return Err(UpstreamError("names no user"));
        }
        let (host, port) = match place.strip_prefix('[') {
            Some(place) => place.split_once(']').ok_or(UpstreamError("has an address without its end"))?,
            None => place.find(':').map_or((place, ""), |at| place.split_at(at)),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| UpstreamError("has a port that is not a number"))?,
            None if port.is_empty() => PORT,
            None => return Err(UpstreamError("has text after the address")),
        };
        if host.is_empty() {
            return Err(UpstreamError("names no host"));
        }
        let database = Some(decoded(database)?).filter(|database| !database.is_empty());
        let password = Password::new(percent_decode_str(password).collect());
        Ok(Upstream { host: host.to_owned(), port, user: decoded(user)?, password, database })
    }
}

fn decoded(text: &str) -> Result<String, UpstreamError> {
    let decoded = percent_decode_str(text).decode_utf8();
    Ok(decoded.map_err(|_| UpstreamError("is not UTF-8"))?.into_owned())
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
            ("mysql://u@host/db?ssl=1", "parameters"),
            ("postgres://u@host/db", "does not begin"),
        ] {
            let error = text.parse::<Upstream>().unwrap_err().to_string();
            assert!(
                error.contains(reason) && error.contains("mysql://user:password@host"),
                "{text}: {error}"
            );
        }
    }
}
