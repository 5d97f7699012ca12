//! The settings of a gateway in front of MariaDB. Most settings belong to PostgreSQL, and are refused here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hotrow_core::limits;
use hotrow_core::pack_mode::PackMode;
use hotrow_core::page;
use hotrow_gateway::config::Listen;
use hotrow_gateway::tls;
use hotrow_mysql::Config;
use hotrow_mysql_client::UpstreamError;

use super::http::MetricsPage;
use super::{Settings, http, is_json, number};

/// The settings that a gateway in front of MariaDB has.
const USED: [&str; 14] = [
    "upstream",
    "listen",
    "clients_max",
    "server_wait_ms",
    "drain_timeout_ms",
    "pack",
    "pack_from",
    "metrics",
    "http_token_file",
    "workers",
    "log",
    "log_format",
    "tls_cert_file",
    "tls_key_file",
];

/// Why settings cannot be used in front of MariaDB.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// A setting of a gateway in front of PostgreSQL.
    #[error(
        "{0} is set, and a gateway in front of MariaDB does not have it; remove it ({list} has the list)",
        list = page!("mysql/README.md")
    )]
    NotUsed(&'static str),
    /// Tables of the file.
    #[error(
        "the file has [[pool]], [[server]] or [[database]] tables, which a gateway in front of MariaDB does not have; remove them"
    )]
    Tables,
    /// Shadow mode, or deferred writes.
    #[error("pack is \"{0}\", which a gateway in front of MariaDB does not have; set it to true or false")]
    Mode(PackMode),
    /// A setting of this gateway, in front of PostgreSQL.
    #[error("pack_from is set, and only a gateway in front of MariaDB has it; remove it")]
    PackFrom,
    /// A Unix socket.
    #[error("listen has the path of a Unix socket; a gateway in front of MariaDB listens on HOST:PORT only")]
    UnixSocket,
}

impl Error {
    /// The setting with the error.
    pub fn setting(&self) -> Option<&'static str> {
        match self {
            Error::Upstream(_) => Some("upstream"),
            Error::NotUsed(name) => Some(name),
            Error::Tables => None,
            Error::Mode(_) => Some("pack"),
            Error::PackFrom => Some("pack_from"),
            Error::UnixSocket => Some("listen"),
        }
    }
}

/// The settings that the program runs with in front of MariaDB.
pub struct MysqlResolved {
    /// The gateway's part.
    pub config: Config,
    /// The address of metrics and health.
    pub metrics: Option<MetricsPage>,
    /// Threads.
    pub workers: usize,
    /// The log filter.
    pub log: String,
    /// Whether each line of the log is a JSON object.
    pub logs_json: bool,
    /// Advice about the settings file for the log.
    pub warning: Option<String>,
}

impl Settings {
    /// The same settings, in front of PostgreSQL.
    pub(super) fn without_mysql(self) -> Result<Self, Error> {
        if self.pack_from.is_some() {
            return Err(Error::PackFrom);
        }
        Ok(self)
    }

    /// Checks the settings for a gateway in front of MariaDB.
    pub(super) fn check_mysql(self) -> Result<MysqlResolved, super::Error> {
        let names = Settings::table().into_iter().map(|setting| setting.name);
        if let Some(name) = names.into_iter().find(|name| self.has(name) && !USED.contains(name)) {
            return Err(Error::NotUsed(name).into());
        }
        if !(self.pool.is_empty() && self.server.is_empty() && self.database.is_empty()) {
            return Err(Error::Tables.into());
        }
        let upstream = self.upstream.unwrap_or_default().parse().map_err(Error::from)?;
        let listen = self.listen.unwrap_or_else(|| "127.0.0.1:6432".to_owned());
        let listen = listen.split(',').map(|one| match one.trim().parse()? {
            Listen::Tcp(address) => Ok(address),
            Listen::Unix(_) => Err(Error::UnixSocket.into()),
        });
        let listen = listen.collect::<Result<Vec<SocketAddr>, super::Error>>()?;
        let milliseconds = |name, value, default: u64| {
            let milliseconds =
                number(name, value, default as usize, 1..=86_400_000, "1 to 86,400,000 (a day)")?;
            Ok::<_, super::Error>(Duration::from_millis(milliseconds as u64))
        };
        let files = tls::Files::new(self.tls_cert_file, self.tls_key_file, None)?;
        let tls = files.map(|files| tls::Server::load(&files)).transpose()?;
        let default = hotrow_mysql::PACK_FROM as usize;
        let pack_from = number("pack_from", self.pack_from, default, 1..=1_000_000, "1 to 1,000,000")?;
        let clients_max = limits::CLIENTS_MAX;
        let config = Config {
            upstream,
            listen,
            tls: tls.map(Arc::new),
            clients_max: number(
                "clients_max",
                self.clients_max,
                clients_max,
                1..=1_000_000,
                "1 to 1,000,000",
            )?,
            server_wait: milliseconds("server_wait_ms", self.server_wait_ms, limits::SERVER_WAIT_MS)?,
            pack_from: match self.pack {
                None | Some(PackMode::Off) => None,
                Some(PackMode::On) => Some(pack_from),
                Some(mode @ (PackMode::Shadow | PackMode::Deferred)) => return Err(Error::Mode(mode).into()),
            },
            drain_timeout: milliseconds("drain_timeout_ms", self.drain_timeout_ms, limits::DRAIN_TIMEOUT_MS)?,
        };
        let token_file = self.http_token_file.as_deref();
        let (_, metrics) = http::resolve((None, self.metrics), token_file, false, String::new())?;
        Ok(MysqlResolved {
            config,
            metrics,
            workers: number("workers", self.workers, 1, 1..=256, "1 to 256")?,
            log: self.log.unwrap_or_else(|| "info".to_owned()),
            logs_json: is_json(self.log_format)?,
            warning: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_postgresql_are_refused_by_name() {
        let mysql =
            || Settings { upstream: Some("mysql://gate@127.0.0.1/shop".to_owned()), ..Settings::default() };
        let message = |settings: Settings| settings.resolve_any(None).err().expect("an error").to_string();
        assert!(message(Settings { lanes: Some(2), ..mysql() }).contains("lanes is set"));
        assert!(message(Settings { listen: Some("/run/x.sock".into()), ..mysql() }).contains("HOST:PORT"));
        assert!(message(Settings { clients_max: Some(0), ..mysql() }).contains("1 to 1,000,000"));
        assert!(message(Settings { pack: Some(PackMode::Shadow), ..mysql() }).contains("true or false"));
        assert!(message(Settings { pack_from: Some(0), ..mysql() }).contains("1 to 1,000,000"));
        let postgres = Settings { upstream: Some("postgres://127.0.0.1/shop".into()), ..Settings::default() };
        assert!(
            message(Settings { pack_from: Some(2), ..postgres })
                .contains("only a gateway in front of MariaDB")
        );
        let open = message(Settings { metrics: Some("0.0.0.0:9187".into()), ..mysql() });
        assert!(open.contains("http_token_file"), "{open}");
        let wrong = Settings { upstream: Some("mysql://127.0.0.1/shop".into()), ..Settings::default() };
        assert!(message(wrong).contains("names no user"));
        assert!(matches!(mysql().resolve_any(None), Ok(super::super::AnyResolved::Mysql(_))));
    }
}
