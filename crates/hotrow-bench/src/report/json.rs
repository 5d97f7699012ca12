//! The report as JSON, with each round.

use crate::results::Report;

/// The text of report.json.
pub(super) fn render(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report).expect("every value of a report can be serialised");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::render;
    use serde_json::Value;

    #[test]
    fn figures_and_failures_are_in_the_json() {
        let report: Value = serde_json::from_str(&render(&sample::report())).unwrap();
        let cell = |technique: usize| &report["scenarios"][0]["techniques"][technique]["cells"][1];
        assert_eq!(cell(2)["outcome"], "measured");
        assert_eq!(cell(2)["per_second"]["median"], 75_335.0);
        assert_eq!(cell(2)["latency"]["p99_us"], 1_460);
        assert_eq!(cell(3)["outcome"], "failed");
        assert!(cell(3).get("per_second").is_none(), "a failed check must leave no figure");
        assert_eq!(report["server"]["settings"][0]["name"], "fsync");
    }
}
