//! Compares the answers that clients got with the rows of the server. Knows nothing of faults.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::load::{BLOCK_AMOUNT, Outcome, Records, Task};
use hotrow_testkit::line::Line;

const STOCK: u64 = 1_000_000_000;
/// Other tests on the same server may keep it busy for this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until each server process that works for a gateway now has finished its work. The load has stopped, so nothing more
/// of it can be committed after that. Processes that begin to work later belong to other tests on the same server.
pub fn settle(server: u16, schema: &str) -> Line {
    let deadline = Instant::now() + PATIENCE;
    let mut working: Option<HashSet<Vec<Option<String>>>> = None;
    loop {
        // A server that was killed may still be starting.
        if let Ok(Ok(mut line)) = Line::connect(server, schema) {
            let busy = line.query(
                "select pid, backend_start from pg_stat_activity
                    where pid <> pg_backend_pid() and backend_type = 'client backend' and state <> 'idle'",
            );
            if busy.whole && busy.error().is_none() {
                let busy: HashSet<_> = busy.rows().into_iter().collect();
                let left = match &working {
                    None => busy,
                    Some(working) => &busy & working,
                };
                if left.is_empty() {
                    return line;
                }
                working = Some(left);
            }
        }
        assert!(Instant::now() < deadline, "the server does not settle");
        std::thread::sleep(Duration::from_millis(5)); // the condition has no signal
    }
}

/// Asserts that an acknowledged unit was applied exactly once, a failed unit not at all, and an unknown unit at most
/// once.
pub fn check(server: u16, schema: &str, records: &Records) {
    let mut line = settle(server, schema);
    let mut applied: HashMap<u64, usize> = HashMap::new();
    for row in line.query("select id from ledger").rows() {
        *applied.entry(number(&row[0])).or_default() += 1;
    }
    for entry in &records.entries {
        let (Task::Order(id) | Task::BadOrder(id)) = entry.task else { continue };
        let times = applied.remove(&id).unwrap_or(0);
        let right = match entry.outcome {
            Outcome::Acknowledged => times == 1,
            Outcome::Failed => times == 0,
            Outcome::Unknown => times <= 1,
        };
        assert!(right, "{entry:?} was applied {times} times; errors: {:#?}", records.errors);
    }
    assert!(applied.is_empty(), "orders that no client has sent: {applied:?}");
    let blocks = format!("select count(*), (select n from blocks) from ledger where amount = {BLOCK_AMOUNT}");
    let row = line.query(&blocks).rows().remove(0);
    assert_eq!(row[0], row[1], "orders of blocks and counted blocks differ: a block was applied in part");
    check_item(&mut line, records);
    check_shelves(&mut line, records);
}

fn check_item(line: &mut Line, records: &Records) {
    let row = line.query("select stock, sold from inv where id = 1").rows().remove(0);
    let (stock, sold) = (number(&row[0]), number(&row[1]));
    let sales = || records.entries.iter().filter(|entry| entry.task == Task::Sell);
    let count = |outcome| sales().filter(|entry| entry.outcome == outcome).count() as u64;
    let (acknowledged, unknown) = (count(Outcome::Acknowledged), count(Outcome::Unknown));
    assert_eq!(stock + sold, STOCK);
    assert!(
        acknowledged <= sold && sold <= acknowledged + unknown,
        "sold {sold}, acknowledged {acknowledged}, unknown {unknown}; errors: {:#?}",
        records.errors
    );
    let mut seen = HashSet::new();
    let mut last: HashMap<u64, u64> = HashMap::new();
    for entry in sales().filter(|entry| entry.outcome == Outcome::Acknowledged) {
        let value = entry.returned.expect("an acknowledged sale has its number");
        assert!(value <= sold, "{entry:?} but only {sold} are sold");
        assert!(seen.insert(value), "two sales were both number {value}");
        let before = last.insert(entry.session, value);
        assert!(before < Some(value), "a session's sales are out of order: {before:?}, then {value}");
    }
}

fn check_shelves(line: &mut Line, records: &Records) {
    let mut answered: HashMap<u64, HashSet<u64>> = HashMap::new();
    let mut unknown: HashMap<u64, u64> = HashMap::new();
    for entry in &records.entries {
        let Task::Fill(shelf) = entry.task else { continue };
        match entry.outcome {
            Outcome::Acknowledged => {
                let value = entry.returned.expect("an acknowledged update returns its value");
                let is_new = answered.entry(shelf).or_default().insert(value);
                assert!(is_new, "two updates of shelf {shelf} returned {value}");
            }
            Outcome::Unknown => *unknown.entry(shelf).or_default() += 1,
            Outcome::Failed => {}
        }
    }
    for row in line.query("select id, n from shelves").rows() {
        let (shelf, n) = (number(&row[0]), number(&row[1]));
        let values = answered.remove(&shelf).unwrap_or_default();
        let (least, most) =
            (values.len() as u64, values.len() as u64 + unknown.remove(&shelf).unwrap_or_default());
        assert!((least..=most).contains(&n), "shelf {shelf} is {n}, and must be {least} to {most}");
        assert!(values.iter().all(|value| *value <= n), "shelf {shelf} is {n}, and returned {values:?}");
    }
}

fn number(value: &Option<String>) -> u64 {
    value.as_deref().and_then(|value| value.parse().ok()).expect("a number")
}
