//! The demo's environment: a server, a connection to it, a gateway in front of it.

use hotrow_mariadb::PrivateMariaDb;
use hotrow_postgres::{Binaries, PrivateServer, Progress};
use tokio::task::spawn_blocking;

use super::error::Error;
use super::facts::ServerFacts;
use super::figures::Side;
use super::gateway::Gateway;
use super::sale::Sale;
use super::target::Target;
use super::view::View;
use super::{mariadb, postgres};

const NO_SERVER: &str = "No PostgreSQL server is installed. The demo uses one from Maven Central, which it downloads once \
    (up to 62 MB) into the cache folder of the user.";

/// Where the sale takes place.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// A private PostgreSQL server.
    Postgres,
    /// The PostgreSQL server at this URL.
    Upstream(&'a str),
    /// A private MariaDB server.
    MariaDb,
}

/// A private server of either kind, which ends when this is dropped.
type Private = Box<dyn Send>;

/// The environment. Its fields are dropped in this order: gateway, connection, server.
pub struct Stage {
    gateway: Gateway,
    /// The table, read directly from the server.
    pub sale: Sale,
    server: Option<Private>,
    direct: Target,
    /// Version and durability of the server.
    pub facts: ServerFacts,
}

impl Stage {
    /// Starts a private server, or uses one that runs, and starts a gateway in front of it.
    pub async fn set(place: Place<'_>, with_page: bool, view: &View) -> Result<Self, Error> {
        let (server, sale, direct, url) = match place {
            Place::Postgres => {
                if Binaries::installed()?.is_none() {
                    view.say(&view.layout().wrapped(NO_SERVER, 2))?;
                }
                view.busy("starting a private PostgreSQL server");
                let note = view.note();
                let server = spawn_blocking(move || private_server(note)).await??;
                let url = server.url();
                let (sale, direct) = postgres(&url).await?;
                (Some(Box::new(server) as Private), sale, direct, url)
            }
            Place::Upstream(url) => {
                let (sale, direct) = postgres(url).await?;
                (None, sale, direct, url.to_owned())
            }
            Place::MariaDb => {
                view.busy("starting a private MariaDB server");
                let server = spawn_blocking(|| PrivateMariaDb::start(&mariadb::OPTIONS)).await??;
                let (sale, direct) = mariadb(&server).await?;
                let url = mariadb::gateway_url(server.port());
                (Some(Box::new(server) as Private), sale, direct, url)
            }
        };
        let facts = sale.server().await?;
        view.busy("starting the gateway");
        let options: &[&str] = match place {
            Place::MariaDb => &["--pack", "true"],
            _ if with_page => &["--http", "127.0.0.1:0", "--http-show-values", "true"],
            _ => &[],
        };
        let gateway = spawn_blocking(move || Gateway::in_front_of(&url, options)).await??;
        Ok(Self { gateway, sale, server, direct, facts })
    }

    /// The address of a side for its buyers.
    pub fn target(&self, side: Side) -> Target {
        match side {
            Side::Direct => self.direct.clone(),
            Side::Hotrow => {
                let (host, port) = self.gateway.address();
                self.direct.at(host, port)
            }
        }
    }

    /// The URL of the gateway's operations page, if there is one.
    pub fn page(&self) -> Option<String> {
        self.gateway.page()
    }

    /// Adds the last lines of the gateway's log to an error that the gateway may have caused.
    pub fn explained(&self, error: Error) -> Error {
        let words = self.gateway.last_words();
        match error {
            Error::Line { .. } | Error::Silent { .. } | Error::TurnedAway { .. } if !words.is_empty() => {
                Error::Explained { error: Box::new(error), words }
            }
            other => other,
        }
    }

    /// Whether the server is private.
    pub fn private(&self) -> bool {
        self.server.is_some()
    }

    /// Stops the gateway, then removes the schema or the private server.
    pub async fn clear(self) -> Result<(), Error> {
        let Self { gateway, sale, server, .. } = self;
        spawn_blocking(|| drop(gateway)).await?;
        match (server, sale) {
            (None, Sale::Postgres(sale)) => sale.close().await?,
            (server, _) => spawn_blocking(|| drop(server)).await?,
        }
        Ok(())
    }
}

/// The table and the buyers' address on the PostgreSQL server at this URL.
async fn postgres(url: &str) -> Result<(Sale, Target), Error> {
    let config: tokio_postgres::Config = url.parse().map_err(Error::Url)?;
    let direct = postgres::Target::of(&config)?;
    let sale = postgres::Sale::connect(&config, &direct).await?;
    Ok((Sale::Postgres(sale), Target::Postgres(direct)))
}

/// The table and the buyers' address on a private MariaDB server.
async fn mariadb(server: &PrivateMariaDb) -> Result<(Sale, Target), Error> {
    let (administrator, buyer) = mariadb::users(server.port());
    let sale = mariadb::Sale::open(&administrator).await?;
    Ok((Sale::MariaDb(sale), Target::MariaDb(mariadb::Target::of(buyer))))
}

/// Starts a private server. On a machine without PostgreSQL, downloads it first. Blocks.
fn private_server(note: impl Fn(String)) -> Result<PrivateServer, hotrow_postgres::Error> {
    let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
    let binaries = Binaries::find_with(|Progress { received, total }| {
        let of = total.map(|total| format!(" of {}", megabytes(total))).unwrap_or_default();
        note(format!("downloading PostgreSQL: {}{of} MB", megabytes(received)));
    })?;
    note("starting a private PostgreSQL server".to_owned());
    PrivateServer::builder().binaries(binaries).label("demo").start()
}
