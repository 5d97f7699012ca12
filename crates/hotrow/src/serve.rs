//! `hotrow serve`: runs the gateway until a signal or the console stops it.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use hotrow_core::limits;
use hotrow_core::page;
use hotrow_gateway::{Gateway, InheritedSocket, OperatorRequest, Sockets, StartError};
use hotrow_http::Check;
use hotrow_mysql::Front;
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::EnvFilter;

use crate::http::{self, HttpServer};
use crate::log;
use crate::manager;
use crate::metrics::{self, Metrics};
use crate::settings::{self, AnyResolved, MysqlResolved, Resolved, Settings};
use crate::signals::{Signal, Signals};
use crate::successor::{self, Successor};
use crate::traces::Exporter;

/// `hotrow serve`
#[derive(clap::Args)]
#[command(
    after_help = concat!("Example: hotrow serve --upstream postgres://127.0.0.1:5432 --listen 127.0.0.1:6432\n\
    then: psql -h 127.0.0.1 -p 6432\nFor the console of the gateway: psql -h 127.0.0.1 -p 6432 hotrow -c 'show help'\n\
    All settings with defaults and units: hotrow help config\n\
    In front of MariaDB (a preview): hotrow serve --upstream mysql://gate:password@127.0.0.1:3306\n\
    More about it: ", page!("mysql/README.md"))
)]
pub struct Args {
    /// A TOML file with settings
    #[arg(long, env = "HOTROW_CONFIG", hide_env = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read and check the settings and the files that they name, as a start does, and exit without listening
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    settings: Settings,
}

