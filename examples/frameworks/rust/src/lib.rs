//! What both programs share: the command line, and the measurement of an update that workers repeat.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const WARM_UP: Duration = Duration::from_secs(2);

/// An error ends the program.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The command line: setup|autocommit|transaction URL WORKERS SECONDS.
pub struct Arguments {
    pub variant: String,
    pub url: String,
    pub workers: u32,
    pub seconds: f64,
}

impl Arguments {
    pub fn parse() -> Self {
        let mut words = std::env::args().skip(1);
        let variant = words.next().expect("a variant");
        let url = words.next().expect("a URL");
        let workers = words.next().map_or(1, |word| word.parse().expect("a number of workers"));
        let seconds = words.next().map_or(0.0, |word| word.parse().expect("a number of seconds"));
        Self { variant, url, workers, seconds }
    }
}

/// What the workers share.
#[derive(Default)]
pub struct Load {
    done: AtomicU64,
    stopped: AtomicBool,
}

impl Load {
    /// Whether a worker has to repeat its update.
    pub fn goes_on(&self) -> bool {
        !self.stopped.load(Relaxed)
    }

    /// Counts an update that the database has acknowledged.
    pub fn count(&self) {
        self.done.fetch_add(1, Relaxed);
    }

    /// Blocks for the time of the load, then stops the workers. Returns the updates per second after the warm-up.
    pub fn measure(&self, seconds: f64) -> f64 {
        std::thread::sleep(WARM_UP);
        let (before, started) = (self.done.load(Relaxed), Instant::now());
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let measured = self.done.load(Relaxed) - before;
        let per_second = measured as f64 / started.elapsed().as_secs_f64();
        self.stopped.store(true, Relaxed);
        per_second
    }

    /// Prints the result after all workers have stopped.
    pub fn print(&self, per_second: f64) {
        println!("{{\"updates\": {}, \"per_second\": {per_second}}}", self.done.load(Relaxed));
    }
}
