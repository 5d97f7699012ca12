//! Connections: their number, their idle times, HTTP/1.1 and HTTP/2 on one port, and the graceful stop. The routes come from
//! the caller.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::limits;
use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

use crate::bounds::Bounds;
use crate::idle::{Activity, Watched};

/// The response to a connection over the limit, before anything is read from it.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The time in which a client must react after its connection was told to end.
const GOODBYE: Duration = Duration::from_secs(1);

/// Serves until `stop` is ready, then lets requests that are under way finish. False if some did not finish in time.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) -> bool {
    let builder = builder(bounds);
    let room = Arc::new(Semaphore::new(bounds.connections));
    let (stopping, _) = watch::channel(());
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Most likely no file descriptors are left. Other connections may close during the pause.
                tracing::error!(%error, "an HTTP client could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(permit) = room.clone().try_acquire_owned() else {
            tokio::spawn(send_away(stream));
            continue;
        };
        let (builder, router, stopped) = (builder.clone(), router.clone(), stopping.subscribe());
        tokio::spawn(async move {
            serve_one(&builder, stream, router, bounds, stopped).await;
            drop(permit);
        });
    }
    drop(listener);
    stopping.send_replace(());
    tokio::time::timeout(bounds.stop, stopping.closed()).await.is_ok()
}

/// Serves one connection until the client leaves, the server stops or the connection has been idle for too long.
async fn serve_one(
    builder: &Builder<TokioExecutor>,
    stream: TcpStream,
    router: Router,
    bounds: Bounds,
    mut stopped: watch::Receiver<()>,
) {
    let activity = Activity::new();
    let io = TokioIo::new(bounded(stream, bounds.idle));
    let mut connection = std::pin::pin!(builder.serve_connection(io, Watched::new(router, activity.clone())));
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        _ = stopped.changed() => None,
        () = activity.idle(bounds) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            // Requests under way are answered. A client that ignores the shutdown is cut off once it is idle.
            connection.as_mut().graceful_shutdown();
            let given_up = async {
                tokio::time::sleep(GOODBYE).await;
                activity.idle(bounds).await;
            };
            tokio::select! {
                ended = connection => ended,
                () = given_up => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, "an HTTP connection has ended");
    }
}

fn builder(bounds: Bounds) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.headers)
        .max_buf_size(limits::HTTP_HEADER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::HTTP_STREAMS_MAX)
        .max_header_list_size(limits::HTTP_HEADER_BYTES_MAX as u32);
    builder
}

/// The connection, which ends if it makes no progress for too long.
fn bounded(stream: TcpStream, idle: Duration) -> std::pin::Pin<Box<TimeoutStream<TcpStream>>> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no TCP_NODELAY");
    }
    let mut stream = TimeoutStream::new(stream);
    stream.set_read_timeout(Some(idle));
    stream.set_write_timeout(Some(idle));
    Box::pin(stream)
}

