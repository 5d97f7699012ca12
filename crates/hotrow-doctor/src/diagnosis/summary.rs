//! The first five lines of a report, for a person on call.

use crate::diagnosis::Diagnosis;
use crate::diagnosis::findings::{Finding, Situation};
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
    findings.iter().find(|finding| finding.kind != Situation::Blind).unwrap_or(&findings[0])
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
        .map(|(class, sessions)| {
            let sessions = amount(*sessions);
            let does = does(*class, sessions == "1");
            format!("{sessions} {does}{}", memory(load, *class))
        })
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

fn does(class: Class, is_one: bool) -> String {
    let waits_for = match class {
        Class::Cpu => return if is_one { "computes" } else { "compute" }.to_owned(),
        Class::Client => return format!("{} idle in a transaction", if is_one { "is" } else { "are" }),
        Class::RowLock => "a row",
        Class::Lock => "another lock",
        Class::Flush => "the WAL",
        Class::Io => "files",
        Class::Memory => "structures in memory",
        Class::Other => "something else",
    };
    format!("{} for {waits_for}", if is_one { "waits" } else { "wait" })
}

fn holder(diagnosis: &Diagnosis, main: &Finding) -> String {
    if main.kind == Situation::StuckSession {
        let share = diagnosis.blocking.longest().map_or(0.0, |(_, _, share)| share);
        return format!(
            "One session is stuck: the same session blocks the others in {:.0} % of the samples.",
            share * 100.0
        );
    }
    if diagnosis.rows.waiting < 0.5 {
        return "No session holds a lock that others wait for long.".to_owned();
    }
    let turns = format!(
        "No single session is stuck: {} transactions held the locks one after another",
        diagnosis.blocking.blockers.len()
    );
    let Some(hold) = &diagnosis.hold else { return format!("{turns}.") };
    let part = |class: Class| format!("{:.0} %", hold.part(class) * 100.0);
    format!(
        "{turns}. The row changes {} times per second, so its lock is held for about {} each time: {} WAL flush, {} client, {} execution.",
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
        "{:.0} % of the calls can be packed as they are; {:.0} % are in transactions that wait for their client.",
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
            "The gateway would give about {} to {} times today's rate{today}.",
            factor(*low),
            factor(*high)
        );
    }
    match main.kind {
        Situation::HotRowInTransactions => {
            "The gateway would help little with these transactions as they are, because their clients hold the lock.".to_owned()
        }
        Situation::HotRow | Situation::HotRows | Situation::HotPage | Situation::RowLocks => {
            "The gateway would help little with these statements as they are: see their verdicts below.".to_owned()
        }
        Situation::NothingWrong | Situation::Cpu | Situation::Side | Situation::Blind if low == high => format!(
            "There is no prediction of what the gateway would give: {}.",
            assumptions.first().map_or("", String::as_str)
        ),
        Situation::NothingWrong | Situation::Flush | Situation::Cpu | Situation::TableLocks | Situation::Side | Situation::Blind => format!(
            "The gateway would not change much now: about {} to {} times today's rate.",
            factor(*low),
            factor(*high)
        ),
        _ => {
            format!("The gateway would not help here: {}.", assumptions.first().map_or("", String::as_str))
        }
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
    fn one_session_waits_and_several_wait() {
        let texts =
            [(Class::RowLock, true), (Class::RowLock, false), (Class::Client, true), (Class::Cpu, true)];
        let texts = texts.map(|(class, is_one)| does(class, is_one));
        assert_eq!(texts, ["waits for a row", "wait for a row", "is idle in a transaction", "computes"]);
    }

    #[test]
    fn numbers_have_few_digits_and_groups() {
        let texts = [0.04, 0.5, 1.0, 9.96, 64.2, 6_107.4, 1_234_567.0].map(amount);
        assert_eq!(texts, ["0", "0.5", "1", "10", "64", "6,107", "1,234,567"]);
    }
}
