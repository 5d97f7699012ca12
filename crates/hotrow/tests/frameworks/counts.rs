//! What the gateway counted: statements by outcome from SHOW STATEMENTS, and pinned clients from SHOW CLIENTS.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use hotrow_testkit::{Gateway, connect};
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

/// A shape of a statement with its outcomes.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The statement without values.
    pub sql: String,
    /// Why it is packed or passed through.
    pub reason: String,
    /// How often it ran.
    pub runs: u64,
    /// Runs committed in a batch.
    pub packed: u64,
    /// Runs that were part of a merged call.
    pub merged: u64,
    /// Runs that were not packed, by the name of the console's column.
    pub others: BTreeMap<&'static str, u64>,
}

/// The console's columns of runs that were not packed.
const OTHERS: [&str; 12] = [
    "passed_not_packable",
    "passed_in_own_transaction",
    "passed_session_pinned",
    "passed_switched_off",
    "passed_in_shadow_mode",
    "passed_fails_too_often",
    "passed_with_others",
    "passed_undecided",
    "given_back_by_lane",
    "failed_in_lane",
    "left_lane_for_lock",
    "left_lane_too_slow",
];

/// The outcomes of a run.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// All shapes, those that were passed through most often first.
    pub shapes: Vec<Shape>,
    /// Pinned clients, by the reason that SHOW CLIENTS states: the largest number seen at once.
    pub pinned: BTreeMap<String, usize>,
}

impl Counted {
    /// A sum over all shapes.
    pub fn sum(&self, of: impl Fn(&Shape) -> u64) -> u64 {
        self.shapes.iter().map(of).sum()
    }

    /// The part of the updates that was packed or merged.
    pub fn share(&self) -> f64 {
        let updates = || self.shapes.iter().filter(|shape| shape.is_update());
        let packed: u64 = updates().map(|shape| shape.packed + shape.merged).sum();
        packed as f64 / updates().map(|shape| shape.runs).sum::<u64>().max(1) as f64
    }
}

impl Shape {
    /// Whether this is the hot update. No program sends another one.
    pub fn is_update(&self) -> bool {
        self.sql.trim_start().to_ascii_lowercase().starts_with("update")
    }

    fn new(row: &SimpleQueryRow) -> Self {
        let text = |column: &str| row.get(column).unwrap_or_default().to_owned();
        let number = |column: &str| text(column).parse().unwrap();
        let others = OTHERS.into_iter().map(|column| (column, number(column)));
        Shape {
            sql: text("statement"),
            reason: text("reason"),
            runs: number("runs"),
            packed: number("packed"),
            merged: number("merged"),
            others: others.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

/// A client of a gateway's console.
pub struct Counts {
    console: Client,
    pinned: BTreeMap<String, usize>,
}

impl Counts {
    /// Connects to the console.
    pub async fn new(gateway: &Gateway) -> Self {
        let console = connect(gateway.config().dbname("hotrow")).await;
        Self { console, pinned: BTreeMap::new() }
    }

    async fn rows(&self, command: &str) -> Vec<SimpleQueryRow> {
        let messages = self.console.simple_query(command).await.unwrap();
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        };
        messages.into_iter().filter_map(row).collect()
    }

    /// Looks for pinned clients until it is dropped: a program's clients are gone when it ends.
    pub async fn watch_clients(&mut self) -> Infallible {
        loop {
            tokio::time::sleep(Duration::from_millis(250)).await; // more frequent looks would be a load of their own
            let mut now: BTreeMap<String, usize> = BTreeMap::new();
            for row in self.rows("show clients").await {
                if let Some(why) = row.get("state").and_then(|state| state.strip_prefix("pinned: ")) {
                    *now.entry(why.to_owned()).or_default() += 1;
                }
            }
            for (why, count) in now {
                let most = self.pinned.entry(why).or_default();
                *most = count.max(*most);
            }
        }
    }

    /// Reads the counts.
    pub async fn read(self) -> Counted {
        let shapes = self.rows("show statements").await.iter().map(Shape::new).collect();
        Counted { shapes, pinned: self.pinned }
    }
}
