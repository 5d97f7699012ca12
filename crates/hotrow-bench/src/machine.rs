//! The machine of the benchmark: processor, memory, system. Names of users and hosts are left out: reports can be published.

use serde::Serialize;
use std::fs::read_to_string;
use std::process::Command;

/// A machine. Facts that cannot be read are "unknown".
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// The number of hardware threads.
    pub cores: usize,
    pub memory_bytes: Option<u64>,
    /// The operating system's name and version.
    pub system: String,
    /// The kernel's name and version.
    pub kernel: String,
    /// Average number of runnable processes in the last minute. Above a fraction of the cores, the figures suffer.
    pub load_average: Option<f64>,
}

impl Machine {
    /// The machine of this program.
    pub fn this() -> Self {
        let unknown = || "unknown".to_owned();
        Self {
            processor: processor().unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            memory_bytes: memory_bytes(),
            system: system().unwrap_or_else(unknown),
            kernel: output_of("uname", &["-sr"]).unwrap_or_else(unknown),
            load_average: load_average(),
        }
    }
}

fn processor() -> Option<String> {
    match read_to_string("/proc/cpuinfo") {
        Ok(text) => field(&text, "model name", ':').or_else(|| output_of("uname", &["-m"])),
        Err(_) => output_of("sysctl", &["-n", "machdep.cpu.brand_string"]),
    }
}

fn memory_bytes() -> Option<u64> {
    match read_to_string("/proc/meminfo") {
        Ok(text) => Some(field(&text, "MemTotal", ':')?.strip_suffix(" kB")?.parse::<u64>().ok()? * 1024),
        Err(_) => output_of("sysctl", &["-n", "hw.memsize"])?.parse().ok(),
    }
}

fn system() -> Option<String> {
    match read_to_string("/etc/os-release") {
        Ok(text) => Some(field(&text, "PRETTY_NAME", '=')?.trim_matches('"').to_owned()),
        Err(_) => Some(format!("macOS {}", output_of("sw_vers", &["-productVersion"])?)),
    }
}

fn load_average() -> Option<f64> {
    let text = read_to_string("/proc/loadavg").ok().or_else(|| output_of("sysctl", &["-n", "vm.loadavg"]))?;
    text.split_whitespace().find_map(|word| word.parse().ok())
}

/// The value of the first line with this name.
fn field(text: &str, name: &str, separator: char) -> Option<String> {
    let value = |line: &str| {
        let (found, value) = line.split_once(separator)?;
        (found.trim() == name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(value)
}

fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !printed.is_empty()).then_some(printed)
}

#[cfg(test)]
mod tests {
    use super::{Machine, field};

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "MemTotal:       24689764 kB\nMemFree: 1 kB\nmodel name\t: Fast CPU @ 3.00GHz\n";
        assert_eq!(field(text, "MemTotal", ':').as_deref(), Some("24689764 kB"));
        assert_eq!(field(text, "model name", ':').as_deref(), Some("Fast CPU @ 3.00GHz"));
        assert_eq!(field(text, "Mem", ':'), None);
    }

    #[test]
    fn this_machine_is_known() {
        let machine = Machine::this();
        assert!(machine.cores >= 1);
        assert!(machine.memory_bytes.is_some_and(|bytes| bytes > 64 << 20), "{machine:?}");
        for fact in [&machine.processor, &machine.system, &machine.kernel] {
            assert_ne!(fact, "unknown", "{machine:?}");
        }
    }
}
