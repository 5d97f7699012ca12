//! Downloads the pinned release of each major version that is named, unless it is cached, and prints its folder of programs, one a
//! line: `cargo run -p hotrow-postgres --example fetch -- 17 18`. Progress goes to standard error.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal and for scripts")]
use hotrow_postgres::{Binaries, Progress};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for version in std::env::args().skip(1) {
        let major =
            version.parse().map_err(|_| format!("{version} is no major version: name one such as 17"))?;
        let mut last = None;
        let binaries = Binaries::fetch_version(major, |progress: Progress| {
            let megabytes = progress.received >> 20;
            if last.replace(megabytes) != Some(megabytes) {
                let total = progress.total.map(|total| format!(" of {}", total >> 20)).unwrap_or_default();
                eprint!("\rPostgreSQL {major}: {megabytes}{total} MB");
            }
        })?;
        if last.is_some() {
            eprintln!();
        }
        println!("{}", binaries.dir().display());
    }
    Ok(())
}
