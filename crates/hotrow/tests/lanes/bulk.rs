//! Promise 8 for statements that insert or update several rows: they do not deadlock with each other in one gateway, whatever
//! the order of their rows, nor with another gateway and direct clients that take their rows in one order. An outsider that
//! takes them in another order gets no wrong answer from a client of the gateway.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use hotrow_core::key::{Format, KeyColumn, KeySource, KeySpec, ParamValue, ValueForm};
use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::{Answer, Line, Until, until};
use hotrow_testkit::{Gateway, programs, server};

use crate::connect;

/// Half of the rows do not exist at first, so they cannot be locked ahead.
const TABLE: &str = "create table hit (id int primary key, n bigint not null);
    insert into hit select id, 0 from generate_series(2, 20, 2) id";
const COUNT: &str = "insert into hit as h (id, n) select a, 1 from unnest($1::int[]) as t(a) \
    on conflict (id) do update set n = h.n + excluded.n returning id, n";
const ROWS: usize = 20;

/// A server of the test's own, because the test counts the server's deadlocks.
fn start(label: &str) -> PrivateServer {
    PrivateServer::builder().label(label).start().unwrap()
}

fn prepare(port: u16, schema: &str) -> Line {
    let mut direct = connect(port, schema);
    assert_eq!(direct.query(&format!("create schema {schema}; {TABLE}")).error(), None);
    direct
}

fn put(line: &mut Line, ids: &[usize]) {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    line.put_unnamed_call(COUNT, &[Some(&format!("{{{}}}", ids.join(",")))]);
    line.put_sync();
}

/// The rows that the statement returned, in the order of its rows.
fn returned(answer: &Answer) -> Vec<(usize, i64)> {
    assert!(answer.whole && answer.error().is_none(), "{:?}", answer.frames());
    let number = |value: &Option<String>| value.as_ref().unwrap().parse().unwrap();
    answer.rows().iter().map(|row| (number(&row[0]) as usize, number(&row[1]))).collect()
}

/// Some rows, each once.
fn some(random: &mut fastrand::Rng) -> Vec<usize> {
    let mut ids: Vec<usize> = (1..=ROWS).collect();
    random.shuffle(&mut ids);
    ids.truncate(random.usize(2..=6));
    ids
}

/// A client sends statements of several rows, some of them at a time. Returns what it got.
fn client(mut line: Line, number: usize, depth: usize, sorted: bool) -> Vec<(usize, i64)> {
    const STATEMENTS: usize = 120;
    let mut random = fastrand::Rng::with_seed(number as u64);
    let mut seen = Vec::new();
    for _ in 0..STATEMENTS / depth {
        let mut sent: Vec<Vec<usize>> = (0..depth).map(|_| some(&mut random)).collect();
        if sorted {
            sent.iter_mut().for_each(|ids| ids.sort_unstable());
        }
        sent.iter().for_each(|ids| put(&mut line, ids));
        line.send().unwrap();
        for ids in sent {
            let rows = returned(&line.answer());
            assert_eq!(rows.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids, "the rows keep their order");
            seen.extend(rows);
        }
    }
    seen
}

/// Every update has its own result, and the rows show their number.
fn check(direct: &mut Line, seen: &[(usize, i64)]) {
    let distinct: HashSet<_> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "two updates of a row returned the same value");
    let sum = direct.query("select sum(n) from hit").rows()[0][0].clone().unwrap();
    assert_eq!(sum, seen.len().to_string());
}

fn deadlocks(direct: &mut Line) -> String {
    // A backend reports its numbers when it ends.
    let stopped = "select 1 from pg_stat_activity where application_name like 'hotrow%'";
    until("the gateways' backends have ended", || direct.query(stopped).rows().is_empty());
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    direct.query(deadlocks).rows()[0][0].clone().unwrap()
}

