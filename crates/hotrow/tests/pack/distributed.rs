//! A hotrow schema that is distributed over a cluster of Citus against the same model: one client, many clients through gateways
//! and nodes, shards that move, workers that are killed. The tests need a PostgreSQL with Citus; HOTROW_CITUS_BIN names its
//! binaries. Without one they say so.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use hotrow_model::{Command, Id, Value};
use hotrow_postgres::{Builder, Cluster, PrivateServer};
use hotrow_testkit::line::{Line, until};
use hotrow_testkit::{Gateway, Original, citus, distribute, hotrow};

use crate::client::value;
use crate::concurrent::calls_meet;
use crate::history::Clients;
use crate::queues;
use crate::same_as_model::{SEEDS_OF_NODE, difference, difference_among, none_differs};
use crate::stage::Stage;

const SEEDS: u64 = 12;
pub const SHARDS: usize = 4;
const CLIENTS: usize = 18;
/// Fewer while shards move and workers are killed: moving a shard is many commands, and each waits for the machine's cores.
const CLIENTS_BESIDE: usize = 9;
/// Number of counters, and of items, that the clients use meanwhile.
const COUNTERS: usize = 5;
const MOVES: usize = 6;
/// Pause of a client between two calls while shards move. A call waits for the end of a move, so every client has a call in
/// each move's critical part, with or without a pause. Without one, the clients only slow the moves down.
const PAUSE: Duration = Duration::from_millis(20);
/// After this time a move is ended and tried again.
const MOVE_SECONDS_MAX: u64 = 90;
const MOVE_TRIALS: usize = 3;
const KILLS: usize = 6;
/// Errors of calls that were not run or whose outcome is unknown. XX000 is that of Citus if a node fails while it commits a
/// call that ran through the coordinator.
const TRY_AGAIN: [&str; 7] = ["08007", "08006", "57P01", "57P02", "57P03", "40001", "XX000"];
/// Options of the gateways.
pub const LANES: &[&str] = &["--citus-lanes", "true"];

/// A cluster with two workers.
pub static NODES: Original = Original::new(|| {
    // A prepared part of a transaction keeps its locks until Citus commits or rolls it back.
    let change = |builder: Builder| builder.setting("citus.recover_2pc_interval", "1s");
    Some(Cluster::start(&citus()?, 2, change).unwrap())
});

/// The same, with the hotrow schema in one shard.
pub static ONE_SHARD: Original = Original::new(|| with_shards(1));

/// The same, with the hotrow schema in `SHARDS` shards.
pub static SHARDED: Original = Original::new(|| with_shards(SHARDS));

fn with_shards(shards: usize) -> Option<Cluster> {
    let cluster = NODES.copy()?.into_cluster();
    distribute(&cluster.coordinator.url(), shards);
    Some(cluster)
}

pub fn connect(port: u16) -> Line {
    Line::connect(port, "public").unwrap().expect("the server accepts the login")
}

