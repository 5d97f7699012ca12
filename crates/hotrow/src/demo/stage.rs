//! All that a demo needs around it: a server, a connection to it, a gateway in front of it. Never a sale.

use hotrow_postgres::{Binaries, PrivateServer, Progress};
use tokio::task::spawn_blocking;

use super::connection::Target;
use super::error::Error;
use super::figures::Side;
use super::gateway::Gateway;
use super::sale::{Sale, ServerFacts};
use super::view::View;

/// The set stage. The fields' order is the order in which they go: gateway, connection, server.
pub struct Stage {
    gateway: Gateway,
    /// The shop, without the gateway in between.
    pub sale: Sale,
    server: Option<PrivateServer>,
    direct: Target,
    /// What the server says of itself.
    pub facts: ServerFacts,
}

impl Stage {
    /// Starts a private server, or takes the one at `upstream`, and a gateway in front of it.
    pub async fn set(upstream: Option<&str>, view: &View) -> Result<Self, Error> {
        let (server, url) = match upstream {
            Some(url) => (None, url.to_owned()),
            None => {
                view.busy("starting a private PostgreSQL");
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
        let gateway = spawn_blocking(move || Gateway::in_front_of(&url)).await??;
        Ok(Self { gateway, sale, server, direct, facts })
    }

    /// Where the buyers of a side connect.
    pub fn target(&self, side: Side) -> Target {
        match side {
            Side::Direct => self.direct.clone(),
            Side::Hotrow => {
                let (host, port) = self.gateway.address();
                self.direct.at(host, port)
            }
        }
    }

    /// An error of the run, with what the gateway said last: it may be the gateway's doing.
    pub fn explained(&self, error: Error) -> Error {
        let words = self.gateway.last_words();
        match error {
            Error::Line { .. } | Error::Silent { .. } | Error::TurnedAway { .. } if !words.is_empty() => {
                Error::Explained { error: Box::new(error), words }
            }
            other => other,
        }
    }

    /// Whether the server is the demo's own.
    pub fn private(&self) -> bool {
        self.server.is_some()
    }

    /// Stops the gateway, then removes what the demo made. A private server goes with all that is on it.
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

/// Blocks; on a machine without PostgreSQL it is downloaded first, which takes a moment.
fn private_server(note: impl Fn(String)) -> Result<PrivateServer, hotrow_postgres::Error> {
    let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
    let binaries = Binaries::find_with(|Progress { received, total }| {
        let of = total.map(|total| format!(" of {}", megabytes(total))).unwrap_or_default();
        note(format!("downloading PostgreSQL: {}{of} MB", megabytes(received)));
    })?;
    note("starting a private PostgreSQL".to_owned());
    PrivateServer::builder().binaries(binaries).label("demo").start()
}
