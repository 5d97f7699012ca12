//! Tests SCRAM with the example of RFC 7677, with its own client and server, and with a man in the middle.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::client::{ClientFirst, ServerError};
use super::server::{Failure, Server};
use super::{Binding, PLAIN, PLUS};
use crate::account::Account;
use crate::credential::Credential;
use crate::exchange::Proven;
use crate::hash::{self, counted};
use crate::secret::{Key, Password};
use crate::stored::{ProcessKey, Secret};
use crate::verifier::{Keys, Verifier};

const CERTIFICATE: &[u8] = &[7; 32];

fn pencil() -> Account {
    let salt =
        [0x5b, 0x6d, 0x99, 0x68, 0x9d, 0x12, 0x35, 0x8e, 0xec, 0xa0, 0x4b, 0x14, 0x12, 0x36, 0xfa, 0x81];
    let verifier = Verifier::derive(&Password::new(b"pencil".to_vec()), &salt, 4096);
    Account::new("user", Secret::Scram(verifier), &key())
}

fn key() -> ProcessKey {
    ProcessKey::new([1; 32])
}

fn server(account: Option<&Account>, end_point: Option<&[u8]>) -> Server {
    Server::new("user", account, &key(), [3; 18], end_point.map(<[u8]>::to_vec))
}

/// A whole login. Returns the client's key if it succeeds.
fn login(server: Server, mechanism: &str, binding: Binding, password: &str) -> Result<Key, Failure> {
    let first = ClientFirst::new([9; 18], binding);
    let server = server.first(mechanism, first.message().as_bytes())?;
    let challenge = first.challenged(server.message().as_bytes()).unwrap();
    let password = Password::new(password.into());
    let keys = Keys::derive(&password, &challenge.salt, challenge.iterations);
    let client = challenge.prove(&keys);
    let (message, key) = server.last(client.message.as_bytes())?;
    client.confirmed(message.as_bytes()).unwrap();
    assert!(key == keys.client_key);
    Ok(key)
}

