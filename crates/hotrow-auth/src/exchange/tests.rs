//! Tests logins with each method, as bytes.

use super::*;
use crate::hash::counted;
use crate::scram::Binding;
use crate::scram::client::ClientFirst;
use crate::stored::Secret;
use crate::verifier::Keys;

fn key() -> ProcessKey {
    ProcessKey::new([1; 32])
}

fn account(secret: &str) -> Option<Arc<Account>> {
    Secret::parse(secret).map(|secret| Arc::new(Account::new("ann", secret, &key())))
}

fn begin(method: Method, secret: &str) -> Option<(AuthMessage, Exchange)> {
    let account = account(secret);
    Exchange::begin(
        method,
        LoginContext { user: "ann".into(), account, key: key(), nonce: [3; 18], end_point: None },
    )
}

fn packet(password: &str) -> Vec<u8> {
    [password.as_bytes(), &[0]].concat()
}

fn initial_response(mechanism: &str, message: &str) -> Vec<u8> {
    let length = i32::try_from(message.len()).unwrap().to_be_bytes();
    [mechanism.as_bytes(), &[0], &length, message.as_bytes()].concat()
}

fn login(method: Method, secret: &str, password: &str) -> Result<Proven, Rejection> {
    let (ask, exchange) = begin(method, secret).unwrap();
    match ask {
        AuthMessage::Cleartext => done(exchange.answer("ann", &packet(password))?),
        AuthMessage::Md5(salt) => {
            let secret = md5_secret("ann", &Password::new(password.into()));
            let response = [md5_response(&secret, salt).bytes(), &[0]].concat();
            done(exchange.answer("ann", &response)?)
        }
        AuthMessage::Sasl(_) => {
            let first = ClientFirst::new([9; 18], Binding::None);
            let body = initial_response("SCRAM-SHA-256", &first.message());
            let Step::Continue(AuthMessage::SaslContinue(message), exchange) =
                exchange.answer("ann", &body)?
            else {
                panic!("a challenge was expected")
            };
            let challenge = first.challenged(message.as_bytes()).unwrap();
            let keys = Keys::derive(&Password::new(password.into()), &challenge.salt, challenge.iterations);
            let last = challenge.prove(&keys);
            match exchange.answer("ann", last.message.as_bytes())? {
                Step::Done(Some(AuthMessage::SaslFinal(message)), proven) => {
                    last.confirmed(message.as_bytes()).unwrap();
                    Ok(proven)
                }
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other:?}"),
    }
}

fn done(step: Step) -> Result<Proven, Rejection> {
    match step {
        Step::Done(_, proven) => Ok(proven),
        Step::Continue(ask, _) => panic!("{ask:?}"),
    }
}

const MD5: &str = "md59784774440ffa395e43f805bc10b83a2"; // "hunter2" of ann
const VERIFIER: &str = "SCRAM-SHA-256$4096:2QYwsOD1yJ9vxMnV9L2zMw==$pS1Zr5eEYnoXiJ7oHJVkPMWv3HjqPzjHtzdOOyxfr/c=:NbdVfmLiJfaERlJpRu1ZyQj3dTweP1R3rjsmJQhXPgM=";

#[test]
fn each_method_with_each_secret() {
    use Method::{Md5 as MethodMd5, Password as Clear, ScramSha256};
    for (method, secret, works) in [
        (ScramSha256, "hunter2", true),
        (ScramSha256, VERIFIER, true),
        (ScramSha256, MD5, false), // an md5 hash proves nothing in SCRAM
        (ScramSha256, "", false),
        (MethodMd5, "hunter2", true),
        (MethodMd5, VERIFIER, true),
        (MethodMd5, MD5, true),
        (MethodMd5, "", false),
        (Clear, "hunter2", true),
        (Clear, VERIFIER, true),
        (Clear, MD5, true),
        (Clear, "", false),
    ] {
        assert_eq!(login(method, secret, "hunter2").is_ok(), works, "{method} {secret}");
        let wrong = login(method, secret, "hunter3").unwrap_err();
        assert_eq!(wrong, Rejection::Wrong("ann".to_owned()), "{method} {secret}");
        assert!(login(method, secret, "").is_err(), "{method} {secret}");
        // The hash itself does not work as a password.
        assert!(secret == "hunter2" || login(method, secret, secret).is_err(), "{method} {secret}");
    }
    for method in [Method::Trust, Method::Reject, Method::Cert] {
        assert!(begin(method, "hunter2").is_none(), "{method}");
    }
    assert!(matches!(begin(MethodMd5, "hunter2"), Some((AuthMessage::Md5(_), _))));
    assert!(matches!(begin(MethodMd5, VERIFIER), Some((AuthMessage::Sasl(_), _))));
}

#[test]
fn a_cleartext_password_needs_the_same_hashes_for_every_user() {
    let cost = |secret: &str, password: &str| {
        let (_, exchange) = begin(Method::Password, secret).unwrap();
        assert!(exchange.is_expensive());
        counted(|| exchange.answer("ann", &packet(password)).is_ok()).1
    };
    let usual = cost(VERIFIER, "hunter2");
    assert!(usual >= 4096);
    for secret in ["hunter2", VERIFIER, ""] {
        for password in ["hunter2", "hunter3"] {
            assert!(cost(secret, password).abs_diff(usual) < 4, "{secret} {password}");
        }
    }
    assert!(cost(MD5, "hunter2").abs_diff(usual) < 8);
}

#[test]
fn a_plain_password_is_hashed_once_and_not_at_every_login() {
    let account = account("hunter2");
    for _ in 0..3 {
        let context = LoginContext {
            user: "ann".into(),
            account: account.clone(),
            key: key(),
            nonce: [3; 18],
            end_point: None,
        };
        let first = ClientFirst::new([9; 18], Binding::None);
        let body = initial_response("SCRAM-SHA-256", &first.message());
        let (step, hashes) = counted(|| {
            let (_, exchange) = Exchange::begin(Method::ScramSha256, context).unwrap();
            assert!(!exchange.is_expensive());
            exchange.answer("ann", &body).unwrap()
        });
        assert!(matches!(step, Step::Continue(..)) && hashes < 10, "{hashes}");
    }
}

#[test]
fn a_client_can_send_its_first_message_after_an_empty_challenge() {
    let (_, exchange) = begin(Method::ScramSha256, "hunter2").unwrap();
    let step = exchange.answer("ann", b"SCRAM-SHA-256\0\xff\xff\xff\xff").unwrap();
    let Step::Continue(AuthMessage::SaslContinue(empty), exchange) = step else { panic!("{step:?}") };
    assert_eq!(empty, "");
    let first = ClientFirst::new([9; 18], Binding::None);
    let step = exchange.answer("ann", first.message().as_bytes()).unwrap();
    let Step::Continue(AuthMessage::SaslContinue(message), exchange) = step else { panic!("{step:?}") };
    let challenge = first.challenged(message.as_bytes()).unwrap();
    let keys = Keys::derive(&Password::new(b"hunter2".to_vec()), &challenge.salt, challenge.iterations);
    let last = challenge.prove(&keys);
    assert!(matches!(exchange.answer("ann", last.message.as_bytes()), Ok(Step::Done(..))));
}

#[test]
fn broken_packets() {
    let clear = |body: &[u8]| begin(Method::Password, "hunter2").unwrap().1.answer("ann", body).unwrap_err();
    assert_eq!(clear(b"\0"), Rejection::Empty);
    for body in [&b""[..], b"hunter2", b"hunter2\0\0", b"hunter2\0x\0"] {
        assert_eq!(clear(body), Rejection::Protocol("invalid password packet size"));
    }
    let sasl =
        |body: &[u8]| begin(Method::ScramSha256, "hunter2").unwrap().1.answer("ann", body).unwrap_err();
    let good = initial_response("SCRAM-SHA-256", "n,,n=,r=abc");
    for cut in 0..good.len() {
        assert_eq!(sasl(&good[..cut]), Rejection::Protocol("invalid SASL initial response"), "{cut}");
    }
    assert!(matches!(sasl(&initial_response("SCRAM-SHA-1", "n,,n=,r=abc")), Rejection::Malformed(_)));
    assert!(matches!(sasl(b"SCRAM-SHA-256\0\xff\xff\xff\xfe"), Rejection::Protocol(_)));
    assert!(matches!(sasl(b"SCRAM-SHA-256\0\xff\xff\xff\xffn"), Rejection::Protocol(_)));
    assert!(matches!(sasl(b"SCRAM-SHA-1\0\xff\xff\xff\xff"), Rejection::Malformed(_)));
    assert!(matches!(sasl(b"SCRAM-SHA-256\0\0\0\0\0"), Rejection::Malformed(_)));
}

#[test]
fn proven_credentials_are_passed_to_the_server() {
    use crate::credential::Credential;
    let credential = |secret: &str, proven, fallback: Option<&str>| {
        let account = account(secret);
        Credential::new(account.as_deref(), proven, fallback.map(|text| Password::new(text.into())))
    };
    let proven = login(Method::ScramSha256, VERIFIER, "hunter2").unwrap();
    let by_key = credential(VERIFIER, proven, None);
    assert!(by_key.has_key() && by_key.password().is_none());
    // The key of a verifier that was derived here is useless to a server.
    let proven = login(Method::ScramSha256, "hunter2", "hunter2").unwrap();
    let by_password = credential("hunter2", proven, Some("urls"));
    assert!(!by_password.has_key());
    assert_eq!(by_password.password().unwrap().bytes(), b"hunter2");
    let proven = login(Method::Password, VERIFIER, "hunter2").unwrap();
    assert_eq!(credential(VERIFIER, proven, Some("urls")).password().unwrap().bytes(), b"hunter2");
    assert_eq!(credential("", Proven::Nothing, Some("urls")).password().unwrap().bytes(), b"urls");
    let salt = [1, 2, 3, 4];
    let by_hash = credential(MD5, Proven::Nothing, None).md5("ann", salt).unwrap();
    assert!(by_hash == by_password.md5("ann", salt).unwrap());
    assert!(by_key.md5("ann", salt).is_none());
    // A client with fewer credentials removes none.
    let both = by_key.renewed(credential("", Proven::Nothing, Some("new")));
    assert!(both.has_key() && both.password().unwrap().bytes() == b"new");
}
