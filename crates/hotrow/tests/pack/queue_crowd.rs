//! Many producers and workers on one queue, through two gateways and directly, while workers fail, release and
//! disappear, the ring rotates, and, in the second test, gateways and the server are killed: each order is processed
//! once, and the orders of a group one after another. And faults planted in the SQL, which the crowd must notice.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::{Answer, Line, Until};
use hotrow_testkit::{Gateway, programs};

use crate::migrate;
use crate::planted::{Fault, missed};

const PRODUCERS: usize = 4;
const WORKERS: usize = 12;
/// Orders of each producer in a whole run.
const ORDERS: u64 = 250;
const GROUPS: usize = 7;
const CROWDS_MAX: usize = 4;
const PATIENCE: Duration = Duration::from_secs(240);

struct Shared {
    queue: String,
    ports: [AtomicU16; 3],
    stop: AtomicBool,
    /// Orders of each producer.
    orders: usize,
    /// The first unexpected event.
    wrong: Mutex<Option<String>>,
    /// How often a worker got the answer that an order was completed.
    completed: Mutex<HashMap<String, usize>>,
    disturbed: bool,
}

impl Shared {
    /// Ends the run if the condition is false.
    fn expect(&self, is_so: bool, otherwise: impl FnOnce() -> String) -> Option<()> {
        if !is_so {
            self.wrong.lock().unwrap().get_or_insert_with(otherwise);
            self.stop.store(true, SeqCst);
        }
        is_so.then_some(())
    }

    /// Sends a statement until it is answered, on a new connection after a fault.
    fn ask(&self, line: &mut Option<Line>, number: usize, sql: &str) -> Option<Answer> {
        let deadline = Instant::now() + PATIENCE;
        while !self.stop.load(SeqCst) {
            self.expect(Instant::now() < deadline, || format!("no answer to {sql}"))?;
            let port = self.ports[number % 3].load(SeqCst);
            if line.is_none() {
                *line = Line::connect(port, "public").ok().and_then(Result::ok);
            }
            let Some(connected) = line else {
                thread::sleep(Duration::from_millis(5)); // nothing signals that the other end is back
                continue;
            };
            connected.put_query(sql);
            let answer = connected.send().map(|()| connected.answer());
            match answer {
                Ok(answer) if answer.whole && answer.error().is_none() => return Some(answer),
                other => self
                    .expect(self.disturbed, || format!("{sql}: {:?}", other.map(|answer| answer.error())))?,
            }
            *line = None;
        }
        None
    }

    fn produce(&self, number: usize) -> Option<()> {
        let mut line = None;
        for order in 0..self.orders {
            let (id, group) = (number * self.orders + order, order % (GROUPS + 2));
            let group = if group < GROUPS { format!("'g{group}'") } else { "null".to_owned() };
            let sql = format!(
                "select status from hotrow.enqueue('{}', '00000000-0000-0000-0000-{id:012}', '{{}}', {group})",
                self.queue
            );
            let status = self.ask(&mut line, number, &sql)?.rows().remove(0).remove(0).unwrap_or_default();
            self.expect(status == "enqueued" || self.disturbed && status == "duplicate", || {
                format!("{id} is {status}")
            })?;
        }
        Some(())
    }

    fn work(&self, number: usize) -> Option<()> {
        let (mut line, mut random, queue) = (None, fastrand::Rng::new(), &self.queue);
        while !self.stop.load(SeqCst) {
            // Most workers wait for orders. The others ask again and again while groups wait for the end of a lease.
            let wait = if random.u8(0..8) == 0 { "" } else { ", '0.1 seconds'" };
            let take = format!(
                "select receipt, order_id from hotrow.take('{queue}', {}, '2 seconds'{wait})",
                random.usize(1..=5)
            );
            for order in self.ask(&mut line, number, &take)?.rows() {
                let (receipt, id) = (order[0].as_deref().unwrap(), order[1].clone().unwrap());
                let call = match random.u8(0..20) {
                    0 => format!("fail('{queue}', {receipt}, 'no', '0.01 seconds')"),
                    1 => format!("release('{queue}', {receipt})"),
                    2 if random.bool() => continue, // its lease will end
                    _ => format!("complete('{queue}', {receipt})"),
                };
                let sql = format!("select outcome from hotrow.{call}");
                let answer = self.ask(&mut line, number, &sql)?;
                if answer.rows()[0][0].as_deref() == Some("completed") {
                    *self.completed.lock().unwrap().entry(id).or_default() += 1;
                }
            }
        }
        Some(())
    }

