//! The settings: one list with each setting's flag, environment variable, name in the file, default, unit and meaning. A
//! flag takes precedence over the environment, the environment over the file, and the file over the default.

pub mod environment;
mod http;
mod mysql;
#[cfg(test)]
mod page;
mod secrecy;
#[cfg(test)]
mod tests;
mod traces;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotrow_connect::config::{UpstreamConfig, UpstreamError};
use hotrow_core::limits;
use hotrow_core::pack_mode::PackMode;
use hotrow_core::page;
use hotrow_gateway::config::routes::{DatabaseTable, RouteError, Routes, ServerTable};
use hotrow_gateway::config::{Config, Listen, ListenAddressError, PoolTable, Shown, TableList};
use hotrow_gateway::console;
use hotrow_gateway::tls;
use hotrow_http::TokenError;
use hotrow_mysql_client::Upstream;

pub use http::{Http, MetricsPage};
pub use mysql::MysqlResolved;
pub use traces::Collector;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment.
    #[error(transparent)]
    Environment(#[from] environment::Error),
    /// No server is named.
    #[error(
        "no server is named: name one with --upstream, for example --upstream postgres://127.0.0.1:5432 \
         (or HOTROW_UPSTREAM, or upstream in the file), or several with [[server]] and [[database]] tables in the file"
    )]
    NoUpstream,
    /// A server for all databases, and tables.
    #[error(
        "upstream is set (--upstream, HOTROW_UPSTREAM or upstream in the file), and the file has [[server]] or [[database]] tables: remove one of the two; a [[database]] table with name = \"*\" is for all databases that no other table names"
    )]
    UpstreamAndTables,
    /// The tables of servers and databases cannot be used.
    #[error("the configuration file is wrong: {0}; see: hotrow help config")]
    Tables(#[from] RouteError),
    /// The server's URL cannot be used.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The replicas' URL cannot be used.
    #[error("replicas: {0}")]
    Replicas(UpstreamError),
    /// Replicas of no server in particular.
    #[error("replicas are set beside [[server]] tables: write replicas = into the table of their server")]
    ReplicasAndTables,
    /// Settings of a gateway in front of MariaDB.
    #[error(transparent)]
    Mysql(#[from] mysql::Error),
    /// The address for clients cannot be used.
    #[error(transparent)]
    Listen(#[from] ListenAddressError),
    /// The format of the log is not known.
    #[error("log_format is {0:?} and must be text or json")]
    LogFormat(String),
    /// The address of HTTP or of the metrics cannot be used.
    #[error("{name} is {value:?} and must be HOST:PORT with an IP address, for example 127.0.0.1:8080")]
    Address {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// Everybody could use the address of HTTP or of the metrics.
    #[error(
        "{name} is {address}, which other machines can reach, and there are no tokens: name a file of tokens with --http-token-file (http_token_file), or use 127.0.0.1 or [::1]"
    )]
    OpenAddress {
        /// The setting.
        name: &'static str,
        /// Its value.
        address: SocketAddr,
    },
    /// The URL of the collector of traces cannot be used.
    #[error(transparent)]
    Traces(#[from] traces::Error),
    /// TLS cannot be set up.
    #[error("cannot set up TLS for clients: {0}")]
    Tls(#[from] hotrow_connect::net::tls::Error),
    /// The tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The file cannot be read.
    #[error("cannot read the configuration file {}: {error}; check the path of --config and the file's permissions", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// The file has an error.
    #[error("the configuration file is wrong: {}:{line}: {error}; see: hotrow help config", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// The line, counted from one.
        line: usize,
        /// Why.
        error: String,
    },
    /// A number out of bounds.
    #[error("{name} is {value} and must be {bounds}")]
    OutOfBounds {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The allowed values.
        bounds: &'static str,
    },
}

impl Error {
    /// The setting with the error.
    fn setting(&self) -> Option<&'static str> {
        Some(match self {
            Error::Upstream(_) => "upstream",
            Error::Mysql(error) => return error.setting(),
            Error::Replicas(_) | Error::ReplicasAndTables => "replicas",
            Error::Listen(_) => "listen",
            Error::Address { name, .. } | Error::OpenAddress { name, .. } => name,
            Error::LogFormat(_) => "log_format",
            Error::Traces(_) => "traces",
            Error::Tls(_) => "tls_cert_file",
            Error::Tokens(_) => "http_token_file",
            Error::OutOfBounds { name, .. } => name,
            Error::Environment(_)
            | Error::NoUpstream
            | Error::UpstreamAndTables
            | Error::Tables(_)
            | Error::Read { .. }
            | Error::File { .. } => {
                return None;
            }
        })
    }
}

/// One line of `hotrow help config`.
pub struct Setting {
    /// Its name in the file; the flag has dashes.
    pub name: &'static str,
    /// Its default.
    pub default: String,
    /// Its unit.
    pub unit: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
}

macro_rules! settings {
    ($($name:ident $variable:literal: $type:ty = $default:expr, $unit:literal, $meaning:expr;)*) => {
        /// The settings as the user wrote them, in flags, in the environment or in the file.
        #[derive(Clone, Debug, Default, clap::Args, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Settings {
            $(
                #[arg(help = $meaning)]
                #[arg(long, value_name = $unit, value_parser = environment::flag::<$type>($unit))]
                pub $name: Option<$type>,
            )*
            /// Settings of some databases and users, which only the file can have.
            #[arg(skip)]
            pub pool: Vec<PoolTable>,
            /// The servers, if there are several, which only the file can have.
            #[arg(skip)]
            pub server: Vec<ServerTable>,
            /// The databases of these servers.
            #[arg(skip)]
            pub database: Vec<DatabaseTable>,
        }

        impl Settings {
            /// These settings, and those of `other` for the rest.
            fn or(self, other: Settings) -> Settings {
                let Settings { pool, server, database, .. } = other;
                Settings { $($name: self.$name.or(other.$name),)* pool, server, database }
            }

            /// These settings, and the variables of the environment for the rest.
            pub fn or_variables(self, environment: &[(String, String)]) -> Result<Self, environment::Error> {
                Ok(Settings {
                    $($name: match self.$name {
                        Some(value) => Some(value),
                        None => environment::read(environment, $variable, $unit)?,
                    },)*
                    pool: self.pool,
                    server: self.server,
                    database: self.database,
                })
            }

            /// The names of all environment variables.
            fn variables() -> Vec<&'static str> {
                vec![$($variable),*]
            }

            /// Whether this setting is present.
            fn has(&self, name: &str) -> bool {
                match name {
                    $(stringify!($name) => self.$name.is_some(),)*
                    _ => false,
                }
            }

            /// All settings with their values or defaults.
            fn values(&self) -> Vec<(&'static str, String)> {
                vec![$((
                    stringify!($name),
                    self.$name.as_ref().map_or_else(|| $default.to_string(), shown),
                )),*]
            }

            /// All settings, as `hotrow help config` lists them.
            pub fn table() -> Vec<Setting> {
                vec![$(Setting {
                    name: stringify!($name),
                    default: $default.to_string(),
                    unit: $unit,
                    meaning: $meaning,
                }),*]
            }
        }
    };
}

