//! Processes by their ID: signals, children, and an end that leaves no process. It never searches for a process by
//! name.
use crate::Error;
use nix::errno::Errno;
use nix::sys::signal;
use nix::unistd::Pid;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) use nix::sys::signal::Signal;

/// The interval of checks while the end of a process is awaited.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(5);

/// SIGKILL takes a moment, and longer on a machine that writes back a gigabyte. After this time, the kernel has a
/// problem.
const KILL_TIMEOUT: Duration = Duration::from_secs(60);

/// Quitting takes milliseconds, unless a client has connected and sends nothing. Such a client is not waited for.
const QUIT_TIMEOUT: Duration = Duration::from_secs(3);

/// A process as the kernel lists it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Process {
    pid: u32,
    parent: u32,
    /// `T` is stopped, `t` is stopped by a tracer, `Z` has ended and its parent has not waited for it yet.
    state: char,
}

/// Sends a signal. If the process has already ended, this is not an error, because most signals are sent for this
/// purpose.
pub(crate) fn send(pid: u32, what: Signal) -> Result<(), Error> {
    let raw = i32::try_from(pid).map_err(|_| ended(pid, "it is not a process ID"))?;
    match signal::kill(Pid::from_raw(raw), what) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(ended(pid, error.desc())),
    }
}

/// Sends a signal and waits until the process has ended. Returns `false` if it has not ended within `patience`.
pub(crate) fn end(pid: u32, how: Signal, patience: Duration) -> Result<bool, Error> {
    send(pid, how)?;
    Ok(ends_within(pid, patience))
}

/// Waits for the end of a process. Sends nothing: by now, its ID may belong to another one.
fn ends_within(pid: u32, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while state(pid).is_some_and(|state| state != 'Z') {
        if Instant::now() > deadline {
            return false;
        }
        sleep(LOOK_EVERY);
    }
    true
}

/// Ends a server at once, but in order: the server ends its children and releases its shared memory. If it does
/// not end, it is killed with its children.
pub(crate) fn quit(postmaster: u32) -> Result<(), Error> {
    if end(postmaster, Signal::SIGQUIT, QUIT_TIMEOUT)? { Ok(()) } else { kill_tree(postmaster) }
}

/// Kills a process and its children with SIGKILL, and returns when none of them runs. The parent is stopped first,
/// so that it starts no child between the listing and the signal. If the parent is a child of this program, the
/// caller still has to wait for it.
pub(crate) fn kill_tree(pid: u32) -> Result<(), Error> {
    freeze(pid)?;
    let family = family(pid)?;
    for member in &family {
        send(*member, Signal::SIGKILL)?;
    }
    for member in &family {
        if !ends_within(*member, KILL_TIMEOUT) {
            return Err(ended(pid, "the process or one of its children survived SIGKILL"));
        }
    }
    Ok(())
}

/// Stops a process, so that it starts no more children.
pub(crate) fn freeze(pid: u32) -> Result<(), Error> {
    send(pid, Signal::SIGSTOP)?;
    while state(pid).is_some_and(|state| !matches!(state, 'T' | 't' | 'Z')) {
        sleep(LOOK_EVERY);
    }
    Ok(())
}

/// A process and its children.
pub(crate) fn family(pid: u32) -> Result<Vec<u32>, Error> {
    let all = list().map_err(|error| ended(pid, &format!("the processes cannot be listed ({error})")))?;
    Ok(all.iter().filter(|p| p.pid == pid || p.parent == pid).map(|p| p.pid).collect())
}

fn ended(pid: u32, reason: &str) -> Error {
    Error::Process { pid, reason: reason.to_owned() }
}

/// All processes of the machine, from /proc, because small containers have no `ps`.
#[cfg(target_os = "linux")]
fn list() -> io::Result<Vec<Process>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        // A process can end between the listing and the reading.
        let Ok(stat) = std::fs::read_to_string(entry?.path().join("stat")) else { continue };
        all.extend(from_stat(&stat));
    }
    Ok(all)
}

/// The state of one process, if it exists.
#[cfg(target_os = "linux")]
fn state(pid: u32) -> Option<char> {
    from_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?).map(|process| process.state)
}

/// `4711 (a name) with ) in it) S 1 ...`: the name ends at the last parenthesis.
#[cfg(target_os = "linux")]
fn from_stat(stat: &str) -> Option<Process> {
    let (pid, _) = stat.split_once(' ')?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some(Process { pid: pid.parse().ok()?, parent: fields.next()?.parse().ok()?, state })
}

/// All processes of the machine, from `ps`, which is part of systems without /proc.
#[cfg(not(target_os = "linux"))]
fn list() -> io::Result<Vec<Process>> {
    let output = std::process::Command::new("ps").args(["-A", "-o", "pid=,ppid=,state="]).output()?;
    let line = |line: &str| {
        let mut fields = line.split_whitespace();
        let (pid, parent) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Process { pid, parent, state: fields.next()?.chars().next()? })
    };
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(line).collect())
}

/// The state of one process, if it exists.
#[cfg(not(target_os = "linux"))]
fn state(pid: u32) -> Option<char> {
    list().ok()?.into_iter().find(|process| process.pid == pid).map(|process| process.state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn only_a_process_and_its_children_are_killed() {
        let sleeper = || Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let mut bystander = sleeper();
        let mut parent = Command::new("sh")
            .args(["-c", "sleep 601 & sleep 602 & wait"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let children = || -> Vec<u32> {
            let all = list().unwrap();
            all.iter().filter(|p| p.parent == parent.id() && p.state != 'Z').map(|p| p.pid).collect()
        };
        while children().len() < 2 {
            sleep(LOOK_EVERY);
        }
        let born = children();

        kill_tree(parent.id()).unwrap();
        assert!(!list().unwrap().iter().any(|p| p.state != 'Z' && born.contains(&p.pid)));
        assert!(!parent.wait().unwrap().success());
        assert_eq!(bystander.try_wait().unwrap(), None);
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }

    #[test]
    fn a_signal_to_a_process_that_has_ended_is_not_an_error() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        send(child.id(), Signal::SIGTERM).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_can_contain_any_characters() {
        let read = from_stat("4711 (a) b (c) S 1 2 3");
        assert_eq!(read, Some(Process { pid: 4711, parent: 1, state: 'S' }));
    }
}
