//! Compares the answers of a round with the rows that it has left. An outcome that was unknown becomes known where a row carries the
//! request. No I/O.

use super::answers::{Outcome, Record};
use super::work::{Kind, Request};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The rows after a round, each as numbers in the order of the columns that are named here.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// id, n, client, number
    pub counters: Vec<[i64; 4]>,
    /// client, n
    pub own: Vec<[i64; 2]>,
    /// client, number
    pub entries: Vec<[i64; 2]>,
    /// client, number
    pub pairs: Vec<[i64; 2]>,
    /// client, number
    pub notes: Vec<[i64; 2]>,
    /// counter, version, client, number, amount, value: by counter and version
    pub ledger: Vec<[i64; 6]>,
    /// counter, value, version
    pub totals: Vec<[i64; 3]>,
    /// item, client, number, 1 if reserved, remaining
    pub requests: Vec<[i64; 5]>,
    /// item, stock, remaining
    pub sales: Vec<[i64; 3]>,
    /// item, client, reservations
    pub reservations: Vec<[i64; 3]>,
}

/// The result of a check without a contradiction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Acknowledged statements by kind.
    pub statements: BTreeMap<Kind, u64>,
    /// Requests that were answered as not executed.
    pub not_run: u64,
    /// Requests without an answer that says what happened.
    pub unknown: u64,
    /// Those among them that the rows show.
    pub applied: u64,
}

/// The records of each client, in the order of clients and numbers.
pub type Records = [Vec<Record>];

/// Checks a round. Without an event, every request must have been answered. The error is the first contradiction.
pub fn check(records: &Records, rows: &Rows, has_events: bool) -> Result<Found, String> {
    let mut found = count(records);
    if !has_events && found.unknown + found.not_run > 0 {
        return Err(format!("nothing was killed, but requests were not answered or not executed: {found:?}"));
    }
    check_order(records)?;
    let inserts: [(Kind, &str, &[[i64; 2]]); 3] = [
        (Kind::Insert, "entry", &rows.entries),
        (Kind::Transaction, "pair", &rows.pairs),
        (Kind::Call, "note", &rows.notes),
    ];
    let mut applied_pairs = HashMap::new();
    for (kind, table, rows) in inserts {
        let mut matcher = Matcher::new(records, kind, table);
        for &[client, number] in rows {
            let record = matcher.row(client, number)?;
            if record.outcome == Outcome::Unknown && kind == Kind::Transaction {
                *applied_pairs.entry(record.key).or_default() += 1;
            }
        }
        found.applied += matcher.end()?;
    }
    found.applied += check_counters(records, rows, &applied_pairs)?;
    found.applied += check_own(records, rows)?;
    found.applied += check_ledger(records, rows)?;
    found.applied += check_sales(records, rows)?;
    Ok(found)
}

fn count(records: &Records) -> Found {
    let mut found = Found::default();
    for record in records.iter().flatten() {
        match record.outcome {
            Outcome::Done | Outcome::Refused => {
                *found.statements.entry(record.kind).or_default() += record.kind.statements();
            }
            Outcome::NotRun => found.not_run += 1,
            Outcome::Unknown => found.unknown += 1,
        }
    }
    found
}

fn request(records: &Records, client: i64, number: i64) -> Option<&Record> {
    records.get(usize::try_from(client - 1).ok()?)?.get(usize::try_from(number - 1).ok()?)
}

/// Compares rows that carry client and number with the requests of one kind.
struct Matcher<'a> {
    records: &'a Records,
    kind: Kind,
    table: &'a str,
    seen: HashSet<(i64, i64)>,
    applied: u64,
}

impl<'a> Matcher<'a> {
    fn new(records: &'a Records, kind: Kind, table: &'a str) -> Self {
        Self { records, kind, table, seen: HashSet::new(), applied: 0 }
    }

    /// Whether a request leaves a row. `None` if it is unknown.
    fn leaves_row(record: &Record) -> Option<bool> {
        match record.outcome {
            Outcome::Done => Some(true),
            // A refused reservation is recorded for a retry.
            Outcome::Refused => Some(record.kind == Kind::Reserve),
            Outcome::NotRun => Some(false),
            Outcome::Unknown => None,
        }
    }

