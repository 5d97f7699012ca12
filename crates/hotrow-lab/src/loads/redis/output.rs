//! Reads the output of redis-benchmark, including latencies. It runs nothing.

use hotrow_bench::load::Answers;
use hotrow_bench::statistics::Latencies;

/// `None` if there is no summary.
///
/// The output has steps of a distribution, each with the number of requests up to a latency. Requests between two steps
/// count with the longer latency.
pub(super) fn parse(printed: &str) -> Option<Answers> {
    // The progress lines overwrite each other.
    let printed = printed.replace('\r', "\n");
    let acknowledged = printed.lines().find_map(|line| number_before(line, " requests completed in "))?;
    let per_second = printed
        .lines()
        .find_map(|line| line.trim().strip_prefix("throughput summary: ")?.split(' ').next()?.parse().ok())?;
    let mut latencies = Latencies::new();
    let mut counted = 0;
    let (_, distribution) = printed.split_once("Latency by percentile distribution:")?;
    for (milliseconds, cumulative) in distribution.lines().skip(1).map_while(step) {
        latencies.record_many((milliseconds * 1000.0) as u64, u64::saturating_sub(cumulative, counted));
        counted = cumulative;
    }
    Some(Answers::new(acknowledged, per_second, latencies))
}

/// `50.000% <= 0.431 milliseconds (cumulative count 6075)`
fn step(line: &str) -> Option<(f64, u64)> {
    let (_, rest) = line.split_once("% <= ")?;
    let (milliseconds, rest) = rest.split_once(" milliseconds (cumulative count ")?;
    Some((milliseconds.parse().ok()?, rest.trim_end_matches(')').parse().ok()?))
}

fn number_before(line: &str, words: &str) -> Option<u64> {
    line.split_once(words)?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_summary_of_version_7_is_read() {
        let printed = "evalsha: rps=0.0\r      \r====== evalsha 1 0 ======\n  20000 requests completed in 0.08 seconds\n  8 \
            parallel clients\n\nLatency by percentile distribution:\n0.000% <= 0.015 milliseconds (cumulative count 237)\n\
            50.000% <= 0.031 milliseconds (cumulative count 13841)\n100.000% <= 0.207 milliseconds (cumulative count 20000)\n\n\
            Cumulative distribution of latencies:\n99.790% <= 0.103 milliseconds (cumulative count 19958)\n\nSummary:\n  \
            throughput summary: 240963.86 requests per second\n";
        let answers = parse(printed).unwrap();
        assert_eq!((answers.acknowledged, answers.per_second), (20_000, 240_963.86));
        let quantiles = answers.latencies.quantiles().unwrap();
        assert_eq!((quantiles.samples, quantiles.p50_us, quantiles.max_us), (20_000, 31, 207));
    }

    #[test]
    fn a_run_that_ended_early_has_no_summary() {
        assert!(parse("Could not connect to Redis at 127.0.0.1:1: Connection refused\n").is_none());
    }
}
