//! The progress of a long replay, on standard error.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter replays show no progress.
const SILENT: Duration = Duration::from_secs(1);
/// Commands between looks at the clock: reading the clock costs more than folding a command.
const LOOK_EVERY: u64 = 1024;

/// The number of rows read.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    read: u64,
}

impl Progress {
    /// Progress over this number of rows, if it is known.
    pub fn new(rows: Option<u64>) -> Self {
        let template = match rows {
            Some(_) => "{bar:30} {human_pos}/{human_len} commands, {per_sec}, {eta} left",
            None => "{spinner} {human_pos} rows read, {per_sec}",
        };
        let style =
            ProgressStyle::with_template(template).expect("the templates are constants, their fields exist");
        let bar = rows.map_or_else(ProgressBar::no_length, ProgressBar::new).with_style(style);
        bar.set_draw_target(ProgressDrawTarget::hidden());
        Self { bar, started: Instant::now(), read: 0 }
    }

    /// Counts a row.
    pub fn step(&mut self) {
        self.read += 1;
        if self.read.is_multiple_of(LOOK_EVERY) && self.started.elapsed() > SILENT {
            if self.bar.is_hidden() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
            }
            self.bar.set_position(self.read);
        }
    }

    /// Removes the progress bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