    fn row(&mut self, client: i64, number: i64) -> Result<&'a Record, String> {
        let Self { kind, table, .. } = *self;
        let record = request(self.records, client, number).filter(|record| record.kind == kind);
        let Some(record) = record else {
            return Err(format!(
                "{table} has a row of request {number} of client {client}, which was no {kind:?}"
            ));
        };
        if !self.seen.insert((client, number)) {
            return Err(format!("{table} has request {number} of client {client} twice: {record:?}"));
        }
        match Self::leaves_row(record) {
            Some(true) => {}
            Some(false) => {
                return Err(format!("{table} has request {number} of client {client}, which got {record:?}"));
            }
            None => self.applied += 1,
        }
        Ok(record)
    }

    /// Checks that no row is missing. Returns the number of unknown requests that have one.
    fn end(self) -> Result<u64, String> {
        for (client, records) in (1..).zip(self.records) {
            for (number, record) in (1..).zip(records).filter(|(_, record)| record.kind == self.kind) {
                if Self::leaves_row(record) == Some(true) && !self.seen.contains(&(client, number)) {
                    let Self { table, .. } = self;
                    return Err(format!("{table} lacks request {number} of client {client}: {record:?}"));
                }
            }
        }
        Ok(self.applied)
    }
}

/// The row or counter whose values a request must find in order.
fn sequence(record: &Record) -> Option<(Kind, u16)> {
    match record.kind {
        Kind::Update | Kind::Transaction => Some((Kind::Update, record.key)),
        Kind::Own | Kind::Increment | Kind::Reserve => Some((record.kind, record.key)),
        Kind::Insert | Kind::Forbidden | Kind::Read | Kind::Call | Kind::RolledBack => None,
    }
}

/// The values of one client's answers change in one direction for each row.
fn check_order(records: &Records) -> Result<(), String> {
    for (client, records) in (1..).zip(records) {
        let mut last = HashMap::new();
        for (number, record) in (1..).zip(records).filter(|(_, record)| record.outcome == Outcome::Done) {
            let Some(sequence) = sequence(record) else { continue };
            let place = match record.kind {
                Kind::Reserve => -record.values[0],
                Kind::Increment => record.values[1],
                _ => record.values[0],
            };
            let before: Option<i64> = last.insert(sequence, place);
            if before >= Some(place) {
                return Err(format!(
                    "request {number} of client {client} is out of order after {before:?}: {record:?}"
                ));
            }
        }
    }
    Ok(())
}

/// The values that the answers have shown, each once, and the number of unknown outcomes.
#[derive(Default)]
struct Shown {
    values: HashSet<i64>,
    unknown: i64,
}

impl Shown {
    fn add(&mut self, what: &str, record: &Record) -> Result<(), String> {
        match record.outcome {
            Outcome::Done if !self.values.insert(record.values[0]) => {
                return Err(format!("two answers for {what} have the same value: {record:?}"));
            }
            Outcome::Unknown => self.unknown += 1,
            _ => {}
        }
        Ok(())
    }

    /// Checks the row's last value, of which `known` changes are known without their values. Returns the number of unknown
    /// changes that were made.
    fn end(&self, what: &str, n: i64, known: i64) -> Result<u64, String> {
        let acknowledged = self.values.len() as i64;
        if let Some(value) = self.values.iter().find(|value| !(1..=n).contains(*value)) {
            return Err(format!("an answer for {what} was {value}, but the row has {n}"));
        }
        let applied = n - acknowledged - known;
        if !(0..=self.unknown).contains(&applied) {
            return Err(format!(
                "{what} has {n} changes: {acknowledged} were acknowledged, {known} are proven by a row of their transaction, {} \
                 are unknown",
                self.unknown
            ));
        }
        Ok(applied.cast_unsigned())
    }
}

fn check_counters(records: &Records, rows: &Rows, pairs: &HashMap<u16, i64>) -> Result<u64, String> {
    let mut shown: HashMap<u16, Shown> = HashMap::new();
    for record in records.iter().flatten() {
        let is_counted = record.kind == Kind::Update
            || record.kind == Kind::Transaction && record.outcome == Outcome::Done;
        if is_counted {
            shown.entry(record.key).or_default().add(&format!("counter {}", record.key), record)?;
        }
    }
    let mut applied = 0;
    for &[id, n, client, number] in &rows.counters {
        let key = id as u16;
        let known = pairs.get(&key).copied().unwrap_or_default();
        let what = format!("counter {id}");
        applied += shown.remove(&key).unwrap_or_default().end(&what, n, known)?;
        if n > 0 {
            let last = request(records, client, number)
                .filter(|record| sequence(record) == Some((Kind::Update, key)));
            let is_right = |record: &Record| match record.outcome {
                Outcome::Done => record.values[0] == n,
                outcome => outcome == Outcome::Unknown,
            };
            if !last.is_some_and(is_right) {
                return Err(format!(
                    "{what} has {n} from request {number} of client {client}, which got {last:?}"
                ));
            }
        }
    }
    if let Some(key) = shown.keys().next() {
        return Err(format!("counter {key} is missing"));
    }
    Ok(applied)
}

