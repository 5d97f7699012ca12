//! The programs from start to end: settings, tables, sockets. Never moves a payment.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::api;
use crate::database::{self, Database};
use crate::flow::Payments;
use crate::gateway::Gateway;
use crate::http::Client;
use crate::notifications::Notifications;
use crate::server::{asked_to_stop, serve};
use crate::settings::{self, Settings};
use crate::worker::Worker;

const SCHEMA: &str = include_str!("../sql/schema.sql");

/// The reason why a program ends before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is missing or invalid.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] database::Error),
    /// The operating system reports an error.
    #[error("the operating system reports an error: {0}")]
    System(#[from] std::io::Error),
    /// The command line is invalid.
    #[error("invalid arguments {0:?}: use `payments service` or `payments worker`")]
    Usage(Vec<String>),
}

/// Runs a program to its end, and reports why it ended before it was asked to.
pub async fn run(name: &str, program: impl Future<Output = Result<(), Error>>) -> ExitCode {
    log();
    let Err(error) = program.await else { return ExitCode::SUCCESS };
    eprintln!("{name}: {error}");
    ExitCode::FAILURE
}

/// Sends log lines to standard error.
fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("LOG")
        .unwrap_or_else(|_| "info,tokio_postgres=warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}

/// `payments service` answers requests. `payments worker` does the work in the background.
pub async fn payments(arguments: &[String]) -> Result<(), Error> {
    let is_worker = match arguments {
        [role] if role == "service" => false,
        [role] if role == "worker" => true,
        _ => return Err(Error::Usage(arguments.to_vec())),
    };
    let settings = Settings::read()?;
    let database = Arc::new(Database::new(settings.database.clone(), settings.connections));
    database.script(SCHEMA).await?;
    let client = Client::default();
    let first_look = settings.reconcile_after[0];
    let gateways = gateways(&settings, &client)?;
    let notifications = Notifications::new(database.clone(), &settings.notify_again_after);
    let payments = Payments::new(database, gateways, notifications, settings.gateway_limit, first_look);
    let payments = Arc::new(payments);
    if is_worker {
        say("payments: working")?;
        Worker::new(payments, client, &settings.reconcile_after).run(asked_to_stop()).await;
    } else {
        let listener = TcpListener::bind(settings.listen).await?;
        say(&format!("payments: listening on {}", listener.local_addr()?))?;
        serve(listener, api::router(payments, settings.key_lease), asked_to_stop()).await;
    }
    Ok(())
}

/// The payment gateways, all at one address or each at its own.
fn gateways(settings: &Settings, client: &Client) -> Result<Vec<Gateway>, settings::Error> {
    let urls = &settings.gateways;
    if urls.len() != 1 && urls.len() != Gateway::ALL.len() {
        let wanted = format!("{} addresses, where 1 or {} are needed", urls.len(), Gateway::ALL.len());
        return Err(settings::Error::Wrong("GATEWAYS_URL", wanted));
    }
    let gateway = |(index, named): (usize, _)| {
        let url = urls.get(index).unwrap_or(&urls[0]);
        let secret = settings.gateway_secrets[index].as_str();
        Gateway::new(named, url, secret, client.clone(), settings.gateway_limit)
    };
    Ok(Gateway::ALL.into_iter().enumerate().map(gateway).collect())
}

/// Writes a line to standard output, for a program or person that waits for it.
pub(crate) fn say(line: &str) -> Result<(), std::io::Error> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
