//! Full disks: of the tables, and of the write-ahead log.

use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::Command;

use hotrow_postgres::PrivateServer;
use hotrow_testkit::Gateway;
use hotrow_testkit::line::until;

use crate::checker::check;
use crate::load::{Load, Outcome};
use crate::{CLIENTS, CRASH, prepare, summary};

/// Links the table's file to a device that is always full: a process that needs a new page of the table gets the
/// kernel's ENOSPC.
fn fill(server: &PrivateServer, table: &str) {
    let path = server.query(&format!("select pg_relation_filepath('{table}')")).unwrap();
    let file = server.data_dir().join(path[0][0].as_deref().unwrap());
    std::fs::remove_file(&file).unwrap();
    symlink("/dev/full", &file).unwrap();
}

#[test]
fn a_full_disk_of_a_table_fails_only_units_that_write_to_the_table() {
    let server = PrivateServer::builder().label("full").start().unwrap();
    let direct = prepare(server.port(), "no_room");
    drop(direct); // its backend has the table's file open
    fill(&server, "no_room.ledger");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let load = Load::start(CLIENTS, gateway.port(), "no_room");
    load.flows(1000);
    let records = load.stop();
    summary("no room for a table", &records);
    check(server.port(), "no_room", &records);
    assert_eq!(records.unexpected(&["ERROR 53100 could not extend file"]), []);
    assert!(records.count(Outcome::Failed) > 100, "orders have no room");
    assert_eq!(records.count(Outcome::Unknown), 0);
    assert_eq!(gateway.metric("lane_connections_lost_total"), 0);
}

/// Limits the size of the running server's files. A write beyond the limit fails.
fn bound_files(server: &PrivateServer, bytes: u64) {
    let limit = format!("--fsize={bytes}:");
    let account = std::fs::metadata(server.data_dir()).unwrap();
    for pid in server.processes().unwrap() {
        // The owner of a process may set its limits. A process may have ended in the meantime.
        let mut prlimit = Command::new("prlimit");
        prlimit.args(["--pid", &pid.to_string(), &limit]).uid(account.uid()).gid(account.gid());
        let bound = prlimit.output();
        bound.expect("util-linux is installed");
    }
}

/// If the log cannot be written, the server panics, crashes again during recovery, and recovers when there is room.
#[test]
#[ignore = "long: make test-all"]
fn a_full_disk_of_the_log_stops_all_units_and_loses_none() {
    let server = PrivateServer::builder().label("no-log").start().unwrap();
    prepare(server.port(), "nolog");
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let load = Load::start(CLIENTS, gateway.port(), "nolog");
    load.flows(500);
    bound_files(&server, 1 << 20); // each segment of the log has 16 MiB, so the current one is already longer
    until("the server notices", || server.log().contains("PANIC:  could not write to log file"));
    // The answers without a server are a part of the test.
    until("the gateway notices", || gateway.log().contains("a lane has lost its connection to the server"));
    server.kill_dash_nine().unwrap(); // the server keeps retrying; processes that start now have no limit
    server.restart().unwrap();
    load.flows(500);
    let records = load.stop();
    summary("no room for the log", &records);
    check(server.port(), "nolog", &records);
    assert_eq!(records.unexpected(&CRASH), []);
    assert!(server.log().contains("File too large"));
    assert!(gateway.log().contains("a lane has lost its connection to the server"), "{}", gateway.log());
}
