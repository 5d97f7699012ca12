//! Interleavings of a few sessions, in the style of PostgreSQL's isolation tester: `../specs/*.spec` define the steps, the orders
//! in which they run, their answers, and which steps wait. This file runs them. `setup` runs before each permutation. A step is a
//! name and a statement. In a permutation, `ann.reserve = sold_out 0` is a step and its answer (rows separated by `; `),
//! `error 22023` an error, `bob.reserve waits` a step that has to wait for another session's lock. Its answer is on a later line,
//! after the step that releases the lock. `@` in a statement is replaced by a text that differs in every permutation, which keeps
//! permutations apart.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use hotrow_testkit::line::{Answer, Line};

use crate::installed;
use crate::sql;

const PATIENCE: Duration = Duration::from_secs(20);

/// The contents of a file.
#[derive(Default)]
struct Spec {
    setup: Vec<String>,
    /// By `session.step`.
    steps: HashMap<String, String>,
    permutations: Vec<(String, Vec<String>)>,
}

impl Spec {
    fn read(text: &str) -> Self {
        let mut spec = Self::default();
        let mut part = "";
        for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with("--"))
        {
            let Some(content) = line.strip_prefix("    ") else {
                part = line;
                if let Some(name) = line.strip_prefix("permutation ") {
                    spec.permutations.push((name.to_owned(), Vec::new()));
                }
                continue;
            };
            match part.split_once(' ') {
                None => spec.setup.push(content.to_owned()),
                Some(("session", session)) => {
                    let (name, sql) = content.split_once(' ').expect("a step has a name and a statement");
                    spec.steps.insert(format!("{session}.{name}"), sql.trim().to_owned());
                }
                Some(("permutation", _)) => {
                    spec.permutations
                        .last_mut()
                        .expect("the permutation has begun")
                        .1
                        .push(content.to_owned());
                }
                Some(_) => panic!("neither setup, session nor permutation: {part}"),
            }
        }
        spec
    }

    fn run(&self, file: &str) {
        for (index, (name, lines)) in self.permutations.iter().enumerate() {
            let mark = format!("{file}.{index}.");
            let mut stage = Stage::new(mark);
            for statement in &self.setup {
                assert_eq!(
                    stage.control.query(&stage.marked(statement)).error(),
                    None,
                    "{file}: {statement}"
                );
            }
            for line in lines {
                if let Err(found) = stage.run(line, &self.steps) {
                    panic!("{file}: {name}: {line}\n  found: {found}");
                }
            }
            let waiting: Vec<_> = stage.sessions.iter().filter(|(_, session)| session.waits).collect();
            assert!(waiting.is_empty(), "{file}: {name}: a session's answer is missing");
        }
    }
}

/// A connection in its own thread, because it may wait.
struct Session {
    pid: String,
    send: Sender<String>,
    answers: Receiver<Answer>,
    waits: bool,
}

impl Session {
    fn start() -> Self {
        let mut line = connect();
        let pid = line
            .query("select pg_backend_pid()")
            .rows()
            .remove(0)
            .remove(0)
            .expect("the answer has one value");
        let (send, statements) = channel::<String>();
        let (sent, answers) = channel();
        thread::spawn(move || {
            for statement in statements {
                // The receiver is gone if the test has failed.
                let _ = sent.send(line.query(&statement));
            }
        });
        Self { pid, send, answers, waits: false }
    }
}

/// The sessions of one permutation.
struct Stage {
    mark: String,
    control: Line,
    sessions: HashMap<String, Session>,
}

impl Stage {
    fn new(mark: String) -> Self {
        Self { mark, control: connect(), sessions: HashMap::new() }
    }

    fn marked(&self, statement: &str) -> String {
        statement.replace('@', &self.mark)
    }

    /// Runs one line of a permutation. Returns the actual result if it differs.
    fn run(&mut self, line: &str, steps: &HashMap<String, String>) -> Result<(), String> {
        let (step, expected) =
            line.split_once(" = ").map_or((line, None), |(step, answer)| (step, Some(answer)));
        let (step, must_wait) = step.strip_suffix(" waits").map_or((step, false), |step| (step, true));
        let statement = self.marked(steps.get(step).ok_or_else(|| format!("unknown step {step}"))?);
        let (name, _) = step.split_once('.').expect("steps are known by session and name");
        let session = self.sessions.entry(name.to_owned()).or_insert_with(Session::start);
        if !session.waits {
            session.send.send(statement).expect("the session lives");
        }
        session.waits = false;
        let blocked = format!("select 1 where cardinality(pg_blocking_pids({})) > 0", session.pid);
        let deadline = Instant::now() + PATIENCE;
        loop {
            match session.answers.recv_timeout(Duration::from_millis(2)) {
                Ok(answer) if must_wait => return Err(format!("does not wait: {}", written(&answer))),
                Ok(answer) => {
                    let found = written(&answer);
                    let fits = expected.map_or(answer.error().is_none(), |expected| expected == found);
                    return if fits { Ok(()) } else { Err(found) };
                }
                Err(RecvTimeoutError::Disconnected) => return Err("the connection is lost".to_owned()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            // A released session answers soon, so the loop checks only sessions that must wait.
            if must_wait && !self.control.query(&blocked).rows().is_empty() {
                session.waits = true;
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err("no answer".to_owned());
            }
        }
    }
}

fn connect() -> Line {
    Line::connect(installed(), "public").unwrap().unwrap_or_else(|refusal| panic!("{:?}", refusal.error()))
}

fn written(answer: &Answer) -> String {
    match answer.error() {
        Some(report) => format!("error {}", report.code),
        None => answer.rows().iter().map(|row| sql::answer(row)).collect::<Vec<_>>().join("; "),
    }
}

#[test]
fn reserve_against_cancel() {
    Spec::read(include_str!("../specs/reserve_against_cancel.spec")).run("reserve");
}

#[test]
fn confirm_against_expiry() {
    Spec::read(include_str!("../specs/confirm_against_expiry.spec")).run("confirm");
}

#[test]
fn restock_against_sold_out() {
    Spec::read(include_str!("../specs/restock_against_sold_out.spec")).run("restock");
}

#[test]
fn two_increments() {
    Spec::read(include_str!("../specs/two_increments.spec")).run("increments");
}

#[test]
fn one_request_at_once() {
    Spec::read(include_str!("../specs/one_request_at_once.spec")).run("request");
}

#[test]
fn the_runner_detects_wrong_answers_and_wrong_waits() {
    let spec = "session ann\n    one  select 1\n    lock  begin; select pg_advisory_xact_lock(hashtext('@'))\n    end  commit\n\
        session bob\n    lock  select pg_advisory_xact_lock(hashtext('@'))\n";
    let spec = Spec::read(spec);
    let mut stage = Stage::new("runner.".to_owned());
    let mut run = |line: &str| stage.run(line, &spec.steps);
    assert_eq!(run("ann.one = 1"), Ok(()));
    assert_eq!(run("ann.one = 2"), Err("1".to_owned()));
    assert_eq!(run("ann.one waits"), Err("does not wait: 1".to_owned()));
    assert_eq!(run("ann.two = 1"), Err("unknown step ann.two".to_owned()));
    assert_eq!(run("ann.lock"), Ok(()));
    assert_eq!(run("bob.lock waits"), Ok(()));
    assert_eq!(run("ann.end"), Ok(()));
    assert_eq!(run("bob.lock"), Ok(()));
}
