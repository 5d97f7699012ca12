//! The workers of a queue: each order is processed once, a lease is extended during longer work, a worker that is told
//! to stop releases its other orders, a failed order is retried or dead, and a lost connection loses no order.

use std::env;
use std::ffi::OsString;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use hotrow_testkit::line::{Line, until};
use hotrow_testkit::{Gateway, server};
use nix::sys::signal::{Signal, killpg};

use crate::{TIME, end, group, install, root, start};

#[derive(Clone, Copy, Debug)]
enum Language {
    Python,
    Rust,
}

/// A queue with orders, and a language for its workers.
struct Stage {
    language: Language,
    queue: String,
    direct: Line,
}

impl Stage {
    fn new(language: Language, name: &str, payloads: &[&str]) -> Self {
        install();
        let queue = format!("{name}-{language:?}");
        let direct = Line::connect(server().port(), "public").unwrap().expect("the server accepts the login");
        let mut stage = Stage { language, queue, direct };
        stage.ask(&format!("select hotrow.create_queue('{}', max_attempts => 2, retry => '0')", stage.queue));
        for (number, payload) in payloads.iter().enumerate() {
            let id = format!("00000000-0000-4000-8000-{number:012}");
            stage.ask(&format!("select hotrow.enqueue('{}', '{id}', '{payload}')", stage.queue));
        }
        stage
    }

