//! A server whose flush takes longer, as on a slow disk: strace holds up each `fdatasync` of its processes, and nothing else that
//! they do; what a flush then takes is measured elsewhere.

use crate::error::Error;
use crate::load::joined;
use crate::programs;
use hotrow_postgres::PrivateServer;
use std::ffi::OsString;
use std::fs::read_to_string;
use std::sync::Arc;
use tokio::process::Command;

/// How much longer each flush takes.
pub const LONGER_US: u16 = 1_500;

/// A strace that works here.
#[derive(Debug, Clone)]
pub struct SlowFlush {
    /// With its arguments; the command to be traced comes behind.
    strace: Vec<OsString>,
}

impl SlowFlush {
    /// Looks for strace, and tries it: an answer of `Err` says why flushes can't be held up here.
    pub async fn find() -> Result<Self, String> {
        let Some(program) = programs::find("strace", None) else {
            return Err("strace, which delays flushes, is not installed".into());
        };
        let mut strace = vec![program.into_os_string()];
        // The server keeps the process id that it was started with, and stops at this system call only.
        strace.extend(["--daemonize", "--follow-forks", "--seccomp-bpf"].map(OsString::from));
        strace.extend(["--output=/dev/null", "--trace=fdatasync"].map(OsString::from));
        strace.push(format!("--inject=fdatasync:delay_exit={LONGER_US}").into());
        let mut trial = Command::new(&strace[0]);
        // A program that finds out whether it is traced.
        trial.args(&strace[1..]).args(["grep", "-q", "^TracerPid:[[:space:]]*[1-9]", "/proc/self/status"]);
        match trial.output().await {
            Ok(output) if output.status.success() => Ok(Self { strace }),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(format!("strace, which delays flushes, does not work here: {}", said.trim()))
            }
            Err(error) => Err(format!("cannot run strace, which delays flushes: {error}")),
        }
    }

    /// Lets each flush of the server take longer from now on, or as long as it takes. Whether the server was started again for
    /// that, and has lost its connections: all its processes have to be traced from their beginning.
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

/// As far as the system says.
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
            // As the benchmark's report says then; there is nothing to be tried.
            Err(reason) => return eprintln!("{reason}"),
        };
        let start = || PrivateServer::builder().label("bench-slow").start().unwrap();
        let server = Arc::new(tokio::task::spawn_blocking(start).await.unwrap());

        assert!(!slow_flush.set(false, &server).await.unwrap(), "it was as it should be");
        assert!(slow_flush.set(true, &server).await.unwrap());
        assert!(!slow_flush.set(true, &server).await.unwrap(), "it was as it should be");
        let all = server.processes().unwrap();
        assert!(all.len() > 3 && all.iter().all(|process| is_traced(*process)), "{all:?}");
        let strace = tracer(all[0]).unwrap();

        assert!(slow_flush.set(false, &server).await.unwrap());
        let all = server.processes().unwrap();
        assert!(all.len() > 3 && !all.iter().any(|process| is_traced(*process)), "{all:?}");
        let deadline = Instant::now() + Duration::from_secs(30);
        while is_running(strace) {
            assert!(Instant::now() < deadline, "strace has nothing to trace and runs on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// One that has ended may wait for somebody to notice.
    fn is_running(process: u32) -> bool {
        let stat = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }
}
