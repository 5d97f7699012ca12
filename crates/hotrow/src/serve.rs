//! `hotrow serve`: runs the gateway until it is told to stop.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use hotrow_gateway::{Gateway, InheritedSocket, OperatorRequest, Sockets, StartError};
use tracing_subscriber::EnvFilter;

use crate::http::{self, HttpServer};
use crate::manager;
use crate::metrics::{self, Metrics};
use crate::settings::{self, Resolved, Settings};
use crate::signals::{Signal, Signals};
use crate::successor::{self, Successor};

/// `hotrow serve`
#[derive(clap::Args)]
#[command(
    after_help = "Example: hotrow serve --upstream postgres://127.0.0.1:5432 --listen 127.0.0.1:6432\n\
    then: psql -h 127.0.0.1 -p 6432\nTo talk to the gateway itself: psql -h 127.0.0.1 -p 6432 hotrow -c 'show help'\n\
    All settings with defaults and units: hotrow help config"
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
    /// The gateway.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The log filter.
    #[error("the log filter is wrong: {0}; write for example info, or hotrow_gateway=debug")]
    Log(#[from] tracing_subscriber::filter::ParseError),
    /// What was handed over.
    #[error(
        "a socket that was handed over can't be used: {0}; hand over listening TCP and Unix sockets only"
    )]
    Inherited(std::io::Error),
    /// The metrics' address.
    #[error(transparent)]
    Metrics(#[from] metrics::Error),
    /// The HTTP address.
    #[error(transparent)]
    Http(#[from] http::Error),
    /// The system.
    #[error("the system refuses: {0}")]
    System(#[from] std::io::Error),
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode, Error> {
    let resolved = args.settings.clone().resolve(args.config.as_deref())?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(&resolved.log)?)
        .with_writer(std::io::stderr);
    // In colours for people only, who may have said that they want none; in a journal or a file they would be noise.
    if std::io::stderr().is_terminal() {
        log.init()
    } else {
        log.with_ansi(false).init()
    }
    raise_file_limit();
    // The path, and not what is there now: the successor may be a newer version.
    let (program, sockets) = (std::env::current_exe()?, Sockets::inherited().map_err(Error::Inherited)?);
    let runtime = match resolved.workers {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        workers => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?
        }
    };
    runtime.block_on(serve(resolved, args, program, sockets))
}

async fn serve(
    mut resolved: Resolved,
    args: Args,
    program: PathBuf,
    mut sockets: Sockets,
) -> Result<ExitCode, Error> {
    let mut signals = Signals::new()?;
    let metrics = match resolved.metrics.clone() {
        Some(address) => Some(Metrics::start(address, &mut sockets).await?),
        None => None,
    };
    let (upstream, patience) = (resolved.config.upstream.clone(), resolved.config.drain_timeout);
    let gateway = Gateway::start(resolved.config.clone(), &mut sockets).await?;
    let http = match resolved.http.take() {
        Some(http) => Some(HttpServer::start(http, &gateway, &upstream, patience, &mut sockets).await?),
        None => None,
    };
    for address in sockets.unused() {
        tracing::warn!(%address, "a socket that was handed over is not used: no address in the settings is its");
    }
    drop(sockets);
    tracing::info!(server = %upstream.hosts, workers = resolved.workers, pid = std::process::id(), "started");
    say_where(&gateway, http.as_ref())?;
    manager::ready();
    if let Some(pid) = successor::relieve_predecessor() {
        tracing::info!(pid, "the gateway before this one may leave");
    }

    let mut successor: Option<Successor> = None;
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                Signal::Stop => break,
                Signal::Reload => {
                    manager::reloading();
                    if let Err(error) = reload(&args, &mut resolved, &gateway).await {
                        tracing::error!("not reloaded, what was in force stays in force: {error}");
                    }
                    manager::ready();
                }
                Signal::HandOver if successor.is_some() => tracing::warn!("a successor is being started already"),
                Signal::HandOver => {
                    let sockets = inheritable_sockets(metrics.as_ref(), &gateway, http.as_ref());
                    match sockets.and_then(|sockets| Successor::start(&program, sockets)) {
                        Ok(started) => {
                            tracing::info!(pid = started.pid(), "a successor was started");
                            successor = Some(started);
                        }
                        Err(error) => tracing::error!(%error, "no successor could be started, this gateway goes on"),
                    }
                }
            },
            request = gateway.next_request() => match request {
                OperatorRequest::Shutdown => break,
                OperatorRequest::Reload(answer) => {
                    let reloaded = reload(&args, &mut resolved, &gateway).await.map_err(|error| error.to_string());
                    if let Err(error) = &reloaded {
                        tracing::error!("not reloaded, what was in force stays in force: {error}");
                    }
                    let _ = answer.send(reloaded); // who asked may be gone
                }
            },
            why = failed(&mut successor) => {
                successor = None;
                tracing::error!("the successor did not come up, this gateway goes on: {why}; its own words are above");
            }
        }
    }
    stop(gateway, http, metrics, successor).await;
    Ok(ExitCode::SUCCESS)
}

/// Why a successor did not come up. Never, where there is none.
async fn failed(successor: &mut Option<Successor>) -> String {
    match successor {
        Some(successor) => successor.failed().await,
        None => std::future::pending().await,
    }
}

/// In the order in which they are taken.
fn inheritable_sockets(
    metrics: Option<&Metrics>,
    gateway: &Gateway,
    http: Option<&HttpServer>,
) -> std::io::Result<Vec<InheritedSocket>> {
    let metrics = metrics.map(|metrics| metrics.inheritable.try_clone());
    let http = http.map(HttpServer::inheritable);
    metrics.into_iter().chain(gateway.inheritable_sockets()?.into_iter().map(Ok)).chain(http).collect()
}

/// For people, and for programs that start this one.
fn say_where(gateway: &Gateway, http: Option<&HttpServer>) -> std::io::Result<()> {
    let mut stdout = std::io::stdout();
    if let Some(http) = http {
        writeln!(stdout, "hotrow: serving HTTP on {}", http.address())?;
    }
    for address in gateway.addresses() {
        writeln!(stdout, "hotrow: listening on {address}")?;
    }
    stdout.flush()
}

async fn stop(
    gateway: Gateway,
    http: Option<HttpServer>,
    metrics: Option<Metrics>,
    successor: Option<Successor>,
) {
    match &successor {
        Some(successor) => {
            tracing::info!(pid = successor.pid(), "handed over: what is under way here is finished");
            if let Some(metrics) = metrics {
                metrics.stop();
            }
        }
        None => {
            manager::stopping();
            tracing::info!("stopping: what is under way is finished, new clients are sent away");
        }
    }
    // First those who are clients of the gateway themselves.
    if let Some(http) = http
        && !http.stop().await
    {
        tracing::warn!("some HTTP requests were under way for too long and are cut off");
    }
    let clean = if successor.is_some() { gateway.hand_over().await } else { gateway.stop().await };
    if !clean {
        tracing::warn!("some clients were in a transaction for too long and are cut off");
    }
    tracing::info!("stopped");
}

/// Reads the settings again and goes on with them.
async fn reload(args: &Args, resolved: &mut Resolved, gateway: &Gateway) -> Result<(), Error> {
    let new = args.settings.clone().resolve(args.config.as_deref())?;
    gateway.reload(new.config.clone()).await.map_err(StartError::from)?;
    for name in resolved.needs_restart_for(&new) {
        tracing::warn!("{name} has changed, and takes effect with the next start");
    }
    *resolved = new;
    tracing::info!("reloaded: the settings are in force, the catalogue and the merge rules are asked again");
    Ok(())
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