fn check_own(records: &Records, rows: &Rows) -> Result<u64, String> {
    let mut applied = 0;
    let ends: HashMap<i64, i64> = rows.own.iter().map(|&[client, n]| (client, n)).collect();
    for (client, records) in (1..).zip(records) {
        let what = format!("the own row of client {client}");
        let n = *ends.get(&client).ok_or_else(|| format!("{what} is missing"))?;
        let (mut shown, mut last) = (Shown::default(), 0);
        for (number, record) in (1..).zip(records) {
            match (record.kind, record.outcome) {
                (Kind::Own, Outcome::Done) => {
                    shown.add(&what, record)?;
                    last = record.values[0];
                }
                (Kind::Own, _) => shown.add(&what, record)?,
                (Kind::Read, Outcome::Done) => {
                    let most = shown.values.len() as i64 + shown.unknown;
                    if !(last..=most).contains(&record.values[0]) {
                        let read = record.values[0];
                        return Err(format!(
                            "request {number} read {read} in {what}, and must read {last} to {most}"
                        ));
                    }
                }
                _ => {}
            }
        }
        applied += shown.end(&what, n, 0)?;
    }
    Ok(applied)
}

fn check_ledger(records: &Records, rows: &Rows) -> Result<u64, String> {
    let mut matcher = Matcher::new(records, Kind::Increment, "the ledger");
    let mut ends: BTreeMap<i64, [i64; 2]> = BTreeMap::new();
    for row @ &[counter, version, client, number, amount, value] in &rows.ledger {
        let end = ends.entry(counter).or_default();
        if [value, version] != [end[0] + amount, end[1] + 1] {
            return Err(format!("the ledger's row {row:?} does not follow value and version {end:?}"));
        }
        *end = [value, version];
        let record = matcher.row(client, number)?;
        let sent = Request {
            kind: record.kind,
            client: client as u32,
            number: number.cast_unsigned(),
            key: record.key,
        };
        let is_own = i64::from(record.key) == counter && sent.amount() == amount;
        if !is_own || record.outcome == Outcome::Done && record.values != *end {
            return Err(format!(
                "the ledger's row {row:?} differs from its request {sent:?}, which got {record:?}"
            ));
        }
    }
    for &[counter, value, version] in &rows.totals {
        let end = ends.remove(&counter).unwrap_or_default();
        if end != [value, version] {
            return Err(format!(
                "counter {counter} has value and version {:?}, its ledger ends with {end:?}",
                [value, version]
            ));
        }
    }
    if let Some(counter) = ends.keys().next() {
        return Err(format!("the ledger has counter {counter}, which does not exist"));
    }
    matcher.end()
}

fn check_sales(records: &Records, rows: &Rows) -> Result<u64, String> {
    let mut matcher = Matcher::new(records, Kind::Reserve, "the requests");
    let mut left: HashMap<i64, HashSet<i64>> = HashMap::new();
    let mut buyers: HashMap<[i64; 2], i64> = HashMap::new();
    let mut refused = HashSet::new();
    for row @ &[item, client, number, reserved, remaining] in &rows.requests {
        let record = matcher.row(client, number)?;
        let is_right = match record.outcome {
            Outcome::Done => reserved == 1 && record.values[0] == remaining,
            Outcome::Refused => reserved == 0,
            _ => true,
        };
        if !is_right || i64::from(record.key) != item {
            return Err(format!("the reservation {row:?} differs from its request, which got {record:?}"));
        }
        if reserved == 0 {
            refused.insert(item);
        } else if left.entry(item).or_default().insert(remaining) {
            *buyers.entry([item, client]).or_default() += 1;
        } else {
            return Err(format!("item {item} was twice reserved down to {remaining}"));
        }
    }
    for row @ &[item, stock, remaining] in &rows.sales {
        let left = left.remove(&item).unwrap_or_default();
        let is_gapless = left.len() as i64 == stock - remaining
            && left.iter().all(|left| (remaining..stock).contains(left));
        if !is_gapless || remaining < 0 || refused.contains(&item) && remaining > 0 {
            return Err(format!("the sale {row:?} contradicts its {} reservations or a refusal", left.len()));
        }
    }
    for &[item, client, reservations] in &rows.reservations {
        let answered = buyers.remove(&[item, client]).unwrap_or_default();
        if answered != reservations {
            return Err(format!(
                "client {client} has {reservations} reservations of item {item} instead of {answered}"
            ));
        }
    }
    if !left.is_empty() || !buyers.is_empty() {
        return Err(format!("reservations without their sale or buyer: {left:?} {buyers:?}"));
    }
    matcher.end()
}

#[cfg(test)]
#[path = "check/tests.rs"]
mod tests;
