//! The result of a verification as text.

use std::fmt;

use hotrow_core::untrusted::visible;
use tokio_postgres::Row;

/// The number of contradictions that are shown; more are only counted.
const LINES: usize = 20;

/// The number of checked rows, and the contradictions.
#[derive(Debug, Default)]
pub struct Report {
    checked: Vec<(&'static str, u64)>,
    findings: Vec<String>,
    wrong: u64,
}

impl Report {
    /// Adds a number of checked rows.
    pub fn checked(&mut self, what: &'static str, count: u64) {
        match self.checked.iter_mut().find(|(known, _)| *known == what) {
            Some((_, sum)) => *sum += count,
            None => self.checked.push((what, count)),
        }
    }

    /// Adds the numbers in a row.
    pub fn count(&mut self, counts: &Row, kinds: &[&'static str]) {
        for (column, what) in kinds.iter().enumerate() {
            self.checked(what, counts.get::<_, i64>(column).unsigned_abs());
        }
    }

    /// Adds the report about another part.
    pub fn add(&mut self, other: Report) {
        other.checked.into_iter().for_each(|(what, count)| self.checked(what, count));
        self.wrong += other.wrong;
        let room = LINES.saturating_sub(self.findings.len());
        self.findings.extend(other.findings.into_iter().take(room));
    }

    /// Adds a contradiction.
    pub fn wrong(&mut self, finding: String) {
        self.wrong += 1;
        if self.findings.len() < LINES {
            self.findings.push(finding);
        }
    }

    /// Whether there is no contradiction.
    pub fn sound(&self) -> bool {
        self.wrong == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count) in &self.checked {
            writeln!(f, "{what:<14}{count:>12}")?;
        }
        if self.sound() {
            return writeln!(f, "\nAll of it agrees.");
        }
        writeln!(f, "\nWrong: {}", self.wrong)?;
        for finding in &self.findings {
            writeln!(f, "  {}", visible(finding))?;
        }
        match self.wrong - self.findings.len() as u64 {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_findings_are_shown_and_the_others_counted() {
        let mut report = Report::default();
        report.checked("counters", 3);
        assert_eq!(report.to_string(), "counters                 3\n\nAll of it agrees.\n");
        (0..22).for_each(|number| report.wrong(format!("number {number}")));
        let text = report.to_string();
        assert!(!report.sound() && text.contains("Wrong: 22\n  number 0\n"), "{text}");
        assert!(text.ends_with("  number 19\n  and 2 more\n"), "{text}");
    }
}
