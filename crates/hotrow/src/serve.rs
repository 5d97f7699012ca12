//! `hotrow serve`: runs the gateway until it is told to stop.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use hotrow_gateway::metrics::METRICS;
use hotrow_gateway::{Gateway, ListenError};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::http::{self, HttpServer};
use crate::settings::{self, Resolved, Settings};

/// `hotrow serve`
#[derive(clap::Args)]
#[command(
    after_help = "Example: hotrow serve --upstream postgres://127.0.0.1:5432 --listen 127.0.0.1:6432\n\
    then: psql -h 127.0.0.1 -p 6432\nAll settings with defaults and units: hotrow help config"
)]
pub struct Args {
    /// A TOML file with settings
    #[arg(long, env = "HOTROW_CONFIG", hide_env = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

/// Why the gateway does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// An address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The log filter.
    #[error("the log filter is wrong: {0}; write for example info, or hotrow_gateway=debug")]
    Log(#[from] tracing_subscriber::filter::ParseError),
    /// The metrics' address.
    #[error("can't serve metrics on {address}: {error}; choose another address with --metrics")]
    Metrics {
        /// Where.
        address: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The HTTP address.
    #[error(transparent)]
    Http(#[from] http::Error),
    /// The system.
    #[error("the system refuses: {0}")]
    System(#[from] std::io::Error),
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode, Error> {
    let resolved = args.settings.resolve(args.config.as_deref())?;
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(&resolved.log)?)
        .with_writer(std::io::stderr)
        .init();
    raise_file_limit();
    let runtime = match resolved.workers {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        workers => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?
        }
    };
    runtime.block_on(serve(resolved))
}

async fn serve(resolved: Resolved) -> Result<ExitCode, Error> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hangup = signal(SignalKind::hangup())?;
    if let Some(address) = resolved.metrics {
        let refused = |error| Error::Metrics { address: address.clone(), error };
        let listener = tokio::net::TcpListener::bind(&address).await.map_err(refused)?;
        tracing::info!(address = %listener.local_addr()?, "serving /metrics");
        tokio::spawn(hotrow_http::serve_metrics(listener, || METRICS.render()));
    }
    let (upstream, patience) = (resolved.config.upstream.clone(), resolved.config.drain_timeout);
    let gateway = Gateway::start(resolved.config).await?;
    let http = match resolved.http {
        Some(http) => Some(HttpServer::start(http, &gateway, &upstream, patience).await?),
        None => None,
    };
    tracing::info!(server = %upstream.address, workers = resolved.workers, "started");
    let mut stdout = std::io::stdout();
    if let Some(http) = &http {
        writeln!(stdout, "hotrow: serving HTTP on {}", http.address())?;
    }
    for address in gateway.addresses() {
        writeln!(stdout, "hotrow: listening on {address}")?;
    }
    stdout.flush()?;
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => {
                tracing::info!("reloading: the catalogue and the merge rules are asked again");
                gateway.reload();
            }
        }
    }
    tracing::info!("stopping: what is under way is finished, new clients are sent away");
    // First those who are clients of the gateway themselves.
    if let Some(http) = http
        && !http.stop().await
    {
        tracing::warn!("some HTTP requests were under way for too long and are cut off");
    }
    let clean = gateway.stop().await;
    if !clean {
        tracing::warn!("some clients were in a transaction for too long and are cut off");
    }
    Ok(ExitCode::SUCCESS)
}

/// Each client is a file: as many as the system allows.
fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
    {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
