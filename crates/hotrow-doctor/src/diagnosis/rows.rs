//! Which rows the sessions wait for.
//!
//! A session that waits for a row holds or awaits a lock of the row's version: a table, a page and a place in the page.
//! The doctor has read these versions right after its look at the locks. A version that was gone by then is found by
//! its page: the row whose writing transaction changes from one look to the next.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::recording::{Recording, Statement, Table, UniqueKey};
use crate::sample::{Lock, Sample};

/// Rows in a report.
pub const ROWS_MAX: usize = 20;

/// A row that sessions wait for.
#[derive(Clone, Debug, PartialEq)]
pub struct HotRow {
    /// The table's OID.
    pub relation: u32,
    /// Its name.
    pub table: String,
    /// The columns that identify the row, with their values as text. Empty if they are not known.
    pub key: Vec<(String, Option<String>)>,
    /// The row's page.
    pub page: u32,
    /// Average number of sessions that wait for it.
    pub waiting: f64,
    /// Its share in all waits for rows.
    pub share: f64,
}

/// The kind of row lock that sessions wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// FOR KEY SHARE, as foreign keys take it.
    KeyShare,
    Share,
    /// An update that keeps the key, or FOR NO KEY UPDATE.
    Update,
    /// A delete, an update of the key, or FOR UPDATE.
    Delete,
}

impl HotRow {
    /// Whether this is one row, and not several that could not be told apart.
    pub fn is_known(&self) -> bool {
        !self.key.is_empty() && self.key.iter().all(|(_, value)| value.is_some())
    }
}

/// All waits for rows.
#[derive(Clone, Debug, Default)]
pub struct RowWaits {
    /// Average number of sessions that wait for a row.
    pub waiting: f64,
    /// The same by table.
    pub tables: BTreeMap<u32, f64>,
    /// The same by table and page.
    pub pages: BTreeMap<(u32, u32), f64>,
    /// By the lock that they want.
    pub wanted: BTreeMap<Wanted, f64>,
    /// Sessions that wait for a transaction, by statements that were never seen to wait for a row: inserts of one key.
    pub rowless: f64,
    /// The rows, those with the most waits first.
    pub rows: Vec<HotRow>,
    /// Distinct rows that were seen with waiting sessions.
    pub distinct: usize,
    /// Tables whose rows the doctor did not read.
    pub unread: Vec<Table>,
}

impl RowWaits {
    pub fn of(recording: &Recording) -> RowWaits {
        let mut waits = RowWaits::default();
        let each = 1.0 / recording.samples.len().max(1) as f64;
        let mut rowless: HashMap<Option<usize>, f64> = HashMap::new();
        let mut named: HashMap<Option<usize>, HashMap<(u32, u32), f64>> = HashMap::new();
        for (sample, lock) in waiting_locks(recording) {
            let Some(row) = row_lock(sample, lock) else { continue };
            waits.waiting += each;
            let statement = statement_of(sample, lock);
            let Some(row) = row else {
                *rowless.entry(statement).or_default() += each;
                continue;
            };
            if let Some(wanted) = wanted(&row.mode) {
                *waits.wanted.entry(wanted).or_default() += each;
            }
            if let (Some(relation), Some(page)) = (row.relation, row.page)
                && row.database == Some(recording.abilities.database_oid)
            {
                waits.note((relation, page), each);
                *named.entry(statement).or_default().entry((relation, page)).or_default() += each;
            }
        }
        for (statement, waiting) in rowless {
            waits.spread(named.get(&statement), waiting);
        }
        for (relation, waiting) in waits.tables.clone() {
            let Some(table) = recording.tables.iter().find(|table| table.oid == relation) else { continue };
            waits.add_rows(recording, table, waiting);
        }
        waits.rows.sort_by(|left, right| right.waiting.total_cmp(&left.waiting));
        waits.distinct = waits.rows.len();
        waits.rows.truncate(ROWS_MAX);
        waits
    }

    fn note(&mut self, (relation, page): (u32, u32), waiting: f64) {
        *self.tables.entry(relation).or_default() += waiting;
        *self.pages.entry((relation, page)).or_default() += waiting;
    }