/// Why the gateway cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// The gateway.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The log filter.
    #[error("cannot read the log filter: {0}; write for example --log info, or --log hotrow_gateway=debug")]
    Log(#[from] tracing_subscriber::filter::ParseError),
    /// The inherited sockets.
    #[error("cannot use an inherited socket: {0}; pass listening TCP and Unix sockets only")]
    Inherited(std::io::Error),
    /// The address of the metrics.
    #[error(transparent)]
    Metrics(#[from] metrics::Error),
    /// The address of the HTTP API.
    #[error(transparent)]
    Http(#[from] http::Error),
    /// The operating system.
    #[error("the operating system reports: {0}")]
    System(#[from] std::io::Error),
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode, Error> {
    match given(&args)?.resolve_any(args.config.as_deref())? {
        AnyResolved::Postgres(resolved) => run_postgres(*resolved, args),
        AnyResolved::Mysql(resolved) => run_mysql(*resolved, args.check),
    }
}

/// Begins to log, with advice about the settings file.
fn start_log(filter: &str, json: bool, warning: Option<&String>) -> Result<(), Error> {
    let builder =
        tracing_subscriber::fmt().with_env_filter(EnvFilter::try_new(filter)?).with_writer(std::io::stderr);
    // Colours are for terminals only, and `NO_COLOR` turns them off. In a journal or a file they would be noise.
    if json {
        builder.json().flatten_event(true).with_current_span(false).with_span_list(false).init()
    } else if std::io::stderr().is_terminal() {
        builder.fmt_fields(log::one_line()).init()
    } else {
        builder.fmt_fields(log::one_line()).with_ansi(false).init()
    }
    if let Some(warning) = warning {
        tracing::warn!("{warning}");
    }
    Ok(())
}

fn say_checked() -> std::io::Result<ExitCode> {
    writeln!(std::io::stdout(), "hotrow: the settings and the files that they name can be used")?;
    Ok(ExitCode::SUCCESS)
}

fn runtime(workers: usize) -> std::io::Result<Runtime> {
    match workers {
        1 => Builder::new_current_thread().enable_all().build(),
        workers => Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_stack_size(limits::STACK_BYTES)
            .enable_all()
            .build(),
    }
}

/// In front of MariaDB.
fn run_mysql(resolved: MysqlResolved, checks: bool) -> Result<ExitCode, Error> {
    start_log(&resolved.log, resolved.logs_json, resolved.warning.as_ref())?;
    if checks {
        return Ok(say_checked()?);
    }
    raise_file_limit();
    runtime(resolved.workers)?.block_on(serve_mysql(resolved))
}

async fn serve_mysql(resolved: MysqlResolved) -> Result<ExitCode, Error> {
    let mut signals = Signals::new()?;
    let front = Front::start(resolved.config).await?;
    if let Some(page) = resolved.metrics {
        let health = front.health();
        let check: Check = Arc::new(move || {
            let health = health.clone();
            Box::pin(async move { health.check().await })
        });
        Metrics::start(page, check, &mut Sockets::default()).await?;
    }
    tracing::info!(
        workers = resolved.workers,
        pid = std::process::id(),
        "started in front of MariaDB (preview)"
    );
    let mut stdout = std::io::stdout();
    for address in front.addresses() {
        writeln!(stdout, "hotrow: listening on {address}")?;
    }
    stdout.flush()?;
    manager::ready();
    loop {
        match signals.next().await {
            Signal::Stop => break,
            Signal::Reload | Signal::HandOver => {
                tracing::warn!("a gateway in front of MariaDB neither reloads nor hands over; restart it");
            }
        }
    }
    manager::stopping();
    tracing::info!("stopping: transactions under way can finish, new clients are rejected");
    if !front.stop().await {
        tracing::warn!(
            "some clients did not finish their transaction within drain_timeout_ms and were disconnected"
        );
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// In front of PostgreSQL.
fn run_postgres(mut resolved: Resolved, args: Args) -> Result<ExitCode, Error> {
    start_log(&resolved.log, resolved.logs_json, resolved.warning.as_ref())?;
    if args.check {
        Gateway::check(&resolved.config)?;
        return Ok(say_checked()?);
    }
    raise_file_limit();
    // The path is resolved now, and its program is started later: the successor may be a newer version.
    let (program, sockets) = (std::env::current_exe()?, Sockets::inherited().map_err(Error::Inherited)?);
    let exporter = resolved.traces.take().map(Exporter::start).transpose()?;
    resolved.config.traces = exporter.as_ref().map(|exporter| exporter.queue.clone());
    let ended = runtime(resolved.workers)?.block_on(serve(resolved, args, program, sockets));
    if let Some(exporter) = exporter {
        exporter.stop();
    }
    ended
}

async fn serve(
    mut resolved: Resolved,
    args: Args,
    program: PathBuf,
    mut sockets: Sockets,
) -> Result<ExitCode, Error> {
    let mut signals = Signals::new()?;
    let metrics = match resolved.metrics.clone() {
        Some(address) => Some(Metrics::start(address, metrics::check_of_servers(), &mut sockets).await?),
        None => None,
    };
    let patience = resolved.config.drain_timeout;
    let mut upstream = resolved.config.upstream.clone();
    resolved.config.routes.first_name().clone_into(&mut upstream.database); // where HTTP's requests go
    let served = successor::inherited_served();
    let gateway = Gateway::start(resolved.config.clone(), &mut sockets, &served).await?;
    let http = match resolved.http.take() {
        Some(http) => Some(HttpServer::start(http, &gateway, &upstream, patience, &mut sockets).await?),
        None => None,
    };
    for address in sockets.unused() {
        tracing::warn!(%address, "ignoring an inherited socket: no configured address matches it");
    }
    drop(sockets);
    tracing::info!(server = %upstream.hosts, workers = resolved.workers, pid = std::process::id(), "started");
    say_where(&gateway, http.as_ref())?;
    manager::ready();
    if let Some(pid) = successor::relieve_predecessor() {
        tracing::info!(pid, "the previous gateway was told to stop");
    }

    let mut successor: Option<Successor> = None;
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                Signal::Stop => break,
                Signal::Reload => {
                    manager::reloading();
                    let _ = reload(&args, &mut resolved, &gateway).await; // it has logged the error
                    manager::ready();
                }
                Signal::HandOver if successor.is_some() => tracing::warn!("a successor is already starting"),
                Signal::HandOver => {
                    let sockets = inheritable_sockets(metrics.as_ref(), &gateway, http.as_ref());
                    match sockets.and_then(|sockets| Successor::start(&program, sockets, &gateway.served())) {
                        Ok(started) => {
                            tracing::info!(pid = started.pid(), "a successor was started");
                            successor = Some(started);
                        }
                        Err(error) => tracing::error!(%error, "cannot start a successor, this gateway continues"),
                    }
                }
            },
            request = gateway.next_request() => match request {
                OperatorRequest::Shutdown => break,
                OperatorRequest::Reload(answer) => {
                    let reloaded = reload(&args, &mut resolved, &gateway).await;
                    let _ = answer.send(reloaded); // the client may be gone
                }
            },
            why = failed(&mut successor) => {
                successor = None;
                tracing::error!("the successor failed to start, this gateway continues: {why}; the log lines above are its own");
            }
        }
    }
    stop(gateway, http, metrics, successor).await;
    Ok(ExitCode::SUCCESS)
}

/// Why the successor failed to start. Waits forever if there is no successor.
async fn failed(successor: &mut Option<Successor>) -> String {
    match successor {
        Some(successor) => successor.failed().await,
        None => std::future::pending().await,
    }
}

/// The listening sockets, in the order in which a successor takes them.
fn inheritable_sockets(
    metrics: Option<&Metrics>,
    gateway: &Gateway,
    http: Option<&HttpServer>,
) -> std::io::Result<Vec<InheritedSocket>> {
    let metrics = metrics.map(|metrics| metrics.inheritable.try_clone());
    let http = http.map(HttpServer::inheritable);
    metrics.into_iter().chain(gateway.inheritable_sockets()?.into_iter().map(Ok)).chain(http).collect()
}

/// Prints the addresses, for users and for programs that start this one.
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
            tracing::info!(pid = successor.pid(), "handed over: clients of this process finish their work");
            if let Some(metrics) = metrics {
                metrics.stop();
            }
        }
        None => {
            manager::stopping();
            tracing::info!("stopping: transactions under way can finish, new clients are rejected");
        }
    }
    // HTTP first, because its requests are clients of the gateway.
    if let Some(http) = http
        && !http.stop().await
    {
        tracing::warn!("some HTTP requests did not finish within drain_timeout_ms and were disconnected");
    }
    let clean = if successor.is_some() { gateway.hand_over().await } else { gateway.stop().await };
    if !clean {
        tracing::warn!(
            "some clients did not finish their transaction within drain_timeout_ms and were disconnected"
        );
    }
    tracing::info!("stopped");
}

