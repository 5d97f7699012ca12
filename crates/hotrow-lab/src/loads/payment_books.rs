//! Compares the operations in the books of the payment gateways with those in the service's tables. It reads no files and no
//! tables.

use std::collections::BTreeSet;

use serde::Deserialize;

/// An operation of a payment gateway for an attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Done {
    pub(crate) attempt: String,
    pub(crate) gateway: String,
    pub(crate) kind: String,
    pub(crate) amount: i64,
}

/// A line in the book of a payment gateway.
#[derive(Deserialize)]
struct Line {
    reference: String,
    kind: String,
    amount: i64,
    outcome: String,
}

/// The operations in a book.
pub(crate) fn done(gateway: &str, book: &str) -> impl Iterator<Item = Done> {
    // An incomplete line belongs to an order whose gateway was killed before its answer.
    let lines = book.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.filter(|line| line.outcome == "succeeded").map(move |line| Done {
        attempt: line.reference,
        gateway: gateway.to_owned(),
        kind: line.kind,
        amount: line.amount,
    })
}

/// The differences between the service's attempts and the books of the payment gateways, if there are any.
pub(crate) fn difference(ours: &BTreeSet<Done>, theirs: &BTreeSet<Done>) -> Option<String> {
    let only = |these: &BTreeSet<Done>, those| match these.difference(those).next() {
        Some(first) => format!("{}, like {first:?}", these.difference(those).count()),
        None => "none".to_owned(),
    };
    (ours != theirs).then(|| {
        format!(
            "successful payments that are not in the payment gateways' books: {}; that are only there: {}",
            only(ours, theirs),
            only(theirs, ours)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOK: &str = r#"{"reference":"a","authorization":"a","kind":"purchase","amount":5,"outcome":"succeeded","code":null}
{"reference":"b","authorization":"b","kind":"purchase","amount":7,"outcome":"declined","code":"insufficient_funds"}
{"reference":"c","authorization":"c","kind":"purchase","amount":9,"outcome":"succeeded","code":null}
{"reference":"d","authoriz"#;

    fn ours() -> Vec<Done> {
        let one = |attempt: &str, amount| Done {
            attempt: attempt.to_owned(),
            gateway: "lotus".to_owned(),
            kind: "purchase".to_owned(),
            amount,
        };
        vec![one("c", 9), one("a", 5)]
    }

    fn compared(ours: Vec<Done>) -> Option<String> {
        difference(&ours.into_iter().collect(), &done("lotus", BOOK).collect())
    }

    #[test]
    fn a_missing_or_different_charge_is_reported() {
        assert_eq!(compared(ours()), None);
        assert!(compared(ours()[1..].to_vec()).unwrap().contains("that are only there: 1"));
        let faults: [fn(&mut Done); 4] = [
            |done| done.amount = 99,
            |done| done.attempt = "b".to_owned(),
            |done| done.gateway = "banyan".to_owned(),
            |done| done.kind = "refund".to_owned(),
        ];
        for fault in faults {
            let mut changed = ours();
            fault(&mut changed[0]);
            let difference = compared(changed.clone()).unwrap_or_else(|| panic!("overlooked: {changed:?}"));
            assert!(difference.contains("1, like"), "{difference}");
        }
    }
}