    /// Checks that each order was processed once, and the orders of a group one after another.
    fn check(&self, line: &mut Line) -> Option<()> {
        let mut is = |sql: &str, right: &[&str]| {
            let sql = sql.replace("{QUEUE}", &self.queue);
            let found = line.query(&sql).rows();
            let right: Vec<_> = right.iter().map(|value| Some((*value).to_owned())).collect();
            self.expect(found == [right], || format!("{sql}: {found:?}"))
        };
        let all = (PRODUCERS * self.orders).to_string();
        is(
            "select count(*), count(distinct p.order_id) from hotrow.processed_order p
            join hotrow.queue q on q.number = p.queue where q.queue = '{QUEUE}'",
            &[&all, &all],
        )?;
        is(
            "select count(*) from (
                select p.taken_at, lag(p.done_at) over (partition by o.group_key order by p.id) as before
                from hotrow.processed_order p join hotrow.queue_order o on o.queue = p.queue and o.id = p.id
                    join hotrow.queue q on q.number = p.queue
                where q.queue = '{QUEUE}' and o.group_key is not null) g
            where g.taken_at < g.before",
            &["0"],
        )?;
        is("select depth, in_flight, dead from hotrow.queue_stats('{QUEUE}')", &["0", "0", "0"])?;
        let completed = self.completed.lock().unwrap();
        let once = completed.values().all(|times| *times == 1);
        self.expect(once, || "an order was completed twice".to_owned())?;
        let each = self.disturbed || completed.len() == PRODUCERS * self.orders;
        self.expect(each, || "no worker got the answer that an order is completed".to_owned())
    }
}

/// Runs the crowd on a new queue until all orders are processed or an error occurs. Calls `meanwhile` repeatedly.
fn run(
    server: &PrivateServer,
    gateways: [u16; 2],
    (queue, shards, orders): (String, usize, u64),
    disturbed: bool,
    mut meanwhile: impl FnMut(&Shared),
) -> Result<(), String> {
    let mut line = Line::connect(server.port(), "public").unwrap().expect("the server accepts the login");
    let create = format!("select hotrow.create_queue('{queue}', {shards}, max_attempts => 1000)");
    assert_eq!(line.query(&create).rows(), [[Some("created".to_owned())]]);
    let ports = [gateways[0], gateways[1], server.port()].map(AtomicU16::new);
    let (stop, wrong, completed) = (AtomicBool::new(false), Mutex::default(), Mutex::default());
    let orders = orders as usize;
    let shared = Shared { queue, orders, ports, stop, wrong, completed, disturbed };
    let all = (PRODUCERS * shared.orders).to_string();
    thread::scope(|scope| {
        let (_until, shared) = (Until(&shared.stop), &shared);
        for number in 0..PRODUCERS {
            scope.spawn(move || shared.produce(number));
        }
        for number in 0..WORKERS {
            scope.spawn(move || shared.work(number));
        }
        let (deadline, mut watch) = (Instant::now() + PATIENCE, Some(line));
        let processed = format!("select processed from hotrow.queue_stats('{}')", shared.queue);
        while !shared.stop.load(SeqCst) {
            shared.expect(Instant::now() < deadline, || "not all orders were processed".to_owned());
            meanwhile(shared);
            let answer = shared.ask(&mut watch, 2, &processed);
            if answer.is_some_and(|answer| answer.rows()[0][0].as_deref() == Some(&*all)) {
                break;
            }
            thread::sleep(Duration::from_millis(20)); // reading the statistics slows the crowd down
        }
    });
    if shared.wrong.lock().unwrap().is_none() {
        let mut line = Line::connect(server.port(), "public").unwrap().expect("the server accepts the login");
        shared.check(&mut line);
    }
    shared.wrong.into_inner().unwrap().map_or(Ok(()), Err)
}

