//! Reads the latencies that pgbench logs, with one line for each transaction. It runs nothing.

use crate::error::Error;
use crate::statistics::Latencies;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Reads all log files in a folder. pgbench writes one for each thread.
pub(super) fn read(folder: &Path) -> Result<Latencies, Error> {
    let mut latencies = Latencies::new();
    for entry in std::fs::read_dir(folder).map_err(Error::file("list", folder))? {
        let path = entry.map_err(Error::file("list", folder))?.path();
        let is_log = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log."));
        if is_log {
            let file = File::open(&path).map_err(Error::file("read", &path))?;
            for line in BufReader::new(file).lines() {
                record(&line.map_err(Error::file("read", &path))?, &mut latencies);
            }
        }
    }
    Ok(latencies)
}

/// A line is `client number latency script second microsecond [lag] [tries]`. In an open loop the latency counts from the
/// time the transaction was due, so it includes the lag. A transaction without a latency has `skipped` or `failed` there.
fn record(line: &str, latencies: &mut Latencies) {
    if let Some(microseconds) = line.split(' ').nth(2).and_then(|field| field.parse().ok()) {
        latencies.record(microseconds);
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn all_threads_count_and_the_lag_is_not_added_twice() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("log.11226"),
            "0 1 7336 0 1795295058 137125 55\n1 1 6466 0 1795295058 137151 6155\n",
        )
        .unwrap();
        std::fs::write(
            folder.path().join("log.11226.1"),
            "2 1 4491 0 1795295058 137281 55\n2 2 skipped 0 1 1 0\n",
        )
        .unwrap();
        std::fs::write(folder.path().join("script.sql"), "select 1 2 3;\n").unwrap();
        let quantiles = read(folder.path()).unwrap().quantiles().unwrap();
        assert_eq!(quantiles.samples, 3);
        assert!(quantiles.max_us.abs_diff(7336) <= 8, "{quantiles:?}");
        assert!(quantiles.p50_us.abs_diff(6466) <= 8, "{quantiles:?}");
    }

    #[test]
    fn a_folder_without_a_log_has_no_latencies() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap().quantiles(), None);
    }
}
