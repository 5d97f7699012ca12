//! The first five lines of a report about a MariaDB server, for a person on call. Pure.

use crate::diagnosis::findings::Situation;
use crate::diagnosis::summary::amount;
use crate::mariadb::diagnosis::Diagnosis;
use crate::mariadb::load::Class;

/// Five lines: what the sessions wait for, why, who holds it, which calls are packable, and what the gateway would change.
pub fn summary(diagnosis: &Diagnosis<'_>) -> [String; 5] {
    let main = diagnosis.explanation();
    [waits(diagnosis), main.text.clone(), holder(diagnosis), calls(diagnosis), gateway(diagnosis, main.kind)]
}

fn waits(diagnosis: &Diagnosis<'_>) -> String {
    if !diagnosis.recording.abilities.sees_sessions {
        return "What the sessions do is hidden from the doctor.".to_owned();
    }
    let load = &diagnosis.load;
    let mut classes: Vec<(Class, f64)> = Class::ALL.map(|class| (class, load.class(class))).to_vec();
    classes.retain(|(_, sessions)| *sessions >= 0.05);
    classes.sort_by(|left, right| right.1.total_cmp(&left.1));
    let named: Vec<String> = classes
        .iter()
        .map(|(class, sessions)| format!("{} {}", amount(*sessions), does(*class, *sessions)))
        .collect();
    match named.is_empty() {
        true => "On average, no session is active.".to_owned(),
        false => format!("On average, {}.", named.join(", ")),
    }
}

/// What sessions of a class do, after their number.
pub fn does(class: Class, sessions: f64) -> &'static str {
    let is_one = amount(sessions) == "1";
    match class {
        Class::Row if is_one => "session waits for a row",
        Class::Row => "sessions wait for a row",
        Class::Lock if is_one => "waits for another lock",
        Class::Lock => "wait for another lock",
        Class::Commit if is_one => "waits for the logs to commit",
        Class::Commit => "wait for the logs to commit",
        Class::Runs if is_one => "runs a statement",
        Class::Runs => "run a statement",
        Class::IdleInTransaction if is_one => "is idle in a transaction",
        Class::IdleInTransaction => "are idle in a transaction",
    }
}

fn holder(diagnosis: &Diagnosis<'_>) -> String {
    let rates = &diagnosis.rates;
    let counted = match (rates.row_waits, rates.row_wait_ms) {
        (Some(waits), Some(ms)) if waits >= 0.05 => {
            format!(
                " The server counts {} waits for rows per second, {} ms each on average.",
                amount(waits),
                amount(ms)
            )
        }
        _ => String::new(),
    };
    if !diagnosis.recording.abilities.sees_sessions {
        return format!("Which session holds a row is hidden from the doctor.{counted}");
    }
    let waiting = diagnosis.waiting();
    if waiting < 0.5 {
        return format!("No session holds a row that others wait for long.{counted}");
    }
    let share = waiting / diagnosis.load.active.max(waiting) * 100.0;
    let share = format!("The active sessions spend {share:.0} % of their time waiting for rows.");
    let row = &diagnosis.rows[0];
    match &row.longest {
        Some(holder) if diagnosis.explanation().kind == Situation::StuckSession => format!(
            "{share} One session is stuck: connection {} holds the row in {:.0} % of the samples.",
            holder.thread,
            holder.share * 100.0
        ),
        _ => format!(
            "{share} No single session is stuck: {} transactions were seen to hold the row one after another.{counted}",
            row.holders
        ),
    }
}

fn calls(diagnosis: &Diagnosis<'_>) -> String {
    if let Some(reason) = diagnosis.server_refuses() {
        return format!("The gateway would pack no call, because {reason}.");
    }
    match diagnosis.calls {
        None => "No statement was seen.".to_owned(),
        Some(calls) => format!(
            "{:.0} % of the calls can be packed as they are; {:.0} % are in transactions of several statements.",
            calls.packed * 100.0,
            calls.in_transaction * 100.0
        ),
    }
}

fn gateway(diagnosis: &Diagnosis<'_>, kind: Situation) -> String {
    if diagnosis.helps {
        let commits = match (diagnosis.rates.commits, diagnosis.rates.commits_per_group) {
            (Some(commits), Some(group)) => format!(
                " Now the server commits {} times per second, {} in each flush of the binary log.",
                amount(commits),
                amount(group)
            ),
            _ => String::new(),
        };
        return format!(
            "The gateway would pack these statements: one commit for all that wait at the moment.{commits}"
        );
    }
    match kind {
        Situation::HotRowInTransactions => {
            "The gateway would help little with these transactions as they are, because their clients hold the lock.".to_owned()
        }
        Situation::HotRow | Situation::HotRows | Situation::RowLocks => {
            "The gateway would not help with these statements as they are: see their verdicts below.".to_owned()
        }
        Situation::NothingWrong => "The gateway would not change much now.".to_owned(),
        Situation::StuckSession => {
            "The gateway would not help here: one session blocks the others, and the gateway does not end it.".to_owned()
        }
        Situation::ForeignKeyLocks => {
            "The gateway would not help here: checks of foreign keys wait for a row that others change.".to_owned()
        }
        _ => "The gateway would not help here.".to_owned(),
    }
}
