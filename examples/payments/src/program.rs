//! The programs from start to end: settings, tables, sockets. No payment is moved here.

use std::io::Write;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::api;
use crate::database::{self, Database};
use crate::flow::Payments;
use crate::gateway::{Gateway, Simulated};
use crate::http::Client;
use crate::notifications::Notifications;
use crate::server::{asked_to_stop, serve};
use crate::settings::{self, Settings};
use crate::worker::Worker;

const SCHEMA: &str = include_str!("../sql/schema.sql");

/// Why a program ends before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// The database.
    #[error(transparent)]
    Database(#[from] database::Error),
    /// The system.
    #[error("the system refuses: {0}")]
    System(#[from] std::io::Error),
    /// The command line.
    #[error("say `payments service` or `payments worker`, not {0:?}")]
    Usage(Vec<String>),
}

/// What is logged, and where.
pub fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("LOG")
        .unwrap_or_else(|_| "info,tokio_postgres=warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}

/// `payments`: takes requests; `payments worker`: does what nobody waits for.
pub async fn payments(arguments: &[String]) -> Result<(), Error> {
    let is_worker = match arguments {
        [role] if role == "service" => false,
        [role] if role == "worker" => true,
        _ => return Err(Error::Usage(arguments.to_vec())),
    };
    let settings = Settings::read()?;
    let database = Database::new(settings.database.clone(), settings.connections);
    database.script(SCHEMA).await?;
    let client = Client::default();
    let first_look = settings.reconcile_after[0];
    let gateways = gateways(&settings, &client)?;
    let notifications = Notifications::new(&settings.notify_again_after);
    let payments = Payments::new(database, gateways, notifications, settings.gateway_limit, first_look);
    let payments = Arc::new(payments);
    let stop = async {
        if let Err(error) = asked_to_stop().await {
            tracing::error!(%error, "nobody can ask this program to stop");
            std::future::pending::<()>().await;
        }
    };
    if is_worker {
        say("payments: working")?;
        Worker::new(payments, client, &settings.reconcile_after).run(stop).await;
    } else {
        let listener = TcpListener::bind(settings.listen).await?;
        say(&format!("payments: listening on {}", listener.local_addr()?))?;
        serve(listener, api::router(payments, settings.key_lease), stop).await;
    }
    Ok(())
}

/// The simulated gateways, at one address or at one each.
fn gateways(settings: &Settings, client: &Client) -> Result<Vec<Box<dyn Gateway>>, settings::Error> {
    let urls = &settings.gateways;
    if urls.len() != 1 && urls.len() != Simulated::ALL.len() {
        let wanted = format!("{} addresses, where 1 or {} are needed", urls.len(), Simulated::ALL.len());
        return Err(settings::Error::Wrong("GATEWAYS_URL", wanted));
    }
    let gateway = |(index, named): (usize, _)| {
        let url = urls.get(index).unwrap_or(&urls[0]);
        let secret = settings.gateway_secrets[index].as_str();
        let gateway = Simulated::new(named, url, secret, client.clone(), settings.gateway_limit);
        Box::new(gateway) as Box<dyn Gateway>
    };
    Ok(Simulated::ALL.into_iter().enumerate().map(gateway).collect())
}

/// A line for whoever started the program and waits for it.
pub(crate) fn say(line: &str) -> Result<(), std::io::Error> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
