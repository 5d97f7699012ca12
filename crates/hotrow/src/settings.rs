//! The settings: each in one place with its flag, its environment variable, its name in the file, its default, its
//! unit and what it means. A flag wins over the environment, that over the file, that over the default.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotrow_core::{console, limits};
use hotrow_gateway::config::{Config, Listen, ListenError, PoolTable, Shown, Upstream, UpstreamError};
use hotrow_gateway::tls;
use hotrow_http::{TokenError, Tokens};

/// Why the settings can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No server is named.
    #[error(
        "no upstream: say which server to stand in front of, for example --upstream postgres://127.0.0.1:5432 (or HOTROW_UPSTREAM, or upstream in the file)"
    )]
    NoUpstream,
    /// The server can't be used.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The address can't be used.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The HTTP address can't be used.
    #[error("{0:?} is no address for http; write HOST:PORT with an address, for example 127.0.0.1:8080")]
    HttpAddress(String),
    /// Everybody could use it.
    #[error(
        "{0} can be reached from other machines: name a file with tokens by --http-token-file, or listen for HTTP on 127.0.0.1 or [::1]"
    )]
    HttpOpen(SocketAddr),
    /// TLS can't be set up.
    #[error("TLS for clients: {0}")]
    Tls(#[from] tls::Error),
    /// The tokens can't be used.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The file can't be read.
    #[error("can't read the configuration file {}: {error}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The file is wrong.
    #[error("the configuration file is wrong: {}:{line}: {error}; see: hotrow help config", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Where, counted from one.
        line: usize,
        /// Why.
        error: String,
    },
    /// A number that makes no sense.
    #[error("{name} is {value} and must be {bounds}")]
    OutOfBounds {
        /// The setting.
        name: &'static str,
        /// What it is.
        value: u64,
        /// What it may be.
        bounds: &'static str,
    },
}

