//! Clients that use TLS wrongly, by mistake or on purpose: each is disconnected, and others are not affected. And
//! unusable files, with which the gateway does not start.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use hotrow_testkit::raw::{Message, startup};
use hotrow_testkit::until;

use crate::tls::certificates::Authority;
use crate::tls::client::{Client, SSL_REQUEST, plain};
use crate::tls::{Pair, Stage};

const UPDATE: &str = "update t set n = n + 1 where id = 1 returning n";

fn until_end(mut stream: std::net::TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    // A reset also ends the connection.
    let _ = stream.read_to_end(&mut rest);
    rest
}

#[tokio::test]
async fn unencrypted_bytes_after_the_request_are_rejected() {
    let stage = Stage::new(&[]).await;
    let mut bystander = stage.client();
    let injected = startup(0x0003_0000, &[("user", "postgres"), ("database", "postgres")]);
    for injected_bytes in [&injected[..], b"\x16", b"Q"] {
        let mut stream = plain(stage.gateway.port());
        stream.write_all(&[&SSL_REQUEST[..], injected_bytes].concat()).unwrap();
        let output = until_end(stream);
        let error = Message { tag: output[0], body: output[5..].to_vec() };
        assert_eq!(error.field(b'C').as_deref(), Some("08P01"), "{error:?}");
        assert_eq!(error.field(b'M').as_deref(), Some("received unencrypted data after SSL request"));
    }
    // After the answer, the bytes are part of the handshake, and invalid.
    let mut stream = plain(stage.gateway.port());
    stream.write_all(&SSL_REQUEST).unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    stream.write_all(&injected).unwrap();
    let output = until_end(stream);
    assert!(
        output.len() <= 7 && output.first().is_none_or(|byte| *byte == 0x15),
        "an alert at most: {output:?}"
    );
    assert_eq!(bystander.value(UPDATE), "1");
}

#[tokio::test]
async fn invalid_handshakes_affect_no_other_client_and_are_logged_in_one_line() {
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
        // The gateway may have closed the connection already.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        assert!(until_end(stream).len() <= 7);
        assert_eq!(bystander.value(UPDATE), (number + 1).to_string());
    }
    // Noise after a successful handshake.
    let mut client = stage.client();
    client.halves().sock.write_all(b"noise instead of a record").unwrap();
    assert!(client.message().is_err(), "the connection is closed");
    assert_eq!(bystander.value(UPDATE), "41");
    let failed =
        |log: &str| log.lines().filter(|line| line.contains("a client's TLS handshake failed")).count();
    until("each failure is logged", || async { failed(&stage.gateway.log()) >= 40 }).await;
    let log = stage.gateway.log();
    assert_eq!(failed(&log), 40, "{log}");
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_stalled_handshake_times_out_and_holds_up_no_other() {
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
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)), "the handshake times out");
    }
}

#[tokio::test]
async fn a_second_request_for_tls_is_rejected() {
    let stage = Stage::new(&[]).await;
    let mut client = Client::request_tls(stage.gateway.port(), stage.authority.trust()).unwrap();
    client.send(&SSL_REQUEST);
    let error = client.message().unwrap().unwrap();
    assert_eq!(error.field(b'C').as_deref(), Some("0A000"), "{error:?}");
}

/// The error of the program when it is started with these files.
fn refusal(certificate: &str, key: &str, more: &[&str]) -> String {
    // With usable files the program would end too, because the test occupies the address.
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
fn the_gateway_names_unusable_files_and_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("the correct authority");
    let (certificate, key) = authority.issue("gateway", &["localhost"]).write(folder.path(), "gateway");
    let (_, other_key) = authority.issue("other", &["localhost"]).write(folder.path(), "other");
    let empty = Pair { certificate: "nothing".into(), key: "nothing".into() };
    let (no_certificate, no_key) = empty.write(folder.path(), "empty");
    for (certificate, key, expected) in [
        (&certificate, &other_key, "gateway.crt cannot be used"),
        (&no_certificate, &key, "empty.crt is wrong: it holds no certificate"),
        (&certificate, &no_key, "empty.key is wrong: it holds no private key"),
        (&"/nowhere.crt".to_owned(), &key, "cannot read /nowhere.crt"),
        (&certificate, &"/nowhere.key".to_owned(), "cannot read /nowhere.key"),
    ] {
        let output = refusal(certificate, key, &[]);
        assert!(output.contains(expected), "{expected}: {output}");
    }
    let output = refusal(&certificate, &key, &["--tls-client-ca-file", &no_certificate]);
    assert!(output.contains("empty.crt is wrong"), "{output}");
    for mode in [0o640, 0o604, 0o660] {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        let owned_by_root = nix::unistd::geteuid().is_root();
        if owned_by_root && mode == 0o640 {
            continue; // as with PostgreSQL, the group may read files of root
        }
        let output = refusal(&certificate, &key, &[]);
        assert!(output.contains(&format!("(mode {mode:04o})")) && output.contains("0600"), "{output}");
    }
}