settings! {
    upstream "HOTROW_UPSTREAM": String = "(none)", "URL", concat!("PostgreSQL server: a libpq URL or keyword string, TCP or Unix socket; several hosts for a primary and its standbys; or mysql://user:password@host:port/database for MariaDB (a preview: ", page!("mysql/README.md"), ")");
    replicas "HOTROW_REPLICAS": String = "(none)", "URL", "Standbys of the upstream, as a libpq URL or keyword string with one or more hosts: sessions with hotrow.reads = replica read from them";
    replica_lag_max_ms "HOTROW_REPLICA_LAG_MAX_MS": u64 = limits::REPLICA_LAG_MAX_MS, "MS", "Longest lag of a replica that serves reads; a replica that is farther behind is left out until it has caught up";
    replica_wait_ms "HOTROW_REPLICA_WAIT_MS": u64 = limits::REPLICA_WAIT_MS, "MS", "Longest wait of a read for a replica that has replayed the session's last commit; after it, the primary runs the read";
    listen "HOTROW_LISTEN": String = "127.0.0.1:6432", "HOST:PORT", "Addresses or paths of Unix sockets for clients, separated by commas; addresses beyond loopback need an hba_file";
    http "HOTROW_HTTP": String = "(off)", "HOST:PORT", "Address of the operations page and of the HTTP API of the hotrow schema; an address beyond loopback needs http_token_file";
    http_token_file "HOTROW_HTTP_TOKEN_FILE": PathBuf = "(none)", "FILE", "Tokens, one per line; each HTTP request must have one of them. A line that begins with read-only holds a token that can only read";
    http_show_values "HOTROW_HTTP_SHOW_VALUES": bool = false, "BOOL", "Whether the operations page of http shows values of keys and of blocking queries; if false, it shows ? in their place";
    metrics "HOTROW_METRICS": String = "(off)", "HOST:PORT", "Address of /metrics for Prometheus; an address beyond loopback needs http_token_file, and each request one of its tokens";
    traces "HOTROW_TRACES": String = "(off)", "URL", "Collector of traces (OTLP over HTTP), for example http://127.0.0.1:4318/v1/traces: each batch with sampled statements is a span there, with links to theirs";
    workers "HOTROW_WORKERS": u64 = 1, "THREADS", "Threads for network traffic; one thread passes 30,000 to 60,000 statements per second through, depending on the processor, and packs more";
    citus_lanes "HOTROW_CITUS_LANES": bool = false, "BOOL", concat!("Whether statements on tables distributed by Citus run in lanes to the node that has the row; read ", page!("citus.md"), " before you switch it on");
    pack "HOTROW_PACK": PackMode = PackMode::On, "MODE", "Whether statements are packed: true; false, the gateway only pools connections; \"shadow\", it passes all through and counts what it would pack; or \"deferred\", transactions also hold back writes whose outcome is foretold";
    pack_from "HOTROW_PACK_FROM": u64 = hotrow_mysql::PACK_FROM, "STATEMENTS", "In front of MariaDB: number of statements that can be packed and are under way at the same time, from which they are packed; with fewer, each runs on its session's own connection";
    unpacked_tables "HOTROW_UNPACKED_TABLES": String = "(none)", "TABLES", "Tables whose statements are passed through all the same, and functions whose calls are, separated by commas: schema.table, or table in any schema";
    lanes "HOTROW_LANES": u64 = limits::LANES, "CONNECTIONS", "Lanes for writes of one user and database, and the same number for point reads; opened when needed";
    lane_lock_timeout_ms "HOTROW_LANE_LOCK_TIMEOUT_MS": u64 = limits::LANE_LOCK_TIMEOUT_MS, "MS", "Longest wait in a lane for the lock of another transaction; after it, the statement leaves the lane. Keep it below the server's deadlock_timeout";
    clients_max "HOTROW_CLIENTS_MAX": u64 = limits::CLIENTS_MAX, "CLIENTS", "Most clients connected at the same time; further clients are rejected with 53300";
    held_connections_max "HOTROW_HELD_CONNECTIONS_MAX": u64 = limits::HELD_CONNECTIONS_MAX, "CONNECTIONS", "Most upstream connections for statements that are passed through; connections of lanes do not count";
    held_wait_ms "HOTROW_HELD_WAIT_MS": u64 = limits::HELD_WAIT_MS, "MS", "Longest wait of a session for such an upstream connection; after it, the session gets 53300";
    held_idle_ms "HOTROW_HELD_IDLE_MS": u64 = limits::HELD_IDLE_MS, "MS", "Time after which an unused upstream connection is closed";
    server_wait_ms "HOTROW_SERVER_WAIT_MS": u64 = limits::SERVER_WAIT_MS, "MS", "Longest wait of unsent statements for an unreachable server; after it, they get 57P03. The outcome of a commit is checked for six times this long before 08007";
    queue_wait_ms "HOTROW_QUEUE_WAIT_MS": u64 = limits::QUEUE_WAIT_MS, "MS", "Longest estimated wait in a lane; a statement that would wait longer is rejected immediately";
    drain_timeout_ms "HOTROW_DRAIN_TIMEOUT_MS": u64 = limits::DRAIN_TIMEOUT_MS, "MS", "Time that transactions under way have to finish when the gateway stops";
    catalog_age_ms "HOTROW_CATALOG_AGE_MS": u64 = limits::CATALOG_AGE_MS, "MS", "Age at which cached facts about a table are read from the catalog again";
    verdict_wait_ms "HOTROW_VERDICT_WAIT_MS": u64 = limits::VERDICT_WAIT_MS, "MS", "Longest wait of a new statement until the catalog is asked whether it can be packed; after it, it is passed through. 0: immediately";
    message_bytes_max "HOTROW_MESSAGE_BYTES_MAX": u64 = limits::MESSAGE_BYTES_MAX, "BYTES", "Largest message that a client can send";
    hba_file "HOTROW_HBA_FILE": PathBuf = "(none)", "FILE", "Access file (pg_hba.conf format): which clients can connect, and how they authenticate; without it, only clients on this machine. Read again at SIGHUP";
    users_file "HOTROW_USERS_FILE": PathBuf = "(none)", "FILE", "Users with passwords or hashes, in the format of PgBouncer's userlist.txt. Read again at SIGHUP";
    auth_query "HOTROW_AUTH_QUERY": String = "(pg_authid)", "SQL", "Query that asks the server for name and hash of user $1, if users_file does not have the user; empty to ask nothing";
    tls_cert_file "HOTROW_TLS_CERT_FILE": PathBuf = "(none)", "FILE", "The gateway's certificate and intermediate certificates (PEM); clients can then use TLS";
    tls_key_file "HOTROW_TLS_KEY_FILE": PathBuf = "(none)", "FILE", "Private key of the certificate (PEM); other users must not have access to it";
    tls_client_ca_file "HOTROW_TLS_CLIENT_CA_FILE": PathBuf = "(none)", "FILE", "Certificate authorities for clients' certificates (PEM)";
    console_admins "HOTROW_CONSOLE_ADMINS": String = "(own user)", "USERS", "Users with all commands of the console, separated by commas; by default the user of upstream";
    console_readers "HOTROW_CONSOLE_READERS": String = "(local users)", "USERS", "Users with the SHOW commands of the console, separated by commas; by default all users connected over loopback or a Unix socket";
    log "HOTROW_LOG": String = "info", "FILTER", "Messages logged to standard error: error, warn, info, debug, or a tracing filter";
    log_format "HOTROW_LOG_FORMAT": String = "text", "FORMAT", "Form of the log's lines: text, or json for one JSON object in each line";
}