    /// Sessions that wait for a transaction without a row wait for the rows of their statement: a session that has found
    /// a row changed waits for the next transaction without a lock of the version.
    fn spread(&mut self, named: Option<&HashMap<(u32, u32), f64>>, waiting: f64) {
        let all: f64 = named.into_iter().flat_map(HashMap::values).sum();
        if all <= 0.0 {
            self.rowless += waiting;
        }
        for (page, weight) in named.into_iter().flatten() {
            self.note(*page, waiting * weight / all);
        }
    }

    fn add_rows(&mut self, recording: &Recording, table: &Table, waiting: f64) {
        if !(table.readable && table.trusted) {
            self.unread.push(table.clone());
        }
        let columns = table.key_columns();
        let key = key_in_use(recording, table);
        let mut found = hits(recording, table);
        if found.is_empty() {
            found = changes(recording, table);
        }
        let named = |values: &Vec<Option<String>>| -> Vec<(String, Option<String>)> {
            let place = |column: &String| columns.iter().position(|name| name == column);
            let value = |column: &String| place(column).and_then(|place| values.get(place)?.clone());
            key.iter().flat_map(|key| &key.columns).map(|column| (column.clone(), value(column))).collect()
        };
        // Texts tell the row of each session. Versions are seen of some sessions only.
        let (mut rows, complete) = texts(recording, table);
        if !(complete || found.is_empty()) {
            rows.clear();
            for (values, (weight, page)) in &found {
                rows.entry(named(values)).or_insert((0.0, *page)).0 += weight;
            }
        }
        if rows.is_empty() {
            let of_table = self.pages.iter().filter(|((relation, _), _)| *relation == table.oid);
            let page =
                of_table.max_by(|left, right| left.1.total_cmp(right.1)).map_or(0, |((_, page), _)| *page);
            rows.insert(Vec::new(), (1.0, page));
        }
        let all: f64 = rows.values().map(|(weight, _)| weight).sum();
        for (key, (weight, page)) in rows {
            let waiting = waiting * weight / all.max(f64::MIN_POSITIVE);
            let share = waiting / self.waiting.max(f64::MIN_POSITIVE);
            self.rows.push(HotRow {
                relation: table.oid,
                table: table.full_name(),
                key,
                page,
                waiting,
                share,
            });
        }
    }

    /// The share of one kind of lock in the waits.
    pub fn share_of(&self, wanted: Wanted) -> f64 {
        let all: f64 = self.wanted.values().sum();
        if all > 0.0 { self.wanted.get(&wanted).copied().unwrap_or(0.0) / all } else { 0.0 }
    }

    /// The table with the most waits, its share in all waits for rows, and the pages with these waits.
    pub fn hottest_table(&self) -> Option<(u32, f64, usize)> {
        let (table, waiting) = self.tables.iter().max_by(|left, right| left.1.total_cmp(right.1))?;
        let pages = self.pages.keys().filter(|(relation, _)| relation == table).count();
        Some((*table, waiting / self.waiting.max(f64::MIN_POSITIVE), pages))
    }
}

/// All locks that sessions wait for, with their samples.
fn waiting_locks(recording: &Recording) -> impl Iterator<Item = (&Sample, &Lock)> {
    recording
        .samples
        .iter()
        .flat_map(|sample| sample.locks.iter().filter(|lock| !lock.granted).map(move |lock| (sample, lock)))
}

/// The statement of a session that waits.
fn statement_of(sample: &Sample, lock: &Lock) -> Option<usize> {
    sample.sessions.iter().find(|session| Some(session.pid) == lock.pid)?.statement
}

/// Whether a session waits for a row, and the lock that names the row's version.
fn row_lock<'s>(sample: &'s Sample, waits: &'s Lock) -> Option<Option<&'s Lock>> {
    match waits.kind.as_str() {
        "tuple" => Some(Some(waits)),
        // The first of the row's waiting sessions holds the version's lock and waits for the transaction.
        "transactionid" => Some(
            sample.locks.iter().find(|lock| lock.granted && lock.kind == "tuple" && lock.pid == waits.pid),
        ),
        _ => None,
    }
}

fn wanted(mode: &str) -> Option<Wanted> {
    Some(match mode {
        "AccessShareLock" => Wanted::KeyShare,
        "RowShareLock" => Wanted::Share,
        "ExclusiveLock" => Wanted::Update,
        "AccessExclusiveLock" => Wanted::Delete,
        _ => return None,
    })
}

/// Rows by the values of their key columns, with a weight and the page.
type Found = HashMap<Vec<Option<String>>, (f64, u32)>;

