//! Feeds under many clients: every message is consumed exactly once, through two gateways and directly, across killed
//! gateways and servers, and an interrupted fan-out is completed. Never the answer of a single call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::Gateway;
use hotrow_testkit::line::{Line, Until, until};

use crate::client::connect;
use crate::history::PATIENCE;
use crate::migrate;
use crate::planted::{CROWDS_MAX, Fault, missed};

/// Few inboxes, because their readers and writers should meet.
pub const INBOXES: i64 = 6;
pub const AUTHORS: [i64; 2] = [1001, 1002];
const WRITERS: usize = 6;
const READERS: usize = 6;
const WRITES: usize = 110;
/// Errors of calls that were not run or whose outcome is unknown. XX000 is that of Citus if a node fails while it commits.
const TRY_AGAIN: [&str; 7] = ["08007", "08006", "57P01", "57P02", "57P03", "53300", "XX000"];

/// Returns a row if a post has not reached all followers.
const IS_PENDING: &str = "select from hotrow.feed_stats() s where s.posts_queued > 0 or s.followers_left > 0";

/// State that all clients share.
pub struct Feeds {
    ports: Vec<AtomicU16>,
    /// Acknowledged messages by inbox. Posts are in all inboxes.
    sent: Mutex<BTreeMap<i64, BTreeSet<String>>>,
    /// The readers' messages by inbox, in the order of their answers.
    got: Mutex<Vec<(i64, i64, String)>>,
    acknowledged: AtomicUsize,
    /// Reads with unknown outcomes.
    pub lost_reads: AtomicUsize,
    written: AtomicBool,
    over: AtomicBool,
}

/// A client that reconnects.
struct Client<'a> {
    feeds: &'a Feeds,
    number: usize,
    line: Option<Line>,
}

impl Feeds {
    /// Waits until this number of further messages is acknowledged.
    pub fn flow(&self, messages: usize) {
        let wanted = (self.acknowledged.load(SeqCst) + messages).min(WRITERS * WRITES);
        until("the messages are acknowledged", || self.acknowledged.load(SeqCst) >= wanted);
    }
}

impl Client<'_> {
    /// One attempt. An error says whether the call was sent, because then its outcome is unknown.
    fn ask(&mut self, sql: &str, values: &[Option<&str>]) -> Result<Vec<Vec<Option<String>>>, bool> {
        if self.line.is_none() {
            let ports = &self.feeds.ports;
            self.line = connect(ports[self.number % ports.len()].load(SeqCst));
        }
        let Some(line) = &mut self.line else {
            thread::sleep(Duration::from_millis(5)); // nothing signals that the other end is back
            return Err(false);
        };
        line.put_unnamed_call(sql, values);
        line.put_sync();
        let answer = line.send().is_ok().then(|| line.answer()).filter(|answer| answer.whole);
        let Some(answer) = answer else {
            self.line = None;
            return Err(true);
        };
        match answer.error() {
            None => Ok(answer.rows()),
            Some(report) => {
                // Citus finds it between nodes, also while it has not rolled back what a killed node left prepared. A single
                // server must find none.
                let between_nodes = report.message.contains("distributed deadlock");
                assert!(between_nodes || TRY_AGAIN.contains(&report.code.as_str()), "{sql}: {report:?}");
                Err(true)
            }
        }
    }

    /// Repeats a call with the same request ID until it succeeds.
    fn insist(&mut self, sql: &str, values: &[Option<&str>]) -> Vec<Vec<Option<String>>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < deadline, "{sql} was not answered");
            if let Ok(rows) = self.ask(sql, values) {
                return rows;
            }
        }
    }

    fn write(&mut self) {
        for message in 0..WRITES {
            let content = format!("{}.{message}", self.number);
            let id = format!("{:032x}", fastrand::u128(..));
            let (text, id) = (Some(content.as_str()), Some(id.as_str()));
            let inboxes = if fastrand::u8(0..4) == 0 {
                let author = AUTHORS[fastrand::usize(0..2)].to_string();
                self.insist("select * from hotrow.post($1, $2, $3)", &[Some(&author), text, id]);
                0..INBOXES
            } else {
                let inbox = fastrand::i64(0..INBOXES);
                let user = inbox.to_string();
                let sql = "select * from hotrow.push($1, $2, $3, $4, $5)";
                self.insist(sql, &[Some(&user), Some("7"), text, None, id]);
                inbox..inbox + 1
            };
            let mut sent = self.feeds.sent.lock().unwrap();
            for inbox in inboxes {
                sent.entry(inbox).or_default().insert(content.clone());
            }
            drop(sent);
            self.feeds.acknowledged.fetch_add(1, SeqCst);
        }
    }

    /// Reads until everything is written and every inbox is empty.
    fn read(&mut self) {
        let mut empty = BTreeSet::new();
        while empty.len() < INBOXES as usize && !self.feeds.over.load(SeqCst) {
            let all_is_there = self.feeds.written.load(SeqCst);
            let inbox = fastrand::i64(0..INBOXES);
            let sort = ["oldest", "oldest", "newest", "author"][fastrand::usize(0..4)];
            let (user, max) = (inbox.to_string(), fastrand::i64(1..=4).to_string());
            let sql = "select entry_id, content from hotrow.consume($1, $2, $3)";
            let rows = match self.ask(sql, &[Some(&user), Some(&max), Some(sort)]) {
                Ok(rows) => rows,
                Err(sent) => {
                    self.feeds.lost_reads.fetch_add(usize::from(sent), SeqCst);
                    continue;
                }
            };
            if rows.is_empty() && all_is_there {
                empty.insert(inbox);
            }
            let mut got = self.feeds.got.lock().unwrap();
            for row in rows {
                got.push((inbox, row[0].as_deref().unwrap().parse().unwrap(), row[1].clone().unwrap()));
            }
        }
    }

    /// Delivers posts to followers, `most` at a time. An answer of 0 can also mean that others have locked the rest, so
    /// the end is reached only when no post is pending.
    fn fan_out(&mut self, most: usize) {
        while !self.feeds.over.load(SeqCst) {
            let all_is_there = self.feeds.acknowledged.load(SeqCst) == WRITERS * WRITES;
            let rows = self.ask(&format!("select * from hotrow.fan_out({most})"), &[]);
            let is_over = |rows: Vec<Vec<Option<String>>>| {
                rows[0][0].as_deref() == Some("0")
                    && self.ask(IS_PENDING, &[]).is_ok_and(|rows| rows.is_empty())
            };
            if all_is_there && rows.is_ok_and(is_over) {
                return;
            }
        }
    }
}

