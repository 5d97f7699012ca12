//! The access file: the order of its lines, its keywords, lines that prevent the start, and reloads.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::{Stage, login, upstream};
use hotrow_testkit::{PATIENCE, config, connect, try_connect, value};

#[tokio::test]
async fn the_first_matching_line_decides() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let (bob, carl) = (stage.name("bob"), stage.name("carl"));
    let list = format!(
        "host all {bob} 127.0.0.1/32 reject\nhost all {bob} all trust\nhost template1 {ann} all trust
         host postgres {ann} all scram-sha-256\nlocal all all trust"
    );
    let gateway = stage.gateway(&list, &[]);
    let port = gateway.port();
    assert_eq!(login(port, &ann, "anns password").await.as_ref(), Ok(&ann));
    let client = format!("host \"127.0.0.1\", user \"{bob}\", database \"postgres\", no encryption");
    let refused = login(port, &bob, "").await.unwrap_err();
    assert_eq!(refused, format!("28000 pg_hba.conf rejects connection for {client}"));
    let client = client.replace(&bob, &carl);
    let refused = login(port, &carl, "").await.unwrap_err();
    assert_eq!(refused, format!("28000 no pg_hba.conf entry for {client}"));
    // The line has the method trust, so the gateway has only its own password, which is not the one of ann.
    let trusted = config(port).user(&*ann).dbname("template1").to_owned();
    let error = try_connect(&trusted).await.err().unwrap();
    assert_eq!(hotrow_testkit::sqlstate(&error), "28P01");
    assert!(error.as_db_error().unwrap().hint().is_none(), "the server's own error: {error:?}");
    let gate = stage.by_socket("gate", "");
    assert_eq!(gate.as_deref(), Ok("gate"), "the user of the upstream URL");
}

#[tokio::test]
async fn a_reload_changes_access_and_a_mistake_changes_nothing() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let users = stage.file("users.txt", "");
    let gateway = stage.gateway("host all all all scram-sha-256", &["--users-file", &users]);
    let config = config(gateway.port()).user(&*ann).password("anns password").to_owned();
    let bystander = connect(&config).await;
    let log = stage.reload(&gateway, "hba.conf", &format!("host all {ann} all reject")).await;
    assert!(log.contains("reloaded: the access file and users_file"), "{log}");
    assert!(login(gateway.port(), &ann, "anns password").await.unwrap_err().contains("rejects"));
    assert_eq!(value(&bystander, "select current_user").await, ann, "connected clients stay");
    let log =
        stage.reload(&gateway, "hba.conf", "host all all all scram-sha-256\n\nhost all all all ident").await;
    assert!(log.contains("hba.conf: line 3: \"ident\" is not a supported method"), "{log}");
    assert!(login(gateway.port(), &ann, "anns password").await.unwrap_err().contains("rejects"));
    stage.file("hba.conf", "host all all all scram-sha-256");
    let log = stage.reload(&gateway, "users.txt", "\"bob\" \"x\"\n\"bob\" \"sesame\"").await;
    assert!(log.contains("users.txt: line 2"), "{log}");
    assert!(!log.contains("sesame"), "{log}");
    assert!(login(gateway.port(), &ann, "anns password").await.unwrap_err().contains("rejects"));
    stage.reload(&gateway, "users.txt", &format!("\"{ann}\" \"anns password\"")).await;
    assert_eq!(login(gateway.port(), &ann, "anns password").await.as_ref(), Ok(&ann));
}

/// The error of the program when it does not start.
fn refusal(options: &[&str]) -> String {
    let mut serve = hotrow_testkit::hotrow();
    serve.args(["serve", "--upstream", &upstream()]).args(options).stdout(Stdio::null());
    let mut child = serve.stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)), // std has no wait with a time limit
            None => {
                child.kill().unwrap();
                panic!("the gateway starts with {options:?}");
            }
        }
    };
    assert!(!status.success(), "{options:?}");
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn no_other_machine_is_admitted_by_accident() {
    let stage = Stage::new().await;
    let open = ["--listen", "0.0.0.0:0"];
    let text = refusal(&open);
    assert!(
        text.contains("0.0.0.0:0 can be reached from other machines") && text.contains("hba_file"),
        "{text}"
    );
    for (list, method) in [
        ("local all all trust\nhost all all all trust", "trust"),
        ("host all all 127.0.0.1/32 trust\nhost all all ::/0 trust", "trust"),
        ("local all all trust\nhostssl all all all trust clientcert=verify-ca", "trust"),
    ] {
        let file = stage.file("hba.conf", list);
        let text = refusal(&[&open[..], &["--hba-file", &file]].concat());
        assert!(text.contains(&format!("line 2 admits clients from other machines by {method}")), "{text}");
        assert!(text.contains("scram-sha-256"), "{text}");
        // If only this machine can connect, the line is allowed.
        let gateway = stage.gateway(list, &[]);
        drop(gateway);
    }
    let file = stage.file("hba.conf", "host all all all password");
    let text = refusal(&["--hba-file", &file]);
    assert!(text.contains("line 1: password sends the password in cleartext"), "{text}");
    let file = stage.file("hba.conf", "host all all all scram-sha-256\nhost all all samehost trust");
    assert!(refusal(&["--hba-file", &file]).contains("line 2: samehost"));
    assert!(refusal(&["--hba-file", "/nowhere/hba.conf"]).contains("cannot read hba_file /nowhere/hba.conf"));
    let file = stage.file("users.txt", "ann sesame");
    let text = refusal(&["--users-file", &file]);
    assert!(text.contains("users.txt: line 1") && !text.contains("sesame"), "{text}");
    // With a list that authenticates all clients, the gateway listens on all addresses.
    let list = stage.file(
        "hba.conf",
        "host all all all scram-sha-256\nhost all all 127.0.0.0/8 trust\nlocal all all trust",
    );
    let options = ["--listen", "0.0.0.0:0", "--hba-file", &list];
    drop(crate::Gateway::in_front_of(&upstream(), &options));
}