/// Settings that take effect at the next start only.
pub const NEEDS_RESTART: [&str; 11] = [
    "upstream",
    "replicas",
    "listen",
    "http",
    "http_token_file",
    "http_show_values",
    "metrics",
    "traces",
    "workers",
    "log",
    "log_format",
];

/// A value as the user writes it.
fn shown(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&text).to_owned()
}

/// The upstream without its password.
fn without_password(upstream: &str) -> String {
    match upstream.parse::<UpstreamConfig>() {
        Ok(parsed) => format!("{}@{}/{}", parsed.user, parsed.hosts, parsed.database),
        Err(_) => "(wrong)".to_owned(),
    }
}

/// All settings for SHOW CONFIG, without passwords.
fn shown_settings(values: &[(&'static str, String)]) -> Vec<Shown> {
    let shown = Settings::table().into_iter().zip(values).map(|(setting, (name, value))| Shown {
        name,
        value: match (*name, value.as_str()) {
            ("upstream", url) if url != "(none)" => without_password(url),
            ("replicas", url) if url != "(none)" => hosts_of_replicas(url),
            _ => value.clone(),
        },
        default: setting.default,
        unit: setting.unit,
        needs_restart: NEEDS_RESTART.contains(name),
    });
    shown.collect()
}

/// The hosts of the replicas, without users and passwords.
fn hosts_of_replicas(url: &str) -> String {
    url.parse::<UpstreamConfig>().map_or("(wrong)".to_owned(), |parsed| parsed.hosts.to_string())
}

/// The settings that the program runs with.
pub struct Resolved {
    /// The gateway's part.
    pub config: Config,
    /// The address of the metrics.
    pub metrics: Option<MetricsPage>,
    /// The collector of traces.
    pub traces: Option<Collector>,
    /// The HTTP API.
    pub http: Option<Http>,
    /// Threads.
    pub workers: usize,
    /// The log filter.
    pub log: String,
    /// Whether each line of the log is a JSON object.
    pub logs_json: bool,
    /// Advice about the settings file for the log.
    pub warning: Option<String>,
    /// Each setting and its value.
    values: Vec<(&'static str, String)>,
}

impl Resolved {
    /// Settings that differ in `other` and take effect at the next start only.
    pub fn needs_restart_for(&self, other: &Resolved) -> Vec<&'static str> {
        let both = self.values.iter().zip(&other.values);
        let changed = both.filter(|(one, other)| one != other).map(|((name, _), _)| *name);
        changed.filter(|name| NEEDS_RESTART.contains(name)).collect()
    }
}

/// The settings of a gateway in front of one kind of server.
pub enum AnyResolved {
    /// PostgreSQL.
    Postgres(Box<Resolved>),
    /// MariaDB.
    Mysql(Box<MysqlResolved>),
}

impl AnyResolved {
    fn with(mut self, warning: Option<String>) -> Self {
        match &mut self {
            AnyResolved::Postgres(resolved) => resolved.warning = warning,
            AnyResolved::Mysql(resolved) => resolved.warning = warning,
        }
        self
    }
}

impl Settings {
    /// Combines flags and environment (`self`), file and defaults, and checks them for a gateway in front of PostgreSQL.
    pub fn resolve(self, file: Option<&Path>) -> Result<Resolved, Error> {
        let (resolved, warning) = self.resolve_by(file, Self::check)?;
        Ok(Resolved { warning, ..resolved })
    }

    /// The same, for a gateway in front of any kind of server.
    pub fn resolve_any(self, file: Option<&Path>) -> Result<AnyResolved, Error> {
        let (resolved, warning) = self.resolve_by(file, |settings| {
            if settings.upstream.as_deref().is_some_and(Upstream::is_meant_by) {
                return Ok(AnyResolved::Mysql(Box::new(settings.check_mysql()?)));
            }
            settings.check().map(|resolved| AnyResolved::Postgres(Box::new(resolved)))
        })?;
        Ok(resolved.with(warning))
    }

    fn resolve_by<T>(
        self,
        file: Option<&Path>,
        check: impl FnOnce(Self) -> Result<T, Error>,
    ) -> Result<(T, Option<String>), Error> {
        let Some(path) = file else { return Ok((check(self)?, None)) };
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::Read { path: path.to_owned(), error })?;
        let wrong = |line, error| Error::File { path: path.to_owned(), line, error };
        let in_file: Settings = toml::from_str(&text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            let line = line_at(&text, offset);
            wrong(line, in_words(error.message(), text.lines().nth(line - 1).unwrap_or_default()))
        })?;
        let given = self.clone();
        let warning = secrecy::warning(path, &in_file);
        let resolved = check(self.or(in_file)).map_err(|error| match error.setting() {
            Some(name) if !given.has(name) => match line_of(&text, name) {
                Some(line) => wrong(line, error.to_string()),
                None => error,
            },
            _ => error,
        })?;
        Ok((resolved, warning))
    }

    fn check(self) -> Result<Resolved, Error> {
        let (values, settings) = (self.values(), self.without_mysql()?);
        let (routes, upstream_url) =
            routes(settings.upstream, settings.replicas.as_deref(), settings.server, settings.database)?;
        let listen = settings.listen.unwrap_or_else(|| "127.0.0.1:6432".to_owned());
        let listen = listen.split(',').map(|one| one.trim().parse()).collect::<Result<Vec<Listen>, _>>()?;
        let mut config = Config::with_routes(routes, listen);
        (config.hba_file, config.users_file) = (settings.hba_file, settings.users_file);
        config.auth_query = settings.auth_query.unwrap_or(config.auth_query);
        config.shown = shown_settings(&values);
        config.console.admins = settings.console_admins.as_deref().map(console::name_list);
        config.console.readers = settings.console_readers.as_deref().map(console::name_list);
        config.tables = settings.pool.into_iter().map(Arc::new).collect();
        let (certificate, key) = (settings.tls_cert_file, settings.tls_key_file);
        let tls = tls::Files::new(certificate, key, settings.tls_client_ca_file)?;
        config.tls = tls.map(|files| tls::Server::load(&files).map(Arc::new)).transpose()?;
        config.pack = settings.pack.unwrap_or(config.pack);
        config.unpacked_tables = TableList::read(&settings.unpacked_tables.unwrap_or_default());
        config.citus_lanes = settings.citus_lanes.unwrap_or(config.citus_lanes);
        config.lanes = number("lanes", settings.lanes, config.lanes, 1..=64, "1 to 64")?;
        config.clients_max =
            number("clients_max", settings.clients_max, config.clients_max, 1..=1_000_000, "1 to 1,000,000")?;
        config.held_connections_max = number(
            "held_connections_max",
            settings.held_connections_max,
            config.held_connections_max,
            1..=100_000,
            "1 to 100,000",
        )?;
        config.message_bytes_max = number(
            "message_bytes_max",
            settings.message_bytes_max,
            config.message_bytes_max,
            limits::SESSION_BUFFER_BYTES as u64..=1 << 30,
            "65,536 to 1,073,741,824",
        )?;
        for (name, value, target) in [
            ("lane_lock_timeout_ms", settings.lane_lock_timeout_ms, &mut config.lane_lock_timeout),
            ("held_wait_ms", settings.held_wait_ms, &mut config.held_wait),
            ("held_idle_ms", settings.held_idle_ms, &mut config.held_idle),
            ("server_wait_ms", settings.server_wait_ms, &mut config.server_wait),
            ("replica_lag_max_ms", settings.replica_lag_max_ms, &mut config.replica_lag_max),
            ("replica_wait_ms", settings.replica_wait_ms, &mut config.replica_wait),
            ("queue_wait_ms", settings.queue_wait_ms, &mut config.queue_wait),
            ("drain_timeout_ms", settings.drain_timeout_ms, &mut config.drain_timeout),
            ("catalog_age_ms", settings.catalog_age_ms, &mut config.catalog_age),
        ] {
            let default = usize::try_from(target.as_millis()).unwrap_or(usize::MAX);
            let milliseconds = number(name, value, default, 1..=86_400_000, "1 to 86,400,000 (a day)")?;
            *target = Duration::from_millis(milliseconds as u64);
        }
        config.verdict_wait = verdict_wait(settings.verdict_wait_ms)?;
        let (http, metrics) = http::resolve(
            (settings.http, settings.metrics),
            settings.http_token_file.as_deref(),
            settings.http_show_values.unwrap_or(false),
            upstream_url,
        )?;
        Ok(Resolved {
            config,
            metrics,
            traces: settings.traces.map(|url| url.parse()).transpose()?,
            http,
            workers: number("workers", settings.workers, 1, 1..=256, "1 to 256")?,
            log: settings.log.unwrap_or_else(|| "info".to_owned()),
            logs_json: is_json(settings.log_format)?,
            warning: None,
            values,
        })
    }
}

