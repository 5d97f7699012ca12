//! The pgbench script of a load: which part of the transactions does what, on which rows, with which pauses. No I/O.

use hotrow_doctor::diagnosis::workload::Workload;
use std::fmt::Write;

/// Shares are random numbers of this many.
const WHOLE: f64 = 1_000.0;
/// Rows that a transaction changes at most. More would be mostly the same.
const CHANGES_MAX: f64 = 10.0;
/// The way to a client and back on one machine, which no pause adds, in microseconds.
const ROUND_TRIP_US: f64 = 100.0;

/// What a script needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Rows that a writing transaction changes.
    pub changes: u32,
    /// The shares of the hot rows in the writes, of a thousand.
    hot: Vec<u32>,
    /// Transactions that wait for their client, of a thousand.
    interactive: u32,
    /// Single statements that the gateway passes through.
    passed: u32,
    /// Reads by key.
    reads: u32,
    /// The pause after each statement of a transaction that waits for its client, in microseconds.
    think_us: u32,
    /// The pause after a transaction, in microseconds.
    pause_us: u32,
}

impl Shape {
    pub fn of(load: &Workload) -> Self {
        let part = |share: f64| (share.clamp(0.0, 1.0) * WHOLE).round() as u32;
        let changes = load.changes.round().clamp(1.0, CHANGES_MAX);
        let passed = (1.0 - load.packable - load.interactive).max(0.0);
        let packed = (1.0 - load.interactive - passed).max(0.0);
        let pause = |us: f64| if us >= 2.0 * ROUND_TRIP_US { (us - ROUND_TRIP_US) as u32 } else { 0 };
        Self {
            changes: changes as u32,
            hot: load.hot.iter().map(|share| part(*share)).collect(),
            interactive: part(load.interactive),
            passed: part(passed),
            reads: part(packed * (1.0 - load.writing)),
            think_us: pause(load.client_us / changes),
            // Without a free core, a pause is mostly a wait for a core, which this machine has too.
            pause_us: if load.is_saturated() { 0 } else { pause(load.pause_us) },
        }
    }
}

/// The text of the script. Every transaction changes its hot row last, and its other rows in the order of their keys, so no
/// deadlock occurs.
pub fn script(shape: &Shape) -> String {
    let mut text = String::new();
    rows(&mut text, shape);
    text.push_str("\\set kind random(1, 1000)\n");
    let others: Vec<String> = (1..shape.changes).map(|number| update(&format!("row{number}"), "")).collect();
    let last = update("id", "");
    let think = if shape.think_us > 0 { format!("\\sleep {} us\n", shape.think_us) } else { String::new() };
    let parts = [
        (shape.interactive, {
            let updates: Vec<String> =
                others.iter().chain([&last]).map(|update| update.clone() + &think).collect();
            format!("begin;\n{}commit;\n", updates.concat())
        }),
        (shape.passed, update("id", " and pg_backend_pid() > 0")),
        (shape.reads, "select stock from hotrow_bench.inv where id = :id;\n".to_owned()),
    ];
    let (mut sum, mut word) = (0, "if");
    for (share, body) in parts.into_iter().filter(|(share, _)| *share > 0) {
        sum += share;
        let _ = write!(text, "\\{word} :kind <= {sum}\n{body}");
        word = "elif";
    }
    let packed = if others.is_empty() {
        last
    } else {
        format!("\\startpipeline\nbegin;\n{}{last}end;\n\\endpipeline\n", others.concat())
    };
    match (word, sum) {
        ("if", _) => text.push_str(&packed),
        (_, 1_000..) => text.push_str("\\endif\n"),
        _ => {
            let _ = write!(text, "\\else\n{packed}\\endif\n");
        }
    }
    if shape.pause_us > 0 {
        let _ = writeln!(text, "\\sleep {} us", shape.pause_us);
    }
    text
}

/// Chooses the rows: `id` is a hot row or one of the last part of the table, `row1` and so on are in the parts before.
fn rows(text: &mut String, shape: &Shape) {
    let (hot, parts) = (shape.hot.len(), shape.changes);
    let range = |part: u32| {
        format!(
            "random({hot} + 1 + (:rows - {hot}) * {part} / {parts}, {hot} + (:rows - {hot}) * ({part} + 1) / {parts})"
        )
    };
    for number in 1..parts {
        let _ = writeln!(text, "\\set row{number} {}", range(number - 1));
    }
    let _ = writeln!(text, "\\set id {}", range(parts - 1));
    if shape.hot.is_empty() {
        return;
    }
    text.push_str("\\set which random(1, 1000)\n");
    let mut sum = 0;
    for (place, share) in shape.hot.iter().enumerate() {
        sum += share;
        let word = if place == 0 { "if" } else { "elif" };
        let _ = writeln!(text, "\\{word} :which <= {sum}\n\\set id {}", place + 1);
    }
    text.push_str("\\endif\n");
}

fn update(row: &str, condition: &str) -> String {
    format!(
        "update hotrow_bench.inv set stock = stock - 1, sold = sold + 1 where id = :{row} and stock >= 1 and md5(repeat('x', work)) <> ''{condition};\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape { changes: 1, hot: vec![], interactive: 0, passed: 0, reads: 0, think_us: 0, pause_us: 0 }
    }

    #[test]
    fn one_hot_row_of_single_statements_is_one_update() {
        let text = script(&Shape { hot: vec![1_000], ..shape() });
        assert!(text.contains("\\if :which <= 1000\n\\set id 1\n\\endif"), "{text}");
        assert_eq!((text.matches("update").count(), text.contains("kind <=")), (1, false), "{text}");
    }

    #[test]
    fn interactive_transactions_think_after_each_statement_and_change_the_hot_row_last() {
        let text =
            script(&Shape { changes: 3, hot: vec![500, 200], interactive: 1_000, think_us: 700, ..shape() });
        let order: Vec<_> = text.lines().filter(|line| !line.starts_with("\\set")).collect();
        assert_eq!(text.matches("\\sleep 700 us").count(), 3, "{text}");
        assert!(order.iter().any(|line| line.contains(":which <= 700")), "{text}");
        let place = |what: &str| text.find(what).unwrap();
        assert!(
            place("id = :row1") < place("id = :row2") && place("id = :row2") < place("id = :id"),
            "{text}"
        );
        assert!(!text.contains("\\else"), "nothing is left over: {text}");
    }

    #[test]
    fn the_rest_is_passed_through_and_what_is_packed_is_sent_in_one_go() {
        let text = script(&Shape { changes: 2, passed: 250, reads: 300, pause_us: 900, ..shape() });
        assert!(text.contains("\\if :kind <= 250\nupdate") && text.contains("pg_backend_pid()"), "{text}");
        assert!(text.contains("\\elif :kind <= 550\nselect"), "{text}");
        assert!(
            text.contains("\\else\n\\startpipeline\nbegin;") && text.ends_with("\\sleep 900 us\n"),
            "{text}"
        );
    }

    #[test]
    fn without_a_free_core_pauses_are_not_repeated() {
        let load =
            Workload { changes: 1.0, packable: 1.0, writing: 1.0, pause_us: 5_000.0, ..Workload::default() };
        assert_eq!(Shape::of(&load).pause_us, 4_900);
        let load = Workload { cores: Some(2.0), busy_cores: Some(1.9), ..load };
        assert_eq!(Shape::of(&load).pause_us, 0);
    }
}
