//! A disk that is full: where tables are, and where the log is.

use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, PATIENCE};

use crate::checker::check;
use crate::load::{Fate, Load};
use crate::{CLIENTS, CRASH, prepare, summary};

/// A table whose file is the device on which there is never room: whoever wants another page of it meets the kernel's
/// own ENOSPC.
fn fill(server: &PrivateServer, table: &str) {
    let path = server.query(&format!("select pg_relation_filepath('{table}')")).unwrap();
    let file = server.data_dir().join(path[0][0].as_deref().unwrap());
    std::fs::remove_file(&file).unwrap();
    symlink("/dev/full", &file).unwrap();
}

#[test]
fn a_table_without_room_fails_for_who_writes_to_it_and_for_nobody_else() {
    let server = PrivateServer::builder().label("full").start().unwrap();
    let direct = prepare(server.port(), "no_room");
    drop(direct); // it has the table's file open
    fill(&server, "no_room.ledger");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let load = Load::start(CLIENTS, gateway.port(), "no_room");
    load.flows(1000);
    let book = load.stop();
    summary("no room for a table", &book);
    check(server.port(), "no_room", &book);
    assert_eq!(book.unexpected(&["ERROR 53100 could not extend file"]), []);
    assert!(book.count(Fate::Failed) > 100, "orders have no room");
    assert_eq!(book.count(Fate::Unknown), 0);
    assert_eq!(gateway.metric("lane_connections_lost_total"), 0);
}

/// Bounds how large a file of the running server's may be, and lets a write beyond it fail.
fn bound_files(server: &PrivateServer, bytes: u64) {
    let limit = format!("--fsize={bytes}:");
    let account = std::fs::metadata(server.data_dir()).unwrap();
    for pid in server.processes().unwrap() {
        // Who owns a process may bound it. One of them may have ended in the meantime.
        let mut prlimit = Command::new("prlimit");
        prlimit.args(["--pid", &pid.to_string(), &limit]).uid(account.uid()).gid(account.gid());
        let bound = prlimit.output();
        bound.expect("util-linux is there");
    }
}

/// The log can't be written: the server panics, crashes again when it tries to recover, and comes back when there is room.
#[test]
fn a_log_without_room_stops_all_and_loses_nothing() {
    let server = PrivateServer::builder().label("no-log").start().unwrap();
    prepare(server.port(), "nolog");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let load = Load::start(CLIENTS, gateway.port(), "nolog");
    load.flows(500);
    bound_files(&server, 1 << 20); // each segment of the log has 16 MiB, and the first is past this
    let deadline = Instant::now() + PATIENCE;
    while !server.log().contains("PANIC:  could not write to log file") {
        assert!(Instant::now() < deadline, "the server has not noticed");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(1)); // what clients are told without a server is a part of the test
    server.kill_dash_nine().unwrap(); // it hangs in its attempts; what is started now has no bound
    server.restart().unwrap();
    load.flows(500);
    let book = load.stop();
    summary("no room for the log", &book);
    check(server.port(), "nolog", &book);
    assert_eq!(book.unexpected(&CRASH), []);
    assert!(server.log().contains("File too large"));
    assert!(gateway.log().contains("a lane has lost its connection to the server"), "{}", gateway.log());
}