/// Asserts that `hotrow verify` finds no contradiction.
pub fn verify(cluster: &Cluster) {
    let output = hotrow().args(["verify", "--upstream", &cluster.coordinator.url()]).output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A beginning of names with which the clients' counters and items are in different shards.
fn mark(cluster: &Cluster, beginning: &str) -> String {
    let different = format!(
        "select min(m) from (select '{beginning}' || n || '.' as m from generate_series(1, 1000) n) m
         where hotrow.shard_of(m || 'shoe') <> hotrow.shard_of(m || 'sock')
            and hotrow.shard_of(m || 'a') <> hotrow.shard_of(m || 'b')"
    );
    value(&mut connect(cluster.coordinator.port()), &different)
}

#[test]
fn one_shard_gives_the_models_answers() {
    let Some(cluster) = ONE_SHARD.copy() else { return };
    let mut stage = Stage::connect(cluster.coordinator.port());
    none_differs(SEEDS, |seed| difference(&mut stage, seed));
    none_differs(SEEDS / 2, |seed| queues::difference_in(&mut stage.line, "hotrow_shard_0", seed));
    verify(&cluster);
}

#[test]
fn several_shards_give_the_models_answers_on_every_node() {
    let Some(cluster) = SHARDED.copy() else { return };
    let workers = cluster.workers.iter().map(|worker| worker.port());
    for (turn, port) in std::iter::once(cluster.coordinator.port()).chain(workers).enumerate() {
        let mut stage = Stage::connect(port);
        let mut shards = Shards { line: connect(port), of_name: HashMap::new(), of_request: HashMap::new() };
        none_differs(SEEDS / 2, |seed| {
            let seed = seed.wrapping_add(turn as u64 * SEEDS_OF_NODE);
            difference_among(&mut stage, seed, |command| shards.can_answer(command))
        });
    }
    verify(&cluster);
}

/// What a distributed hotrow schema does not know exactly: a request ID is known in the shard where it was used, and a call can
/// reserve items of one shard only.
struct Shards {
    line: Line,
    of_name: HashMap<String, String>,
    of_request: HashMap<Id, String>,
}

impl Shards {
    fn of(&mut self, name: &str) -> String {
        let line = &mut self.line;
        let find = || value(line, &format!("select hotrow.shard_of('{name}')"));
        self.of_name.entry(name.to_owned()).or_insert_with(find).clone()
    }

    fn can_answer(&mut self, command: &Command) -> bool {
        let mut names = Vec::new();
        for value in command.values() {
            match value {
                Value::Subject(name) => names.push(name),
                Value::Subjects(all) => names.extend(all.iter().map(String::as_str)),
                _ => {}
            }
        }
        let shards: Vec<_> = names.into_iter().map(|name| self.of(name)).collect();
        let Some(shard) = shards.first().cloned() else { return true };
        if shards.iter().any(|other| *other != shard) {
            return false;
        }
        let Some(request) = command.request() else { return true };
        *self.of_request.entry(request).or_insert_with(|| shard.clone()) == shard
    }
}

#[test]
fn items_of_several_shards_are_refused_and_nothing_is_reserved() {
    let Some(cluster) = SHARDED.copy() else { return };
    let mut line = connect(cluster.workers[0].port());
    let mark = mark(&cluster, "refused");
    for item in ["shoe", "sock"] {
        value(&mut line, &format!("select hotrow.create_sale('{mark}{item}', 5)"));
    }
    let both =
        format!("select * from hotrow.reserve_all(array['{mark}shoe', '{mark}sock'], array[1, 1], 'ann')");
    let error = line.query(&both).error().unwrap();
    assert_eq!(error.code, "0A000", "{}", error.message);
    let left = format!("select remaining from hotrow.sale('{mark}shoe')");
    assert_eq!(value(&mut line, &left), "5");
}

#[test]
fn distributing_again_changes_nothing_and_completes_an_interrupted_run() {
    let Some(cluster) = SHARDED.copy() else { return };
    let mut line = connect(cluster.coordinator.port());
    let increment = "select value from hotrow.increment('again', 1)";
    assert_eq!(value(&mut line, increment), "1");
    distribute(&cluster.coordinator.url(), SHARDS * 2);
    assert_eq!(value(&mut line, increment), "2", "the number of shards never changes");
    // As after a run that ended before the calls went to the shards: a shard without names is missing.
    let empty = "select min(n) from generate_series(0, 3) n where n <> hotrow.shard_of('again')";
    let empty = value(&mut line, empty);
    for statement in [
        &format!("drop schema hotrow_shard_{empty} cascade"),
        "update hotrow.distribution set in_use = false",
    ] {
        assert_eq!(line.query(statement).error(), None, "{statement}");
    }
    distribute(&cluster.coordinator.url(), SHARDS);
    let mut line = connect(cluster.coordinator.port());
    assert_eq!(value(&mut line, increment), "3");
    let answers =
        "select count(*) from (select hotrow.increment('name' || n) from generate_series(1, 50) n) i";
    assert_eq!(value(&mut line, answers), "50");
    let late = line.query("insert into hotrow.counter (counter) values ('lost')").error().unwrap();
    assert_eq!(late.code, "55000", "a call that began before the distribution fails: {}", late.message);
    let check = ["migrate", "--check", "--upstream", &cluster.coordinator.url()];
    let output = hotrow().args(check).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    verify(&cluster);
}

#[test]
fn answers_of_gateways_and_of_every_node_have_an_order() {
    let Some(cluster) = SHARDED.copy() else { return };
    let direct = cluster.coordinator.port();
    let gateways = [&cluster.coordinator, &cluster.coordinator, &cluster.workers[0]]
        .map(|server| Gateway::in_front_of(&server.url(), LANES));
    let mut ports: Vec<u16> = gateways.iter().map(Gateway::port).collect();
    ports.extend([direct, cluster.workers[1].port()]);
    let servers: Vec<u16> = cluster.servers().map(PrivateServer::port).collect();
    for (number, gateway) in gateways.iter().enumerate() {
        calls_meet(gateway, &servers, &format!("meet{number}"));
    }
    let clients = Clients::undisturbed(CLIENTS, direct, &ports, &mark(&cluster, "crowd."));
    clients.assert_order(direct);
    verify(&cluster);
}

/// The calls that one client was answered until it was stopped: the versions of its increments, and its reservations. A call
/// that got an error is sent again with its ID.
fn load(port: u16, number: usize, pause: Duration, stop: &AtomicBool) -> (Vec<String>, usize) {
    let (mut line, mut versions, mut reserved) = (connect(port), Vec::new(), 0);
    let mut call = 0;
    while !stop.load(SeqCst) {
        call += 1;
        let id = format!("00000000-0000-0000-{number:04}-{call:012}");
        let text = if call % 2 == 0 {
            format!("select version from hotrow.increment('c{}', 1, '{id}')", number % COUNTERS)
        } else {
            format!("select reservation_id from hotrow.reserve('i{}', 'buyer', 1, '{id}')", number % COUNTERS)
        };
        let value = loop {
            let answer = line.query(&text);
            match answer.error() {
                None if answer.whole => break answer.rows().remove(0).remove(0).unwrap(),
                None => line = connect(port),
                Some(error) => {
                    assert!(TRY_AGAIN.contains(&error.code.as_str()), "{error:?}");
                    thread::sleep(Duration::from_millis(5)); // nothing signals that the node is back
                }
            }
        };
        if call % 2 == 0 {
            versions.push(format!("c{} {value}", number % COUNTERS));
        } else {
            assert_eq!(value, id);
            reserved += 1;
        }
        thread::sleep(pause); // the load's shape
    }
    (versions, reserved)
}

/// Runs clients on these ports during `work`, with a pause after each call, and compares the rows with what the clients were
/// answered.
fn under_load(cluster: &Cluster, ports: &[u16], pause: Duration, work: impl FnOnce(&mut Line)) {
    let mut line = connect(cluster.coordinator.port());
    for item in 0..COUNTERS {
        value(&mut line, &format!("select hotrow.create_sale('i{item}', 1000000)"));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let client = |number: usize| {
        let (port, stop) = (ports[number % ports.len()], stop.clone());
        thread::spawn(move || load(port, number, pause, &stop))
    };
    let clients: Vec<_> = (0..CLIENTS_BESIDE).map(client).collect();
    work(&mut line);
    stop.store(true, SeqCst);
    let (mut versions, mut reserved) = (Vec::new(), 0);
    for client in clients {
        let (more, here) = client.join().unwrap();
        versions.extend(more);
        reserved += here;
    }
    let answered = versions.len();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), answered, "two increments returned the same version");
    let total = "select sum(v.value) from generate_series(0, 9) n, lateral hotrow.counter('c' || n) v";
    assert_eq!(value(&mut line, total), answered.to_string(), "increments");
    let held = "select sum(s.held) from generate_series(0, 9) n, lateral hotrow.sale('i' || n) s";
    assert_eq!(value(&mut line, held), reserved.to_string(), "reservations");
    println!("{answered} increments and {reserved} reservations");
    verify(cluster);
}

