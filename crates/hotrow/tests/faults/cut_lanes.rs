//! Promise 5 byte by byte: a lane's connection breaks after n bytes, for every n and in both directions. The clients'
//! own connections stay, and each unit is answered: exactly, or with 08007. Other modules test dying processes.

use std::sync::atomic::AtomicU64;

use hotrow_testkit::line::{Line, until};
use hotrow_testkit::proxy::{After, Fault, How, Proxy, Way};
use hotrow_testkit::{Gateway, server};

use crate::checker::check;
use crate::load::{Load, ORDER, Outcome, Records, SELL, TABLES, Task, answers_of_block, put_block};

/// The units that are sent together while a connection breaks. Each function makes a unit from a number.
type Shape = [fn(u64) -> Task];
const ONE: &Shape = &[Task::Order];
const THREE: &Shape = &[Task::Order, Task::Order, |_| Task::Sell];
const SECOND_FAILS: &Shape = &[Task::Order, Task::BadOrder, |_| Task::Sell];

/// More than a batch of a few units with the fingerprint of its tables, or a login, sends in one direction.
const BYTES_MAX: usize = 16_000;

/// A gateway with one lane that reaches the server through a proxy, and one client.
struct Stage {
    schema: String,
    proxy: Proxy,
    gateway: Gateway,
    line: Line,
    records: Records,
    next: u64,
}

impl Stage {
    /// Adds startup options of the client, which its lane gets too.
    fn new(schema: &str, options: &str) -> Self {
        let mut direct =
            Line::connect(server().port(), schema).unwrap().expect("the server accepts the login");
        assert_eq!(direct.query(&format!("create schema {schema}; {TABLES}")).error(), None);
        let proxy = Proxy::start(server().port());
        // On a busy machine, few units leave the lane because it takes long. Two tests wait until one does.
        let lanes = ["--lanes", "1", "--lane-lock-timeout-ms", "2000"];
        let gateway = Gateway::in_front_of(&proxy.url(), &lanes);
        let start = format!("{schema} {options}");
        let mut line = Line::connect(gateway.port(), &start).unwrap().expect("the gateway accepts the login");
        line.put_prepare("order", ORDER);
        line.put_prepare("sell", SELL);
        line.send().unwrap();
        (0..2).for_each(|_| assert_eq!(line.answer().error(), None));
        Self { schema: schema.to_owned(), proxy, gateway, line, records: Records::default(), next: 0 }
    }

    /// Sends units together and returns their outcomes.
    fn run(&mut self, tasks: &[Task]) -> Vec<Outcome> {
        self.send(tasks);
        self.receive(tasks)
    }

    fn send(&mut self, tasks: &[Task]) {
        for task in tasks {
            let (name, _, values) = task.statement(1);
            let values: Vec<_> = values.iter().map(|value| Some(value.as_str())).collect();
            self.line.put_call(name, &values);
            self.line.put_sync();
        }
        self.line.send().unwrap();
    }

    /// Receives the answers. The client's connection must stay open.
    fn receive(&mut self, tasks: &[Task]) -> Vec<Outcome> {
        let answers: Vec<_> = tasks.iter().map(|_| self.line.answer()).collect();
        assert!(answers.iter().all(|answer| answer.whole), "the client was cut off: {answers:?}");
        self.records.note(tasks, &answers, 1, &AtomicU64::new(0));
        self.records.entries[self.records.entries.len() - tasks.len()..]
            .iter()
            .map(|entry| entry.outcome)
            .collect()
    }

    /// Sends a block and a sale after it. Returns the outcomes of the block and of the sale.
    fn run_block(&mut self) -> [Outcome; 2] {
        self.send_block();
        self.receive_block()
    }

    fn send_block(&mut self) {
        let order = Task::Order(self.number());
        put_block(&mut self.line, order, 1);
        self.send(&[Task::Sell]);
    }

