//! Promise 5 byte by byte: a lane's connection that breaks after n bytes, for every n and in either direction. The
//! clients' own connections live on, and each unit is answered: exactly, or with 08007. Dying processes are in
//! `faults/`.

use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use hotrow_testkit::line::Line;
use hotrow_testkit::proxy::{After, Fault, How, Proxy, Way};
use hotrow_testkit::{Gateway, server};

use crate::checker::check;
use crate::load::{Book, Fate, Load, ORDER, SELL, TABLES, Task, answers_of_block, put_block};

/// What is sent together while a connection breaks; a number becomes a unit.
type Shape = [fn(u64) -> Task];
const ONE: &Shape = &[Task::Order];
const THREE: &Shape = &[Task::Order, Task::Order, |_| Task::Sell];
const SECOND_FAILS: &Shape = &[Task::Order, Task::BadOrder, |_| Task::Sell];

/// Longer than what a batch of a few units, or a log-in, takes in either direction.
const BYTES_MAX: usize = 9_000;

/// A gateway behind a proxy, with one lane, and one client.
struct Stage {
    schema: String,
    proxy: Proxy,
    gateway: Gateway,
    line: Line,
    book: Book,
    next: u64,
}

impl Stage {
    /// With more start-up options of the client's, which its lane gets too.
    fn new(schema: &str, options: &str) -> Self {
        let mut direct = Line::connect(server().port(), schema).unwrap().expect("the server takes us");
        assert_eq!(direct.query(&format!("create schema {schema}; {TABLES}")).error(), None);
        let proxy = Proxy::start(server().port());
        let gateway = Gateway::in_front_of(&proxy.url(), &["--lanes", "1"]);
        let start = format!("{schema} {options}");
        let mut line = Line::connect(gateway.port(), &start).unwrap().expect("the gateway takes us");
        line.put_prepare("order", ORDER);
        line.put_prepare("sell", SELL);
        line.send().unwrap();
        (0..2).for_each(|_| assert_eq!(line.answer().error(), None));
        Self { schema: schema.to_owned(), proxy, gateway, line, book: Book::default(), next: 0 }
    }

