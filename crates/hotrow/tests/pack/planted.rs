//! Faults planted in the SQL: the comparison with the model must find each of them, otherwise it proves nothing. A text
//! that the SQL no longer contains is a failure here, so no mutant is forgotten.

use std::ops::Range;

use hotrow_testkit::line::Line;

use crate::history::Clients;
use crate::private;
use crate::same_as_model::difference;
use crate::stage::Stage;

const SEEDS_MAX: u64 = 400;
/// Number of crowds until a race that a fault allows must have happened.
pub const CROWDS_MAX: usize = 4;

/// A fault: the function, with its schema if that is not `hotrow`, the replaced text, and its replacement.
pub type Fault = (&'static str, &'static str, &'static str);

/// Faults that one client notices.
const FOR_ONE_CLIENT: [Fault; 23] = [
    ("recall_commands", "request_id = any (recall_commands.request_id)", "request_id = null"),
    ("refusal", "present + amount > max", "present + amount >= max"),
    ("refusal", "present > 9223372036854775807 - amount", "present >= 9223372036854775807 - amount"),
    ("answer_commands", "attempt = 2", "false"),
    ("answer_reservations", "attempt = 2", "false"),
    ("recall_commands", "if place < i then", "if place < 0 then"),
    ("judge_commands", "slots[i] <> slot", "slots[i] < slot"),
    ("fold_log", "else 0 end", "else known_value end"),
    ("judge_reservations", "quantity[i] > present", "quantity[i] >= present"),
    ("reserve_plainly", "quantity[i] > present", "quantity[i] - 1 > present"),
    ("reserve_plainly", "present := present - quantity[i]", "present := present - 1"),
    ("reserve_plainly", "entry.next_expiry <= at or", ""),
    ("reserve_plainly", "or entry.ends_at <= at", ""),
    ("reserve_plainly", "where u.quantity <= entry.per_buyer", ""),
    (
        "reserve_plainly",
        "excluded.quantity <= entry.per_buyer -",
        "excluded.quantity <= 1 + entry.per_buyer -",
    ),
    ("reserve_plainly", "least(entry.next_expiry, at + entry.hold)", "entry.next_expiry"),
    ("recall_reservations", "request_id = any (recall_reservations.request_id)", "request_id = null"),
    ("judge_reservations", "quantity[i] > entry.per_buyer -", "quantity[i] >= entry.per_buyer -"),
    ("hopeless", "when s.next_expiry <= greatest(at, s.last_at) then null", "when false then null"),
    ("release_expired", "b.quantity - e.quantity", "b.quantity"),
    ("cancel_batch", "b.quantity - g.quantity", "b.quantity"),
    ("confirm_batch", "hotrow.not_held(r, locked.at)", "hotrow.not_held(r, '-infinity')"),
    ("reserve_each", "raise exception using errcode = 'HR001'", "exit"),
];

/// Faults that only concurrent clients notice.
const FOR_CONCURRENT_CLIENTS: [Fault; 5] = [
    ("lock_counters", "where c.counter = names[i] for update", "where c.counter = names[i]"),
    ("increment", "where c.counter = increment.counter for update", "where c.counter = increment.counter"),
    ("lock_sale", "where s.item = lock_sale.item for update;", "where s.item = lock_sale.item;"),
    ("lock_reservations", " for update of r", ""),
    (
        "cancel_batch",
        "set remaining = s.remaining + g.quantity",
        "set remaining = s.remaining + g.quantity - 1",
    ),
];

/// Plants faults one after another, calls `is_noticed` with each fault's index, and repairs it. Returns the missed
/// faults.
pub fn missed(
    line: &mut Line,
    faults: &[Fault],
    mut is_noticed: impl FnMut(&mut Line, usize) -> bool,
) -> Vec<Fault> {
    let mut missed = Vec::new();
    for (index, fault) in faults.iter().enumerate() {
        let sound = plant(line, *fault);
        if !is_noticed(line, index) {
            missed.push(*fault);
        }
        assert_eq!(line.query(&sound).error(), None);
    }
    missed
}

/// `count` seeds for the fault with this index, different from those of all other faults.
pub fn seeds(index: usize, count: u64) -> Range<u64> {
    let first = index as u64 * count;
    first..first + count
}

/// Plants a fault. Returns the SQL that repairs it.
fn plant(line: &mut Line, (function, from, to): Fault) -> String {
    let (schema, name) = function.split_once('.').unwrap_or(("hotrow", function));
    let definition = format!(
        "select pg_get_functiondef(oid) from pg_proc where pronamespace = '{schema}'::regnamespace and proname = '{name}'"
    );
    let mut rows = line.query(&definition).rows();
    assert_eq!(rows.len(), 1, "{function} is one function");
    let sound = rows.remove(0).remove(0).expect("a definition");
    assert!(sound.contains(from), "{function} no longer contains {from:?}: plant the fault elsewhere");
    assert_eq!(line.query(&sound.replace(from, to)).error(), None, "{function}: {to}");
    sound
}

fn is_noticed_by_a_crowd(port: u16, test: usize) -> bool {
    (0..CROWDS_MAX).any(|crowd| {
        let clients = Clients::undisturbed(12, port, &[port], &format!("planted.{test}.{crowd}."));
        clients.wait();
        clients.check(port).is_err()
    })
}

#[test]
#[ignore = "long: make test-all"]
fn every_planted_fault_is_noticed() {
    let (server, mut line) = private("planted");
    let mut missed_by_all = missed(&mut line, &FOR_ONE_CLIENT, |_, index| {
        let mut stage = Stage::connect(server.port());
        seeds(index, SEEDS_MAX).any(|seed| difference(&mut stage, seed).is_some())
    });
    missed_by_all.extend(missed(&mut line, &FOR_CONCURRENT_CLIENTS, |_, index| {
        is_noticed_by_a_crowd(server.port(), index)
    }));
    assert_eq!(missed_by_all, [], "no run noticed these");
}
