//! Tests that no text makes the analysis panic, overflow the stack or take long.

use std::thread;

use proptest::prelude::*;

use super::*;
use crate::limits;

/// Runs `test` in a thread with the stack of the gateway's threads.
fn in_thread(test: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(limits::STACK_BYTES).spawn(test).unwrap().join().unwrap();
}

#[test]
fn deep_texts_do_not_overflow_the_stack() {
    in_thread(analyse_deep_texts);
}

/// Each of these texts would build a tree as deep as the text is long.
fn analyse_deep_texts() {
    let repeated =
        |head: &str, part: &str, tail: &str, count: usize| format!("{head}{}{tail}", part.repeat(count));
    for count in [10, 40, 100, 250, 599, 5_000, 15_000] {
        for text in [
            repeated("select 1", "+1", "", count),
            repeated("select ", "(", "1", count),
            repeated("select ", "(", &format!("1{}", ")".repeat(count)), count),
            repeated("select ", "- ", "1", count),
            repeated("select ", "not ", "true", count),
            repeated("select 1", "::int", "", count),
            repeated("select a", "[1]", "", count),
            repeated("select 1", " union select 1", "", count),
            repeated("select ", "case when true then ", "1", count),
            repeated("select * from inv where id = 1", " and stock = 1", "", count),
            repeated("select * from inv where id = 1", " or stock = 1", "", count),
            repeated("select * from ", "(select * from ", "inv", count),
            repeated("select ", "f(", &format!("1{}", ")".repeat(count)), count),
            repeated("select a", " is null", "", count),
            repeated("select a", " in (1, 2)", "", count),
            repeated("select a", ".a", "", count),
            repeated("select 1 ", "|| f(1, 2) ", "", count),
            repeated("select ", "interval ", "'1'", count),
            repeated("", "explain analyze ", "select 1", count),
            repeated("", "prepare a as ", "select 1", count),
            repeated("", "copy (", "select 1", count),
            repeated("", "create table t as ", "select 1", count),
            repeated("", "declare c cursor for ", "select 1", count),
            repeated("", "with a as (", "select 1", count),
            repeated("select 1", ";select 1", "", count),
            repeated("select * from a", " join a using (b)", "", count),
            repeated("select ", "array[", "1", count),
            repeated("insert into inv values (1)", ", (1)", "", count),
        ] {
            let analysis = analyse(&text);
            assert!(!explain(&analysis, None, &[]).is_empty());
        }
    }
}

#[test]
fn long_texts_are_not_parsed() {
    let long = format!("select '{}'", "x".repeat(limits::STATEMENT_BYTES_MAX));
    assert_eq!(verdict(&long), "pass: too long to be analysed");
    assert_eq!(verdict(&format!("select 1{}", "+1".repeat(1000))), "pass: too deep to be analysed");
    let rows =
        |count| format!("insert into inv (id, stock) values (1, 1){}", ", (1, now()::int)".repeat(count));
    assert_eq!(verdict(&rows(300)), "write no key");
    assert_eq!(verdict(&rows(2000)), "pass: too long to be analysed");
}

/// The effects are derived from the tokens, regardless of their number.
#[test]
fn long_texts_are_judged_by_their_tokens() {
    let rows = |call: &str| format!("insert into inv values (1, 1){}, (2, {call})", ", (1, 1)".repeat(5000));
    let effect = |sql: &str| match analyse(sql) {
        Analysis::Pass(Pass { effect, reason: Reason::TooLarge(_), .. }) => effect,
        other => panic!("{other:?}"),
    };
    assert!(!effect(&rows("abs(1)")).pins());
    assert!(effect(&rows("pg_advisory_lock(1)")).advisory_lock);
    assert!(effect(&rows("own_function(1)")).unknown);
}

#[test]
fn too_many_statements_in_one_text_are_not_split() {
    let count = limits::UNIT_STATEMENTS_MAX;
    let pass = |sql: &str| match analyse(sql) {
        Analysis::Pass(pass) => pass,
        other => panic!("{other:?}"),
    };
    let updates = "update inv set stock = 1 where id = 1;".repeat(count);
    assert_eq!(pass(&updates).reason, Reason::SeveralStatements);
    let more = pass(&format!("begin; {updates}"));
    assert_eq!((more.reason, more.leaves_open), (Reason::ManyStatements, Some(true)));
    assert_eq!(pass(&format!("begin; {updates} commit")).leaves_open, Some(false));
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "select",
            "from",
            "where",
            "and",
            "or",
            "in",
            "values",
            "set",
            "limit",
            "order by",
            "group by",
            "as",
            "inv",
            "id",
            "stock",
            "users",
            "lower",
            "now()",
            "xmin",
            "*",
            "null",
            "on conflict",
            "do update set",
            "insert into",
            "update",
            "delete from",
            "between",
            "like",
            "not",
            "case",
            "when",
            "then",
            "end",
            "returning",
            "prepare",
            "execute",
            "declare",
            "cursor for",
            "copy",
            "discard",
            "all",
            "hotrow.pack",
            "explain",
            "analyze",
            "create",
            "temp",
            "table",
            "with",
            "deallocate",
            "to",
            "default",
        ])
        .prop_map(str::to_owned),
        prop::sample::select(vec![
            "(", ")", "[", "]", ",", ".", "=", "<", "-", "+", "::", "||", "->>", "--x\n", "/* c */", ";",
            "$$", "$1", "'a'", "\"Q\"", "5", "1.5", "E'\\''", "U&'x'", "\u{a0}", "ü",
        ])
        .prop_map(str::to_owned),
    ]
}

fn random_texts() -> ProptestConfig {
    ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn no_text_causes_a_panic() {
    proptest!(random_texts(), |(sql in any::<String>())| {
        analyse(&sql);
    });
}

#[test]
fn no_sequence_of_words_causes_a_panic() {
    in_thread(|| {
        proptest!(random_texts(), |(words in prop::collection::vec(word(), 0..20))| {
            let sql = words.join(" ");
            prop_assert!(!verdict(&sql).is_empty());
        });
    });
}
