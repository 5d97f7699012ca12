//! Timeouts for servers that vanish silently, for example in a power failure. By default the system gives up after a
//! quarter of an hour, or never.

use std::io;
use std::time::Duration;

use hotrow_core::limits;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

const LIMIT: Duration = Duration::from_millis(limits::SERVER_SILENT_MS);

/// Sets the timeouts: a connection is lost if the other end acknowledges nothing for `SERVER_SILENT_MS`. A server that
/// is only busy is not affected, because its system acknowledges.
pub fn set(stream: &TcpStream) {
    if let Err(error) = try_set(&SockRef::from(stream)) {
        tracing::debug!(%error, "TCP timeouts could not be set: a vanished server is detected late");
    }
}

fn try_set(socket: &SockRef<'_>) -> io::Result<()> {
    // An idle connection is probed after half of the time. One with unacknowledged bytes waits for the acknowledgement.
    let asking = TcpKeepalive::new().with_time(LIMIT / 2).with_interval(LIMIT / 8).with_retries(4);
    socket.set_tcp_keepalive(&asking)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(LIMIT))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn timeouts_are_set_on_the_socket() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let address = crate::net::Address::Tcp(address.ip().to_string(), address.port());
        let (read, _write) = crate::net::connect(&address).await.unwrap();
        let crate::net::ReadHalf::Tcp(read) = &read else { panic!("it is TCP") };
        let socket = SockRef::from(read.as_ref());
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), LIMIT / 2);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(LIMIT));
    }
}