fn verdict_wait(value: Option<u64>) -> Result<Duration, Error> {
    let default = limits::VERDICT_WAIT_MS as usize;
    let wait = number("verdict_wait_ms", value, default, 0..=60_000, "0 to 60,000 (a minute)")?;
    Ok(Duration::from_millis(wait as u64))
}

/// The routes to all databases, and the URL of the first table's server.
fn routes(
    upstream: Option<String>,
    replicas: Option<&str>,
    servers: Vec<ServerTable>,
    databases: Vec<DatabaseTable>,
) -> Result<(Routes, String), Error> {
    match upstream {
        Some(url) if servers.is_empty() && databases.is_empty() => {
            let replicas =
                replicas.map_or(Ok(Vec::new()), UpstreamConfig::replicas).map_err(Error::Replicas)?;
            Ok((Routes::single(url.parse()?, replicas), url))
        }
        Some(_) => Err(Error::UpstreamAndTables),
        None if servers.is_empty() && databases.is_empty() => Err(Error::NoUpstream),
        None if replicas.is_some() => Err(Error::ReplicasAndTables),
        None => {
            let first = databases.first().and_then(|database| database.server.clone());
            let url = servers.iter().find(|server| Some(&server.name) == first.as_ref());
            let url = url.map(|server| server.url.text().to_owned()).unwrap_or_default();
            Ok((Routes::of_tables(servers, databases)?, url))
        }
    }
}

