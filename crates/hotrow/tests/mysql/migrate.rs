//! `hotrow migrate` at a MariaDB server. The other tests install what packing needs by it.

use std::process::Output;

use hotrow_mariadb::{PASSWORD, USER};

use crate::{install, root, server, url};

fn migrate(args: &[&str]) -> Output {
    hotrow_testkit::hotrow().arg("migrate").args(args).output().unwrap()
}

#[test]
fn a_second_run_changes_nothing_that_is_used() {
    install(server());
    let mut direct = root(server().port());
    direct.ok("insert into hotrow.batch (lane, n) values ('of a test', 7)");
    install(server());
    assert_eq!(direct.value("select n from hotrow.batch where lane = 'of a test'"), "7");
}

#[test]
fn a_dry_run_prints_the_sql_without_a_server() {
    let output = migrate(&["--dry-run", "--upstream", "mysql://root@127.0.0.1:1"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), hotrow_mysql_client::INSTALL);
}

#[test]
fn what_cannot_be_done_is_said_with_what_to_do_instead() {
    root(server().port())
        .ok("create or replace user 'poor'@'%' identified via mysql_native_password using password('p')");
    let poor = url(server()).replace(&format!("{USER}:{PASSWORD}@"), "poor:p@");
    for (args, said) in [
        (vec!["--check", "--upstream", &poor], "--check is an option for a PostgreSQL server"),
        (vec!["--role", "shop", "--upstream", &poor], "--role is an option"),
        (vec!["--distribute", "--upstream", &poor], "--distribute is an option"),
        (vec!["--upstream", &poor], "needs all rights"),
        (vec!["--upstream", "mysql://root@127.0.0.1:1"], "check host and port"),
        (vec!["--upstream", "mysql://127.0.0.1"], "names no user"),
    ] {
        let output = migrate(&args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(said), "{args:?}: {text}");
    }
}
