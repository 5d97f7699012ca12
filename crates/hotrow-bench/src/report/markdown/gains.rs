//! The table of predicted and measured gains of all scenarios, before their sections.

use super::super::numbers::{times, whole};
use crate::results::{Gain, Report};
use std::fmt::{Error, Write};

/// Writes the table, if the report has predictions.
pub(super) fn write_gains(text: &mut String, report: &Report) -> Result<(), Error> {
    let gains: Vec<(&str, &Gain)> = report
        .scenarios
        .iter()
        .flat_map(|scenario| scenario.gains.iter().map(|gain| (scenario.name, gain)))
        .collect();
    if gains.is_empty() {
        return Ok(());
    }
    let within = gains.iter().filter(|(_, gain)| gain.is_within).count();
    writeln!(text, "## Predictions of `hotrow doctor`\n")?;
    writeln!(
        text,
        "The measured gain lies in the predicted range in {within} of {} workloads. A gain is the work done per second through \
         Hotrow, divided by that of the direct run.\n",
        gains.len()
    )?;
    writeln!(
        text,
        "| scenario | clients | main finding | predicted gain | high / low | measured gain | in the range |"
    )?;
    writeln!(text, "|---|---:|---|---:|---:|---:|:-:|")?;
    for (scenario, gain) in gains {
        let mut findings = gain.findings.clone();
        findings.dedup();
        writeln!(
            text,
            "| {scenario} | {} | {} | {} to {} | {:.1} | {} | {} |",
            whole(gain.clients.into()),
            if findings.is_empty() { "-".to_owned() } else { findings.join(", ") },
            times(gain.predicted.low),
            times(gain.predicted.high),
            gain.predicted.high / gain.predicted.low,
            times(gain.measured),
            if gain.is_within { "yes" } else { "no" }
        )?;
    }
    writeln!(text)
}

#[cfg(test)]
mod tests {
    use super::super::super::sample;
    use super::super::render;
    use crate::doctor_report::Range;
    use crate::results::Gain;

    #[test]
    fn gains_are_listed_with_their_range() {
        let mut report = sample::report();
        assert!(!render(&report).contains("Predictions"));
        let gain = |measured: f64| Gain {
            clients: 64,
            predicted: Range { low: 2.0, high: 4.0 },
            findings: vec!["hot_row".into(), "hot_row".into()],
            measured,
            is_within: measured < 4.0,
        };
        report.scenarios[0].gains = vec![gain(3.0), gain(12.0)];
        let text = render(&report);
        assert!(text.contains("in the predicted range in 1 of 2 workloads"), "{text}");
        assert!(text.contains("| hot-row | 64 | hot_row | 2.00× to 4.00× | 2.0 | 3.00× | yes |"), "{text}");
        assert!(text.contains("| 12.0× | no |"), "{text}");
    }
}
