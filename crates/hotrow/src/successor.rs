//! The successor of this process: the same program, started with the same arguments and the listening sockets. When the
//! successor serves, it tells its predecessor to stop.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use hotrow_core::limits;
use hotrow_gateway::{InheritedSocket, OWN};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};
use tokio::process::Child;
use tokio::time::Instant;

/// The process that ends when this one serves.
const PREDECESSOR: &str = "HOTROW_PREDECESSOR";
/// The hosts that have served this process's predecessor. An earlier version of the program, to which an operator goes back,
/// would refuse an unknown variable that begins with `HOTROW_`.
const SERVED: &str = "SERVED_BEFORE_HOTROW";
/// The first inherited descriptor, by the protocol of systemd.
const FIRST: usize = 3;

/// A successor that does not serve yet.
pub struct Successor {
    child: Child,
    deadline: Instant,
}

impl Successor {
    /// Starts the program at this path, which may be a newer version than this process.
    pub fn start(program: &Path, sockets: Vec<InheritedSocket>, served: &str) -> io::Result<Self> {
        if std::process::id() == 1 {
            return Err(io::Error::other(
                "this is process 1 of a container, and the container ends with it: start a second container instead",
            ));
        }
        let names: Vec<&str> = sockets.iter().map(|socket| if socket.kept { "kept" } else { OWN }).collect();
        let mut command = Command::new(program);
        command
            .args(std::env::args_os().skip(1))
            .env("LISTEN_FDS", sockets.len().to_string())
            .env("LISTEN_FDNAMES", names.join(":"))
            .env_remove("LISTEN_PID")
            .env(SERVED, served)
            .env(PREDECESSOR, std::process::id().to_string());
        let descriptors: Vec<OwnedFd> = sockets.into_iter().map(|socket| socket.socket).collect();
        let mapping = |(index, parent_fd)| FdMapping { parent_fd, child_fd: (FIRST + index) as i32 };
        command
            .fd_mappings(descriptors.into_iter().enumerate().map(mapping).collect())
            .map_err(io::Error::other)?;
        let child = tokio::process::Command::from(command).spawn()?;
        Ok(Successor { child, deadline: Instant::now() + Duration::from_millis(limits::SUCCESSOR_MS) })
    }

    /// Its process id.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until it fails, and returns the reason. A successor that succeeds ends this process. Cancel safe.
    pub async fn failed(&mut self) -> String {
        tokio::select! {
            status = self.child.wait() => match status {
                Ok(status) => format!("it ended, {status}"),
                Err(error) => format!("cannot wait for it: {error}"),
            },
            () = tokio::time::sleep_until(self.deadline) => {
                let _ = self.child.start_kill(); // fails only if it has ended
                format!("it did not serve within {} ms and was ended", limits::SUCCESSOR_MS)
            }
        }
    }
}

/// The hosts that have served the gateway that started this process, if there is one.
pub fn inherited_served() -> String {
    predecessor().and_then(|_| std::env::var(SERVED).ok()).unwrap_or_default()
}

/// Tells the gateway that started this process, if there is one, to stop. Returns its process id.
pub fn relieve_predecessor() -> Option<u32> {
    let parent = predecessor()?;
    kill(parent, Signal::SIGTERM).is_ok().then(|| parent.as_raw().unsigned_abs())
}

fn predecessor() -> Option<Pid> {
    let predecessor: i32 = std::env::var(PREDECESSOR).ok()?.parse().ok()?;
    // After it has ended, another process may have its id, but then it is not our parent.
    let parent = getppid();
    (parent == Pid::from_raw(predecessor)).then_some(parent)
}
