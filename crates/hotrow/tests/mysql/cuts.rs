//! Connections of lanes are cut at random bytes, in both directions, while the server goes on with what it has. Each statement is
//! answered, and the rows are those of the answers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use hotrow_mariadb::{PASSWORD, USER};
use hotrow_testkit::line::until;
use hotrow_testkit::{Gateway, seed};

use crate::lanes::{SELL, shop};
use crate::{PACKING, root, url};

/// What a lane sends first in each batch.
const MARK: &[u8] = b"call hotrow.mark(";

/// A proxy that cuts the connections on which it sees a mark.
struct Cutter {
    port: u16,
    cuts: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Cutter {
    fn start(server: u16, seed: u64) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (cuts, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let random = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
        let cutter = Cutter { port, cuts: cuts.clone(), is_over: is_over.clone() };
        thread::spawn(move || {
            for gateway in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).unwrap();
                let mut random = random.lock().unwrap();
                let lane = Arc::new(Lane {
                    is_one: AtomicBool::new(false),
                    keeps_server: random.bool(),
                    gateway: gateway.try_clone().unwrap(),
                    server: server.try_clone().unwrap(),
                    cuts: cuts.clone(),
                    is_over: is_over.clone(),
                });
                let (bytes, is_to_server) = (random.usize(0..6_000), random.bool());
                let other = lane.clone();
                let (to_server, to_gateway) =
                    ((gateway.try_clone().unwrap(), server.try_clone().unwrap()), (server, gateway));
                thread::spawn(move || lane.carry(to_server, is_to_server.then_some(bytes)));
                thread::spawn(move || other.carry(to_gateway, (!is_to_server).then_some(bytes)));
            }
        });
        cutter
    }
}

/// A connection, which can be one of a lane.
struct Lane {
    is_one: AtomicBool,
    /// A cut leaves the server's side open, as on a network that has failed: the server's transaction goes on.
    keeps_server: bool,
    gateway: TcpStream,
    server: TcpStream,
    cuts: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Lane {
    /// Carries bytes of one direction. On a lane it carries only `left` more bytes, if that is set, and then cuts the connection.
    fn carry(&self, (mut from, mut to): (TcpStream, TcpStream), mut left: Option<usize>) {
        let mut buffer = [0; 4096];
        let mut is_cut = false;
        while let (Ok(read @ 1..), false) = (from.read(&mut buffer), is_cut) {
            let mut bytes = &buffer[..read];
            if bytes.windows(MARK.len()).any(|window| window == MARK) {
                self.is_one.store(true, Ordering::Relaxed);
            }
            let counts = self.is_one.load(Ordering::Relaxed) && !self.is_over.load(Ordering::Relaxed);
            if let (Some(left), true) = (&mut left, counts) {
                is_cut = bytes.len() > *left;
                bytes = &bytes[..bytes.len().min(*left)];
                *left -= bytes.len();
            }
            if to.write_all(bytes).is_err() || is_cut {
                break;
            }
        }
        if is_cut {
            self.cuts.fetch_add(1, Ordering::Relaxed);
        }
        // A side can be closed already.
        let _ = self.gateway.shutdown(Shutdown::Both);
        if !(self.is_one.load(Ordering::Relaxed) && self.keeps_server) {
            let _ = self.server.shutdown(Shutdown::Both);
        } else {
            // Kept open until the end of the test.
            std::mem::forget((from, to));
        }
    }
}

#[test]
fn each_statement_has_one_outcome_wherever_the_lanes_connection_is_cut() {
    let server = shop();
    let cutter = Cutter::start(server.port(), seed());
    let url = format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{}/mysql", cutter.port);
    let gateway = Gateway::in_front_of(&url, &PACKING);
    let (sold, inserted) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for number in 0..12_u64 {
            let (gateway, cuts, sold, inserted) = (&gateway, &cutter.cuts, &sold, &inserted);
            scope.spawn(move || {
                let mut client = root(gateway.port());
                for one in 0.. {
                    if cuts.load(Ordering::Relaxed) > 40 {
                        return;
                    }
                    let id = number * 1_000_000 + one;
                    sold.fetch_add(client.ok(SELL).affected, Ordering::Relaxed);
                    let insert = format!("insert into shop.ledger (id, item) values ({id}, 1) returning id");
                    assert_eq!(client.value(&insert), id.to_string());
                    inserted.lock().unwrap().push(id);
                }
            });
        }
    });
    cutter.is_over.store(true, Ordering::Relaxed);
    let mut direct = root(server.port());
    assert_eq!(direct.value("select sold from shop.item where id = 1"), sold.into_inner().to_string());
    let mut inserted = inserted.into_inner().unwrap();
    inserted.sort_unstable();
    let rows = direct.rows("select id from shop.ledger order by id");
    let rows: Vec<u64> = rows.iter().map(|row| row[0].as_ref().unwrap().parse().unwrap()).collect();
    assert_eq!(rows, inserted);
}

/// What a lane sends to commit.
const COMMIT: &[u8] = b"\x07\0\0\0\x03commit";

