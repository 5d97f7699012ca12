//! An HTTP server: connections with bounds, and a graceful end. Never looks at requests.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

/// The most connections at the same time. Others wait to be accepted.
const CONNECTIONS_MAX: usize = 10_000;
/// The time limit for the headers of a request, and thereby for an idle connection.
const HEADERS_LIMIT: Duration = Duration::from_secs(60);
/// The time limit for requests that are under way when the server is told to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Serves until `stop` is ready, then lets requests that are under way finish.
pub async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_LIMIT);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accept = async {
            let permit = room.clone().acquire_owned().await.expect("the semaphore is never closed");
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            io::Result::Ok((stream, permit))
        };
        let accepted = tokio::select! {
            accepted = accept => accepted,
            () = &mut stop => break,
        };
        let (stream, permit) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error, "a connection has ended");
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(STOP_LIMIT, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were not finished in time");
    }
}

/// Ready when the process is asked to end.
pub async fn asked_to_stop() {
    let asked = async {
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            _ = terminate.recv() => Ok(()),
            result = tokio::signal::ctrl_c() => result,
        }
    };
    if let Err(error) = asked.await {
        tracing::error!(%error, "this program cannot be asked to stop");
        std::future::pending::<()>().await;
    }
}