#[test]
fn the_example_of_rfc_7677() {
    let mut server = server(Some(&pencil()), None);
    server.nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".to_owned();
    let server = server.first(PLAIN, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
    assert_eq!(
        server.message(),
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    );
    let proof = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                  p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    assert_eq!(server.last(proof).unwrap().0, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
}

#[test]
fn extensions_after_the_nonce_are_covered_by_the_proof_and_have_no_effect() {
    let extended = |changes: &dyn Fn(String) -> String| {
        let first = ClientFirst::new([9; 18], Binding::None);
        let server = server(Some(&pencil()), None).first(PLAIN, first.message().as_bytes()).unwrap();
        let salt = pencil().verifier().unwrap().salt.clone();
        let keys = Keys::derive(&Password::new("pencil".into()), &salt, 4096);
        let nonce = server.message().split(',').next().unwrap();
        let without_proof = format!("c=biws,{nonce},x=1,y=a=b");
        let bare = first.message()["n,,".len()..].to_owned();
        let said = [bare.as_bytes(), b",", server.message().as_bytes(), b",", without_proof.as_bytes()];
        let stored_key = hash::sha256(keys.client_key.bytes());
        let proof = keys.client_key.xor(&hash::hmac(stored_key.bytes(), &said));
        let message = changes(format!("{without_proof},p={}", STANDARD.encode(proof.bytes())));
        server.last(message.as_bytes()).map(drop)
    };
    assert_eq!(extended(&|message| message), Ok(()));
    assert_eq!(extended(&|message| message.replace("x=1", "x=2")), Err(Failure::Wrong));
}

#[test]
fn right_and_wrong_passwords_with_and_without_binding() {
    let account = pencil();
    let bound = || Binding::EndPoint(CERTIFICATE.to_vec());
    for (mechanism, end_point, binding) in [
        (PLAIN, None, Binding::None),
        (PLAIN, None, Binding::NotOffered),
        (PLAIN, Some(CERTIFICATE), Binding::None),
        (PLUS, Some(CERTIFICATE), bound()),
    ] {
        let try_with =
            |password| login(server(Some(&account), end_point), mechanism, binding.clone(), password);
        assert!(try_with("pencil").is_ok(), "{mechanism} {binding:?}");
        assert_eq!(try_with("pencils").unwrap_err(), Failure::Wrong);
        assert_eq!(try_with("").unwrap_err(), Failure::Wrong);
    }
}

#[test]
fn a_man_in_the_middle_is_detected() {
    let account = pencil();
    let offered = || server(Some(&account), Some(CERTIFICATE));
    let other = Binding::EndPoint(vec![8; 32]);
    assert_eq!(login(offered(), PLUS, other, "pencil").unwrap_err(), Failure::OtherConnection);
    assert_eq!(login(offered(), PLAIN, Binding::NotOffered, "pencil").unwrap_err(), Failure::Downgrade);
    for (mechanism, binding) in [(PLUS, Binding::None), (PLAIN, Binding::EndPoint(CERTIFICATE.to_vec()))] {
        let failure = login(offered(), mechanism, binding, "pencil").unwrap_err();
        assert!(matches!(failure, Failure::Malformed(_)), "{failure:?}");
    }
    let failure = login(server(Some(&account), None), PLUS, Binding::None, "pencil").unwrap_err();
    assert!(matches!(failure, Failure::Malformed(_)), "the server did not offer it");
    // The header must not change between the messages either.
    let server = server(Some(&account), None).first(PLAIN, b"n,,n=,r=abc").unwrap();
    let nonce = server.message().split(',').next().unwrap()[2..].to_owned();
    let last = format!("c=eSws,r={nonce},p={}", "A".repeat(43) + "=");
    assert_eq!(server.last(last.as_bytes()).unwrap_err(), Failure::OtherConnection);
}

#[test]
fn unknown_users_cost_the_same_hashes_and_messages() {
    let known = pencil();
    let salts = |server: Server| {
        let message = server.first(PLAIN, b"n,,n=,r=abc").unwrap().message().to_owned();
        message.split(',').nth(1).unwrap().to_owned()
    };
    assert_eq!(
        salts(server(None, None)),
        salts(server(None, None)),
        "a changing salt would reveal that the user is unknown"
    );
    assert_eq!(salts(server(None, None)).len(), salts(server(Some(&known), None)).len());
    let md5 = Secret::parse("md5a3556571e93b0d20722ba62be61e8c2d").unwrap();
    let md5 = Account::new("user", md5, &key());
    let cost = |account: Option<&Account>| {
        counted(|| {
            let server = server(account, None).first(PLAIN, b"n,,n=,r=abc").unwrap();
            let nonce = server.message().split(',').next().unwrap()[2..].to_owned();
            let last = format!("c=biws,r={nonce},p={}", "A".repeat(43) + "=");
            assert_eq!(server.last(last.as_bytes()).unwrap_err(), Failure::Wrong);
        })
        .1
    };
    assert_eq!((cost(None), cost(Some(&md5))), (cost(Some(&known)), cost(Some(&known))));
    // The mock verifier's keys are zeros. They authenticate no client.
    assert_eq!(login(server(None, None), PLAIN, Binding::None, "").unwrap_err(), Failure::Wrong);
}

#[test]
fn garbage_is_rejected_in_every_message() {
    let account = pencil();
    let first = |message: &[u8]| server(Some(&account), None).first(PLAIN, message).map(|_| ());
    for message in [
        &b""[..],
        b"\xff",
        b"n",
        b"n,",
        b"n,,",
        b"n,,n=",
        b"n,,n=x,r=",
        b"n,,r=abc",
        b"n,a=bob,n=,r=abc",
        b"z,,n=,r=abc",
        b"n,,m=x,n=,r=abc",
        b"n,,n=,r=a b",
        b"n,,n=,r=\xc3\xa9",
    ] {
        assert!(matches!(first(message), Err(Failure::Malformed(_))), "{}", message.escape_ascii());
    }
    let last = |end: &dyn Fn(&str) -> String| {
        let server = server(Some(&account), None).first(PLAIN, b"n,,n=,r=abc").unwrap();
        let nonce = server.message().split(',').next().unwrap()[2..].to_owned();
        server.last(end(&nonce).as_bytes()).map(|_| ()).unwrap_err()
    };
    let proof = "A".repeat(43) + "=";
    assert_eq!(last(&|nonce| format!("c=biws,r={nonce},p={proof}")), Failure::Wrong);
    assert_eq!(last(&|nonce| format!("c=biws,r={nonce},x=ext,p={proof}")), Failure::Wrong);
    for end in [
        |_: &str| String::new(),
        |nonce: &str| format!("c=biws,r={nonce}"),
        |nonce: &str| format!("c=biws,r={nonce},x=ext"),
        |nonce: &str| format!("c=biws,r={nonce},x,p={}", "A".repeat(43) + "="),
        |nonce: &str| format!("c=biws,r={nonce},1=a,p={}", "A".repeat(43) + "="),
        |nonce: &str| format!("c=biws,r={nonce},p={},x=ext", "A".repeat(43) + "="),
        |nonce: &str| format!("c=biws,r={nonce},p="),
        |nonce: &str| format!("c=biws,r={nonce},p=AAAA"),
        |nonce: &str| format!("c=biws,r={nonce},p={}", "A".repeat(48)),
        |nonce: &str| format!("c=biws,r={nonce}x,p={}", "A".repeat(43) + "="),
        |nonce: &str| format!("c=biws,r={},p={}", &nonce[..3], "A".repeat(43) + "="),
        |nonce: &str| format!("r={nonce},c=biws,p={}", "A".repeat(43) + "="),
    ] {
        let failure = last(&end);
        assert!(matches!(failure, Failure::Malformed(_)), "{failure:?}");
    }
}

#[test]
fn a_server_has_to_authenticate_and_cannot_request_too_many_iterations() {
    let first = || ClientFirst::new([9; 18], Binding::None);
    let nonce = first().message().rsplit_once("r=").unwrap().1.to_owned();
    let challenged = |message: String| first().challenged(message.as_bytes()).map(|_| ()).unwrap_err();
    for message in [
        String::new(),
        format!("r={nonce},s=AAAA,i=4096"),
        format!("r=x{nonce},s=AAAA,i=4096"),
        format!("r={nonce}x,s=?,i=4096"),
        format!("r={nonce}x,s=AAAA,i=-1"),
        format!("r={nonce}x,s=AAAA"),
    ] {
        assert!(matches!(challenged(message.clone()), ServerError::Malformed(_)), "{message}");
    }
    assert_eq!(challenged(format!("r={nonce}x,s=AAAA,i=2000000000")), ServerError::Iterations(2_000_000_000));
    let challenge = first().challenged(format!("r={nonce}x,s=AAAA,i=1").as_bytes()).unwrap();
    let keys = Keys::derive(&Password::new(b"x".to_vec()), b"", 1);
    let last = challenge.prove(&keys);
    assert_eq!(last.confirmed(b"v=AAAA").unwrap_err(), ServerError::Impostor);
}

#[test]
fn a_proven_key_logs_in_only_at_a_server_with_the_same_verifier() {
    let account = pencil();
    let key = login(server(Some(&account), None), PLAIN, Binding::None, "pencil").unwrap();
    let credential = Credential::new(Some(&account), Proven::Key(key), None);
    let first = ClientFirst::new([5; 18], Binding::None);
    let upstream = server(Some(&account), None).first(PLAIN, first.message().as_bytes()).unwrap();
    let challenge = first.challenged(upstream.message().as_bytes()).unwrap();
    let keys = credential.keys(&challenge).unwrap();
    let ((message, _), last, cost) = {
        let last = challenge.prove(&keys);
        let (result, cost) = counted(|| upstream.last(last.message.as_bytes()).unwrap());
        (result, last, cost)
    };
    last.confirmed(message.as_bytes()).unwrap();
    assert!(cost < 10, "no password is hashed again");
    // The password was set again to the same value. The salt differs.
    let salt = [1; 16];
    let other = Verifier::derive(&Password::new(b"pencil".to_vec()), &salt, 4096);
    let other = Account::new("user", Secret::Scram(other), &self::key());
    let first = ClientFirst::new([5; 18], Binding::None);
    let upstream = server(Some(&other), None).first(PLAIN, first.message().as_bytes()).unwrap();
    let challenge = first.challenged(upstream.message().as_bytes()).unwrap();
    assert!(credential.keys(&challenge).is_none());
    assert!(!format!("{credential:?}").contains("pencil"));
}
