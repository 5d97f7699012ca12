//! Statements that take the first rows of a table that nobody has locked: each row is taken once, and no worker waits for one
//! that is blocked.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use hotrow_testkit::line::{Line, until};
use hotrow_testkit::{Gateway, PATIENT_LANES, server};

use crate::connect;

/// The forms in which libraries and articles take jobs.
const TAKE: [&str; 4] = [
    "update job set state = 'taken' where id = (select id from job where state = 'new' order by id limit 1 \
     for update skip locked) returning id",
    "with next as materialized (select id from job where state = 'new' order by id limit 1 for update skip locked) \
     update job set state = 'taken' from next where job.id = next.id returning job.id",
    "with taken as (delete from job where ctid = (select ctid from job where state = 'new' and \
     pg_try_advisory_xact_lock(id) order by id limit 1) returning id) insert into done select id from taken returning id",
    "delete from job where id in (select j.id from job j where j.state = 'new' order by j.id limit 1 for update nowait) returning id",
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
    let mut blocked: Vec<Line> = (0..8).map(|_| connect(gateway.port(), "skips")).collect();
    let mut other = connect(gateway.port(), "skips");
    until("the statements are packed", || {
        take(&mut blocked[0], &assign(3));
        take(&mut other, SKIPPING);
        gateway.metric("packed_units_total") > 4
    });
    assert_eq!(outsider.query("begin; delete from owner where id = 1").error(), None);
    let answered = AtomicUsize::new(0);
    thread::scope(|scope| {
        let blocked: Vec<_> = blocked
            .iter_mut()
            .map(|line| {
                scope.spawn(|| {
                    let id = take(line, &assign(1));
                    answered.fetch_add(1, SeqCst);
                    id
                })
            })
            .collect();
        until("the workers are blocked", || gateway.metric("blocked_units_total") >= 8);
        let others: BTreeSet<usize> = (0..10).filter_map(|_| take(&mut other, SKIPPING)).collect();
        assert_eq!(others.len(), 10, "the other worker continues");
        assert_eq!(answered.load(SeqCst), 0, "the workers wait for the outsider");
        assert_eq!(outsider.query("rollback").error(), None);
        let taken: BTreeSet<usize> =
            blocked.into_iter().filter_map(|worker| worker.join().unwrap()).collect();
        assert_eq!(taken.len(), 8, "each takes a row");
        assert!(taken.is_disjoint(&others), "a row was taken twice");
    });
}

/// An error of NOWAIT is one of its statement: nobody waits, and the others run again without it.
#[test]
fn a_worker_that_does_not_wait_gets_its_error_and_blocks_no_row() {
    let mut outsider = prepare("nowait", 100);
    let gateway = Gateway::start(&["--lanes", "1"]);
    let mut worker = connect(gateway.port(), "nowait");
    let mut last = 0;
    until("the statement is packed", || {
        last = take(&mut worker, TAKE[3]).unwrap();
        gateway.metric("packed_units_total") > 2
    });
    assert_eq!(outsider.query(&format!("begin; delete from job where id = {}", last + 1)).error(), None);
    worker.put_unnamed_call(TAKE[3], &[]);
    worker.put_sync();
    worker.send().unwrap();
    assert_eq!(worker.answer().error().unwrap().code, "55P03");
    assert_eq!(take(&mut worker, SKIPPING), Some(last + 2));
    assert_eq!(gateway.metric("blocked_units_total"), 0);
    assert_eq!(gateway.metric("failed_units_total"), 1);
    assert_eq!(outsider.query("rollback").error(), None);
}
