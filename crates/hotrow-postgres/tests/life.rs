//! Tests a private server from start to end, with orderly stops and with crashes.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the lints' exception for tests covers only functions with #[test]"
)]
use hotrow_postgres::{Builder, Error, PrivateServer};
use std::fs::Permissions;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use tempfile::TempDir;

/// A folder that the server's account can pass through if the test runs as root.
fn folder() -> TempDir {
    tempfile::Builder::new().prefix("hotrow").permissions(Permissions::from_mode(0o711)).tempdir().unwrap()
}

fn server_in(folder: &TempDir) -> Builder {
    PrivateServer::builder().parent(folder.path()).label("test")
}

fn value(server: &PrivateServer, sql: &str) -> String {
    let rows = server.query(sql).unwrap_or_else(|error| panic!("{error}\n{}", server.log()));
    rows[0][0].clone().expect("not null")
}

#[test]
fn a_kept_server_continues_with_its_rows_and_settings() {
    let folder = folder();
    let keep = || PrivateServer::builder().keep(folder.path().join("kept/server"));
    let first = keep().setting("work_mem", "5MB").start().unwrap();
    first.query("create table t (n int); insert into t values (7)").unwrap();
    assert!(matches!(keep().start(), Err(Error::Folder { .. })), "two owners");
    drop(first);

    let second = keep().start().unwrap();
    assert_eq!(
        (value(&second, "select n from t"), value(&second, "show work_mem")),
        ("7".into(), "5MB".into())
    );
    second.clear_log().unwrap();
    second.kill_dash_nine().unwrap();
    second.restart().unwrap();
    assert!(
        !second.log().contains("shutting down") && second.log().contains("ready to accept"),
        "{}",
        second.log()
    );
}

#[test]
fn a_server_answers_is_durable_and_is_removed_after_drop() {
    let folder = folder();
    let server = server_in(&folder).start().unwrap();

    assert_eq!(
        server.query("select 1, null; select 'two'").unwrap(),
        [vec![Some("1".to_owned()), None], vec![Some("two".to_owned())]]
    );
    assert_eq!(value(&server, "select current_user || ' of ' || current_database()"), "postgres of postgres");
    for name in ["fsync", "synchronous_commit", "full_page_writes"] {
        assert_eq!(server.setting_value(name).unwrap(), "on", "{name}");
    }
    assert_eq!(server.setting_value("max_connections").unwrap(), "1000");
    assert_eq!(server.setting_value("server_encoding").unwrap(), "UTF8");
    assert_eq!(server.setting_value("listen_addresses").unwrap(), "127.0.0.1");
    assert!(server.setting_value("server_version").unwrap().starts_with(server.version()));
    assert_eq!(server.url(), format!("postgres://postgres@127.0.0.1:{}/postgres", server.port()));
    assert_eq!(value(&server, "show data_directory"), server.data_dir().display().to_string());
    assert!(server.log().contains("ready to accept connections"), "{}", server.log());

    let (port, home) = (server.port(), server.data_dir().parent().unwrap().to_owned());
    drop(server);
    assert!(!home.exists());
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port is free again");
}

#[test]
fn errors_of_the_server_have_their_code() {
    let folder = folder();
    let server = server_in(&folder).start().unwrap();
    match server.query("select 1; select 1 / 0").unwrap_err() {
        Error::Refused { sqlstate, .. } => assert_eq!(sqlstate, "22012"),
        other => panic!("{other}"),
    }
}

#[test]
fn settings_take_precedence_over_defaults_and_less_durability_must_be_requested() {
    let folder = folder();
    let server = server_in(&folder)
        .setting("fsync", "off")
        .setting("max_connections", "20")
        .setting("my.motto", r"it's \ here")
        .start()
        .unwrap();
    assert_eq!(server.setting_value("fsync").unwrap(), "off");
    assert_eq!(server.setting_value("max_connections").unwrap(), "20");
    assert_eq!(server.setting_value("my.motto").unwrap(), r"it's \ here");
}

#[test]
fn a_server_that_does_not_start_reports_the_reason_and_leaves_nothing() {
    let folder = folder();
    let error = server_in(&folder).setting("shared_buffers", "a lot").start().unwrap_err();
    assert!(matches!(error, Error::Start { .. }), "{error}");
    assert!(error.to_string().contains("shared_buffers"), "{error}");
    let left =
        std::fs::read_dir(folder.path()).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir());
    assert_eq!(left.count(), 0);
}