    fn receive_block(&mut self) -> [Outcome; 2] {
        let tasks = [Task::Order(self.next), Task::Sell, Task::Sell];
        let [order, sale] = answers_of_block(&mut self.line);
        let answers = [order, sale, self.line.answer()];
        assert!(answers.iter().all(|answer| answer.whole), "the client was cut off: {answers:?}");
        self.records.note(&tasks, &answers, 1, &AtomicU64::new(0));
        let outcomes: Vec<_> = self.records.entries.iter().rev().take(3).map(|entry| entry.outcome).collect();
        assert_eq!(outcomes[1], outcomes[2], "the block was applied in part: {:#?}", self.records.errors);
        [outcomes[2], outcomes[0]]
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Connects the lane, prepares its statements and runs units. There are enough good orders that a bad one does not
    /// take the statement out of the lanes.  A cut that was due directly after the last answer of the previous round
    /// may happen here and leave these orders unknown. The orders are then sent again.
    fn warm_up(&mut self) {
        for _ in 0..3 {
            let mut tasks: Vec<_> = (0..12).map(|_| Task::Order(self.number())).collect();
            tasks.push(Task::Sell);
            let outcomes = self.run(&tasks);
            assert!(outcomes.iter().all(|outcome| *outcome != Outcome::Failed), "{:#?}", self.records.errors);
            if outcomes.iter().all(|outcome| *outcome == Outcome::Acknowledged) {
                return;
            }
        }
        panic!("a lane without a fault does not work: {:#?}", self.records.errors);
    }

    /// Breaks the lane while units run. Returns none if they completed before the break.
    fn break_once(&mut self, fault: Fault, shape: &Shape) -> Option<Vec<Outcome>> {
        self.warm_up();
        let cuts = self.proxy.cuts();
        self.proxy.arm(fault);
        let tasks: Vec<_> = shape.iter().map(|make| make(self.number())).collect();
        let outcomes = self.run(&tasks);
        self.proxy.disarm();
        (self.proxy.cuts() > cuts).then_some(outcomes)
    }

    /// Breaks the lane at a commit. On a busy machine, units can leave their lane because they take long: then it is tried
    /// again. A lane tries a statement that has taken too long only after 1,000 other runs.
    fn break_commit(&mut self, how: How, shape: &Shape) -> Vec<Outcome> {
        let fault = || Fault { way: Way::ToGateway, after: After::TransactionId, how };
        let broken = (0..15).find_map(|_| {
            let outcomes = self.break_once(fault(), shape);
            if outcomes.is_none() {
                self.return_to_lane();
            }
            outcomes
        });
        broken.expect("a batch ends with its transaction's id")
    }

    /// Runs the statement of an order until the gateway tries it in a lane again, if slow batches have taken it out of the
    /// lanes.
    fn return_to_lane(&mut self) {
        for _ in 0..10 {
            let orders: Vec<_> = (0..10).map(|_| Task::Order(self.number())).collect();
            self.run(&orders);
        }
    }

    /// Breaks the lane after 0, `step`, ... bytes until the units complete. Returns how many units got their answer,
    /// and how many are unknown.
    fn break_everywhere(&mut self, way: Way, how: How, step: usize, shape: &Shape) -> (usize, usize) {
        let (mut exact, mut unknown) = (0, 0);
        for bytes in (0..BYTES_MAX).step_by(step) {
            let fault = Fault { way, after: After::Bytes(bytes), how };
            let Some(outcomes) = self.break_once(fault, shape) else { return (exact, unknown) };
            for (index, outcome) in outcomes.into_iter().enumerate() {
                match outcome {
                    Outcome::Acknowledged => exact += 1,
                    Outcome::Unknown => unknown += 1,
                    Outcome::Failed => {
                        assert!(
                            std::ptr::eq(shape, SECOND_FAILS) && index == 1,
                            "{:#?}",
                            self.records.errors
                        );
                    }
                }
            }
        }
        panic!("these units take more than {BYTES_MAX} bytes");
    }

    /// For each commit in doubt, whether the end of the connection has overtaken the transaction's ID, as the system allows. Then
    /// the gateway has no commit to ask for, and the outcome is unknown.
    fn lost_ids(&self) -> Vec<bool> {
        let log = self.gateway.log();
        let asked = log.lines().filter(|line| line.contains("asking for the outcome"));
        asked.map(|line| line.contains("question=Nothing")).collect()
    }

    /// Breaks a commit. None if its ID was lost.
    fn break_commit_with_id(&mut self, how: How, shape: &Shape) -> Option<Vec<Outcome>> {
        let before = self.lost_ids().len();
        let outcomes = self.break_commit(how, shape);
        if outcomes.contains(&Outcome::Unknown) {
            // The clients can have their answers before the log is here.
            until("the log has the question", || self.lost_ids().len() > before);
        }
        let has_lost = self.lost_ids().get(before..).is_some_and(|asked| asked.last() == Some(&true));
        (!has_lost).then_some(outcomes)
    }

    fn finish(self) {
        assert_eq!(self.records.unexpected(&["ERROR 08007"]), []);
        check(server().port(), &self.schema, &self.records);
        let packed = self.gateway.metric("packed_units_total") as usize;
        assert!(packed * 2 > self.records.entries.len(), "{packed} of {}", self.records.entries.len());
    }
}

#[test]
#[ignore = "long: make test-all"]
fn answers_cut_off_after_any_byte_are_determined_or_reported_as_unknown() {
    let mut stage = Stage::new("cut_answers", "");
    let (exact, unknown) = stage.break_everywhere(Way::ToGateway, How::Cut, 1, THREE);
    assert!(exact > 0 && unknown > 0, "{exact} exact, {unknown} unknown");
    stage.finish();
}

#[test]
#[ignore = "long: make test-all"]
fn answers_swallowed_from_any_byte_on_are_determined_or_reported_as_unknown() {
    let mut stage = Stage::new("swallowed", "");
    let (exact, unknown) = stage.break_everywhere(Way::ToGateway, How::Swallow, 1, THREE);
    assert!(exact > 0 && unknown > 0, "{exact} exact, {unknown} unknown");
    stage.finish();
}

#[test]
#[ignore = "long: make test-all"]
fn requests_cut_off_after_any_byte_are_never_run_twice() {
    let mut stage = Stage::new("cut_questions", "");
    stage.break_everywhere(Way::ToServer, How::Cut, 1, THREE);
    stage.finish();
}

#[test]
#[ignore = "long: make test-all"]
fn a_transaction_of_several_messages_is_answered_message_by_message_wherever_it_is_cut() {
    let mut stage = Stage::new("cut_blocks", "");
    for (way, how, step) in [(Way::ToGateway, How::Cut, 1), (Way::ToServer, How::Cut, 29)] {
        let (mut exact, mut unknown, mut whole) = (0, 0, false);
        for bytes in (0..BYTES_MAX).step_by(step) {
            stage.warm_up();
            let cuts = stage.proxy.cuts();
            stage.proxy.arm(Fault { way, after: After::Bytes(bytes), how });
            for outcome in stage.run_block() {
                match outcome {
                    Outcome::Acknowledged => exact += 1,
                    Outcome::Unknown => unknown += 1,
                    Outcome::Failed => panic!("{:#?}", stage.records.errors),
                }
            }
            stage.proxy.disarm();
            whole = stage.proxy.cuts() == cuts;
            if whole {
                break;
            }
        }
        assert!(whole, "these units take more than {BYTES_MAX} bytes");
        assert!(exact > 0 && (unknown > 0 || way == Way::ToServer), "{exact} exact, {unknown} unknown");
    }
    stage.finish();
}

/// Waits until a unit of this text, which has left its lane, waits for the outsider's lock, and cuts its connection.
/// Its backend keeps waiting until it gets the lock.
fn cut_off_as_it_waits(stage: &Stage, observer: &mut Line, outsider: &str, text: &str) -> String {
    let waiting = format!(
        "select pid from pg_stat_activity
            where pg_blocking_pids(pid) @> '{{{outsider}}}' and application_name <> 'hotrow lane 0' and query like '{text}'"
    );
    let mut pid = None;
    until("a unit waits for the lock alone", || {
        if let [row] = &observer.query(&waiting).rows()[..] {
            pid = row[0].clone();
        }
        pid.is_some()
    });
    stage.proxy.cut_others();
    pid.unwrap()
}

/// Waits until a backend has ended. Otherwise it could be mistaken for the next one that waits.
fn until_ended(observer: &mut Line, pid: &str) {
    let backend = format!("select from pg_stat_activity where pid = {pid}");
    until("the backend ends", || observer.query(&backend).rows().is_empty());
}

fn backend(line: &mut Line) -> String {
    line.query("select pg_backend_pid()").rows()[0][0].clone().unwrap()
}

#[test]
#[ignore = "long: make test-all"]
fn a_transaction_of_several_messages_that_left_its_lane_is_answered_message_by_message() {
    let mut stage = Stage::new("block_alone", "");
    let mut outsider =
        Line::connect(server().port(), "block_alone").unwrap().expect("the server accepts the login");
    let mut observer =
        Line::connect(server().port(), "block_alone").unwrap().expect("the server accepts the login");
    let pid = backend(&mut outsider);
    // Cut at its second statement and at its third.
    for touch in ["update inv set sold = sold", "update blocks set n = n"] {
        stage.warm_up();
        assert_eq!(outsider.query("begin").error(), None);
        assert_eq!(outsider.query(touch).error(), None);
        stage.send_block();
        let cut_off = cut_off_as_it_waits(&stage, &mut observer, &pid, "update %");
        assert_eq!(outsider.query("rollback").error(), None);
        until_ended(&mut observer, &cut_off);
        assert_eq!(
            stage.receive_block(),
            [Outcome::Unknown, Outcome::Acknowledged],
            "{:#?}",
            stage.records.errors
        );
    }
    stage.finish();
}

#[test]
#[ignore = "long: make test-all"]
fn a_batch_that_fails_and_is_cut_off_fails_only_the_bad_units() {
    let mut stage = Stage::new("cut_failures", "");
    let (exact, _) = stage.break_everywhere(Way::ToGateway, How::Cut, 3, SECOND_FAILS);
    assert!(exact > 0);
    stage.break_everywhere(Way::ToServer, How::Cut, 7, SECOND_FAILS);
    // On a busy machine, many units leave the lane because they take long, and their batches are not rolled back.
    assert!(stage.gateway.metric("batches_rolled_back_total") > 0);
    stage.finish();
}

#[test]
fn the_outcome_of_a_commit_whose_confirmation_is_lost_is_always_determined() {
    let mut stage = Stage::new("confirmation", "");
    for _ in 0..50 {
        let outcomes = stage.break_commit(How::Swallow, THREE);
        assert_eq!(outcomes, [Outcome::Acknowledged; 3], "{:#?}", stage.records.errors);
    }
    stage.finish();
}

#[test]
#[ignore = "long: make test-all"]
fn the_gateway_waits_for_a_commit_that_is_still_running() {
    let mut stage = Stage::new("under_way", "-c commit_delay=100000 -c commit_siblings=0");
    for _ in 0..5 {
        let outcomes = (0..5).find_map(|_| stage.break_commit_with_id(How::Cut, THREE));
        assert_eq!(outcomes, Some(vec![Outcome::Acknowledged; 3]), "{:#?}", stage.records.errors);
    }
    stage.finish();
}

#[test]
#[ignore = "long: make test-all"]
fn a_lane_that_breaks_again_during_recovery_recovers_again() {
    let mut stage = Stage::new("asks_again", "");
    for (way, step) in [(Way::ToGateway, 11), (Way::ToServer, 11)] {
        let fits = (0..BYTES_MAX).step_by(step).any(|bytes| {
            let mut next = Some(Fault { way, after: After::Bytes(bytes), how: How::Cut });
            stage.proxy.for_new(move || next.take());
            let cuts = stage.proxy.cuts();
            let outcomes = stage.break_commit(How::Swallow, ONE);
            assert_eq!(outcomes, [Outcome::Acknowledged], "{way:?} {bytes}: {:#?}", stage.records.errors);
            stage.proxy.cuts() == cuts + 1
        });
        assert!(fits, "a login takes more than {BYTES_MAX} bytes");
    }
    stage.finish();
}

#[test]
#[ignore = "long: make test-all"]
fn a_unit_that_left_its_lane_and_lost_its_connection_is_answered_in_order() {
    let mut stage = Stage::new("left_alone", "");
    let mut outsider =
        Line::connect(server().port(), "left_alone").unwrap().expect("the server accepts the login");
    let mut observer =
        Line::connect(server().port(), "left_alone").unwrap().expect("the server accepts the login");
    let pid = backend(&mut outsider);
    for _ in 0..5 {
        stage.warm_up();
        assert_eq!(outsider.query("begin").error(), None);
        assert_eq!(outsider.query("update inv set sold = sold").error(), None);
        let tasks = [Task::Sell, Task::Order(stage.number()), Task::Order(stage.number())];
        stage.send(&tasks);
        let cut_off = cut_off_as_it_waits(&stage, &mut observer, &pid, "%update inv%");
        let outcomes = stage.receive(&tasks);
        assert_eq!(
            outcomes,
            [Outcome::Unknown, Outcome::Acknowledged, Outcome::Acknowledged],
            "{:#?}",
            stage.records.errors
        );
        assert_eq!(outsider.query("rollback").error(), None);
        until_ended(&mut observer, &cut_off);
    }
    stage.finish();
}

#[test]
#[ignore = "long: make test-all"]
fn lanes_that_break_at_random_under_load_lose_no_unit() {
    let mut direct = Line::connect(server().port(), "random").unwrap().expect("the server accepts the login");
    assert_eq!(direct.query(&format!("create schema random; {TABLES}")).error(), None);
    let proxy = Proxy::start(server().port());
    let mut random = fastrand::Rng::with_seed(hotrow_testkit::seed());
    proxy.for_new(move || {
        let way = if random.bool() { Way::ToServer } else { Way::ToGateway };
        let how = if random.bool() { How::Swallow } else { How::Cut };
        let how = if way == Way::ToServer { How::Cut } else { how };
        Some(Fault { way, after: After::Bytes(random.usize(700..30_000)), how })
    });
    let gateway = Gateway::in_front_of(&proxy.url(), &[]);
    let load = Load::start(24, gateway.port(), "random");
    while proxy.cuts() < 60 {
        load.flows(20);
    }
    proxy.disarm();
    load.flows(500);
    let records = load.stop();
    println!(
        "{} acknowledged, {} unknown",
        records.count(Outcome::Acknowledged),
        records.count(Outcome::Unknown)
    );
    check(server().port(), "random", &records);
    assert_eq!(records.unexpected(&["ERROR 08007"]), []);
}
