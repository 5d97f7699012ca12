//! Statements that take the first rows of a table: each row is taken once, and a worker that skips locked rows does not wait
//! for one that is blocked.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use hotrow_testkit::line::{Line, until};
use hotrow_testkit::{Gateway, PATIENT_LANES, server};

/// The forms in which libraries and articles take jobs.
const TAKE: [&str; 4] = [
    "update job set state = 'taken' where id = (select id from job where state = 'new' order by id limit 1 \
     for update skip locked) returning id",
    "with next as materialized (select id from job where state = 'new' order by id limit 1 for update skip locked) \
     update job set state = 'taken' from next where job.id = next.id returning job.id",
    "with taken as (delete from job where ctid = (select ctid from job where state = 'new' and \
     pg_try_advisory_xact_lock(id) order by id limit 1) returning id) insert into done select id from taken returning id",
    "delete from job where id in (select j.id from job j where j.state = 'new' order by j.id limit 1 for update) returning id",
];
const SKIPPING: &str = TAKE[0];

fn prepare(schema: &str, jobs: usize) -> Line {
    let mut direct = connect(server().port(), schema);
    let made = direct.query(&format!(
        "create schema {schema};
         create table owner (id int primary key);
         insert into owner select generate_series(1, 20);
         create table job (id int primary key, state text not null default 'new', owner int references owner);
         create table done (id int);
         insert into job select generate_series(1, {jobs})"
    ));
    assert_eq!(made.error(), None);
    direct
}

fn connect(port: u16, schema: &str) -> Line {
    let mut line =
        Line::connect(port, schema).unwrap().unwrap_or_else(|refusal| panic!("{:?}", refusal.error()));
    line.out.clear();
    line
}

/// Runs a statement without parameters that returns one row at most.
fn take(line: &mut Line, sql: &str) -> Option<usize> {
    line.put_unnamed_call(sql, &[]);
    line.put_sync();
    line.send().unwrap();
    let answer = line.answer();
    assert!(answer.whole && answer.error().is_none(), "{:?}", answer.frames());
    answer.rows().first().map(|row| row[0].as_ref().unwrap().parse().unwrap())
}

#[test]
fn each_row_is_taken_once_and_all_are_taken() {
    const JOBS: usize = 1200;
    let mut direct = prepare("taken_once", JOBS);
    let gateway = Gateway::start(&[&["--lanes", "2"][..], &PATIENT_LANES].concat());
    let port = gateway.port();
    let work = |number: usize| {
        let mut line = connect(port, "taken_once");
        let mut ids = Vec::new();
        let mut form = number;
        while let Some(id) = take(&mut line, TAKE[form % TAKE.len()]) {
            ids.push(id);
            form += 1;
        }
        ids
    };
    let taken: Vec<usize> = thread::scope(|scope| {
        let workers: Vec<_> = (0..16).map(|number| scope.spawn(move || work(number))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let distinct: BTreeSet<usize> = taken.iter().copied().collect();
    assert_eq!(distinct.len(), taken.len(), "a row was taken twice");
    let left = direct.query("select count(*) from job where state = 'new'").rows()[0][0].clone();
    assert_eq!((taken.len(), left.as_deref()), (JOBS, Some("0")));
    let packed = gateway.metric("packed_units_total");
    assert!(packed > JOBS as u64 / 2, "only {packed} of {JOBS} statements were packed");
}

/// A worker whose row refers to a locked one waits. Others take other rows meanwhile, in the same lane, as they do directly.
#[test]
fn a_blocked_worker_that_skips_locked_rows_holds_up_no_other() {
    let mut outsider = prepare("skips", 100);
    let gateway = Gateway::start(&["--lanes", "1"]);
    let assign = |owner: usize| {
        format!(
            "update job set state = 'taken', owner = {owner} where id = (select id from job where state = 'new' \
             order by id limit 1 for update skip locked) returning id"
        )
    };
    let (mut first, mut second) = (connect(gateway.port(), "skips"), connect(gateway.port(), "skips"));
    until("the statements are packed", || {
        take(&mut first, &assign(3));
        take(&mut second, SKIPPING);
        gateway.metric("packed_units_total") > 4
    });
    assert_eq!(outsider.query("begin; delete from owner where id = 1").error(), None);
    let answered = AtomicUsize::new(0);
    thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            let id = take(&mut first, &assign(1));
            answered.fetch_add(1, SeqCst);
            id
        });
        until("the first worker is blocked", || gateway.metric("blocked_units_total") > 0);
        let others: BTreeSet<usize> = (0..10).filter_map(|_| take(&mut second, SKIPPING)).collect();
        assert_eq!(others.len(), 10, "the second worker continues");
        assert_eq!(answered.load(SeqCst), 0, "the first worker waits for the outsider");
        assert_eq!(outsider.query("rollback").error(), None);
        let id = blocked.join().unwrap().unwrap();
        assert!(!others.contains(&id), "{id} was taken twice");
    });
}

/// A worker that does not skip locked rows waits for the first one, as it does directly.
#[test]
fn a_worker_that_skips_nothing_waits_for_the_first_row() {
    let mut outsider = prepare("first", 100);
    let gateway = Gateway::start(&["--lanes", "1"]);
    let mut worker = connect(gateway.port(), "first");
    let mut last = 0;
    until("the statement is packed", || {
        last = take(&mut worker, TAKE[3]).unwrap();
        gateway.metric("packed_units_total") > 2
    });
    assert_eq!(outsider.query(&format!("begin; delete from job where id = {}", last + 1)).error(), None);
    worker.put_unnamed_call(TAKE[3], &[]);
    worker.put_sync();
    worker.send().unwrap();
    until("the worker is blocked", || gateway.metric("blocked_units_total") > 0);
    let mut skipping = connect(gateway.port(), "first");
    assert_eq!(take(&mut skipping, SKIPPING), Some(last + 2));
    assert_eq!(outsider.query("commit").error(), None);
    let answer = worker.answer();
    assert!(answer.error().is_none(), "{:?}", answer.frames());
    // Directly, the query finds no row, or the next one, when the first one is gone.
    assert!(answer.rows().len() <= 1);
}
