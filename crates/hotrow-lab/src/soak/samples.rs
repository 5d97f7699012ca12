//! What a run has measured, which its folder keeps. No I/O.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A gateway's process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Resident memory.
    pub bytes: u64,
    pub descriptors: u64,
    pub threads: u64,
}

/// A sample under load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Time of the run, over all starts.
    pub at_ms: u64,
    /// The start of the program, and the round.
    pub start: u64,
    pub round: u64,
    pub gateways: [Process; 2],
    /// The server's connections.
    pub connections: u64,
    /// Acknowledged statements and time under load since the sample before.
    pub statements: u64,
    pub load_ms: u64,
}

/// The end of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundEnd {
    pub at_ms: u64,
    pub start: u64,
    pub round: u64,
    /// Acknowledged statements of the round.
    pub statements: u64,
    /// The bytes that each gateway has logged since its start.
    pub log_bytes: [u64; 2],
    /// The bytes of each table and of its indexes.
    pub tables: BTreeMap<String, [u64; 2]>,
}

/// All samples of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples {
    /// Time of the run up to its last checked round, over all starts.
    pub ran_ms: u64,
    pub samples: Vec<Sample>,
    pub ends: Vec<RoundEnd>,
}

/// A process as its file `/proc/PID/status` describes it.
pub fn process(status: &str) -> Option<Process> {
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes: u64 = field("VmRSS:")?.trim().trim_end_matches(" kB").parse().ok()?;
    let threads = field("Threads:")?.trim().parse().ok()?;
    Some(Process { bytes: kilobytes << 10, threads, ..Process::default() })
}

#[cfg(test)]
mod tests {
    use super::process;

    #[test]
    fn memory_and_threads_are_those_of_the_status() {
        let found = process("Name:\thotrow\nVmRSS:\t   20480 kB\nThreads:\t5\n").unwrap();
        assert_eq!((found.bytes, found.threads), (20 << 20, 5));
        assert_eq!(process("Name:\thotrow\nThreads:\t5\n"), None);
    }
}