#[test]
fn shards_that_move_lose_and_repeat_no_unit() {
    let Some(cluster) = SHARDED.copy() else { return };
    let gateway = Gateway::in_front_of(&cluster.coordinator.url(), LANES);
    calls_meet(&gateway, &cluster.servers().map(PrivateServer::port).collect::<Vec<_>>(), "meet");
    let ports = [gateway.port(), gateway.port(), cluster.workers[1].port()];
    let mut rotations = 0;
    under_load(&cluster, &ports, PAUSE, |line| {
        let stop = Arc::new(AtomicBool::new(false));
        let rotating = (connect(cluster.coordinator.port()), stop.clone());
        let rotating = thread::spawn(move || rotate(rotating.0, &rotating.1));
        for number in 0..MOVES {
            move_shard(&cluster, line, number);
        }
        stop.store(true, SeqCst);
        rotations = rotating.join().unwrap();
    });
    assert!(rotations > 0, "no part of a history was emptied");
}

/// Empties the oldest part of the shards' histories all the time: a TRUNCATE of tables that may be moved just then. Returns how
/// often a part was emptied.
fn rotate(mut line: Line, stop: &AtomicBool) -> usize {
    for shard in 0..SHARDS {
        let at_once = format!("update hotrow_shard_{shard}.setting set history_retention = '0'");
        assert_eq!(line.query(&at_once).error(), None);
    }
    // As hotrow.keep: a rotation that waits for a shard has emptied parts of others, and nobody can read these.
    assert_eq!(line.query("set lock_timeout = '1s'").error(), None);
    let mut rotations = 0;
    while !stop.load(SeqCst) {
        let answer = line
            .query("select count(*) from hotrow.on_shards('rotate_history()') r where r like '%rotated%'");
        match answer.error() {
            None => rotations += answer.rows().remove(0).remove(0).unwrap().parse::<usize>().unwrap(),
            Some(error) => assert_eq!(error.code, "55P03", "{error:?}"),
        }
        thread::sleep(Duration::from_millis(50)); // the moves and the calls need the locks too
    }
    rotations
}

