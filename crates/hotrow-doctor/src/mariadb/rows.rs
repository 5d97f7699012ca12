//! The rows that sessions wait for, and who holds their locks. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::mariadb::recording::{Lock, Recording, Sample, TableName, Transaction};

/// Rows that a report names.
pub const ROWS_MAX: usize = 20;

/// A row that sessions wait for.
#[derive(Clone, Debug, Default)]
pub struct HotRow {
    pub table: TableName,
    /// The index whose entry is locked.
    pub index: String,
    /// The columns of its key, with their values as the server writes them. A value that is not known is None.
    pub key: Vec<(String, Option<String>)>,
    /// Average number of sessions that wait for it.
    pub waiting: f64,
    /// Its share in all waits for rows.
    pub share: f64,
    /// The statements that wait, the most frequent first.
    pub statements: Vec<usize>,
    /// Number of transactions that were seen as its holder.
    pub holders: usize,
    /// The part of the holders whose session ran no statement: they waited for their client.
    pub idle_holders: f64,
    /// The part of the waiting sessions that want to share it, as the check of a foreign key does.
    pub shared: f64,
    /// The holder that was seen most often.
    pub longest: Option<Holder>,
}

/// A transaction that holds a row's lock.
#[derive(Clone, Debug, Default)]
pub struct Holder {
    /// The ID of its connection, which KILL takes.
    pub thread: u64,
    /// The part of the samples with a wait for the row in which it is the holder.
    pub share: f64,
    /// Its greatest age in seconds.
    pub age: u64,
    /// Whether its session ran no statement when it was last seen.
    pub is_idle: bool,
}

/// The row of a lock: its table, its index, and its place there. The data of the same row can be known at one moment only.
type Row = (TableName, String, String);

/// What is counted of a row.
#[derive(Default)]
struct Counted {
    /// The values of its key, as far as they were seen.
    data: BTreeMap<String, usize>,
    waits: usize,
    shared: usize,
    samples: usize,
    statements: HashMap<usize, usize>,
    holders: BTreeMap<(String, u64), (usize, u64, bool)>,
    holds: usize,
    idle_holds: usize,
}

/// All rows that sessions wait for, the most wanted first.
pub fn rows(recording: &Recording) -> Vec<HotRow> {
    let mut counted: BTreeMap<Row, Counted> = BTreeMap::new();
    for sample in &recording.samples {
        count(sample, &mut counted);
    }
    let all: usize = counted.values().map(|one| one.waits).sum();
    let samples = recording.samples.len().max(1) as f64;
    let mut rows: Vec<HotRow> = counted
        .into_iter()
        .filter(|(_, one)| one.waits > 0)
        .map(|((table, index, _), one)| {
            let columns = recording.indexes.get(&(table.clone(), index.clone()));
            let data = one.data.iter().max_by_key(|(_, number)| **number).map(|(data, _)| data.as_str());
            HotRow {
                key: key(columns.map_or(&[][..], Vec::as_slice), data),
                waiting: one.waits as f64 / samples,
                share: one.waits as f64 / all.max(1) as f64,
                shared: one.shared as f64 / one.waits as f64,
                statements: by_number(&one.statements),
                holders: one.holders.len(),
                idle_holders: one.idle_holds as f64 / one.holds.max(1) as f64,
                longest: longest(&one),
                table,
                index,
            }
        })
        .collect();
    rows.sort_by(|left, right| right.waiting.total_cmp(&left.waiting));
    rows
}

fn count(sample: &Sample, counted: &mut BTreeMap<Row, Counted>) {
    let transactions: HashMap<&str, &Transaction> =
        sample.transactions.iter().map(|transaction| (transaction.id.as_str(), transaction)).collect();
    let statements: HashMap<u64, usize> =
        sample.sessions.iter().filter_map(|session| Some((session.thread, session.statement?))).collect();
    let mut seen: BTreeSet<Row> = BTreeSet::new();
    for lock in &sample.locks {
        let (Some(row), Some(transaction)) = (row(lock), transactions.get(lock.transaction.as_str())) else {
            continue;
        };
        let one = counted.entry(row.clone()).or_default();
        if let Some(data) = &lock.data {
            *one.data.entry(data.clone()).or_default() += 1;
        }
        if transaction.waits_for.as_ref() == Some(&lock.id) {
            one.waits += 1;
            one.shared += usize::from(lock.mode.starts_with('S'));
            one.samples += usize::from(seen.insert(row));
            if let Some(statement) = statements.get(&transaction.thread) {
                *one.statements.entry(*statement).or_default() += 1;
            }
            continue;
        }
        one.holds += 1;
        one.idle_holds += usize::from(!transaction.is_running);
        let holder = one.holders.entry((transaction.id.clone(), transaction.thread)).or_default();
        *holder = (holder.0 + 1, holder.1.max(transaction.age), !transaction.is_running);
    }
}

