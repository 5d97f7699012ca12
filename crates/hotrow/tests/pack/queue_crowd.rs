//! Many producers and workers on one queue, through two gateways and directly, while workers fail, give back and vanish,
//! and, in the second test, gateways and the server are killed: each order is processed once, and those of a group one
//! after another.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;

use crate::line::{Answer, Line, Until};
use crate::migrate;
use crate::support::Gateway;

const PRODUCERS: usize = 4;
const WORKERS: usize = 12;
const ORDERS: usize = 250; // of each producer
const GROUPS: usize = 7;
const PATIENCE: Duration = Duration::from_secs(240);

struct Shared {
    ports: [AtomicU16; 3],
    stop: AtomicBool,
    /// How often somebody was told that an order was completed.
    completed: Mutex<HashMap<String, usize>>,
    disturbed: bool,
}

impl Shared {
    /// Asks until there is an answer; after a fault, by another connection.
    fn ask(&self, line: &mut Option<Line>, number: usize, sql: &str) -> Option<Answer> {
        let deadline = Instant::now() + PATIENCE;
        while !self.stop.load(SeqCst) {
            assert!(Instant::now() < deadline, "no answer to {sql}");
            let port = self.ports[number % 3].load(SeqCst);
            if line.is_none() {
                *line = Line::connect(port, "public").ok().and_then(Result::ok);
            }
            let Some(connected) = line else {
                thread::sleep(Duration::from_millis(5)); // nobody tells when the other end is back
                continue;
            };
            connected.put_query(sql);
            let answer = connected.send().map(|()| connected.answer());
            match answer {
                Ok(answer) if answer.whole && answer.error().is_none() => return Some(answer),
                other => assert!(self.disturbed, "{sql}: {:?}", other.map(|answer| answer.error())),
            }
            *line = None;
        }
        None
    }

    fn produce(&self, number: usize) {
        let mut line = None;
        for order in 0..ORDERS {
            let (id, group) = (number * ORDERS + order, order % (GROUPS + 2));
            let group = if group < GROUPS { format!("'g{group}'") } else { "null".to_owned() };
            let sql = format!(
                "select status from hotrow.enqueue('crowd', '00000000-0000-0000-0000-{id:012}', '{{}}', {group})"
            );
            let Some(answer) = self.ask(&mut line, number, &sql) else { return };
            let status = answer.rows().remove(0).remove(0).unwrap_or_default();
            assert!(status == "enqueued" || self.disturbed && status == "duplicate", "{status}");
        }
    }

    fn work(&self, number: usize) {
        let (mut line, mut random) = (None, fastrand::Rng::new());
        while !self.stop.load(SeqCst) {
            let take = format!(
                "select receipt, order_id from hotrow.take('crowd', {}, '2 seconds')",
                random.usize(1..=5)
            );
            let Some(answer) = self.ask(&mut line, number, &take) else { return };
            for order in answer.rows() {
                let (receipt, id) = (order[0].as_deref().unwrap(), order[1].clone().unwrap());
                let call = match random.u8(0..20) {
                    0 => format!("fail('crowd', {receipt}, 'no', '0.01 seconds')"),
                    1 => format!("release('crowd', {receipt})"),
                    2 if random.bool() => continue, // its lease will end
                    _ => format!("complete('crowd', {receipt})"),
                };
                let sql = format!("select outcome from hotrow.{call}");
                let Some(answer) = self.ask(&mut line, number, &sql) else { return };
                if answer.rows()[0][0].as_deref() == Some("completed") {
                    *self.completed.lock().unwrap().entry(id).or_default() += 1;
                }
            }
        }
    }
}

