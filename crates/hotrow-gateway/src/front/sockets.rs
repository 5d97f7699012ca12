//! Listening sockets: bound here, or taken over from the service manager or the previous gateway by the protocol of
//! `LISTEN_FDS`. Does not accept clients.

use std::fs::Permissions;
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcp};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdUnix;
use std::path::{Path, PathBuf};

use hotrow_connect::net::Address;
use hotrow_core::limits;
use listenfd::ListenFd;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixSocket, UnixStream};

/// The name under which a gateway hands over a socket that it has bound itself. Sockets of the service manager have
/// other names.
pub const OWN: &str = "own";

/// The sockets that the process has received.
#[derive(Debug, Default)]
pub struct Sockets {
    inherited: Vec<ReceivedSocket>,
}

#[derive(Debug)]
struct ReceivedSocket {
    socket: Socket,
    kept: bool,
}

#[derive(Debug)]
enum Socket {
    Tcp(StdTcp, SocketAddr),
    Unix(StdUnix, PathBuf),
}

#[derive(Debug)]
pub struct Listener<L> {
    pub socket: L,
    /// Whether the service manager has it too. Clients that connect while no process accepts are then not lost.
    pub kept: bool,
}

/// A listening socket for the next gateway.
#[derive(Debug)]
pub struct InheritedSocket {
    pub socket: OwnedFd,
    /// Whether the service manager has it too.
    pub kept: bool,
}

impl Sockets {
    /// The sockets that this process received at its start. Call it once, before there are threads.
    pub fn inherited() -> io::Result<Self> {
        // A gateway does not know its successor's process ID before the successor runs, and leaves `LISTEN_PID` out.
        let from_manager = std::env::var_os("LISTEN_PID").is_some_and(|pid| !pid.is_empty());
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut given = ListenFd::from_env();
        let mut inherited = Vec::new();
        for index in 0..given.len() {
            let kept = from_manager || names.next() != Some(OWN);
            if let Some(socket) = take(&mut given, index)? {
                inherited.push(ReceivedSocket { socket, kept });
            }
        }
        Ok(Sockets { inherited })
    }

    /// A TCP socket on this address, received or bound now. Port 0 matches any port.
    pub async fn tcp(&mut self, wanted: SocketAddr) -> io::Result<Listener<TcpListener>> {
        let fits =
            |address: &SocketAddr| *address == wanted || (wanted.port() == 0 && address.ip() == wanted.ip());
        let received = self.take(|socket| matches!(socket, Socket::Tcp(_, address) if fits(address)));
        if let Some(ReceivedSocket { socket: Socket::Tcp(socket, _), kept }) = received {
            lengthen(&socket, kept)?;
            socket.set_nonblocking(true)?;
            return Ok(Listener { socket: TcpListener::from_std(socket)?, kept });
        }
        let socket = if wanted.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(wanted)?;
        Ok(Listener { socket: socket.listen(limits::LISTEN_BACKLOG)?, kept: false })
    }

    /// A Unix socket with this path, received or bound now.
    pub async fn unix(&mut self, path: &Path) -> io::Result<Listener<UnixListener>> {
        let received = self.take(|socket| matches!(socket, Socket::Unix(_, other) if other == path));
        if let Some(ReceivedSocket { socket: Socket::Unix(socket, _), kept }) = received {
            lengthen(&socket, kept)?;
            socket.set_nonblocking(true)?;
            return Ok(Listener { socket: UnixListener::from_std(socket)?, kept });
        }
        // A killed gateway leaves its socket behind, and the file must be removed. A socket that answers belongs to a
        // running process.
        let is_socket = std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
        if is_socket && UnixStream::connect(path).await.is_err() {
            let _ = std::fs::remove_file(path);
        }
        let socket = UnixSocket::new_stream()?;
        socket.bind(path)?;
        let socket = socket.listen(limits::LISTEN_BACKLOG)?;
        // The mode does not depend on the umask: the access file decides which clients can connect, as at the server's
        // own socket.
        std::fs::set_permissions(path, Permissions::from_mode(0o777))?;
        Ok(Listener { socket, kept: false })
    }

    fn take(&mut self, is_wanted: impl Fn(&Socket) -> bool) -> Option<ReceivedSocket> {
        let index = self.inherited.iter().position(|given| is_wanted(&given.socket))?;
        Some(self.inherited.remove(index))
    }