    /// Sends units together and returns what became of them.
    fn run(&mut self, tasks: &[Task]) -> Vec<Fate> {
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

    /// The client's connection has to survive.
    fn receive(&mut self, tasks: &[Task]) -> Vec<Fate> {
        let answers: Vec<_> = tasks.iter().map(|_| self.line.answer()).collect();
        assert!(answers.iter().all(|answer| answer.whole), "the client was cut off: {answers:?}");
        self.book.note(tasks, &answers, 1, &AtomicU64::new(0));
        self.book.entries[self.book.entries.len() - tasks.len()..].iter().map(|entry| entry.fate).collect()
    }

    /// Sends a block, and a sale behind it; what became of the block and of the sale.
    fn run_block(&mut self) -> [Fate; 2] {
        self.send_block();
        self.receive_block()
    }

    fn send_block(&mut self) {
        let order = Task::Order(self.number());
        put_block(&mut self.line, order, 1);
        self.send(&[Task::Sell]);
    }

    fn receive_block(&mut self) -> [Fate; 2] {
        let tasks = [Task::Order(self.next), Task::Sell, Task::Sell];
        let [order, sale] = answers_of_block(&mut self.line);
        let answers = [order, sale, self.line.answer()];
        assert!(answers.iter().all(|answer| answer.whole), "the client was cut off: {answers:?}");
        self.book.note(&tasks, &answers, 1, &AtomicU64::new(0));
        let fates: Vec<_> = self.book.entries.iter().rev().take(3).map(|entry| entry.fate).collect();
        assert_eq!(fates[1], fates[2], "all of it or nothing: {:#?}", self.book.errors);
        [fates[2], fates[0]]
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The lane is connected, its statements are prepared, and it works. There are so many good orders that a bad one
    /// does not get the statement out of the lanes.
    ///
    /// A cut that was due right behind the last answer of the time before may fall into it, so that it is unknown
    /// what became of these orders: then once more.
    fn warm_up(&mut self) {
        for _ in 0..3 {
            let mut tasks: Vec<_> = (0..12).map(|_| Task::Order(self.number())).collect();
            tasks.push(Task::Sell);
            let fates = self.run(&tasks);
            assert!(fates.iter().all(|fate| *fate != Fate::Failed), "{:#?}", self.book.errors);
            if fates.iter().all(|fate| *fate == Fate::Acknowledged) {
                return;
            }
        }
        panic!("a lane that nobody cuts does not work: {:#?}", self.book.errors);
    }

    /// Breaks the lane under some units; none when they got through before it broke.
    fn break_once(&mut self, fault: Fault, shape: &Shape) -> Option<Vec<Fate>> {
        self.warm_up();
        let cuts = self.proxy.cuts();
        self.proxy.arm(fault);
        let tasks: Vec<_> = shape.iter().map(|make| make(self.number())).collect();
        let fates = self.run(&tasks);
        self.proxy.disarm();
        (self.proxy.cuts() > cuts).then_some(fates)
    }

    /// Breaks the lane after 0, `step`, ... bytes until the units get through. How many units got their answer, and
    /// of how many it could not be found out.
    fn break_everywhere(&mut self, way: Way, how: How, step: usize, shape: &Shape) -> (usize, usize) {
        let (mut exact, mut unknown) = (0, 0);
        for bytes in (0..BYTES_MAX).step_by(step) {
            let fault = Fault { way, after: After::Bytes(bytes), how };
            let Some(fates) = self.break_once(fault, shape) else { return (exact, unknown) };
            for (index, fate) in fates.into_iter().enumerate() {
                match fate {
                    Fate::Acknowledged => exact += 1,
                    Fate::Unknown => unknown += 1,
                    Fate::Failed => {
                        assert!(std::ptr::eq(shape, SECOND_FAILS) && index == 1, "{:#?}", self.book.errors);
                    }
                }
            }
        }
        panic!("so few units take more than {BYTES_MAX} bytes");
    }

    fn finish(self) {
        assert_eq!(self.book.unexpected(&["ERROR 08007"]), []);
        check(server().port(), &self.schema, &self.book);
        let packed = self.gateway.metric("packed_units_total") as usize;
        assert!(packed * 2 > self.book.entries.len(), "{packed} of {}", self.book.entries.len());
    }
}

#[test]
fn answers_cut_off_after_any_byte_are_found_out_or_said_to_be_unknown() {
    let mut stage = Stage::new("cut_answers", "");
    let (exact, unknown) = stage.break_everywhere(Way::ToGateway, How::Cut, 1, THREE);
    assert!(exact > 0 && unknown > 0, "{exact} exact, {unknown} unknown");
    stage.finish();
}

#[test]
fn answers_swallowed_from_any_byte_on_are_found_out_or_said_to_be_unknown() {
    let mut stage = Stage::new("swallowed", "");
    let (exact, unknown) = stage.break_everywhere(Way::ToGateway, How::Swallow, 1, THREE);
    assert!(exact > 0 && unknown > 0, "{exact} exact, {unknown} unknown");
    stage.finish();
}

#[test]
fn questions_cut_off_after_any_byte_are_never_run_twice() {
    let mut stage = Stage::new("cut_questions", "");
    stage.break_everywhere(Way::ToServer, How::Cut, 1, THREE);
    stage.finish();
}

#[test]
fn a_transaction_of_several_messages_is_answered_message_by_message_wherever_it_is_cut() {
    let mut stage = Stage::new("cut_blocks", "");
    for (way, how, step) in [(Way::ToGateway, How::Cut, 1), (Way::ToServer, How::Cut, 29)] {
        let (mut exact, mut unknown, mut whole) = (0, 0, false);
        for bytes in (0..BYTES_MAX).step_by(step) {
            stage.warm_up();
            let cuts = stage.proxy.cuts();
            stage.proxy.arm(Fault { way, after: After::Bytes(bytes), how });
            for fate in stage.run_block() {
                match fate {
                    Fate::Acknowledged => exact += 1,
                    Fate::Unknown => unknown += 1,
                    Fate::Failed => panic!("{:#?}", stage.book.errors),
                }
            }
            stage.proxy.disarm();
            whole = stage.proxy.cuts() == cuts;
            if whole {
                break;
            }
        }
        assert!(whole, "so few units take more than {BYTES_MAX} bytes");
        assert!(exact > 0 && (unknown > 0 || way == Way::ToServer), "{exact} exact, {unknown} unknown");
    }
    stage.finish();
}

/// Waits until a unit of this text, which has left its lane, waits for the outsider's lock, and cuts its connection. The
/// backend that it waited on goes on until it gets the lock.
fn cut_off_as_it_waits(stage: &Stage, observer: &mut Line, outsider: &str, text: &str) -> String {
    let waiting = format!(
        "select pid from pg_stat_activity
            where pg_blocking_pids(pid) @> '{{{outsider}}}' and application_name <> 'hotrow lane 0' and query like '{text}'"
    );
    loop {
        if let [row] = &observer.query(&waiting).rows()[..] {
            stage.proxy.cut_others();
            return row[0].clone().unwrap();
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a backend has ended, so that it is not taken for the next one that waits.
fn until_ended(observer: &mut Line, pid: &str) {
    while !observer.query(&format!("select from pg_stat_activity where pid = {pid}")).rows().is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
}

fn backend(line: &mut Line) -> String {
    line.query("select pg_backend_pid()").rows()[0][0].clone().unwrap()
}

#[test]
fn a_transaction_of_several_messages_that_left_its_lane_is_answered_message_by_message() {
    let mut stage = Stage::new("block_alone", "");
    let mut outsider = Line::connect(server().port(), "block_alone").unwrap().expect("the server takes us");
    let mut observer = Line::connect(server().port(), "block_alone").unwrap().expect("the server takes us");
    let pid = backend(&mut outsider);
    // Cut off at its second statement and at its third.
    for touch in ["update inv set sold = sold", "update blocks set n = n"] {
        stage.warm_up();
        assert_eq!(outsider.query("begin").error(), None);
        assert_eq!(outsider.query(touch).error(), None);
        stage.send_block();
        let cut_off = cut_off_as_it_waits(&stage, &mut observer, &pid, "update %");
        assert_eq!(outsider.query("rollback").error(), None);
        until_ended(&mut observer, &cut_off);
        assert_eq!(stage.receive_block(), [Fate::Unknown, Fate::Acknowledged], "{:#?}", stage.book.errors);
    }
    stage.finish();
}

#[test]
fn a_batch_that_fails_and_is_cut_off_fails_only_whom_it_must() {
    let mut stage = Stage::new("cut_failures", "");
    let (exact, _) = stage.break_everywhere(Way::ToGateway, How::Cut, 3, SECOND_FAILS);
    assert!(exact > 0);
    stage.break_everywhere(Way::ToServer, How::Cut, 7, SECOND_FAILS);
    assert!(stage.gateway.metric("batches_rolled_back_total") > 50);
    stage.finish();
}

#[test]
fn a_commit_whose_confirmation_is_lost_is_always_found_out() {
    let mut stage = Stage::new("confirmation", "");
    for _ in 0..50 {
        let fault = Fault { way: Way::ToGateway, after: After::TransactionId, how: How::Swallow };
        let fates = stage.break_once(fault, THREE).expect("a batch ends with its transaction's id");
        assert_eq!(fates, [Fate::Acknowledged; 3], "{:#?}", stage.book.errors);
    }
    stage.finish();
}

#[test]
fn a_commit_that_is_still_under_way_is_waited_for() {
    let mut stage = Stage::new("under_way", "-c commit_delay=100000 -c commit_siblings=0");
    for _ in 0..5 {
        let fault = Fault { way: Way::ToGateway, after: After::TransactionId, how: How::Cut };
        let fates = stage.break_once(fault, THREE).expect("a batch ends with its transaction's id");
        assert_eq!(fates, [Fate::Acknowledged; 3], "{:#?}", stage.book.errors);
    }
    stage.finish();
}

#[test]
fn a_lane_that_breaks_again_while_it_asks_asks_again() {
    let mut stage = Stage::new("asks_again", "");
    for (way, step) in [(Way::ToGateway, 11), (Way::ToServer, 11)] {
        let fits = (0..BYTES_MAX).step_by(step).any(|bytes| {
            let mut next = Some(Fault { way, after: After::Bytes(bytes), how: How::Cut });
            stage.proxy.for_new(move || next.take());
            let cuts = stage.proxy.cuts();
            let lost = Fault { way: Way::ToGateway, after: After::TransactionId, how: How::Swallow };
            let fates = stage.break_once(lost, ONE).expect("a batch ends with its transaction's id");
            assert_eq!(fates, [Fate::Acknowledged], "{way:?} {bytes}: {:#?}", stage.book.errors);
            stage.proxy.cuts() == cuts + 1
        });
        assert!(fits, "a log-in takes more than {BYTES_MAX} bytes");
    }
    stage.finish();
}

#[test]
fn a_unit_that_left_its_lane_and_lost_its_connection_is_answered_in_its_place() {
    let mut stage = Stage::new("left_alone", "");
    let mut outsider = Line::connect(server().port(), "left_alone").unwrap().expect("the server takes us");
    let mut observer = Line::connect(server().port(), "left_alone").unwrap().expect("the server takes us");
    let pid = backend(&mut outsider);
    for _ in 0..5 {
        stage.warm_up();
        assert_eq!(outsider.query("begin").error(), None);
        assert_eq!(outsider.query("update inv set sold = sold").error(), None);
        let tasks = [Task::Sell, Task::Order(stage.number()), Task::Order(stage.number())];
        stage.send(&tasks);
        let cut_off = cut_off_as_it_waits(&stage, &mut observer, &pid, "%update inv%");
        let fates = stage.receive(&tasks);
        assert_eq!(
            fates,
            [Fate::Unknown, Fate::Acknowledged, Fate::Acknowledged],
            "{:#?}",
            stage.book.errors
        );
        assert_eq!(outsider.query("rollback").error(), None);
        until_ended(&mut observer, &cut_off);
    }
    stage.finish();
}

#[test]
fn lanes_that_break_at_random_under_load_lose_nothing() {
    let seed = std::env::var("HOTROW_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("HOTROW_SEED={seed}");
    let mut direct = Line::connect(server().port(), "random").unwrap().expect("the server takes us");
    assert_eq!(direct.query(&format!("create schema random; {TABLES}")).error(), None);
    let proxy = Proxy::start(server().port());
    let mut random = fastrand::Rng::with_seed(seed);
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
    let book = load.stop();
    println!("{} acknowledged, {} unknown", book.count(Fate::Acknowledged), book.count(Fate::Unknown));
    check(server().port(), "random", &book);
    assert_eq!(book.unexpected(&["ERROR 08007"]), []);
}