fn number(
    name: &'static str,
    value: Option<u64>,
    default: usize,
    range: std::ops::RangeInclusive<u64>,
    bounds: &'static str,
) -> Result<usize, Error> {
    match value {
        None => Ok(default),
        Some(value) if range.contains(&value) => Ok(usize::try_from(value).unwrap_or(usize::MAX)),
        Some(value) => Err(Error::OutOfBounds { name, value, bounds }),
    }
}

/// Whether the log's lines are JSON.
fn is_json(log_format: Option<String>) -> Result<bool, Error> {
    match log_format.as_deref() {
        None | Some("text") => Ok(false),
        Some("json") => Ok(true),
        Some(other) => Err(Error::LogFormat(other.to_owned())),
    }
}

/// The parser's message about this line of the file, without names of types.
fn in_words(message: &str, line: &str) -> String {
    let name = line.split('=').next().unwrap_or_default().trim();
    let table = Settings::table();
    let Some(setting) = table.iter().find(|setting| setting.name == name) else { return message.to_owned() };
    let expected = format!("expected {}", whole_number_of(setting.unit));
    let message = message.replace("expected u64", &expected).replace("expected i64", &expected);
    format!("{name}: {}", message.replace("expected a boolean", "expected true or false"))
}

/// The values of a setting with this unit, in words.
fn whole_number_of(unit: &str) -> String {
    match unit {
        "MS" => "a whole number of milliseconds".to_owned(),
        unit => format!("a whole number of {}", unit.to_lowercase()),
    }
}

/// The number of the line with this byte, counted from one.
fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The number of the line that sets this setting, outside of tables.
fn line_of(text: &str, name: &str) -> Option<usize> {
    let lines = text.lines().take_while(|line| !line.trim_start().starts_with('['));
    let sets = |line: &str| {
        line.trim_start().strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    lines.enumerate().find(|(_, line)| sets(line)).map(|(index, _)| index + 1)
}
