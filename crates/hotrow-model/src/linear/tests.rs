//! Tests histories with a planted fault, which the checker must find, and unusual histories that are correct.

use super::{Operation, Violation, check};
use crate::{Id, World};

/// Parses a history of lines: called, answered (`-` if the answer was lost), command, `->`, answer.
fn history(text: &str) -> Vec<Operation> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(operation).collect()
}

fn operation(line: &str) -> Operation {
    let (call, answer) = line.split_once(" -> ").unwrap();
    let mut words = call.splitn(3, ' ');
    let called = words.next().unwrap().parse().unwrap();
    let answered = words.next().unwrap().parse().ok();
    let mut command: crate::Command = words.next().unwrap().parse().unwrap();
    if let Some(id) = answer.strip_prefix("reserved ") {
        let id: Id = id.split(' ').next().unwrap().parse().unwrap();
        command.give(&[id]);
    }
    let answer = answered.is_some().then(|| answer.to_owned());
    Operation { command, answer, called, answered: answered.unwrap_or(0) }
}

fn fits(text: &str) {
    if let Err(violation) = check(&World::default(), &history(text)) {
        panic!("{violation}");
    }
}

/// The number of operations that could be explained.
fn caught(text: &str) -> usize {
    match check(&World::default(), &history(text)) {
        Err(Violation::NoOrder { explained, .. }) => explained,
        other => panic!("{other:?}"),
    }
}

#[test]
fn overlapping_calls_may_have_any_order() {
    fits(
        "1 9 increment a -> 2 2 ok
          2 3 increment a -> 1 1 ok
          4 5 counter a -> 1 1
          6 7 increment a -> 3 3 ok
          8 9 drain a -> 3 4 ok",
    );
    fits(
        "1 9 drain a -> 3 3 ok
          2 3 increment a 3 -> 3 1 ok
          4 8 increment a 0 -> 3 2 ok
          5 6 counter a -> 3 1",
    );
}

#[test]
fn a_wrong_value_is_caught() {
    assert_eq!(caught("1 2 increment a 2 -> 2 1 ok\n3 4 increment a 2 -> 5 2 ok"), 1);
    assert_eq!(caught("1 2 increment a 2 -> 2 1 ok\n3 4 counter a -> 2 0"), 1);
}

#[test]
fn a_swapped_order_is_caught() {
    assert_eq!(caught("1 2 increment a -> 2 2 ok\n3 4 increment a -> 1 1 ok"), 0);
    // A read that is older than an answer that its client had seen.
    assert_eq!(caught("1 2 increment a -> 1 1 ok\n3 4 increment a -> 2 2 ok\n5 6 counter a -> 1 1"), 2);
}

#[test]
fn a_lost_command_is_caught() {
    assert_eq!(caught("1 2 increment a -> 1 1 ok\n3 4 increment a -> 1 1 ok"), 1);
    assert_eq!(caught("1 2 increment a -> 1 1 ok\n3 4 counter a -> 0 0"), 1);
}

#[test]
fn a_duplicated_command_is_caught() {
    assert_eq!(caught("1 2 increment a -> 1 1 ok\n3 4 counter a -> 2 2"), 1);
    // A retry that was run again.
    assert_eq!(caught("1 2 increment a 1 #r1 -> 1 1 ok\n3 4 increment a 1 #r1 -> 2 2 ok"), 1);
    assert_eq!(caught("1 - increment a 1 #r1 -> ?\n2 3 counter a -> 2 2"), 1);
}

#[test]
fn a_call_with_a_lost_answer_took_effect_once_or_not_at_all() {
    fits("1 - increment a -> ?\n2 3 counter a -> 0 0\n4 5 counter a -> 1 1\n6 7 counter a -> 1 1");
    fits("1 - increment a -> ?\n2 3 counter a -> 0 0\n4 5 increment a -> 1 1 ok");
    assert_eq!(caught("1 - increment a -> ?\n2 3 counter a -> 1 1\n4 5 counter a -> 0 0"), 2);
}

#[test]
fn a_refusal_needs_a_moment_at_which_it_is_right() {
    fits(
        "0 1 create_sale shoe 1 -> created
          2 9 reserve shoe ann -> reserved r1 0
          3 4 reserve shoe bob -> sold_out - 0
          5 8 cancel r1 -> cancelled
          6 7 reserve shoe eve -> reserved r2 0",
    );
    let early = "0 1 create_sale shoe 1 -> created
          2 3 reserve shoe bob -> sold_out - 0
          4 5 reserve shoe ann -> reserved r1 0";
    assert_eq!(caught(early), 1);
}

#[test]
fn overselling_and_lost_stock_are_caught() {
    let twice = "0 1 create_sale shoe 1 -> created
          2 5 reserve shoe ann -> reserved r1 0
          3 4 reserve shoe bob -> reserved r2 0";
    assert_eq!(caught(twice), 2);
    let kept = "0 1 create_sale shoe 1 -> created
          2 3 reserve shoe ann -> reserved r1 0
          4 5 cancel r1 -> cancelled
          6 7 sale shoe -> shoe 0 0 0 - - - -";
    assert_eq!(caught(kept), 3);
    let both = "0 1 create_sale shoe 1 -> created
          2 3 reserve shoe ann -> reserved r1 0
          4 7 cancel r1 -> cancelled
          5 6 confirm r1 -> confirmed";
    assert_eq!(caught(both), 3);
}

#[test]
fn histories_of_many_clients_are_searched_in_few_steps() {
    let clients = 24;
    let line = |n: u64| {
        let called = n / clients * clients;
        format!("{called} {} increment a -> {} {} ok\n", called + clients - 1, n + 1, n + 1)
    };
    let mut text: String = (0..480).map(line).collect();
    fits(&text);
    text.push_str("999 1000 counter a -> 481 481");
    assert_eq!(caught(&text), 480);
}