/// Runs writers, readers and two clients that fan out to `most` followers at a time. `disturb` runs until all is written.
pub fn run(ports: &[u16], most: usize, disturb: impl FnOnce(&Feeds)) -> Feeds {
    let feeds = Feeds {
        ports: ports.iter().map(|port| AtomicU16::new(*port)).collect(),
        sent: Mutex::default(),
        got: Mutex::default(),
        acknowledged: AtomicUsize::new(0),
        lost_reads: AtomicUsize::new(0),
        written: AtomicBool::new(false),
        over: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let _until = Until(&feeds.over);
        let client = |number| Client { feeds: &feeds, number, line: None };
        let fanning: Vec<_> =
            (0..2).map(|number| scope.spawn(move || client(number).fan_out(most))).collect();
        let writing: Vec<_> =
            (0..WRITERS).map(|number| scope.spawn(move || client(number).write())).collect();
        let reading: Vec<_> = (0..READERS).map(|number| scope.spawn(move || client(number).read())).collect();
        disturb(&feeds);
        for thread in writing.into_iter().chain(fanning) {
            thread.join().unwrap();
        }
        feeds.written.store(true, SeqCst);
        for thread in reading {
            thread.join().unwrap();
        }
    });
    feeds
}

/// A server that fans all posts out in chunks, with authors that every user follows.
fn prepared(label: &str) -> PrivateServer {
    let server = PrivateServer::builder().label(label).start().unwrap();
    migrate(&server.url());
    let mut line = connect(server.port()).unwrap();
    line.query("update hotrow.setting set feed_inline = 0, inbox_length = 100000");
    for author in AUTHORS {
        for inbox in 0..INBOXES {
            assert_eq!(line.query(&format!("select hotrow.follow({inbox}, {author})")).error(), None);
        }
    }
    server
}