/// Versions that were visible while sessions waited for them.
fn hits(recording: &Recording, table: &Table) -> Found {
    let mut found = Found::new();
    let rows = recording.samples.iter().flat_map(|sample| &sample.rows);
    for row in rows.filter(|row| row.relation == table.oid && row.sessions > 0) {
        let entry = found.entry(row.key.clone()).or_insert((0.0, row.page));
        entry.0 += f64::from(row.sessions);
    }
    found
}

/// Rows whose writer changed from one look at their page to the next.
fn changes(recording: &Recording, table: &Table) -> Found {
    let mut found = Found::new();
    let mut known: HashMap<&Vec<Option<String>>, &str> = HashMap::new();
    for sample in &recording.samples {
        for row in sample.rows.iter().filter(|row| row.relation == table.oid) {
            if known.insert(&row.key, &row.xmin).is_some_and(|before| before != row.xmin) {
                found.entry(row.key.clone()).or_insert((0.0, row.page)).0 += 1.0;
            }
        }
    }
    found
}

/// Rows by key, with a weight and the page.
type Named = HashMap<Vec<(String, Option<String>)>, (f64, u32)>;

/// Rows that the waiting statements name by constants in their texts, and whether all these statements do.
fn texts(recording: &Recording, table: &Table) -> (Named, bool) {
    let (mut found, mut complete) = (Named::new(), true);
    let of_table: HashSet<usize> = waiting_locks(recording)
        .filter(|(sample, lock)| {
            row_lock(sample, lock).flatten().is_some_and(|row| row.relation == Some(table.oid))
        })
        .filter_map(|(sample, lock)| statement_of(sample, lock))
        .collect();
    for (sample, lock) in waiting_locks(recording) {
        let Some(row) = row_lock(sample, lock) else { continue };
        let Some(session) = sample.sessions.iter().find(|session| Some(session.pid) == lock.pid) else {
            continue;
        };
        let Some(statement) = session.statement.filter(|statement| of_table.contains(statement)) else {
            continue;
        };
        let key =
            recording.statements.get(statement).map(|statement| key_in_text(statement, &session.values));
        let key = key.unwrap_or_default();
        complete &= !key.is_empty() && key.iter().all(|(_, value)| value.is_some());
        let page = row.and_then(|row| row.page);
        let entry = found.entry(key).or_insert((0.0, 0));
        *entry = (entry.0 + 1.0, page.unwrap_or(entry.1));
    }
    (found, complete)
}

fn key_in_text(statement: &Statement, values: &[String]) -> Vec<(String, Option<String>)> {
    let key = statement.verdict.iter().flat_map(|verdict| &verdict.key);
    let value = |place: &Option<u16>| place.and_then(|place| values.get(usize::from(place)).cloned());
    key.map(|(column, place)| (column.clone(), value(place))).collect()
}

/// The unique key by which the statements that wait find their row: the columns of a verdict, or words of a text.
/// Otherwise the first key, which is the primary key.
fn key_in_use<'r>(recording: &Recording, table: &'r Table) -> Option<&'r UniqueKey> {
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (sample, lock) in waiting_locks(recording) {
        if row_lock(sample, lock).flatten().is_none_or(|row| row.relation != Some(table.oid)) {
            continue;
        }
        let statement = statement_of(sample, lock).and_then(|index| recording.statements.get(index));
        let used = statement.and_then(|statement| table.keys.iter().position(|key| uses(statement, key)));
        if let Some(used) = used {
            *votes.entry(used).or_default() += 1;
        }
    }
    let most = votes.into_iter().max_by_key(|(key, votes)| (*votes, std::cmp::Reverse(*key)));
    table.keys.get(most.map_or(0, |(key, _)| key))
}

fn uses(statement: &Statement, key: &UniqueKey) -> bool {
    if let Some(verdict) = statement.verdict.as_ref().filter(|verdict| !verdict.key.is_empty()) {
        return verdict.key.iter().map(|(column, _)| column).eq(&key.columns);
    }
    // The WHERE of an update or a select names the columns.
    let text = statement.shape.to_ascii_lowercase();
    let condition = text.rsplit_once("where").map_or("", |(_, condition)| condition);
    let words: Vec<&str> = condition.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    key.columns.iter().all(|column| words.contains(&column.as_str()))
}
