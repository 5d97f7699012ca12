//! Many concurrent clients on a few counters and items, and the histories that they record. The model judges the
//! histories.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hotrow_model::linear::{Operation, check};
use hotrow_model::{Command, CounterSettings, Id, SaleTerms, Strategy, World};
use hotrow_testkit::line::Report;

use crate::client::{Client, connect};
use crate::sql::Clock;

pub const PATIENCE: Duration = Duration::from_secs(60);
pub const COUNTERS: [&str; 3] = ["a", "b", "log"];
pub const ITEMS: [&str; 2] = ["shoe", "sock"];
/// The checker takes too long for longer histories.
pub const OPERATIONS_PER_SUBJECT: usize = 220;

/// State that all clients share.
pub struct Shared {
    /// The ports to which clients connect, in turn.
    pub ports: Vec<AtomicU16>,
    pub mark: String,
    pub disturbed: bool,
    pub clock: Clock,
    /// The clock that orders calls and answers.
    ticks: AtomicU64,
    pub answered: AtomicUsize,
    pub stop: AtomicBool,
    pub reservations: Mutex<Vec<(usize, Id)>>,
    pub history: Mutex<BTreeMap<String, Vec<Operation>>>,
    /// Errors after which clients retried.
    errors: Mutex<BTreeMap<String, usize>>,
    /// An error that no client may get.
    failure: Mutex<Option<String>>,
}

/// Running clients.
pub struct Clients {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Clients without faults: some of their requests have IDs.
    pub fn undisturbed(count: usize, direct: u16, ports: &[u16], mark: &str) -> Self {
        Self::start(count, direct, ports, mark, false)
    }

    /// Clients that have to retry: every command that could take effect twice has an ID.
    pub fn disturbed(count: usize, direct: u16, ports: &[u16], mark: &str) -> Self {
        Self::start(count, direct, ports, mark, true)
    }

    /// Creates the counters and items, whose names begin with `mark`, and starts `count` clients on these ports in
    /// turn.
    fn start(count: usize, direct: u16, ports: &[u16], mark: &str, disturbed: bool) -> Self {
        let shared = Shared {
            ports: ports.iter().map(|port| AtomicU16::new(*port)).collect(),
            mark: mark.to_owned(),
            disturbed,
            clock: Clock::start(),
            ticks: AtomicU64::new(1),
            answered: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            reservations: Mutex::default(),
            history: Mutex::default(),
            errors: Mutex::default(),
            failure: Mutex::default(),
        };
        let shared = Arc::new(shared);
        let mut creator = Client::new(&shared, 0);
        creator.line = connect(direct);
        shared.creations().into_iter().for_each(|command| creator.run(command));
        let thread = |number| {
            let shared = shared.clone();
            thread::spawn(move || Client::new(&shared, number).work())
        };
        Self { threads: (0..count).map(thread).collect(), shared }
    }

    /// Sends later connections of clients of port `from` to port `to`.
    pub fn redirect(&self, from: u16, to: u16) {
        self.shared
            .ports
            .iter()
            .filter(|port| port.load(SeqCst) == from)
            .for_each(|port| port.store(to, SeqCst));
    }

    /// Waits until `commands` more commands are answered.
    pub fn flow(&self, commands: usize) {
        let (wanted, deadline) = (self.shared.answered.load(SeqCst) + commands, Instant::now() + PATIENCE);
        while self.shared.answered.load(SeqCst) < wanted
            && self.threads.iter().any(|thread| !thread.is_finished())
        {
            assert!(Instant::now() < deadline, "no more answers; errors: {:?}", self.shared.errors);
            thread::sleep(Duration::from_millis(1)); // the condition has no signal
        }
    }

    /// Whether the history has its maximum length.
    pub fn are_done(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits until the history has its maximum length.
    pub fn wait(&self) {
        while !self.are_done() {
            self.flow(10);
        }
    }

    /// Waits for the end of a load without faults, and asserts that an order explains all answers.
    pub fn assert_order(self, direct: u16) {
        self.wait();
        let (operations, errors) = self.check(direct).unwrap_or_else(|violation| panic!("{violation}"));
        assert!(operations > 1_000 && errors.is_empty(), "{operations} operations, {errors:?}");
    }

    /// Stops the clients, reads all final values, and searches for an order that explains all answers. Returns the
    /// number of answers and the errors after which clients retried.
    pub fn check(self, direct: u16) -> Result<(usize, BTreeMap<String, usize>), String> {
        self.shared.stop.store(true, SeqCst);
        for thread in self.threads {
            thread.join().map_err(|_| "a client has failed".to_owned())?;
        }
        if let Some(failure) = self.shared.failure.lock().unwrap().take() {
            return Err(failure);
        }
        let mut reader = Client::new(&self.shared, 0);
        reader.line = connect(direct);
        for counter in COUNTERS {
            reader.run(Command::Counter { counter: format!("{}{counter}", self.shared.mark) });
        }
        for item in ITEMS {
            reader.run(Command::Sale { item: format!("{}{item}", self.shared.mark) });
        }
        let history = self.shared.history.lock().unwrap();
        for (subject, operations) in &*history {
            check(&World::default(), operations).map_err(|violation| format!("{subject}: {violation}"))?;
        }
        let errors = self.shared.errors.lock().unwrap().clone();
        Ok((history.values().map(Vec::len).sum(), errors))
    }
}

impl Shared {
    fn creations(&self) -> Vec<Command> {
        let name = |name: &str| format!("{}{name}", self.mark);
        let counter = |counter, strategy, max| Command::CreateCounter {
            counter,
            settings: CounterSettings { strategy, min: Some(-20), max },
        };
        let mut commands = vec![
            counter(name("a"), Strategy::Ledger, None),
            counter(name("b"), Strategy::Ledger, Some(40)),
            counter(name("log"), Strategy::Log, Some(60)),
        ];
        for (item, stock, per_buyer) in [(name("shoe"), 40, Some(9)), (name("sock"), 25, None)] {
            let terms = SaleTerms { stock, per_buyer, starts_at: None, ends_at: None, hold: Some(9) };
            commands.push(Command::CreateSale { item, terms });
        }
        commands
    }

    /// Records that a client had to retry.
    pub fn note(&self, report: &Report) {
        let error = format!("{} {}", report.code, report.message);
        *self.errors.lock().unwrap().entry(error).or_default() += 1;
    }

    /// Records an error that no client may get, which stops all clients.
    pub fn fail(&self, error: String) {
        self.failure.lock().unwrap().get_or_insert(error);
        self.stop.store(true, SeqCst);
    }

    /// A time later than all earlier ones.
    pub fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, SeqCst)
    }
}
