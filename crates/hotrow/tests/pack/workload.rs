//! Random commands on a few counters and items, which therefore meet. Never interprets the answers.

use std::collections::BTreeSet;

use hotrow_model::{Command, CounterSettings, Id, SaleTerms, Strategy};

/// Makes commands. Names begin with a mark, which keeps runs on one server apart.
pub struct Workload {
    pub random: fastrand::Rng,
    mark: String,
    requests: Vec<Command>,
    reservations: Vec<Id>,
    /// The length of all arrays of the next command.
    several: usize,
}

impl Workload {
    pub fn new(seed: u64, mark: &str) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { random, mark: mark.to_owned(), requests: Vec::new(), reservations: Vec::new(), several: 1 }
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.random.usize(0..values.len())]
    }

    fn counter(&mut self) -> String {
        format!("{}{}", self.mark, self.random.u8(b'a'..=b'd') as char)
    }

    fn item(&mut self) -> String {
        format!("{}{}", self.mark, self.random.u8(b'p'..=b's') as char)
    }

    fn buyer(&mut self) -> String {
        self.pick(&["ann", "bob", "eve"]).to_owned()
    }

    fn quantity(&mut self) -> i64 {
        if self.random.u8(0..40) == 0 { self.pick(&[0, -1]) } else { self.pick(&[1, 1, 1, 2, 3, 5]) }
    }

    fn reservation(&mut self) -> Id {
        if self.reservations.is_empty() || self.random.u8(0..12) == 0 {
            return Id(self.random.u128(..));
        }
        let newest = self.reservations.len().saturating_sub(6);
        let from = if self.random.bool() { newest } else { 0 };
        self.reservations[self.random.usize(from..self.reservations.len())]
    }

    fn maybe<T>(&mut self, make: impl Fn(&mut fastrand::Rng) -> T) -> Option<T> {
        self.random.bool().then(|| make(&mut self.random))
    }

    /// Settings for the beginning, with limits that most later commands reach.
    pub fn creations(&mut self) -> Vec<Command> {
        let mut commands = Vec::new();
        for name in ["a", "b"] {
            let counter = format!("{}{name}", self.mark);
            let strategy = if name == "a" { Strategy::Log } else { Strategy::Ledger };
            let min = self.maybe(|random| random.i64(-9..=1));
            let max = self.maybe(|random| random.i64(1..=20));
            let settings = CounterSettings { strategy, min, max };
            commands.push(Command::CreateCounter { counter, settings });
        }
        for name in ["p", "q", "r"] {
            let item = format!("{}{name}", self.mark);
            let terms = SaleTerms {
                stock: self.random.i64(0..=12),
                per_buyer: self.maybe(|random| random.i64(1..=6)),
                starts_at: self.maybe(|random| random.i64(-2..=2)),
                ends_at: self.maybe(|random| random.i64(6..=9)),
                hold: self.maybe(|random| random.i64(1..=4)),
            };
            commands.push(Command::CreateSale { item, terms });
        }
        commands
    }

    /// One command, or several of one function for a batch.
    pub fn next(&mut self) -> Vec<Command> {
        let first = self.command();
        let calls = if crate::sql::has_batch_function(first.function()) && self.random.bool() {
            self.random.usize(2..=8)
        } else {
            1
        };
        let kind = std::mem::discriminant(&first);
        let mut commands = vec![first];
        while commands.len() < calls {
            let other = self.command();
            if std::mem::discriminant(&other) == kind {
                commands.push(other);
            }
        }
        commands
    }

    /// Records the reservations that a command has made.
    pub fn learn(&mut self, command: &Command) {
        self.reservations.extend(command.new_reservations());
    }

    fn command(&mut self) -> Command {
        if !self.requests.is_empty() && self.random.u8(0..8) == 0 {
            let again = self.random.usize(0..self.requests.len());
            return self.requests[again].clone();
        }
        let weighted = Command::KINDS.iter().flat_map(|it| std::iter::repeat_n(it, weight_of(it.0)));
        let (function, kinds) = self.pick(&weighted.collect::<Vec<_>>());
        if function.starts_with("create_") {
            return self.creation();
        }
        self.several = self.random.usize(1..=3);
        let words: Vec<_> = kinds.iter().map(|kind| self.words(kind)).collect();
        let command: Command =
            format!("{function} {}", words.join(" ")).parse().expect("words of these kinds");
        if command.request().is_some() {
            self.requests.push(command.clone());
        }
        command
    }

    /// An argument as a script has it.
    fn words(&mut self, kind: &str) -> String {
        let several = self.several;
        let list = |words: Vec<String>| words.join(",");
        match kind {
            "Counter" => self.counter(),
            "Item" => self.item(),
            "Items" => list((0..several).map(|_| self.item()).collect()),
            "Buyer" => self.buyer(),
            "Amount" => self.amount().to_string(),
            "Quantity" => self.quantity().to_string(),
            "Quantities" => list((0..several).map(|_| self.quantity().to_string()).collect()),
            "Hold" => self.random.i64(1..=5).to_string(),
            "Reservation" => self.reservation().to_string(),
            "Request" => self.request().map_or_else(String::new, |id| format!("#{id}")),
            "New" | "AllNew" => String::new(),
            other => panic!("add arguments of the kind {other} here, in {}", file!()),
        }
    }

    fn amount(&mut self) -> i64 {
        match self.random.u8(0..12) {
            0 => self.pick(&[i64::MAX, i64::MIN, i64::MAX - 3, i64::MIN + 3]),
            _ => self.random.i64(-5..=6),
        }
    }

    fn creation(&mut self) -> Command {
        let mut all = self.creations();
        all.swap_remove(self.random.usize(0..all.len()))
    }

    /// Often none, sometimes one that was used for another command.
    fn request(&mut self) -> Option<Id> {
        match self.random.u8(0..30) {
            0..12 => None,
            12 => self.requests.last().and_then(Command::request),
            _ => Some(Id(self.random.u128(..))),
        }
    }
}

/// How often a function is called, in relation to the others.
fn weight_of(function: &str) -> usize {
    match function {
        "increment" => 24,
        "reserve" => 26,
        "cancel" => 10,
        "confirm" => 8,
        "drain" | "reserve_all" => 6,
        "create_counter" | "create_sale" => 1,
        _ => 4,
    }
}

/// Checks that a thousand random commands call every function of a model. The caller's file draws the commands.
#[track_caller]
pub fn assert_calls_all(functions: &[&str], mut function: impl FnMut() -> &'static str) {
    let called: BTreeSet<_> = (0..1000).map(|_| function()).collect();
    let forgotten: Vec<_> = functions.iter().filter(|function| !called.contains(**function)).collect();
    let file = std::panic::Location::caller().file();
    assert!(forgotten.is_empty(), "no random command calls {forgotten:?}; add them to `command` in {file}");
}

#[test]
fn random_commands_call_every_function() {
    let mut workload = Workload::new(1, "");
    assert_calls_all(Command::FUNCTIONS, || workload.next()[0].function());
}