#[test]
fn a_crowd_processes_each_order_once_and_groups_in_order() {
    let server = PrivateServer::builder().label("queuecrowd").start().unwrap();
    migrate(&server.url());
    let gateways =
        [Gateway::in_front_of(&server.url(), &[]), Gateway::in_front_of(&server.url(), &["--lanes", "2"])];
    for shards in [1, 3] {
        let queue = (format!("crowd{shards}"), shards, programs(ORDERS).max(60));
        let (mut line, mut round, mut moved) =
            (Line::connect(server.port(), "public").unwrap().expect("the server accepts the login"), 0, 0);
        let ran = run(&server, [gateways[0].port(), gateways[1].port()], queue, false, |_| {
            round += 1;
            // After the third rotation the ring would return to the part with this queue's first orders. In one
            // transaction, because a gateway's maintenance also rotates a ring that is old enough, and that would not be
            // counted.
            if round % 10 == 5 && moved < 3 {
                line.query("begin");
                line.query("update hotrow.queue_ring set opened_at = opened_at - interval '30 days'");
                let rotated = line.query("select status from hotrow.rotate_queues()").rows();
                let has_moved = rotated[0][0].as_deref() == Some("rotated");
                line.query(if has_moved { "commit" } else { "rollback" });
                moved += usize::from(has_moved);
            }
        });
        assert_eq!(ran, Ok(()), "{shards} shards");
        assert!(moved > 0, "the ring did not rotate during the run");
    }
    let merged = gateways.iter().map(|gateway| gateway.metric("merged_units_total")).sum::<u64>();
    assert!(merged > 0, "no calls were merged");
}

#[test]
#[ignore = "long: make test-all"]
fn a_crowd_processes_each_order_once_while_gateways_and_the_server_are_killed() {
    let server = PrivateServer::builder().label("queuecrash").start().unwrap();
    migrate(&server.url());
    let mut gateways = [Gateway::in_front_of(&server.url(), &[]), Gateway::in_front_of(&server.url(), &[])];
    for shards in [1, 3] {
        let ports = [gateways[0].port(), gateways[1].port()];
        let mut round = 0;
        let ran = run(&server, ports, (format!("crowd{shards}"), shards, ORDERS), true, |shared| {
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
        assert_eq!(ran, Ok(()), "{shards} shards");
        assert!(round > 20, "the crowd was done before the first kill");
    }
}

/// Faults that only concurrent clients notice.
const FAULTS: [Fault; 2] = [
    ("lock_head", "l.side = 'h' for update;", "l.side = 'h';"),
    ("lock_tail", "l.side = 't' for update;", "l.side = 't';"),
];

#[test]
#[ignore = "long: make test-all"]
fn a_crowd_notices_a_missing_lock_of_an_end_of_the_queue() {
    let (server, mut line) = crate::private("queuefaults");
    let gateways = [Gateway::in_front_of(&server.url(), &[]), Gateway::in_front_of(&server.url(), &[])];
    let ports = [gateways[0].port(), gateways[1].port()];
    let missed = missed(&mut line, &FAULTS, |_, fault| {
        (0..CROWDS_MAX)
            .map(|crowd| (format!("crowd.{fault}.{crowd}"), 1, ORDERS))
            .any(|queue| run(&server, ports, queue, false, |_| {}).is_err())
    });
    assert_eq!(missed, [], "no run noticed these");
}