/// Direct connections that send these statements in these orders do deadlock.
#[test]
fn statements_of_one_gateway_do_not_deadlock_whatever_the_order_of_their_rows() {
    let server = start("any_order");
    let mut direct = prepare(server.port(), "any_order");
    // No statement takes too long for a lane on a busy machine: it would be passed through.
    let gateway = Gateway::in_front_of(&server.url(), &["--lanes", "3", "--lane-lock-timeout-ms", "500"]);
    let mut seen = Vec::new();
    let mut first = connect(gateway.port(), "any_order");
    until("the statement is packed", || {
        put(&mut first, &[1, 2]);
        first.send().unwrap();
        seen.extend(returned(&first.answer()));
        gateway.metric("packed_units_total") > 0
    });
    seen.extend(thread::scope(|scope| {
        let start = |number| {
            let line = connect(gateway.port(), "any_order");
            // More units than one lane takes before the next one is used.
            scope.spawn(move || client(line, number, 10, false))
        };
        let clients: Vec<_> = (0..12).map(start).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect::<Vec<_>>()
    }));
    check(&mut direct, &seen);
    assert!(gateway.metric("packed_units_total") > 1000, "{}", gateway.metric("packed_units_total"));
    drop((first, gateway));
    assert_eq!(deadlocks(&mut direct), "0");
}

#[test]
#[ignore = "long: make test-all"]
fn two_gateways_and_direct_clients_that_sort_their_rows_do_not_deadlock() {
    let server = start("sorted_rows");
    let mut direct = prepare(server.port(), "sorted_rows");
    let options =
        [&["--lanes", "1", "--lane-lock-timeout-ms", "700"][..], &["--lane-lock-timeout-ms", "700"]];
    let gateways = options.map(|options| Gateway::in_front_of(&server.url(), options));
    let ports = [gateways[0].port(), gateways[1].port(), server.port()];
    let seen: Vec<_> = thread::scope(|scope| {
        let start = |number: usize| {
            let line = connect(ports[number % ports.len()], "sorted_rows");
            let depth = [1, 6][number / ports.len() % 2];
            scope.spawn(move || client(line, number, depth, true))
        };
        let clients: Vec<_> = (0..12).map(start).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    check(&mut direct, &seen);
    assert!(gateways.iter().all(|gateway| gateway.metric("packed_units_total") > 50));
    drop(gateways);
    assert_eq!(deadlocks(&mut direct), "0");
}

/// Such an outsider can deadlock with a statement of several rows, as directly. Neither is counted twice or lost. A statement
/// of one row never deadlocks directly, and does not because of those with which it shares a batch.
#[test]
fn an_outsider_that_takes_rows_in_another_order_gets_no_wrong_answer() {
    let mut direct = prepare(server().port(), "outsider_order");
    let gateway = Gateway::start(&[]);
    let over = AtomicBool::new(false);
    let mut seen: Vec<(usize, i64)> = Vec::new();
    thread::scope(|scope| {
        let until = Until(&over);
        let outsiders: Vec<_> = (0..2)
            .map(|number| {
                let (mut line, over) = (connect(server().port(), "outsider_order"), &over);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(number);
                    let mut changed = Vec::new();
                    while !over.load(Relaxed) {
                        let mut rows = Vec::new();
                        line.query("begin");
                        let mut ids = some(&mut random);
                        ids.sort_unstable_by(|a, b| b.cmp(a));
                        for id in ids {
                            let update = format!("update hit set n = n + 1 where id = {id} returning id, n");
                            let answer = line.query(&update);
                            if let Some(error) = answer.error() {
                                assert_eq!(error.code, "40P01");
                                rows.clear();
                                break;
                            }
                            rows.extend(returned(&answer));
                        }
                        line.query("commit");
                        changed.extend(rows);
                    }
                    changed
                })
            })
            .collect();
        let clients: Vec<_> = (0..8_usize)
            .map(|number| {
                let mut line = connect(gateway.port(), "outsider_order");
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(100 + number as u64);
                    let mut seen = Vec::new();
                    for _ in 0..programs(40).max(10) {
                        let mut ids = some(&mut random);
                        ids.sort_unstable();
                        ids.truncate(if number < 4 { 1 } else { ids.len() });
                        put(&mut line, &ids);
                        line.send().unwrap();
                        let answer = line.answer();
                        match answer.error() {
                            Some(error) if ids.len() > 1 => assert_eq!(error.code, "40P01"),
                            _ => seen.extend(returned(&answer)),
                        }
                    }
                    seen
                })
            })
            .collect();
        seen.extend(clients.into_iter().flat_map(|client| client.join().unwrap()));
        drop(until);
        seen.extend(outsiders.into_iter().flat_map(|outsider| outsider.join().unwrap()));
    });
    check(&mut direct, &seen);
    assert!(gateway.metric("blocked_units_total") > 0, "no unit has met the outsiders' locks");
}