    /// The single row of the answer, as texts.
    fn ask(&mut self, sql: &str) -> Vec<String> {
        let answer = self.direct.query(sql);
        assert_eq!(answer.error(), None, "{sql}");
        answer.rows().remove(0).into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Depth, in flight, processed, dead.
    fn numbers(&mut self) -> [u64; 4] {
        let sql =
            format!("select depth, in_flight, processed, dead from hotrow.queue_stats('{}')", self.queue);
        let numbers: Vec<u64> = self.ask(&sql).iter().map(|number| number.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    }

    /// How often the processed orders were taken in total, and the number of distinct orders.
    fn attempts(&mut self) -> Vec<String> {
        let sql = format!(
            "select sum(p.attempt), count(distinct p.order_id) from hotrow.processed_order p
             join hotrow.queue q on q.number = p.queue where q.queue = '{}'",
            self.queue
        );
        self.ask(&sql)
    }

    fn until(&mut self, what: &str, is_so: impl Fn([u64; 4]) -> bool) {
        let deadline = Instant::now() + TIME;
        while !is_so(self.numbers()) {
            assert!(Instant::now() < deadline, "{what}: not within {TIME:?}, but {:?}", self.numbers());
            thread::sleep(Duration::from_millis(10)); // the condition has no signal
        }
    }

    /// Starts a worker at this address, with additional environment variables.
    fn worker(&self, port: u16, settings: &[(&str, &str)]) -> Child {
        let mut command = match self.language {
            Language::Python => {
                let mut command = Command::new(root().join("target/examples-python/bin/python"));
                command.arg("work.py").current_dir(root().join("examples/python"));
                command
            }
            Language::Rust => {
                let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
                let mut command = Command::new(cargo);
                command.args(["run", "--quiet"]).current_dir(root().join("examples/rust"));
                command
            }
        };
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres?application_name={}", self.queue);
        command.env("QUEUE", &self.queue).env("DATABASE_URL", url).envs(settings.iter().copied());
        start(command)
    }
}

/// The number of completed orders that the worker prints.
fn completed(worker: Child) -> u64 {
    let output = end(worker);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    printed
        .split_whitespace()
        .nth(1)
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{printed}"))
}

const STOP: (&str, &str) = ("STOP_WHEN_EMPTY", "1");

fn each_order_is_done_once(language: Language) {
    let mut stage = Stage::new(language, "once", &["{}"; 300]);
    let gateway = Gateway::start(&[]);
    let workers: Vec<_> = (0..3).map(|_| stage.worker(gateway.port(), &[STOP])).collect();
    assert_eq!(workers.into_iter().map(completed).sum::<u64>(), 300);
    assert_eq!(
        (stage.numbers(), stage.attempts()),
        ([0, 0, 300, 0], vec!["300".to_owned(), "300".to_owned()])
    );
}

fn a_lease_is_extended_during_longer_work(language: Language) {
    let mut stage = Stage::new(language, "long", &["{}"]);
    let gateway = Gateway::start(&[]);
    let settings = [STOP, ("LEASE_SECONDS", "3"), ("WORK_SECONDS", "7")];
    assert_eq!(completed(stage.worker(gateway.port(), &settings)), 1);
    assert_eq!(stage.attempts(), ["1", "1"]);
}

fn a_worker_that_stops_finishes_one_order_and_releases_the_others(language: Language) {
    let mut stage = Stage::new(language, "stopped", &["{}"; 10]);
    let gateway = Gateway::start(&[]);
    // The lease ends long before the work: a stopping worker must extend it to the end.
    let worker = stage.worker(gateway.port(), &[("LEASE_SECONDS", "3"), ("WORK_SECONDS", "7")]);
    stage.until("the orders are taken", |numbers| numbers[1] == 10);
    // The server knows before the worker that they are taken. A worker that extends the lease works.
    let due = format!("select min(due) from hotrow.list_orders('{}', 'leased')", stage.queue);
    let at_first = stage.ask(&due);
    until("the lease is extended", || stage.ask(&due) != at_first);
    killpg(group(&worker), Signal::SIGTERM).unwrap();
    assert_eq!(completed(worker), 1);
    assert_eq!(stage.numbers(), [9, 0, 1, 0]);
    let sql = format!("select max(attempt) from hotrow.list_orders('{}')", stage.queue);
    assert_eq!(stage.ask(&sql), ["0"], "as if they had not been taken");
}

fn a_waiting_worker_stops_at_once(language: Language) {
    let stage = Stage::new(language, "idle", &[]);
    let gateway = Gateway::start(&[]);
    let worker = stage.worker(gateway.port(), &[]);
    // Through the gateway, which shows that the worker's calls have a form that is merged.
    until("the worker waits", || gateway.metric("hotrow_waiting_calls") > 0);
    let since = Instant::now();
    killpg(group(&worker), Signal::SIGTERM).unwrap();
    assert_eq!(completed(worker), 0);
    assert!(since.elapsed() < Duration::from_secs(15), "the worker waited to the end of its call");
}

fn a_failed_order_is_retried_or_dead(language: Language) {
    let mut stage = Stage::new(language, "failing", &[r#"{"fails": 1}"#, r#"{"fails": 9}"#, "{}"]);
    let gateway = Gateway::start(&[]);
    assert_eq!(completed(stage.worker(gateway.port(), &[STOP])), 2);
    assert_eq!((stage.numbers(), stage.attempts()), ([0, 0, 2, 1], vec!["3".to_owned(), "2".to_owned()]));
    let sql = format!("select error from hotrow.list_orders('{}', 'dead')", stage.queue);
    assert_eq!(stage.ask(&sql), ["not yet"]);
}

fn a_lost_connection_loses_no_order(language: Language) {
    let mut stage = Stage::new(language, "cut", &["{}"; 100]);
    // Directly to the server, where the worker's connections can be identified.
    let worker = stage.worker(server().port(), &[("LEASE_SECONDS", "3"), ("WORK_SECONDS", "0.01")]);
    for done in [20, 60] {
        stage.until("orders are done", |numbers| numbers[2] >= done);
        let sql = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name";
        assert_ne!(stage.ask(&format!("{sql} = '{}'", stage.queue)), ["0"]);
    }
    stage.until("all are done", |numbers| numbers[2] == 100);
    killpg(group(&worker), Signal::SIGTERM).unwrap();
    completed(worker);
    assert_eq!(stage.attempts()[1], "100");
}

macro_rules! each {
    ($($test:ident)*) => {
        mod python {
            $(#[test] fn $test() { super::$test(super::Language::Python); })*
        }
        mod rust {
            $(#[test] fn $test() { super::$test(super::Language::Rust); })*
        }
    };
}

each! {
    each_order_is_done_once
    a_lease_is_extended_during_longer_work
    a_worker_that_stops_finishes_one_order_and_releases_the_others
    a_waiting_worker_stops_at_once
    a_failed_order_is_retried_or_dead
    a_lost_connection_loses_no_order
}
