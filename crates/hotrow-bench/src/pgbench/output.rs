//! Reads the summary that pgbench prints at its end. It runs nothing.

use crate::error::Error;

/// The numbers in the summary.
#[derive(Debug, PartialEq)]
pub(super) struct Counts {
    pub(super) processed: u64,
    pub(super) failed: u64,
    pub(super) per_second: f64,
}

const PROCESSED: &str = "number of transactions actually processed: ";
const FAILED: &str = "number of failed transactions: ";
const PER_SECOND: &str = "tps = ";

pub(super) fn parse(summary: &str) -> Result<Counts, Error> {
    let first_word = |label: &'static str| {
        let rest = summary.lines().find_map(|line| line.strip_prefix(label))?;
        rest.split([' ', '/']).next()
    };
    let missing = |missing: &'static str| Error::UnreadableOutput { missing };
    let number = |label| first_word(label).and_then(|word| word.parse().ok());
    let processed = number(PROCESSED).ok_or(missing(PROCESSED))?;
    // Versions before 15 have no such line, because a failed statement ends their run.
    let failed = number(FAILED).unwrap_or(0);
    let per_second = match first_word(PER_SECOND).and_then(|word| word.parse().ok()) {
        Some(per_second) => per_second,
        // Without transactions, pgbench omits the line.
        None if processed == 0 => 0.0,
        None => return Err(missing(PER_SECOND)),
    };
    Ok(Counts { processed, failed, per_second })
}

#[cfg(test)]
mod tests {
    use super::{Counts, parse};

    #[test]
    fn the_summary_of_version_15_is_read() {
        let summary = "pgbench (15.18)\ntransaction type: sell.sql\nscaling factor: 1\nquery mode: prepared\n\
            number of clients: 4\nnumber of threads: 2\nmaximum number of tries: 1\nduration: 1 s\n\
            number of transactions actually processed: 83244\nnumber of failed transactions: 2 (0.002%)\n\
            latency average = 0.048 ms\ninitial connection time = 12.037 ms\n\
            tps = 83858.177290 (without initial connection time)\n";
        assert_eq!(parse(summary).unwrap(), Counts { processed: 83244, failed: 2, per_second: 83858.177290 });
    }

    #[test]
    fn the_summary_of_version_14_has_no_line_for_failures() {
        let summary =
            "number of transactions actually processed: 10\ntps = 2.5 (without initial connection time)\n";
        assert_eq!(parse(summary).unwrap(), Counts { processed: 10, failed: 0, per_second: 2.5 });
    }

    #[test]
    fn a_run_without_a_transaction_has_no_rate() {
        let summary =
            "number of transactions actually processed: 0\nnumber of failed transactions: 0 (NaN%)\n";
        assert_eq!(parse(summary).unwrap(), Counts { processed: 0, failed: 0, per_second: 0.0 });
    }

    #[test]
    fn a_summary_without_a_count_is_an_error_that_names_it() {
        let error = parse("tps = 2.5 (without initial connection time)\n").unwrap_err();
        assert!(error.to_string().contains("actually processed"), "{error}");
    }
}