fn row(lock: &Lock) -> Option<Row> {
    // The ID of a lock is that of its transaction, and a place: space, page and number.
    let (_, place) = lock.id.split_once(':')?;
    Some((lock.table.clone()?, lock.index.clone()?, place.to_owned()))
}

fn by_number(statements: &HashMap<usize, usize>) -> Vec<usize> {
    let mut statements: Vec<(usize, usize)> =
        statements.iter().map(|(index, number)| (*index, *number)).collect();
    statements.sort_by_key(|(index, number)| (std::cmp::Reverse(*number), *index));
    statements.into_iter().map(|(index, _)| index).collect()
}

fn longest(one: &Counted) -> Option<Holder> {
    let ((_, thread), (samples, age, is_idle)) =
        one.holders.iter().max_by_key(|(_, (samples, ..))| *samples)?;
    let share = *samples as f64 / one.samples.max(1) as f64;
    Some(Holder { thread: *thread, share, age: *age, is_idle: *is_idle })
}

/// The columns of a key with their values. The data of a lock in another index than the primary key ends with the primary key.
fn key(columns: &[String], data: Option<&str>) -> Vec<(String, Option<String>)> {
    let values = data.map(values).unwrap_or_default();
    let mut values = values.into_iter();
    columns.iter().map(|column| (column.clone(), values.next())).collect()
}

/// The values in the data of a lock, which are divided by commas outside of quotes.
fn values(data: &str) -> Vec<String> {
    let (mut values, mut is_quoted) = (vec![String::new()], false);
    let mut letters = data.chars();
    while let Some(letter) = letters.next() {
        let last = values.last_mut().expect("there is a first value");
        match letter {
            ',' if !is_quoted => values.push(String::new()),
            '\\' if is_quoted => last.extend([Some(letter), letters.next()].into_iter().flatten()),
            letter => {
                is_quoted ^= letter == '\'';
                last.push(letter);
            }
        }
    }
    values.iter().map(|value| value.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mariadb::recording::Session;

    /// Sessions that wait for a row whose lock the first transaction holds.
    fn sample(holder: u64, holder_is_idle: bool, waiting: &[u64], mode: &str) -> Sample {
        let mut sample = Sample::default();
        for thread in [&[holder], waiting].concat() {
            let waits = thread != holder;
            let (id, lock) = (format!("trx {thread}"), format!("{thread}:5:5:8"));
            sample.locks.push(Lock {
                id: lock.clone(),
                transaction: id.clone(),
                mode: mode.to_owned(),
                table: Some(TableName { database: "shop".to_owned(), table: "item".to_owned() }),
                index: Some("PRIMARY".to_owned()),
                data: waits.then(|| "7".to_owned()),
            });
            sample.transactions.push(Transaction {
                id,
                thread,
                waits_for: waits.then_some(lock),
                is_running: waits || !holder_is_idle,
                age: 3,
                ..Transaction::default()
            });
            sample.sessions.push(Session {
                thread,
                statement: Some(usize::from(waits)),
                ..Session::default()
            });
        }
        sample
    }

    fn recording(samples: Vec<Sample>) -> Recording {
        let name = TableName { database: "shop".to_owned(), table: "item".to_owned() };
        let indexes = [((name, "PRIMARY".to_owned()), vec!["id".to_owned()])].into();
        Recording { samples, indexes, ..Recording::default() }
    }

    #[test]
    fn a_row_has_its_waiting_sessions_statements_and_holders() {
        let samples = vec![
            sample(1, false, &[2, 3], "X"),
            sample(2, true, &[3, 4], "X"),
            Sample::default(),
            Sample::default(),
        ];
        let rows = rows(&recording(samples));
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.waiting, row.share, row.holders, row.idle_holders), (1.0, 1.0, 2, 0.5));
        assert_eq!(row.key, [("id".to_owned(), Some("7".to_owned()))]);
        assert_eq!((row.statements.as_slice(), row.shared), (&[1][..], 0.0));
        assert_eq!(row.longest.as_ref().map(|holder| holder.share), Some(0.5));
    }

    #[test]
    fn a_holder_that_stays_is_found() {
        let samples = (0..10).map(|_| sample(1, true, &[2, 3], "S")).collect();
        let rows = rows(&recording(samples));
        let holder = rows[0].longest.clone().unwrap();
        assert_eq!((holder.thread, holder.share, holder.age, holder.is_idle), (1, 1.0, 3, true));
        assert_eq!(rows[0].shared, 1.0);
    }

    #[test]
    fn values_of_a_key_are_divided() {
        assert_eq!(values("7"), ["7"]);
        assert_eq!(values("'a, b', 7"), ["'a, b'", "7"]);
        assert_eq!(values("'a''b\\',c', NULL"), ["'a''b\\',c'", "NULL"]);
        let columns = ["email".to_owned()];
        assert_eq!(key(&columns, Some("'x', 7")), [("email".to_owned(), Some("'x'".to_owned()))]);
        assert_eq!(key(&columns, None), [("email".to_owned(), None)]);
        assert_eq!(key(&[], Some("7")), []);
    }
}