#[test]
fn a_stopped_server_restarts_with_its_port_and_data() {
    let folder = folder();
    let server = server_in(&folder).start().unwrap();
    server.query("create table t (id int primary key); insert into t values (1)").unwrap();
    let (port, pid) = (server.port(), server.postmaster_pid());

    server.stop().unwrap();
    assert_eq!(server.postmaster_pid(), None);
    assert!(matches!(server.query("select 1"), Err(Error::Connection { .. })));
    server.stop().unwrap();

    server.restart().unwrap();
    assert_eq!(server.port(), port);
    assert_ne!(server.postmaster_pid(), pid);
    assert_eq!(value(&server, "select count(*) from t"), "1");
    assert!(!server.log().contains("was not properly shut down"), "{}", server.log());

    server.restart().unwrap();
    assert_eq!(value(&server, "select count(*) from t"), "1");
}

#[test]
fn a_server_and_its_standby_keep_their_environment_and_settings() {
    let folder = folder();
    let builder = server_in(&folder).environment("PGCLIENTENCODING", "LATIN1");
    let server = builder.setting("max_connections", "1234").start().unwrap();
    assert_eq!(value(&server, "show client_encoding"), "LATIN1");
    server.restart().unwrap();
    assert_eq!(value(&server, "show client_encoding"), "LATIN1");
    let standby = server.standby().unwrap();
    assert_eq!(value(&standby, "show client_encoding"), "LATIN1");
    assert_eq!(value(&standby, "show max_connections"), "1234");
}

#[test]
fn a_crash_loses_no_committed_row_and_every_uncommitted_one() {
    let folder = folder();
    let server = server_in(&folder).start().unwrap();
    let port = server.port();
    server.query("create table t (id int primary key)").unwrap();
    for (crash, rows) in [(1, "1"), (2, "1,2")] {
        server.query(&format!("insert into t values ({crash})")).unwrap();
        std::thread::scope(|scope| {
            let lost = scope.spawn(|| server.query("begin; insert into t values (99); select pg_sleep(600)"));
            while value(&server, "select count(*) from pg_stat_activity where wait_event = 'PgSleep'") != "1"
            {
            }
            server.kill_dash_nine().unwrap();
            assert!(matches!(lost.join().unwrap(), Err(Error::Connection { .. })));
        });
        assert_eq!(server.postmaster_pid(), None);
        assert!(
            server.data_dir().join("postmaster.pid").exists(),
            "the server has stopped in order and was not killed"
        );

        server.restart().unwrap();
        assert_eq!(server.port(), port);
        assert_eq!(value(&server, "select string_agg(id::text, ',' order by id) from t"), rows);
        assert_eq!(server.log().matches("was not properly shut down").count(), crash, "{}", server.log());
    }
}

#[test]
fn a_crashed_server_leaves_nothing() {
    let folder = folder();
    let server = server_in(&folder).start().unwrap();
    let home = server.data_dir().parent().unwrap().to_owned();
    let pid_file = std::fs::read_to_string(server.data_dir().join("postmaster.pid")).unwrap();
    let segment = pid_file.lines().nth(6).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    let segments = || {
        let listed = Command::new("ipcs").arg("-m").output().unwrap().stdout;
        let listed = String::from_utf8(listed).unwrap();
        // The second column has the IDs.
        listed.lines().filter(|line| line.split_whitespace().nth(1) == Some(&segment)).count()
    };
    server.kill_dash_nine().unwrap();
    assert_eq!(segments(), 1, "the crash must leave shared memory, or the test shows nothing");
    drop(server);
    assert_eq!(segments(), 0);
    assert!(!home.exists());
}

#[test]
fn two_servers_at_once_are_separate() {
    let folder = folder();
    let (first, second) = std::thread::scope(|scope| {
        let start = || server_in(&folder).start().unwrap();
        let other = scope.spawn(start);
        (start(), other.join().unwrap())
    });
    assert_ne!(first.port(), second.port());
    assert_ne!(first.data_dir(), second.data_dir());
    first.query("create table only_here (id int)").unwrap();
    assert_eq!(value(&second, "select count(*) from pg_class where relname = 'only_here'"), "0");
    drop(first);
    assert_eq!(value(&second, "select 1"), "1");
}
