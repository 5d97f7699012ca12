//! The access file: the order of its lines, its keywords, lines that are refused at the start, and reloads.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::{Stage, log_in, upstream};
use hotrow_testkit::{PATIENCE, config, connect, try_connect, value};

#[tokio::test]
async fn the_first_line_that_fits_decides() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let (bob, carl) = (stage.name("bob"), stage.name("carl"));
    let list = format!(
        "host all {bob} 127.0.0.1/32 reject\nhost all {bob} all trust\nhost template1 {ann} all trust
         host postgres {ann} all scram-sha-256\nlocal all all trust"
    );
    let gateway = stage.gateway(&list, &[]);
    let port = gateway.port();
    assert_eq!(log_in(port, &ann, "anns password").await.as_ref(), Ok(&ann));
    let client = format!("host \"127.0.0.1\", user \"{bob}\", database \"postgres\", no encryption");
    let refused = log_in(port, &bob, "").await.unwrap_err();
    assert_eq!(refused, format!("28000 pg_hba.conf rejects connection for {client}"));
    let client = client.replace(&bob, &carl);
    let refused = log_in(port, &carl, "").await.unwrap_err();
    assert_eq!(refused, format!("28000 no pg_hba.conf entry for {client}"));
    // Let in by trust, the gateway has only its own password to show, which is not that of ann.
    let trusted = config(port).user(&*ann).dbname("template1").to_owned();
    let error = try_connect(&trusted).await.err().unwrap();
    assert_eq!(hotrow_testkit::sqlstate(&error), "28P01");
    assert!(error.as_db_error().unwrap().hint().is_none(), "the server's own words: {error:?}");
    let gate = stage.by_socket("gate", "");
    assert_eq!(gate.as_deref(), Ok("gate"), "the user of the upstream URL");
}

#[tokio::test]
async fn a_reload_changes_who_may_come_and_a_mistake_changes_nothing() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let users = stage.file("users.txt", "");
    let gateway = stage.gateway("host all all all scram-sha-256", &["--users-file", &users]);
    let config = config(gateway.port()).user(&*ann).password("anns password").to_owned();
    let bystander = connect(&config).await;
    let log = stage.reload(&gateway, "hba.conf", &format!("host all {ann} all reject")).await;
    assert!(log.contains("reloaded: the access file and users_file"), "{log}");
    assert!(log_in(gateway.port(), &ann, "anns password").await.unwrap_err().contains("rejects"));
    assert_eq!(value(&bystander, "select current_user").await, ann, "who is in stays in");
    let log =
        stage.reload(&gateway, "hba.conf", "host all all all scram-sha-256\n\nhost all all all ident").await;
    assert!(log.contains("hba.conf: line 3: \"ident\" is not a supported method"), "{log}");
    assert!(log_in(gateway.port(), &ann, "anns password").await.unwrap_err().contains("rejects"));
    stage.file("hba.conf", "host all all all scram-sha-256");
    let log = stage.reload(&gateway, "users.txt", "\"bob\" \"x\"\n\"bob\" \"sesame\"").await;
    assert!(log.contains("users.txt: line 2"), "{log}");
    assert!(!log.contains("sesame"), "{log}");
    assert!(log_in(gateway.port(), &ann, "anns password").await.unwrap_err().contains("rejects"));
    stage.reload(&gateway, "users.txt", &format!("\"{ann}\" \"anns password\"")).await;
    assert_eq!(log_in(gateway.port(), &ann, "anns password").await.as_ref(), Ok(&ann));
}

/// What the program says when it does not start.
fn refusal(options: &[&str]) -> String {
    let mut serve = hotrow_testkit::hotrow();
    serve.args(["serve", "--upstream", &upstream()]).args(options).stdout(Stdio::null());
    let mut child = serve.stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            None => {
                child.kill().unwrap();
                panic!("it runs with {options:?}");
            }
        }
    };
    assert!(!status.success(), "{options:?}");
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    words
}

#[tokio::test]
async fn nobody_from_other_machines_comes_in_by_accident() {
    let stage = Stage::new().await;
    let open = ["--listen", "0.0.0.0:0"];
    let words = refusal(&open);
    assert!(
        words.contains("0.0.0.0:0 can be reached from other machines") && words.contains("hba_file"),
        "{words}"
    );
    for (list, method) in [
        ("local all all trust\nhost all all all trust", "trust"),
        ("host all all 127.0.0.1/32 trust\nhost all all ::/0 trust", "trust"),
        ("local all all trust\nhostssl all all all trust clientcert=verify-ca", "trust"),
    ] {
        let file = stage.file("hba.conf", list);
        let words = refusal(&[&open[..], &["--hba-file", &file]].concat());
        assert!(words.contains(&format!("line 2 admits clients from other machines by {method}")), "{words}");
        assert!(words.contains("scram-sha-256"), "{words}");
        // On this machine only it may stand.
        let gateway = stage.gateway(list, &[]);
        drop(gateway);
    }
    let file = stage.file("hba.conf", "host all all all password");
    let words = refusal(&["--hba-file", &file]);
    assert!(words.contains("line 1: password sends the password in cleartext"), "{words}");
    let file = stage.file("hba.conf", "host all all all scram-sha-256\nhost all all samehost trust");
    assert!(refusal(&["--hba-file", &file]).contains("line 2: samehost"));
    assert!(refusal(&["--hba-file", "/nowhere/hba.conf"]).contains("can't read hba_file /nowhere/hba.conf"));
    let file = stage.file("users.txt", "ann sesame");
    let words = refusal(&["--users-file", &file]);
    assert!(words.contains("users.txt: line 1") && !words.contains("sesame"), "{words}");
    // With a list that asks everybody, it listens.
    let list = stage.file(
        "hba.conf",
        "host all all all scram-sha-256\nhost all all 127.0.0.0/8 trust\nlocal all all trust",
    );
    let options = ["--listen", "0.0.0.0:0", "--hba-file", &list];
    drop(crate::Gateway::in_front_of(&upstream(), &options));
}