/// A proxy that holds the first COMMIT of a lane back, as a network can, does this work, and cuts the gateway's side. The COMMIT
/// reaches the server before the first batch of the next connection.
fn hold_first_commit(server: u16, then: impl FnOnce() + Send + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let held = Arc::new(Mutex::new(None));
    let first: Arc<FirstCommit> = Arc::new(Mutex::new(Some(Box::new(then))));
    thread::spawn(move || {
        for gateway in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).unwrap();
            let (held, first) = (held.clone(), first.clone());
            let (from_server, to_gateway) = (server.try_clone().unwrap(), gateway.try_clone().unwrap());
            let (copied, answers) = channel();
            thread::spawn(move || copy(from_server, to_gateway, &copied));
            thread::spawn(move || hold(gateway, server, answers, &held, &first));
        }
    });
    port
}

/// Carries the server's answers, and reports each piece.
fn copy(mut from: TcpStream, mut to: TcpStream, copied: &Sender<()>) {
    let mut buffer = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let _ = to.write_all(&buffer[..read]); // the gateway's side can be cut already
        let _ = copied.send(());
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// A connection whose COMMIT is held back: its server's side, the bytes, and the reports about its answers.
type Held = Mutex<Option<(TcpStream, Vec<u8>, Receiver<()>)>>;
/// The work at the first COMMIT, until that has come.
type FirstCommit = Mutex<Option<Box<dyn FnOnce() + Send>>>;

fn hold(
    mut gateway: TcpStream,
    mut server: TcpStream,
    answers: Receiver<()>,
    held: &Held,
    first: &FirstCommit,
) {
    let mut buffer = [0; 16 << 10];
    while let Ok(read @ 1..) = gateway.read(&mut buffer) {
        let bytes = &buffer[..read];
        if bytes.windows(MARK.len()).any(|window| window == MARK)
            && let Some((mut former, commit, answers)) = held.lock().unwrap().take()
        {
            answers.try_iter().for_each(drop);
            let _ = former.write_all(&commit); // the server can have closed it
            let _ = answers.recv(); // the server has run it, or has ended the connection
        }
        let at = bytes.windows(COMMIT.len()).position(|window| window == COMMIT);
        if let Some((at, then)) = at.and_then(|at| Some((at, first.lock().unwrap().take()?))) {
            then();
            server.write_all(&bytes[..at]).unwrap();
            *held.lock().unwrap() = Some((server, bytes[at..].to_vec(), answers));
            let _ = gateway.shutdown(Shutdown::Both);
            return;
        }
        if server.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

#[test]
fn a_commit_that_reaches_the_server_late_does_not_count() {
    let server = shop();
    let url =
        format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{}/mysql", hold_first_commit(server.port(), || {}));
    let gateway = Gateway::in_front_of(&url, &PACKING);
    let mut client = root(gateway.port());
    assert_eq!(client.ok(SELL).affected, 1);
    let mut direct = root(server.port());
    assert_eq!(direct.value("select sold from shop.item where id = 1"), "1");
    let kills = direct.rows("show global status like 'Com_kill'")[0][1].clone();
    assert_eq!(kills.as_deref(), Some("1"), "the former connection is ended before its outcome is read");
}

#[test]
fn the_outcome_of_a_commit_is_known_during_a_global_read_lock() {
    let server = shop();
    let (mut direct, mut locker) = (root(server.port()), root(server.port()));
    let (locked, is_locked) = channel();
    let port = hold_first_commit(server.port(), move || {
        locker.ok("flush tables with read lock");
        locked.send(locker).unwrap();
    });
    let gateway =
        Gateway::in_front_of(&format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{port}/mysql"), &PACKING);
    thread::scope(|scope| {
        let seller = scope.spawn(|| root(gateway.port()).try_ok(SELL));
        let mut locker = is_locked.recv().unwrap();
        // The lane has learnt that nothing is committed, and the session runs the statement itself.
        let waits = format!("select count(*) from information_schema.processlist where info = '{SELL}'");
        until("the statement waits for the lock, or has an answer", || {
            seller.is_finished() || direct.value(&waits) == "1"
        });
        locker.ok("unlock tables");
        assert_eq!(seller.join().unwrap().map(|ok| ok.affected), Ok(1));
    });
    assert_eq!(direct.value("select sold from shop.item where id = 1"), "1");
}

#[test]
fn a_batch_that_cannot_be_marked_costs_no_connection() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let (mut client, mut direct) = (root(gateway.port()), root(server.port()));
    client.ok(SELL);
    direct.ok("lock tables hotrow.batch write");
    client.ok(SELL);
    direct.ok("unlock tables");
    assert_eq!(gateway.metric("lane_connections_lost_total"), 0);
    assert_eq!(direct.value("select sold from shop.item where id = 1"), "2");
}

#[test]
fn a_lane_in_use_keeps_its_row() {
    let server = shop();
    let gateway = Gateway::in_front_of(&url(&server), &PACKING);
    let (mut client, mut direct) = (root(gateway.port()), root(server.port()));
    client.ok(SELL);
    direct.ok("update hotrow.batch set opened = now() - interval 2 day");
    client.ok(SELL);
    // A new lane removes old rows. In a server that has just started, no other lane has its lock.
    direct.ok("call hotrow.open_lane('another')");
    assert_eq!(direct.value("select count(*) from hotrow.batch where opened > now() - interval 1 hour"), "2");
}
