//! The report as JSON, with each round.

use crate::results::Report;

/// The text of report.json.
pub(super) fn render(report: &Report) -> String {
    let mut text =
        serde_json::to_string_pretty(report).expect("a report has only text keys, and nothing in it refuses");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::render;
    use serde_json::Value;

    #[test]
    fn a_program_finds_figures_and_failures() {
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
