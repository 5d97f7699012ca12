//! The first five lines of a report, for a person on call.

use crate::diagnosis::Diagnosis;
use crate::diagnosis::findings::{Finding, Kind};
use crate::diagnosis::load::{Class, Load};
use crate::diagnosis::prediction::Prediction;
use crate::recording::Recording;

/// Five lines: what the sessions wait for, why, who holds it, which calls are packable, and what the gateway would give.
pub fn summary(recording: &Recording, diagnosis: &Diagnosis) -> [String; 5] {
    let main = main_finding(diagnosis);
    [
        waits(diagnosis),
        main.text.clone(),
        holder(diagnosis, main),
        calls(recording, diagnosis),
        gateway(diagnosis, main),
    ]
}

/// The finding that explains the waits: the first one, unless it says that the doctor is blind.
pub fn main_finding(diagnosis: &Diagnosis) -> &Finding {
    let findings = &diagnosis.findings;
    findings.iter().find(|finding| finding.kind != Kind::Blind).unwrap_or(&findings[0])
}

fn waits(diagnosis: &Diagnosis) -> String {
    let load = &diagnosis.load;
    let mut classes: Vec<(Class, f64)> = Class::ALL
        .iter()
        .map(|class| (*class, load.class(*class)))
        .filter(|(_, sessions)| *sessions >= 0.05)
        .collect();
    classes.sort_by(|left, right| right.1.total_cmp(&left.1));
    let named: Vec<String> = classes
        .iter()
        .take(4)
        .map(|(class, sessions)| format!("{} {}{}", amount(*sessions), does(*class), memory(load, *class)))
        .collect();
    if named.is_empty() {
        return format!("{} sessions, none of them active.", amount(load.sessions));
    }
    format!("Of {} sessions, on average {}.", amount(load.sessions), named.join(", "))
}

/// The structure for which the most sessions wait. A crowd that waits for one row also waits for LWLock:LockManager.
fn memory(load: &Load, class: Class) -> String {
    let most =
        load.by_wait.iter().find(|(wait, _)| wait.starts_with("LWLock:") && !wait.contains("WALWrite"));
    most.filter(|_| class == Class::Memory).map_or_else(String::new, |(wait, _)| format!(" (mostly {wait})"))
}

fn does(class: Class) -> &'static str {
    match class {
        Class::Cpu => "compute",
        Class::RowLock => "wait for a row",
        Class::Lock => "wait for another lock",
        Class::Flush => "wait for the log",
        Class::Io => "wait for files",
        Class::Memory => "wait for structures in memory",
        Class::Client => "are idle in a transaction",
        Class::Other => "wait for something else",
    }
}

fn holder(diagnosis: &Diagnosis, main: &Finding) -> String {
    if main.kind == Kind::StuckSession {
        return "One session, not a crowd: the same session blocks the others in every sample.".to_owned();
    }
    if diagnosis.rows.waiting < 0.5 {
        return "No session holds a lock that others wait for long.".to_owned();
    }
    let crowd = format!(
        "A crowd, not one stuck session: {} transactions held the locks in turn",
        diagnosis.blocking.blockers.len()
    );
    let Some(hold) = &diagnosis.hold else { return format!("{crowd}.") };
    let part = |class: Class| format!("{:.0} %", hold.part(class) * 100.0);
    format!(
        "{crowd}. The row changes {} times per second, so its lock is held for about {}: {} log flush, {} client, {} execution.",
        amount(hold.per_second),
        milliseconds(hold.ms),
        part(Class::Flush),
        part(Class::Client),
        part(Class::Cpu)
    )
}

fn calls(recording: &Recording, diagnosis: &Diagnosis) -> String {
    let statements = &diagnosis.statements;
    if !statements.is_known {
        return "No statement was seen.".to_owned();
    }
    if let Some(why) = recording.unpackable.as_ref().filter(|_| statements.packable == 0.0) {
        return format!("The gateway's verdict on the calls is not known: {why}.");
    }
    format!(
        "{:.0} % of the calls are packable as they are; {:.0} % sit in transactions that wait for their client.",
        statements.packable * 100.0,
        statements.interactive * 100.0
    )
}

fn gateway(diagnosis: &Diagnosis, main: &Finding) -> String {
    let Prediction { low, high, assumptions, .. } = &diagnosis.prediction;
    if diagnosis.prediction.is_help() {
        let today = diagnosis
            .prediction
            .today
            .map_or_else(String::new, |rate| format!(" of {} per second", amount(rate)));
        return format!(
            "Through the gateway: about {} to {} times today's rate{today}.",
            factor(*low),
            factor(*high)
        );
    }
    let why = assumptions.first().map_or("", String::as_str);
    match main.kind {
        Kind::NothingWrong => "The gateway would not change much now.".to_owned(),
        Kind::HotRowInTransactions => {
            "The gateway would help little with these transactions as they are, because their clients hold the lock.".to_owned()
        }
        Kind::HotRow | Kind::HotRows | Kind::HotPage | Kind::RowLocks => {
            "The gateway would help little with these statements as they are: see their verdicts below.".to_owned()
        }
        _ => format!("The gateway would not help here: {why}."),
    }
}

/// A number with as many digits as it deserves.
pub fn amount(value: f64) -> String {
    let text = if value >= 9.95 { format!("{value:.0}") } else { format!("{value:.1}") };
    let text = text.strip_suffix(".0").map_or(text.clone(), str::to_owned);
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if rest.is_empty() { grouped } else { format!("{grouped}.{rest}") }
}

fn factor(value: f64) -> String {
    if value >= 9.5 { format!("{value:.0}") } else { format!("{value:.1}") }
}

fn milliseconds(value: f64) -> String {
    if value >= 10.0 {
        format!("{value:.0} ms")
    } else if value >= 0.1 {
        format!("{value:.1} ms")
    } else {
        format!("{value:.2} ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits_and_groups() {
        let texts = [0.04, 0.5, 1.0, 9.96, 64.2, 6_107.4, 1_234_567.0].map(amount);
        assert_eq!(texts, ["0", "0.5", "1", "10", "64", "6,107", "1,234,567"]);
    }
}