/// The settings of the command line and the environment.
fn given(args: &Args) -> Result<Settings, settings::Error> {
    Ok(args.settings.clone().or_variables(&settings::environment::of_process())?)
}

/// Reads the settings again and applies them. An error is logged and returned.
async fn reload(args: &Args, resolved: &mut Resolved, gateway: &Gateway) -> Result<(), String> {
    let not_reloaded = |error: Error| {
        tracing::error!("not reloaded, the previous settings stay in effect: {error}");
        error.to_string()
    };
    let new = given(args).and_then(|given| given.resolve(args.config.as_deref()));
    let new = new.map_err(|error| not_reloaded(error.into()))?;
    if let Some(warning) = &new.warning {
        tracing::warn!("{warning}");
    }
    let applied = gateway.reload(new.config.clone()).await.map_err(StartError::from);
    applied.map_err(|error| not_reloaded(error.into()))?;
    for name in resolved.needs_restart_for(&new) {
        tracing::warn!("{name} has changed, and takes effect at the next start");
    }
    *resolved = new;
    tracing::info!("reloaded: the settings are in effect, catalog and merge rules are read again");
    Ok(())
}

/// Raises the limit of open files to the maximum: each client is an open file.
fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
    {
        tracing::debug!(%error, "cannot raise the limit of open files");
    }
}
