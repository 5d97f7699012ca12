//! The server's machine, if the doctor runs on it: its cores, how many of them are busy, the server's part of that, and how
//! many processes of the server wait for a core. Linux only.

use std::fs::{read_dir, read_to_string};
use std::time::Instant;

use crate::recording::Machine;

/// Ticks per second in /proc, on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// Processes of a server that are read.
const PROCESSES_MAX: usize = 10_000;

/// The machine at the beginning of a run.
pub struct Watched {
    postmaster: i32,
    begun: Instant,
    cores: Option<Ticks>,
    server: Processes,
}

/// The times of the server's processes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Processes {
    /// On a core, in ticks.
    ticks: f64,
    /// Of waiting for a core.
    waits: Waits,
}

/// The time of all cores, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    busy: f64,
    all: f64,
}

/// The waits of processes that can run and have no core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Waits {
    nanoseconds: f64,
    /// How often a process got a core.
    runs: f64,
}

/// A line of /proc/PID/stat.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Process {
    parent: i32,
    ticks: f64,
}

impl Watched {
    /// `None` if the process of the doctor's own session is not on this machine. An address cannot tell: a tunnel to a
    /// remote server ends on the loopback interface.
    pub fn begin(session: i32) -> Option<Watched> {
        let name = read_to_string(format!("/proc/{session}/comm")).ok()?;
        let postmaster = process(session).filter(|_| name.starts_with("postgres"))?.parent;
        Some(Watched { postmaster, begun: Instant::now(), cores: ticks(), server: Processes::of(postmaster) })
    }

    /// The machine during the run. The time of sessions that have ended in between is missing in the server's part.
    pub fn end(self) -> Machine {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let share = self.cores.zip(ticks()).map(|(before, after)| share(before, after));
        let now = Processes::of(self.postmaster);
        let elapsed = self.begun.elapsed().as_secs_f64().max(1e-3);
        let ticks = (now.ticks - self.server.ticks).max(0.0);
        let waits = now.waits.since(self.server.waits);
        Machine {
            cores,
            busy: share.map(|share| share * cores as f64),
            server: Some(ticks / TICKS_PER_SECOND / elapsed),
            queue: waits.map(|waits| waits.nanoseconds / 1e9 / elapsed),
            core_wait_us: waits.map(|waits| waits.nanoseconds / 1e3 / waits.runs),
        }
    }
}

impl Processes {
    fn of(parent: i32) -> Processes {
        let entries = read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let mut sum = Processes::default();
        for pid in pids.take(PROCESSES_MAX) {
            let Some(process) = process(pid).filter(|process| process.parent == parent) else { continue };
            sum.ticks += process.ticks;
            sum.waits.add(pid);
        }
        sum
    }
}

impl Waits {
    /// Adds those of a process. A kernel without these numbers adds none.
    fn add(&mut self, pid: i32) {
        let text = read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
        if let Some(Waits { nanoseconds, runs }) = parse_waits(&text) {
            self.nanoseconds += nanoseconds;
            self.runs += runs;
        }
    }

    /// Those since then. None if there were none.
    fn since(self, before: Waits) -> Option<Waits> {
        let nanoseconds = (self.nanoseconds - before.nanoseconds).max(0.0);
        let since = Waits { nanoseconds, runs: self.runs - before.runs };
        (since.runs >= 1.0).then_some(since)
    }
}

/// Three numbers: time on a core, time of waiting for one, and the number of times that it got one.
fn parse_waits(text: &str) -> Option<Waits> {
    let mut numbers = text.split_whitespace().skip(1).map(|number| number.parse::<f64>().ok());
    Some(Waits { nanoseconds: numbers.next()??, runs: numbers.next()?? })
}

fn process(pid: i32) -> Option<Process> {
    parse_process(&read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name of a process can contain spaces and parentheses, so fields count from the last parenthesis.
fn parse_process(text: &str) -> Option<Process> {
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
    Some(Process { parent: fields.get(1)?.parse().ok()?, ticks: ticks(11)? + ticks(12)? })
}

fn ticks() -> Option<Ticks> {
    parse(&read_to_string("/proc/stat").ok()?)
}

/// The first line of /proc/stat. Its fourth number is idle time, and so is the fifth: waiting for a disk. The
/// eighth is time that the machine's host took. The times of guests, after it, are contained in the first two.
fn parse(text: &str) -> Option<Ticks> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let times: Vec<f64> =
        line.split_whitespace().take(7).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let idle = times.get(3)? + times.get(4)?;
    let all: f64 = times.iter().sum();
    Some(Ticks { busy: all - idle, all })
}

fn share(before: Ticks, after: Ticks) -> f64 {
    ((after.busy - before.busy) / (after.all - before.all).max(1.0)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_busy() {
        let before = parse("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1").unwrap();
        let after = parse("cpu  150 0 150 750 150 0 0 0 0 0\ncpu0 1").unwrap();
        assert_eq!(share(before, after), 0.5);
        assert_eq!((share(after, after), parse("intr 1")), (0.0, None));
    }

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let text = "17 (postgres: a) (b) S 3 17 17 0 -1 4194560 1 0 0 0 25 50 7 9 20 0 1 0 1 1 1";
        assert_eq!(parse_process(text), Some(Process { parent: 3, ticks: 75.0 }));
    }

    #[test]
    fn waits_for_cores_are_those_of_the_run() {
        let before = parse_waits("900000 1000000 100\n").unwrap();
        let after = parse_waits("990000 5000000 120\n").unwrap();
        assert_eq!(after.since(before), Some(Waits { nanoseconds: 4_000_000.0, runs: 20.0 }));
        assert_eq!((after.since(after), parse_waits(""), parse_waits("1 x 3")), (None, None, None));
    }

    #[test]
    fn a_process_that_is_no_server_is_on_another_machine() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(Watched::begin(own).is_none());
    }
}
