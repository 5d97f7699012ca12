//! Clients that get TLS wrong, by mistake or on purpose: each is sent away, and the others don't notice. And files that
//! can't be used: the gateway does not start with them.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use hotrow_testkit::raw::{Message, startup};

use crate::certificates::Authority;
use crate::client::{Client, SSL_REQUEST, plain};
use crate::{Pair, Stage};

const UPDATE: &str = "update t set n = n + 1 where id = 1 returning n";

fn rest(mut stream: std::net::TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    // A reset is an end too.
    let _ = stream.read_to_end(&mut rest);
    rest
}

#[tokio::test]
async fn what_comes_unencrypted_behind_the_request_is_refused() {
    let stage = Stage::new(&[]).await;
    let mut bystander = stage.client();
    let injected = startup(0x0003_0000, &[("user", "postgres"), ("database", "postgres")]);
    for behind in [&injected[..], b"\x16", b"Q"] {
        let mut stream = plain(stage.gateway.port());
        stream.write_all(&[&SSL_REQUEST[..], behind].concat()).unwrap();
        let said = rest(stream);
        let error = Message { tag: said[0], body: said[5..].to_vec() };
        assert_eq!(error.field(b'C').as_deref(), Some("08P01"), "{error:?}");
        assert_eq!(error.field(b'M').as_deref(), Some("received unencrypted data after SSL request"));
    }
    // Behind the answer it is a part of the handshake, and a bad one.
    let mut stream = plain(stage.gateway.port());
    stream.write_all(&SSL_REQUEST).unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    stream.write_all(&injected).unwrap();
    let said = rest(stream);
    assert!(said.len() <= 7 && said.first().is_none_or(|byte| *byte == 0x15), "an alert at most: {said:?}");
    assert_eq!(bystander.value(UPDATE), "1");
}

#[tokio::test]
async fn handshakes_of_nonsense_harm_nobody_and_are_logged_in_a_line() {
    let stage = Stage::new(&[]).await;
    let mut bystander = stage.client();
    let port = stage.gateway.port();
    let hello = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00";
    let mut random = fastrand::Rng::with_seed(7);
    for number in 0..40 {
        let mut stream = plain(port);
        if number % 2 == 0 {
            stream.write_all(&SSL_REQUEST).unwrap();
            stream.read_exact(&mut [0]).unwrap();
        }
        let noise: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(200).collect();
        let bytes = match number % 4 {
            0 => noise,
            1 => [&hello[..3], &noise].concat(),
            2 => hello.to_vec(),
            _ => [&hello[..], &[0x16, 3, 3, 0, 0].repeat(40_000)].concat(),
        };
        // The gateway may have hung up already.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        assert!(rest(stream).len() <= 7);
        assert_eq!(bystander.value(UPDATE), (number + 1).to_string());
    }
    // Under TLS already, and then noise.
    let mut client = stage.client();
    client.halves().sock.write_all(b"noise instead of a record").unwrap();
    assert!(client.message().is_err(), "there is nothing more to say to it");
    assert_eq!(bystander.value(UPDATE), "41");
    let log = stage.gateway.log();
    let lines = log.lines().filter(|line| line.contains("a client's TLS handshake failed")).count();
    assert_eq!(lines, 40, "{log}");
}

#[tokio::test]
async fn a_handshake_that_stalls_ends_and_holds_up_nobody() {
    let stage = Stage::new(&["--clients-max", "100"]).await;
    let mut bystander = stage.client();
    let stalled: Vec<_> = (0..50)
        .map(|number| {
            let mut stream = plain(stage.gateway.port());
            if number % 2 == 0 {
                stream.write_all(&SSL_REQUEST).unwrap();
                stream.read_exact(&mut [0]).unwrap();
            }
            stream.write_all(&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"[..1 + number % 9]).unwrap();
            stream
        })
        .collect();
    assert_eq!(bystander.value(UPDATE), "1");
    assert_eq!(stage.client().value(UPDATE), "2");
    for mut stream in stalled {
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)), "it is not waited for for ever");
    }
}

#[tokio::test]
async fn under_tls_nobody_asks_for_it_again() {
    let stage = Stage::new(&[]).await;
    let mut client = Client::ask(stage.gateway.port(), stage.authority.believe()).unwrap();
    client.send(&SSL_REQUEST);
    let error = client.message().unwrap().unwrap();
    assert_eq!(error.field(b'C').as_deref(), Some("0A000"), "{error:?}");
}

/// What the program says when it is to start with these files.
fn refusal(certificate: &str, key: &str, more: &[&str]) -> String {
    // If the files were taken it would end too, for the address is ours.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut gateway = hotrow_testkit::hotrow();
    gateway.args(["serve", "--upstream", "postgres://127.0.0.1:1/x", "--listen", &address]);
    gateway.args(["--tls-cert-file", certificate, "--tls-key-file", key]).args(more);
    let output = gateway.stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn files_that_cant_be_used_are_named_and_the_gateway_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("the right one");
    let (certificate, key) = authority.issue("gateway", &["localhost"]).write(folder.path(), "gateway");
    let (_, other_key) = authority.issue("other", &["localhost"]).write(folder.path(), "other");
    let empty = Pair { certificate: "nothing".into(), key: "nothing".into() };
    let (no_certificate, no_key) = empty.write(folder.path(), "empty");
    for (certificate, key, expected) in [
        (&certificate, &other_key, "gateway.crt can't be used"),
        (&no_certificate, &key, "empty.crt is wrong: it holds no certificate"),
        (&certificate, &no_key, "empty.key is wrong: it holds no private key"),
        (&"/nowhere.crt".to_owned(), &key, "can't read /nowhere.crt"),
        (&certificate, &"/nowhere.key".to_owned(), "can't read /nowhere.key"),
    ] {
        let said = refusal(certificate, key, &[]);
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let said = refusal(&certificate, &key, &["--tls-client-ca-file", &no_certificate]);
    assert!(said.contains("empty.crt is wrong"), "{said}");
    for mode in [0o640, 0o604, 0o660] {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        let owned_by_root = nix::unistd::geteuid().is_root();
        if owned_by_root && mode == 0o640 {
            continue; // as with PostgreSQL, the group may read what root owns
        }
        let said = refusal(&certificate, &key, &[]);
        assert!(said.contains(&format!("(mode {mode:04o})")) && said.contains("0600"), "{said}");
    }
}
