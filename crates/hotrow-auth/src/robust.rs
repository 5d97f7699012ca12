//! Tests that no bytes from files, clients or servers cause a panic. The worst result is an error.

use std::sync::Arc;

use proptest::prelude::*;

use crate::scram::Binding;
use crate::scram::client::ClientFirst;
use crate::stored::{ProcessKey, Secret};
use crate::{Account, Exchange, Hba, LoginContext, Method, Step, Users};

/// Texts that get further than random bytes do.
fn texts() -> impl Strategy<Value = String> {
    let words = "[a-z0-9=,:$+/.\"\\\\#@ \n]|host|hostssl|local|all|trust|md5|10\\.0\\.0\\.0/8|::1/128|SCRAM-SHA-256|n,,n=,r=|c=biws|,p=|,s=AAAA|,i=";
    prop_oneof![any::<String>(), proptest::collection::vec(words, 0..24).prop_map(|words| words.concat())]
}

fn begin(method: Method, secret: &str) -> Exchange {
    let key = ProcessKey::new([1; 32]);
    let account = Secret::parse(secret).map(|secret| Arc::new(Account::new("ann", secret, &key)));
    let context = LoginContext { user: "ann".into(), account, key, nonce: [3; 18], end_point: None };
    Exchange::begin(method, context).unwrap().1
}

proptest! {
    #[test]
    fn files(text in texts()) {
        let _ = (Hba::parse(&text), Users::parse(&text));
        prop_assert_eq!(Secret::parse(&text).is_none(), text.is_empty());
    }

    #[test]
    fn clients(bytes in proptest::collection::vec(any::<u8>(), 0..200), first in texts(), last in texts()) {
        let verifier = "SCRAM-SHA-256$1:AAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        prop_assert!(matches!(Secret::parse(verifier), Some(Secret::Scram(_))));
        prop_assert!(begin(Method::ScramSha256, verifier).answer("ann", &bytes).is_err());
        prop_assert!(begin(Method::Password, verifier).answer("ann", &bytes).is_err());
        let length = u32::try_from(first.len()).unwrap().to_be_bytes();
        let response = [b"SCRAM-SHA-256\0", &length[..], first.as_bytes()].concat();
        if let Ok(Step::Continue(_, exchange)) = begin(Method::ScramSha256, verifier).answer("ann", &response) {
            prop_assert!(exchange.answer("ann", last.as_bytes()).is_err());
        }
    }

    #[test]
    fn servers(message in texts()) {
        let first = ClientFirst::new([9; 18], Binding::None);
        let nonce = first.message().rsplit_once("r=").unwrap().1.to_owned();
        let _ = first.challenged(message.as_bytes());
        let first = ClientFirst::new([9; 18], Binding::None);
        let _ = first.challenged(format!("r={nonce}{message}").as_bytes());
    }
}