async fn send_away(mut stream: TcpStream) {
    // A client that has gone needs no answer.
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(FULL)).await;
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use axum::routing::get;
    use tokio::io::AsyncReadExt;
    use tokio::sync::oneshot;

    use super::*;

    /// A server with one path that answers on a signal. Returns its address, and the sender that stops it.
    async fn start(bounds: Bounds) -> (String, oneshot::Sender<()>, tokio::task::JoinHandle<bool>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let slow = get(|| async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            "late"
        });
        let router = Router::new().route("/", get(|| async { "here" })).route("/slow", slow);
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(serve(listener, router, bounds, async move {
            let _ = stopped.await;
        }));
        (address, stop, server)
    }

    fn short() -> Bounds {
        let (headers, idle) = (Duration::from_millis(200), Duration::from_millis(400));
        Bounds { connections: 10, headers, idle, stop: Duration::from_secs(10) }
    }

    async fn all_that_comes(stream: &mut TcpStream) -> String {
        let mut text = String::new();
        let _ =
            tokio::time::timeout(Duration::from_secs(20), stream.read_to_string(&mut text)).await.unwrap();
        text
    }

    #[tokio::test]
    async fn a_client_that_sends_nothing_or_half_a_request_is_disconnected() {
        let (address, _stop, _server) = start(short()).await;
        for said in ["", "PRI * HT", "GET / HTTP/1.1\r\nHost: x\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            stream.write_all(said.as_bytes()).await.unwrap();
            let since = Instant::now();
            let answer = all_that_comes(&mut stream).await;
            assert!(since.elapsed() >= short().headers, "{said:?} was cut off at once");
            assert_eq!(answer.contains("here"), said.ends_with("\r\n\r\n"), "{said:?}: {answer}");
        }
    }

    #[tokio::test]
    async fn a_stop_waits_only_for_requests_under_way() {
        let (address, stop, server) = start(Bounds { idle: Duration::from_secs(60), ..short() }).await;
        let _idle = TcpStream::connect(&address).await.unwrap();
        let mut busy = TcpStream::connect(&address).await.unwrap();
        busy.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut first = [0; 12];
        busy.read_exact(&mut first).await.unwrap();
        busy.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        stop.send(()).unwrap();
        assert!(all_that_comes(&mut busy).await.ends_with("late"));
        let clean = tokio::time::timeout(Duration::from_secs(5), server).await.unwrap().unwrap();
        assert!(clean, "an idle connection delays the stop");
        assert!(TcpStream::connect(&address).await.is_err());
    }

    #[tokio::test]
    async fn a_connection_over_the_limit_gets_503() {
        let (address, _stop, _server) = start(Bounds { connections: 1, ..short() }).await;
        let mut first = TcpStream::connect(&address).await.unwrap();
        first.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut start = [0; 12];
        first.read_exact(&mut start).await.unwrap();
        let mut second = TcpStream::connect(&address).await.unwrap();
        let answer = all_that_comes(&mut second).await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("Retry-After"), "{answer}");
        assert!(start.ends_with(b"200"));
    }

    /// The first bytes of HTTP/2: the preface, and an empty SETTINGS.
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0whatever";
    /// GET / on stream 1, with `127.0.0.1` as its authority, in HPACK without Huffman coding.
    const GET: &[u8] = b"\0\0\x0e\x01\x05\0\0\0\x01\x82\x86\x84\x41\x09127.0.0.1";

    #[tokio::test]
    async fn pings_do_not_keep_an_idle_connection_open() {
        let (address, _stop, _server) = start(short()).await;
        for first in [PREFACE.to_vec(), [PREFACE, GET].concat()] {
            let (mut read, mut write) = TcpStream::connect(&address).await.unwrap().into_split();
            write.write_all(&first).await.unwrap();
            let since = Instant::now();
            let pings = tokio::spawn(async move {
                while write.write_all(PING).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
            let mut said = Vec::new();
            let end = tokio::time::timeout(Duration::from_secs(20), read.read_to_end(&mut said)).await;
            assert!(end.is_ok(), "the connection is kept open by PINGs: {said:?}");
            assert!(since.elapsed() >= short().headers, "the connection was closed at once");
            assert_eq!(said.windows(4).any(|part| part == b"here"), first.len() > PREFACE.len());
            pings.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_request_that_takes_longer_than_the_idle_timeout_is_answered() {
        let (address, _stop, _server) = start(short()).await;
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        assert!(all_that_comes(&mut stream).await.ends_with("late"));
    }

    #[tokio::test]
    async fn too_many_headers_are_refused() {
        let (address, _stop, _server) = start(short()).await;
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let long = "x".repeat(2 * limits::HTTP_HEADER_BYTES_MAX);
        let request = format!("GET / HTTP/1.1\r\nHost: x\r\nLong: {long}\r\n\r\n");
        let _ = stream.write_all(request.as_bytes()).await;
        assert!(all_that_comes(&mut stream).await.starts_with("HTTP/1.1 431"));
    }
}