/// Runs the crowd until all is processed; `meanwhile` is called again and again.
fn run(server: &PrivateServer, gateways: [u16; 2], disturbed: bool, mut meanwhile: impl FnMut(&Shared)) {
    let mut line = Line::connect(server.port(), "public").unwrap().expect("the server takes us");
    assert_eq!(line.query("select hotrow.create_queue('crowd', max_attempts => 1000)").error(), None);
    let ports = [gateways[0], gateways[1], server.port()].map(AtomicU16::new);
    let shared = Shared { ports, stop: AtomicBool::new(false), completed: Mutex::default(), disturbed };
    let all = (PRODUCERS * ORDERS).to_string();
    thread::scope(|scope| {
        let _until = Until(&shared.stop);
        for number in 0..PRODUCERS {
            scope.spawn({
                let shared = &shared;
                move || shared.produce(number)
            });
        }
        for number in 0..WORKERS {
            scope.spawn({
                let shared = &shared;
                move || shared.work(number)
            });
        }
        let (deadline, mut watch) = (Instant::now() + PATIENCE, Some(line));
        loop {
            assert!(Instant::now() < deadline, "not all orders were processed");
            meanwhile(&shared);
            let asked = shared.ask(&mut watch, 2, "select processed from hotrow.queue_stats('crowd')");
            if asked.is_some_and(|answer| answer.rows()[0][0].as_deref() == Some(&*all)) {
                break;
            }
            thread::sleep(Duration::from_millis(20)); // a look at the whole costs the crowd
        }
    });
    let mut line = Line::connect(server.port(), "public").unwrap().expect("the server takes us");
    let once = "select count(*), count(distinct id) from hotrow.processed_order";
    assert_eq!(line.query(once).rows(), [[Some(all.clone()), Some(all)]]);
    let overtaken = "select count(*) from (
            select p.taken_at, lag(p.done_at) over (partition by o.group_key order by p.id) as before
            from hotrow.processed_order p join hotrow.queue_order o on o.id = p.id where o.group_key is not null) g
        where g.taken_at < g.before";
    assert_eq!(line.query(overtaken).rows(), [[Some("0".to_owned())]], "a group's orders overlap");
    let stats = "select depth, in_flight, dead from hotrow.queue_stats('crowd')";
    assert_eq!(line.query(stats).rows(), [["0", "0", "0"].map(|zero| Some(zero.to_owned()))]);
    let completed = shared.completed.lock().unwrap();
    assert!(completed.values().all(|times| *times == 1), "an order was completed twice");
    assert!(disturbed || completed.len() == PRODUCERS * ORDERS, "somebody completed each");
}

#[test]
fn a_crowd_processes_each_order_once_and_groups_in_order() {
    let server = PrivateServer::builder().label("queuecrowd").start().unwrap();
    migrate(&server.url());
    let gateways =
        [Gateway::in_front_of(&server.url(), &[]), Gateway::in_front_of(&server.url(), &["--lanes", "2"])];
    run(&server, [gateways[0].port(), gateways[1].port()], false, |_| {});
    let merged = gateways.iter().map(|gateway| gateway.metric("merged_units_total")).sum::<u64>();
    assert!(merged > 0, "no calls were merged");
}

#[test]
fn a_crowd_does_so_while_gateways_and_the_server_are_killed() {
    let server = PrivateServer::builder().label("queuecrash").start().unwrap();
    migrate(&server.url());
    let mut gateways = [Gateway::in_front_of(&server.url(), &[]), Gateway::in_front_of(&server.url(), &[])];
    let ports = [gateways[0].port(), gateways[1].port()];
    let mut round = 0;
    run(&server, ports, true, |shared| {
        round += 1;
        if round % 20 == 0 && round <= 60 {
            server.kill_dash_nine().unwrap();
            server.restart().unwrap();
        } else if round % 20 == 10 && round <= 60 {
            let (place, next) = (round / 20 % 2, Gateway::in_front_of(&server.url(), &[]));
            shared.ports[place].store(next.port(), SeqCst);
            std::mem::replace(&mut gateways[place], next).kill_dash_nine();
        }
    });
    assert!(round > 20, "the crowd was done before anything died");
}
