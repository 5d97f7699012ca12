//! Processes by their id: signals, who is whose child, and an end that leaves none behind. Never looks for a
//! process by its name.
use crate::Error;
use nix::errno::Errno;
use nix::sys::signal;
use nix::unistd::Pid;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) use nix::sys::signal::Signal;

/// How often a process is looked at while its end is awaited.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(5);

/// SIGKILL takes a moment, and longer on a machine that writes back a gigabyte; then something is wrong with
/// the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(60);

/// Quitting takes milliseconds, unless somebody has connected and says nothing: nobody waits for him.
const QUIT_TIMEOUT: Duration = Duration::from_secs(3);

/// A process as the kernel lists it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Process {
    pid: u32,
    parent: u32,
    /// `T` is stopped, `t` the same under a tracer, `Z` is dead and not yet fetched by its parent.
    state: char,
}

/// Sends a signal. That the process is already gone is not an error: it is what most signals are for.
pub(crate) fn send(pid: u32, what: Signal) -> Result<(), Error> {
    let raw = i32::try_from(pid).map_err(|_| ended(pid, "there is no such id"))?;
    match signal::kill(Pid::from_raw(raw), what) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(ended(pid, error.desc())),
    }
}

/// Sends a signal and waits until the process has ended; `false` if it has not within `patience`.
pub(crate) fn end(pid: u32, how: Signal, patience: Duration) -> Result<bool, Error> {
    send(pid, how)?;
    let deadline = Instant::now() + patience;
    while state(pid).is_some_and(|state| state != 'Z') {
        if Instant::now() > deadline {
            return Ok(false);
        }
        sleep(LOOK_EVERY);
    }
    Ok(true)
}

/// Ends a server at once, but in order: it ends its children and gives back its shared memory. If it does
/// not, it is killed with them.
pub(crate) fn quit(postmaster: u32) -> Result<(), Error> {
    if end(postmaster, Signal::SIGQUIT, QUIT_TIMEOUT)? { Ok(()) } else { kill_tree(postmaster) }
}

/// Kills a process and its children with SIGKILL, and returns when none of them runs. The parent is stopped
/// first, so that no child is born between the look and the kill. A parent that is our own child still has to
/// be waited for.
pub(crate) fn kill_tree(pid: u32) -> Result<(), Error> {
    freeze(pid)?;
    let family = family(pid)?;
    for member in &family {
        send(*member, Signal::SIGKILL)?;
    }
    for member in &family {
        if !end(*member, Signal::SIGKILL, KILL_TIMEOUT)? {
            return Err(ended(pid, "it or a child of it outlives SIGKILL"));
        }
    }
    Ok(())
}

/// Stops a process, so that no child of it is born from now on.
pub(crate) fn freeze(pid: u32) -> Result<(), Error> {
    send(pid, Signal::SIGSTOP)?;
    while state(pid).is_some_and(|state| !matches!(state, 'T' | 't' | 'Z')) {
        sleep(LOOK_EVERY);
    }
    Ok(())
}

/// A process and its children.
pub(crate) fn family(pid: u32) -> Result<Vec<u32>, Error> {
    let all = list().map_err(|error| ended(pid, &format!("the processes can't be listed ({error})")))?;
    Ok(all.iter().filter(|p| p.pid == pid || p.parent == pid).map(|p| p.pid).collect())
}

fn ended(pid: u32, reason: &str) -> Error {
    Error::Process { pid, reason: reason.to_owned() }
}

/// All processes of the machine, from /proc: `ps` is missing in small containers.
#[cfg(target_os = "linux")]
fn list() -> io::Result<Vec<Process>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        // A process may end between the listing and the reading.
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

/// All processes of the machine, from `ps`, which is part of the system where there is no /proc.
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
    fn a_tree_is_killed_and_nobody_else() {
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
    fn a_signal_to_a_process_that_is_gone_is_no_error() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        send(child.id(), Signal::SIGTERM).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_may_hold_anything() {
        let read = from_stat("4711 (a) b (c) S 1 2 3");
        assert_eq!(read, Some(Process { pid: 4711, parent: 1, state: 'S' }));
    }
}
