//! Makes the flushes of a server take longer, as on a slow disk: strace delays each `fdatasync` of its processes, and no
//! other call. The time of a flush is measured elsewhere.

use crate::error::Error;
use crate::load::joined;
use crate::programs;
use hotrow_postgres::PrivateServer;
use std::ffi::OsString;
use std::fs::read_to_string;
use std::sync::Arc;
use tokio::process::Command;

/// The delay of each flush.
pub const LONGER_US: u16 = 1_500;

/// A strace that works here.
#[derive(Debug, Clone)]
pub struct SlowFlush {
    /// The program with its arguments, before the command to trace.
    strace: Vec<OsString>,
}

impl SlowFlush {
    /// Looks for strace and tries it. The error says why flushes cannot be delayed here.
    pub async fn find() -> Result<Self, String> {
        let Some(program) = programs::find("strace", None) else {
            return Err("strace, which delays flushes, is not installed".into());
        };
        let mut strace = vec![program.into_os_string()];
        // The server keeps its process ID and stops only at this system call.
        strace.extend(["--daemonize", "--follow-forks", "--seccomp-bpf"].map(OsString::from));
        strace.extend(["--output=/dev/null", "--trace=fdatasync"].map(OsString::from));
        strace.push(format!("--inject=fdatasync:delay_exit={LONGER_US}").into());
        let mut trial = Command::new(&strace[0]);
        // A program that checks whether it is traced.
        trial.args(&strace[1..]).args(["grep", "-q", "^TracerPid:[[:space:]]*[1-9]", "/proc/self/status"]);
        match trial.output().await {
            Ok(output) if output.status.success() => Ok(Self { strace }),
            Ok(output) => {
                let printed = String::from_utf8_lossy(&output.stderr);
                Err(format!("strace, which delays flushes, does not work here: {}", printed.trim()))
            }
            Err(error) => Err(format!("cannot run strace, which delays flushes: {error}")),
        }
    }

    /// Delays each flush of the server from now on, or stops the delay. Returns whether the server was restarted, which
    /// closes its connections: strace must trace all its processes from their start.
    pub async fn set(&self, slowly: bool, server: &Arc<PrivateServer>) -> Result<bool, Error> {
        if server.postmaster_pid().is_some_and(|postmaster| is_traced(postmaster) == slowly) {
            return Ok(false);
        }
        let server = Arc::clone(server);
        let strace = if slowly { self.strace.clone() } else { Vec::new() };
        joined(tokio::task::spawn_blocking(move || server.restart_by(&strace)).await)?;
        Ok(true)
    }
}

/// According to the system.
fn is_traced(process: u32) -> bool {
    tracer(process).is_some_and(|tracer| tracer != 0)
}

fn tracer(process: u32) -> Option<u32> {
    let status = read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{SlowFlush, is_traced, tracer};
    use hotrow_postgres::PrivateServer;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    #[tokio::test]
    async fn all_processes_of_a_server_are_traced_and_later_none() {
        let slow_flush = match SlowFlush::find().await {
            Ok(slow_flush) => slow_flush,
            // The benchmark's report says this too. Nothing can be tested.
            Err(reason) => return eprintln!("{reason}"),
        };
        let start = || PrivateServer::builder().label("bench-slow").start().unwrap();
        let server = Arc::new(tokio::task::spawn_blocking(start).await.unwrap());

        assert!(!slow_flush.set(false, &server).await.unwrap(), "nothing had to change");
        assert!(slow_flush.set(true, &server).await.unwrap());
        assert!(!slow_flush.set(true, &server).await.unwrap(), "nothing had to change");
        let all = server.processes().unwrap();
        assert!(all.len() > 3 && all.iter().all(|process| is_traced(*process)), "{all:?}");
        let strace = tracer(all[0]).unwrap();

        assert!(slow_flush.set(false, &server).await.unwrap());
        let all = server.processes().unwrap();
        assert!(all.len() > 3 && !all.iter().any(|process| is_traced(*process)), "{all:?}");
        let deadline = Instant::now() + Duration::from_secs(30);
        while is_running(strace) {
            assert!(Instant::now() < deadline, "strace still runs after its last process has ended");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// A process that has ended may still wait for its parent.
    fn is_running(process: u32) -> bool {
        let stat = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }
}