/// The rows' order in a batch, which is that of their keys.
fn in_order_of_keys(direct: &mut Line, mut ids: Vec<usize>) -> Vec<usize> {
    let table = direct.query("select 'hit'::regclass::oid").rows()[0][0].clone().unwrap();
    let spec = KeySpec {
        table: table.parse().unwrap(),
        columns: vec![KeyColumn {
            name: "id".to_owned(),
            attnum: 1,
            form: ValueForm::Integer,
            source: KeySource::Param(0),
        }],
    };
    ids.sort_by_cached_key(|id| {
        let text = id.to_string();
        spec.key(|_| Some(ParamValue { format: Format::Text, bytes: text.as_bytes() }))
    });
    ids
}

/// Both leave the lane because of a lock, the second one because of the first one. On connections of their own they would
/// deadlock: the first one has taken a row that the second one needs, and the second one a row that the first one needs.
#[test]
fn two_units_that_left_their_lane_do_not_deadlock() {
    let mut outsider = prepare(server().port(), "left_lane");
    let gateway = Gateway::start(&["--lanes", "1", "--lane-lock-timeout-ms", "300"]);
    let order = in_order_of_keys(&mut outsider, vec![2, 4, 6]);
    let (locked, one, other) = (order[0], order[1], order[2]);
    // On a busy machine too, the second unit waits until the first one is done.
    let session = "left_lane -c deadlock_timeout=1min";
    let mut lines = [connect(gateway.port(), session), connect(gateway.port(), session)];
    until("the statement is packed", || {
        put(&mut lines[0], &[1, 3]);
        lines[0].send().unwrap();
        returned(&lines[0].answer());
        gateway.metric("packed_units_total") > 0
    });
    assert_eq!(outsider.query(&format!("begin; update hit set n = 0 where id = {locked}")).error(), None);
    put(&mut lines[0], &[one, locked, other]);
    lines[0].send().unwrap();
    until("the first unit has left the lane", || gateway.metric("blocked_units_total") == 1);
    let waits = format!("select 1 from hit where id = {one} for update skip locked");
    let mut watch = connect(server().port(), "left_lane");
    until("it has locked its first row", || watch.query(&waits).rows().is_empty());
    put(&mut lines[1], &[other, one]);
    lines[1].send().unwrap();
    until("the second unit waits for its turn", || gateway.metric("row_waits") == 1);
    assert_eq!(gateway.metric("blocked_units_total"), 2, "it has left the lane");
    assert_eq!(outsider.query("commit").error(), None);
    for line in &mut lines {
        returned(&line.answer());
    }
}

/// A lane's batch locks its rows in the order of their keys. Rows that do not exist cannot be locked ahead. The batch gives up,
/// and its units get their answers all the same.
#[test]
fn new_rows_that_an_outsider_inserts_at_the_same_time_hold_up_only_their_units() {
    let mut outsider = prepare(server().port(), "new_rows");
    let gateway = Gateway::start(&["--lanes", "1", "--lane-lock-timeout-ms", "300"]);
    let mut lines: Vec<Line> = (0..4).map(|_| connect(gateway.port(), "new_rows")).collect();
    until("the statement is packed", || {
        put(&mut lines[0], &[2, 4]);
        lines[0].send().unwrap();
        returned(&lines[0].answer());
        gateway.metric("packed_units_total") > 0
    });
    assert_eq!(outsider.query("begin; insert into hit values (7, 100)").error(), None);
    for (line, ids) in lines.iter_mut().zip([[5, 7], [7, 9], [11, 13], [13, 15]]) {
        put(line, &ids);
        line.send().unwrap();
    }
    until("a unit has met the lock", || gateway.metric("blocked_units_total") > 0);
    for line in &mut lines[2..] {
        returned(&line.answer());
    }
    assert_eq!(outsider.query("commit").error(), None);
    let seen: Vec<_> = lines[..2].iter_mut().flat_map(|line| returned(&line.answer())).collect();
    let mut of_row: Vec<i64> = seen.iter().filter(|(id, _)| *id == 7).map(|(_, n)| *n).collect();
    of_row.sort_unstable();
    assert_eq!(of_row, [101, 102]);
}