/// Checks that no message arrived twice, that none is unknown, and that messages of no reader were taken by a read
/// whose answer was lost. Returns what is wrong.
pub fn check(feeds: &Feeds, direct: u16) -> Result<(), String> {
    let is = |right: bool, otherwise: String| right.then_some(()).ok_or(otherwise);
    let (sent, got) = (feeds.sent.lock().unwrap(), feeds.got.lock().unwrap());
    let mut found: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    let mut numbers = BTreeSet::new();
    for (inbox, entry, content) in &*got {
        is(numbers.insert((inbox, entry)), format!("entry {entry} of inbox {inbox} was consumed twice"))?;
        let fresh = found.entry(*inbox).or_default().insert(content.clone());
        is(fresh, format!("{content} was delivered to {inbox} twice"))?;
    }
    let mut line = connect(direct).unwrap();
    let mut lost = 0;
    for inbox in 0..INBOXES {
        let past = "select entry_id, content, consumed from hotrow.past($, $before, 1000)";
        let (mut stored, mut before) = (BTreeMap::new(), "null".to_owned());
        loop {
            let page = past.replace("$before", &before).replace('$', &inbox.to_string());
            let rows = line.query(&page).rows();
            let Some(last) = rows.last() else { break };
            before = last[0].clone().unwrap();
            for row in rows {
                is(row[2].as_deref() == Some("t"), format!("{row:?} of {inbox} was not consumed"))?;
                let twice = stored.insert(row[1].clone().unwrap(), row[0].clone());
                is(twice.is_none(), format!("{row:?} of {inbox} was written twice"))?;
            }
        }
        is(sent[&inbox].iter().eq(stored.keys()), format!("inbox {inbox} differs from the sent messages"))?;
        lost += sent[&inbox].difference(&found[&inbox]).count();
    }
    let lost_reads = feeds.lost_reads.load(SeqCst);
    println!("{} messages consumed; {lost_reads} reads of unknown outcome had {lost} more", got.len());
    is(lost <= 4 * lost_reads, format!("{lost} messages were consumed by no reader"))?;
    is(got.len() > 500, "hardly any message was consumed".to_owned())
}

#[test]
fn every_message_is_consumed_once() {
    let server = prepared("feeds");
    let gateways =
        [Gateway::in_front_of(&server.url(), &[]), Gateway::in_front_of(&server.url(), &["--lanes", "1"])];
    let feeds = run(&[gateways[0].port(), server.port(), gateways[1].port()], 2, |_| {});
    assert_eq!(feeds.lost_reads.load(SeqCst), 0, "no fault occurred");
    assert_eq!(check(&feeds, server.port()), Ok(()));
    let merged = gateways.iter().map(|gateway| gateway.metric("merged_units_total")).sum::<u64>();
    assert!(merged > 0, "no calls were merged");
}

#[test]
#[ignore = "long: make test-all"]
fn killed_gateways_and_a_killed_server_lose_and_repeat_no_message() {
    let server = prepared("feedcrash");
    let mut gateways = [Gateway::in_front_of(&server.url(), &[]), Gateway::in_front_of(&server.url(), &[])];
    let feeds = run(&[gateways[0].port(), gateways[1].port(), server.port()], 2, |feeds| {
        for round in 1..=6 {
            feeds.flow(60);
            if round % 3 == 0 {
                server.kill_dash_nine().unwrap();
                server.restart().unwrap();
                continue;
            }
            let next = Gateway::in_front_of(&server.url(), &[]);
            let last = &mut gateways[round % 2];
            let port = last.port();
            feeds
                .ports
                .iter()
                .filter(|found| found.load(SeqCst) == port)
                .for_each(|found| found.store(next.port(), SeqCst));
            std::mem::replace(last, next).kill_dash_nine();
        }
    });
    assert_eq!(check(&feeds, server.port()), Ok(()));
}

/// One lock keeps the readers of an inbox apart.
const UNLOCKED: [Fault; 1] =
    [("lock_readers", "where r.user_id = u.user_id for update)", "where r.user_id = u.user_id)")];

#[test]
#[ignore = "long: make test-all"]
fn readers_that_do_not_lock_an_inbox_are_noticed() {
    let is_noticed = |crowd: usize| {
        let server = prepared(&format!("feedplanted{crowd}"));
        let gateways = [Gateway::in_front_of(&server.url(), &[]), Gateway::in_front_of(&server.url(), &[])];
        let missed = missed(&mut connect(server.port()).unwrap(), &UNLOCKED, |_, _| {
            let feeds = run(&[gateways[0].port(), server.port(), gateways[1].port()], 2, |_| {});
            let found = check(&feeds, server.port());
            eprintln!("{found:?}");
            found.is_err()
        });
        missed.is_empty()
    };
    assert!((0..CROWDS_MAX).any(is_noticed), "the fault was not noticed");
}