impl Error {
    /// The setting that is wrong.
    fn setting(&self) -> Option<&'static str> {
        Some(match self {
            Error::Upstream(_) => "upstream",
            Error::Listen(_) => "listen",
            Error::HttpAddress(_) | Error::HttpOpen(_) => "http",
            Error::Tls(_) => "tls_cert_file",
            Error::Tokens(_) => "http_token_file",
            Error::OutOfBounds { name, .. } => name,
            Error::NoUpstream | Error::Read { .. } | Error::File { .. } => return None,
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
    /// What it means.
    pub meaning: &'static str,
}

macro_rules! settings {
    ($($name:ident $variable:literal: $type:ty = $default:expr, $unit:literal, $meaning:literal;)*) => {
        /// The settings as they were typed, from flags and environment.
        #[derive(Clone, Debug, Default, clap::Args, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Settings {
            $(
                #[doc = $meaning]
                #[arg(long, env = $variable, hide_env = true, hide_env_values = true, value_name = $unit)]
                pub $name: Option<$type>,
            )*
            /// What is different for some databases and users: only in the file.
            #[arg(skip)]
            pub pool: Vec<PoolTable>,
        }

        impl Settings {
            /// What is set here, and for the rest what is set in `other`.
            fn or(self, other: Settings) -> Settings {
                Settings { $($name: self.$name.or(other.$name),)* pool: other.pool }
            }

            /// Whether a flag or the environment has set this.
            fn has(&self, name: &str) -> bool {
                match name {
                    $(stringify!($name) => self.$name.is_some(),)*
                    _ => false,
                }
            }

            /// Each with what is set here, or its default.
            fn values(&self) -> Vec<(&'static str, String)> {
                vec![$((
                    stringify!($name),
                    self.$name.as_ref().map_or_else(|| $default.to_string(), shown),
                )),*]
            }

            /// All of them, for people.
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
    upstream "HOTROW_UPSTREAM": String = "(none)", "URL", "The server: a libpq URL or keyword string, TCP or Unix socket; several hosts for a primary and its standbys";
    listen "HOTROW_LISTEN": String = "127.0.0.1:6432", "HOST:PORT", "Where clients connect: addresses or paths of Unix sockets, several with commas; beyond loopback only with an hba_file";
    http "HOTROW_HTTP": String = "(off)", "HOST:PORT", "Where the schema pack is served as JSON over HTTP; beyond loopback only with tokens";
    http_token_file "HOTROW_HTTP_TOKEN_FILE": PathBuf = "(none)", "FILE", "Tokens of which an HTTP request must bear one, one in each line";
    metrics "HOTROW_METRICS": String = "(off)", "HOST:PORT", "Where Prometheus finds /metrics";
    workers "HOTROW_WORKERS": u64 = 1, "THREADS", "Threads that carry bytes; one serves over 100,000 statements a second";
    pack "HOTROW_PACK": bool = true, "BOOL", "Whether anything is packed; off, the gateway only pools connections";
    lanes "HOTROW_LANES": u64 = limits::LANES, "CONNECTIONS", "Lanes for writes of one user and database, and as many again for point reads; opened when needed";
    lane_lock_timeout_ms "HOTROW_LANE_LOCK_TIMEOUT_MS": u64 = limits::LANE_LOCK_TIMEOUT_MS, "MS", "How long a statement in a lane waits for an outsider's lock before it leaves the lane";
    clients_max "HOTROW_CLIENTS_MAX": u64 = limits::CLIENTS_MAX, "CLIENTS", "Clients at once; one more is refused with 53300";
    held_connections_max "HOTROW_HELD_CONNECTIONS_MAX": u64 = limits::HELD_CONNECTIONS_MAX, "CONNECTIONS", "Upstream connections beside the lanes, for what is passed through";
    held_wait_ms "HOTROW_HELD_WAIT_MS": u64 = limits::HELD_WAIT_MS, "MS", "How long a session waits for one of those before 53300";
    held_idle_ms "HOTROW_HELD_IDLE_MS": u64 = limits::HELD_IDLE_MS, "MS", "How long one of those or a lane's stays open when nobody uses it";
    server_wait_ms "HOTROW_SERVER_WAIT_MS": u64 = limits::SERVER_WAIT_MS, "MS", "How long statements that were not sent wait for the server to come back before 57P03; what became of a commit is asked for six times as long before 08007";
    queue_wait_ms "HOTROW_QUEUE_WAIT_MS": u64 = limits::QUEUE_WAIT_MS, "MS", "How long a statement may be about to wait in a lane, by the lane's pace; one that would wait longer is refused at once";
    drain_timeout_ms "HOTROW_DRAIN_TIMEOUT_MS": u64 = limits::DRAIN_TIMEOUT_MS, "MS", "How long a stop waits for transactions that are under way";
    catalogue_age_ms "HOTROW_CATALOGUE_AGE_MS": u64 = limits::CATALOGUE_AGE_MS, "MS", "How long what the catalogue said of a table is believed before it is asked again";
    message_bytes_max "HOTROW_MESSAGE_BYTES_MAX": u64 = limits::MESSAGE_BYTES_MAX, "BYTES", "The largest message a client may send";
    hba_file "HOTROW_HBA_FILE": PathBuf = "(none)", "FILE", "Who may come how, as in pg_hba.conf; without one, whoever is on this machine. Read again at SIGHUP";
    users_file "HOTROW_USERS_FILE": PathBuf = "(none)", "FILE", "Users and their passwords or hashes, as in PgBouncer's userlist.txt. Read again at SIGHUP";
    auth_query "HOTROW_AUTH_QUERY": String = "(pg_authid)", "SQL", "How the server is asked for the name and hash of user $1 who isn't in users_file; not at all if empty";
    tls_cert_file "HOTROW_TLS_CERT_FILE": PathBuf = "(none)", "FILE", "The gateway's certificate, and those between it and its authority (PEM); with it clients may ask for TLS";
    tls_key_file "HOTROW_TLS_KEY_FILE": PathBuf = "(none)", "FILE", "The certificate's private key (PEM), which nobody else may read";
    tls_client_ca_file "HOTROW_TLS_CLIENT_CA_FILE": PathBuf = "(none)", "FILE", "The authorities of clients' certificates (PEM)";
    console_admins "HOTROW_CONSOLE_ADMINS": String = "(own user)", "USERS", "Users who may give every command on the console, with commas between them; by default the user of upstream";
    console_readers "HOTROW_CONSOLE_READERS": String = "(local users)", "USERS", "Users who may only look at the console, with commas between them; by default all who connect over loopback or a Unix socket";
    log "HOTROW_LOG": String = "info", "FILTER", "What is logged to standard error: error, warn, info, debug, or a tracing filter";
}

/// Settings that only a new start changes.
pub const NEEDS_RESTART: [&str; 7] =
    ["upstream", "listen", "http", "http_token_file", "metrics", "workers", "log"];

/// A value as it is typed.
fn shown(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&text).to_owned()
}

/// An upstream as it may be shown.
fn without_password(upstream: &str) -> String {
    match upstream.parse::<Upstream>() {
        Ok(parsed) => format!("{}@{}/{}", parsed.user, parsed.hosts, parsed.database),
        Err(_) => "(wrong)".to_owned(),
    }
}

/// Where and to whom HTTP is served.
#[derive(Debug)]
pub struct Http {
    /// The address.
    pub address: SocketAddr,
    /// The tokens that are accepted; without any, everybody is who can reach the address.
    pub tokens: Option<Tokens>,
}

/// What the program runs with.
pub struct Resolved {
    /// The gateway's part.
    pub config: Config,
    /// Where metrics are served.
    pub metrics: Option<String>,
    /// Where the schema pack is served over HTTP.
    pub http: Option<Http>,
    /// Threads.
    pub workers: usize,
    /// The log filter.
    pub log: String,
    /// Each setting and its value.
    values: Vec<(&'static str, String)>,
}

impl Resolved {
    /// Settings that are different in `other` and that only a new start changes.
    pub fn needs_restart_for(&self, other: &Resolved) -> Vec<&'static str> {
        let both = self.values.iter().zip(&other.values);
        let changed = both.filter(|(one, other)| one != other).map(|((name, _), _)| *name);
        changed.filter(|name| NEEDS_RESTART.contains(name)).collect()
    }
}

impl Settings {
    /// Puts flags, environment, file and defaults together and checks them.
    pub fn resolve(self, file: Option<&Path>) -> Result<Resolved, Error> {
        let Some(path) = file else { return self.check() };
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::Read { path: path.to_owned(), error })?;
        let wrong = |line, error| Error::File { path: path.to_owned(), line, error };
        let in_file: Settings = toml::from_str(&text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            wrong(line_at(&text, offset), error.message().to_owned())
        })?;
        let typed = self.clone();
        self.or(in_file).check().map_err(|error| match error.setting() {
            Some(name) if !typed.has(name) => match line_of(&text, name) {
                Some(line) => wrong(line, error.to_string()),
                None => error,
            },
            _ => error,
        })
    }

