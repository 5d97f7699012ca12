//! Compares what clients were told with what the server holds. Knows nothing of faults.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::load::{BLOCK_AMOUNT, Book, Fate, Task};
use hotrow_testkit::line::Line;

const STOCK: u64 = 1_000_000_000;
/// Other tests that work on the same server may keep it busy for this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until no backend works for a gateway any more, so that nothing can still be committed.
pub fn settle(server: u16, schema: &str) -> Line {
    let deadline = Instant::now() + PATIENCE;
    loop {
        // A server that was killed may still be starting.
        if let Ok(Ok(mut line)) = Line::connect(server, schema) {
            let busy = line.query(
                "select 1 from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend' and state <> 'idle'",
            );
            if busy.whole && busy.rows().is_empty() {
                return line;
            }
        }
        assert!(Instant::now() < deadline, "the server does not settle");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Acknowledged is applied, exactly once; failed is not; unknown is either, at most once.
pub fn check(server: u16, schema: &str, book: &Book) {
    let mut line = settle(server, schema);
    let mut applied: HashMap<u64, usize> = HashMap::new();
    for row in line.query("select id from ledger").rows() {
        *applied.entry(number(&row[0])).or_default() += 1;
    }
    for entry in &book.entries {
        let (Task::Order(id) | Task::BadOrder(id)) = entry.task else { continue };
        let times = applied.remove(&id).unwrap_or(0);
        let right = match entry.fate {
            Fate::Acknowledged => times == 1,
            Fate::Failed => times == 0,
            Fate::Unknown => times <= 1,
        };
        assert!(right, "{entry:?} was applied {times} times; errors: {:#?}", book.errors);
    }
    assert!(applied.is_empty(), "orders that nobody has sent: {applied:?}");
    let blocks = format!("select count(*), (select n from blocks) from ledger where amount = {BLOCK_AMOUNT}");
    let row = line.query(&blocks).rows().remove(0);
    assert_eq!(row[0], row[1], "orders of blocks, and how often one was counted: some was done by halves");
    check_item(&mut line, book);
}

fn check_item(line: &mut Line, book: &Book) {
    let row = line.query("select stock, sold from inv where id = 1").rows().remove(0);
    let (stock, sold) = (number(&row[0]), number(&row[1]));
    let sales = || book.entries.iter().filter(|entry| entry.task == Task::Sell);
    let count = |fate| sales().filter(|entry| entry.fate == fate).count() as u64;
    let (acknowledged, unknown) = (count(Fate::Acknowledged), count(Fate::Unknown));
    assert_eq!(stock + sold, STOCK);
    assert!(
        acknowledged <= sold && sold <= acknowledged + unknown,
        "sold {sold}, acknowledged {acknowledged}, unknown {unknown}; errors: {:#?}",
        book.errors
    );
    let mut seen = HashSet::new();
    let mut last: HashMap<u64, u64> = HashMap::new();
    for entry in sales().filter(|entry| entry.fate == Fate::Acknowledged) {
        let value = entry.sold.expect("an acknowledged sale says the how-manieth it was");
        assert!(value <= sold, "{entry:?} and only {sold} are sold");
        assert!(seen.insert(value), "two sales were both number {value}");
        let before = last.insert(entry.session, value);
        assert!(before < Some(value), "a session's sales are out of order: {before:?}, then {value}");
    }
}

fn number(value: &Option<String>) -> u64 {
    value.as_deref().and_then(|value| value.parse().ok()).expect("a number")
}
