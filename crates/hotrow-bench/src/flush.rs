//! Measures the time that the disk takes for a flush, which every commit waits for, with a file of its own.

use crate::error::Error;
use crate::statistics::Latencies;
use serde::Serialize;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Writes of 8 kB, each followed by `fdatasync`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FlushTime {
    /// The number of flushes.
    pub samples: u64,
    /// Median, in microseconds.
    pub p50_us: u64,
    /// 99th percentile, in microseconds.
    pub p99_us: u64,
}

const PAGE_BYTES: usize = 8192;
const PAGES: u64 = 256;
const AT_MOST: Duration = Duration::from_millis(500);

impl FlushTime {
    /// Measures the file system of this folder. The file has its full size beforehand, as a WAL segment has. A growing file
    /// would have to flush its new size too.
    pub fn measure(folder: &Path) -> Result<Self, Error> {
        let unmeasurable = || Error::file("measure the time of a flush in", folder);
        let file = tempfile::tempfile_in(folder).map_err(unmeasurable())?;
        let latencies = flushes(&file).map_err(unmeasurable())?;
        let quantiles = latencies.quantiles().expect("at least one flush precedes the check of the time");
        Ok(Self { samples: quantiles.samples, p50_us: quantiles.p50_us, p99_us: quantiles.p99_us })
    }
}

fn flushes(file: &File) -> std::io::Result<Latencies> {
    let page = [0x5a_u8; PAGE_BYTES];
    for number in 0..PAGES {
        file.write_all_at(&page, number * PAGE_BYTES as u64)?;
    }
    file.sync_all()?;
    let mut latencies = Latencies::new();
    let began = Instant::now();
    for number in (0..PAGES).cycle() {
        let before = Instant::now();
        file.write_all_at(&page, number * PAGE_BYTES as u64)?;
        file.sync_data()?;
        latencies.record_since(before);
        if began.elapsed() > AT_MOST {
            break;
        }
    }
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    use super::FlushTime;

    #[test]
    fn flushes_are_timed_and_leave_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let flush = FlushTime::measure(folder.path()).unwrap();
        assert!(flush.samples >= 1 && flush.p50_us <= flush.p99_us, "{flush:?}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