    fn check(self) -> Result<Resolved, Error> {
        let settings = self;
        let values = settings.values();
        let shown = Self::table().into_iter().zip(&values).map(|(setting, (name, value))| Shown {
            name,
            value: if *name == "upstream" { without_password(value) } else { value.clone() },
            default: setting.default,
            unit: setting.unit,
            needs_restart: NEEDS_RESTART.contains(name),
        });
        let shown = shown.collect();
        let upstream: Upstream = settings.upstream.ok_or(Error::NoUpstream)?.parse()?;
        let listen = settings.listen.unwrap_or_else(|| "127.0.0.1:6432".to_owned());
        let listen =
            listen.split(',').map(|address| address.trim().parse()).collect::<Result<Vec<Listen>, _>>()?;
        let mut config = Config::new(upstream, listen);
        config.hba_file = settings.hba_file;
        config.users_file = settings.users_file;
        config.auth_query = settings.auth_query.unwrap_or(config.auth_query);
        config.shown = shown;
        config.console.admins = settings.console_admins.as_deref().map(console::user_list);
        config.console.readers = settings.console_readers.as_deref().map(console::user_list);
        config.tables = settings.pool.into_iter().map(Arc::new).collect();
        config.tls =
            tls_for_clients(settings.tls_cert_file, settings.tls_key_file, settings.tls_client_ca_file)?;
        config.pack = settings.pack.unwrap_or(config.pack);
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
            ("queue_wait_ms", settings.queue_wait_ms, &mut config.queue_wait),
            ("drain_timeout_ms", settings.drain_timeout_ms, &mut config.drain_timeout),
            ("catalogue_age_ms", settings.catalogue_age_ms, &mut config.catalogue_age),
        ] {
            let default = usize::try_from(target.as_millis()).unwrap_or(usize::MAX);
            let milliseconds = number(name, value, default, 1..=86_400_000, "1 to 86,400,000 (a day)")?;
            *target = Duration::from_millis(milliseconds as u64);
        }
        Ok(Resolved {
            config,
            metrics: settings.metrics,
            http: http(settings.http, settings.http_token_file.as_deref())?,
            workers: number("workers", settings.workers, 1, 1..=256, "1 to 256")?,
            log: settings.log.unwrap_or_else(|| "info".to_owned()),
            values,
        })
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

fn tls_for_clients(
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    client_authorities: Option<PathBuf>,
) -> Result<Option<Arc<tls::Server>>, tls::Error> {
    let files = tls::server::Files::new(certificate, key, client_authorities)?;
    files.map(|files| tls::Server::load(&files).map(Arc::new)).transpose()
}

fn http(address: Option<String>, token_file: Option<&Path>) -> Result<Option<Http>, Error> {
    let Some(text) = address else { return Ok(None) };
    let parsed = text.replace("localhost:", "127.0.0.1:").parse::<SocketAddr>();
    let address = parsed.map_err(|_| Error::HttpAddress(text))?;
    let tokens = token_file.map(Tokens::read).transpose()?;
    if tokens.is_none() && !address.ip().is_loopback() {
        return Err(Error::HttpOpen(address));
    }
    Ok(Some(Http { address, tokens }))
}

/// The line that holds this byte, counted from one.
fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The line that sets this, outside of tables.
fn line_of(text: &str, name: &str) -> Option<usize> {
    let lines = text.lines().take_while(|line| !line.trim_start().starts_with('['));
    let sets = |line: &str| {
        line.trim_start().strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    lines.enumerate().find(|(_, line)| sets(line)).map(|(index, _)| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_upstream() -> Settings {
        Settings { upstream: Some("postgres://ann@127.0.0.1/shop".to_owned()), ..Settings::default() }
    }

    #[test]
    fn there_are_at_most_27_settings_and_each_has_a_unit() {
        let table = Settings::table();
        assert!(table.len() <= 27);
        assert!(table.iter().all(|setting| !setting.unit.is_empty() && !setting.meaning.is_empty()));
        let command = <Settings as clap::Args>::augment_args(clap::Command::new("x"));
        for argument in command.get_arguments() {
            let variable = argument.get_env().and_then(|variable| variable.to_str()).unwrap();
            assert_eq!(variable, format!("HOTROW_{}", argument.get_id().as_str().to_uppercase()));
        }
    }

    #[test]
    fn what_is_typed_wins_over_the_file() {
        let directory = std::env::temp_dir().join(format!("hotrow-settings-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("hotrow.toml");
        std::fs::write(&path, "lanes = 2\nheld_wait_ms = 7\n").unwrap();
        let settings = Settings { lanes: Some(3), ..with_upstream() };
        let config = settings.resolve(Some(&path)).unwrap().config;
        assert_eq!((config.lanes, config.held_wait), (3, Duration::from_millis(7)));
        std::fs::write(&path, "lane = 2\n").unwrap();
        let error = with_upstream().resolve(Some(&path)).err().unwrap().to_string();
        assert!(error.contains("hotrow.toml:1: unknown field `lane`"), "{error}");
        assert!(error.contains("hotrow help config"), "{error}");
        std::fs::write(&path, "pack = true\nlanes = 0\n").unwrap();
        let error = with_upstream().resolve(Some(&path)).err().unwrap().to_string();
        assert!(error.contains("hotrow.toml:2: lanes is 0"), "{error}");
        let typed = Settings { lanes: Some(0), ..with_upstream() };
        let error = typed.resolve(Some(&path)).err().unwrap().to_string();
        assert!(!error.contains("hotrow.toml"), "it is the flag that is wrong: {error}");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_needs_a_restart_is_a_setting_and_is_told() {
        let table = Settings::table();
        for name in NEEDS_RESTART {
            assert!(table.iter().any(|setting| setting.name == name), "{name}");
        }
        let resolved = |settings: Settings| settings.resolve(None).unwrap();
        let before = resolved(with_upstream());
        let settings = Settings { workers: Some(2), lanes: Some(2), ..with_upstream() };
        assert_eq!(before.needs_restart_for(&resolved(settings)), ["workers"]);
        assert!(before.needs_restart_for(&resolved(with_upstream())).is_empty());
    }

    #[test]
    fn nonsense_is_refused_with_words() {
        let message = |settings: Settings| settings.resolve(None).err().unwrap().to_string();
        assert!(message(Settings::default()).contains("--upstream"));
        assert!(message(Settings { lanes: Some(0), ..with_upstream() }).contains("1 to 64"));
        let http = |address: &str| message(Settings { http: Some(address.into()), ..with_upstream() });
        assert!(http("8080").contains("HOST:PORT"));
        assert!(http("0.0.0.0:8080").contains("--http-token-file"));
    }
}