    /// The received sockets that match no configured address.
    pub fn unused(&self) -> impl Iterator<Item = Address> {
        self.inherited.iter().map(|given| match &given.socket {
            Socket::Tcp(_, address) => Address::Tcp(address.ip().to_string(), address.port()),
            Socket::Unix(_, path) => Address::Unix(path.clone()),
        })
    }
}

impl InheritedSocket {
    /// A second handle of the same socket.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(InheritedSocket { socket: self.socket.try_clone()?, kept: self.kept })
    }
}

impl<L: AsFd> Listener<L> {
    /// A second handle of the same socket.
    pub fn inheritable(&self) -> io::Result<InheritedSocket> {
        Ok(InheritedSocket { socket: self.socket.as_fd().try_clone_to_owned()?, kept: self.kept })
    }
}

/// A previous gateway of an earlier version has bound its socket with a shorter queue. The service manager's settings say how
/// long the queue of its own socket is.
fn lengthen(socket: &impl AsFd, kept: bool) -> io::Result<()> {
    match kept {
        true => Ok(()),
        false => SockRef::from(socket).listen(limits::LISTEN_BACKLOG.cast_signed()),
    }
}

fn take(given: &mut ListenFd, index: usize) -> io::Result<Option<Socket>> {
    if let Ok(Some(socket)) = given.take_tcp_listener(index) {
        let address = socket.local_addr()?;
        return Ok(Some(Socket::Tcp(socket, address)));
    }
    match given.take_unix_listener(index)? {
        Some(socket) => {
            let path = socket.local_addr()?.as_pathname().map(Path::to_path_buf).unwrap_or_default();
            Ok(Some(Socket::Unix(socket, path)))
        }
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    fn given(sockets: impl IntoIterator<Item = Socket>) -> Sockets {
        Sockets {
            inherited: sockets.into_iter().map(|socket| ReceivedSocket { socket, kept: true }).collect(),
        }
    }

    #[tokio::test]
    async fn received_sockets_are_used_and_others_are_bound() {
        let tcp = StdTcp::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let other = StdTcp::bind("127.0.0.1:0").unwrap();
        let left = other.local_addr().unwrap();
        let mut sockets = given([Socket::Tcp(tcp, address), Socket::Tcp(other, left)]);
        let taken = sockets.tcp(address).await.unwrap();
        assert_eq!((taken.socket.local_addr().unwrap(), taken.kept), (address, true));
        let bound = sockets.tcp("127.0.0.2:0".parse().unwrap()).await.unwrap();
        assert!(!bound.kept, "another address of this machine is another socket");
        assert_eq!(
            sockets.unused().map(|address| address.to_string()).collect::<Vec<_>>(),
            [left.to_string()]
        );
        let any = sockets.tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
        assert_eq!(any.socket.local_addr().unwrap(), left);
        assert_eq!(sockets.unused().count(), 0);
        assert!(sockets.tcp(address).await.is_err(), "the address is in use");
    }
    /// More connects than fit the queue of the standard library's sockets.
    const BURST: usize = 200;

    #[tokio::test]
    async fn a_burst_of_connects_waits_in_the_sockets_queue() {
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
        if most.trim().parse().is_ok_and(|most: usize| most < BURST) {
            return; // the system allows no longer queue
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let old = StdTcp::bind("127.0.0.1:0").unwrap();
        let inherited = old.local_addr().unwrap();
        let mut sockets =
            Sockets { inherited: vec![ReceivedSocket { socket: Socket::Tcp(old, inherited), kept: false }] };
        let _old = sockets.tcp(inherited).await.unwrap();
        let new = sockets.tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = new.socket.local_addr().unwrap();
        let _unix = sockets.unix(&path).await.unwrap();
        let mut clients = Vec::new();
        for number in 1..=BURST {
            let connect = async {
                let tcp = (TcpStream::connect(inherited).await?, TcpStream::connect(address).await?);
                io::Result::Ok((tcp, UnixStream::connect(&path).await?))
            };
            let connected = tokio::time::timeout(std::time::Duration::from_secs(60), connect).await;
            clients.push(connected.unwrap_or_else(|_| panic!("connect {number} waits")).unwrap());
        }
    }
}