/// How Citus moves shards: it keeps writes waiting, or it copies the rows while clients write them (its default, if all
/// tables have a primary key).
const MODES: [&str; 3] = ["auto", "block_writes", "force_logical"];

/// The next of many moves: another shard goes to the other worker, in another way.
pub fn move_shard(cluster: &Cluster, line: &mut Line, number: usize) {
    let (shard, mode) = (number % SHARDS, MODES[number % MODES.len()]);
    let here =
        format!("select nodeport from citus_shards where table_name::text = 'hotrow_shard_{shard}.gate'");
    let from = value(line, &here);
    let to = cluster.workers.iter().find(|worker| worker.port().to_string() != from).unwrap().port();
    let command = format!("select citus_schema_move('hotrow_shard_{shard}', '127.0.0.1', {to}, '{mode}')");
    // On a busy machine a move has had no answer for minutes. The cause is not proven; citusdata/citus#6790 reports the same of
    // splits under load, which share this code of Citus. A move that is ended changes nothing.
    let limit = format!("set statement_timeout = '{MOVE_SECONDS_MAX}s'");
    assert_eq!(line.query(&limit).error(), None);
    let is_moved = (0..MOVE_TRIALS).any(|_| match line.query(&command).error() {
        None => true,
        Some(error) => {
            assert_eq!(error.code, "57014", "{command}: {error:?}");
            eprintln!("ended after {MOVE_SECONDS_MAX} s: {command}");
            false
        }
    });
    assert!(is_moved, "{command}");
    assert_eq!(line.query("reset statement_timeout").error(), None);
}

#[test]
fn workers_killed_under_load_lose_and_repeat_no_unit() {
    let Some(cluster) = SHARDED.copy() else { return };
    let gateways = [0, 1].map(|_| Gateway::in_front_of(&cluster.coordinator.url(), LANES));
    under_load(&cluster, &[gateways[0].port(), gateways[1].port()], Duration::ZERO, |_| {
        for kill in 0..KILLS {
            let before = gateways[0].metric("merged_units_total");
            until("calls are merged again", || gateways[0].metric("merged_units_total") >= before + 100);
            let worker = &cluster.workers[kill % 2];
            worker.kill_dash_nine().unwrap();
            worker.restart().unwrap();
        }
    });
}

#[test]
fn answers_while_workers_are_killed_have_an_order() {
    let Some(cluster) = SHARDED.copy() else { return };
    let gateways = [0, 1].map(|_| Gateway::in_front_of(&cluster.coordinator.url(), LANES));
    let ports = [gateways[0].port(), gateways[1].port()];
    let direct = cluster.coordinator.port();
    let clients = Clients::disturbed(CLIENTS, direct, &ports, &mark(&cluster, "worker"));
    let mut kills = 0;
    while !clients.are_done() {
        let worker = &cluster.workers[kills % 2];
        worker.kill_dash_nine().unwrap();
        worker.restart().unwrap();
        kills += 1;
        clients.flow(20);
    }
    assert!(kills > 1, "only {kills} kills");
    check(clients, &cluster, "workers killed");
}

/// Asserts that an order explains all answers, and that the rows agree with each other.
fn check(clients: Clients, cluster: &Cluster, test: &str) {
    let (operations, errors) =
        clients.check(cluster.coordinator.port()).unwrap_or_else(|violation| panic!("{violation}"));
    println!("{test}: {operations} operations; retried after {errors:#?}");
    verify(cluster);
}
