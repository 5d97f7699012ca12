//! Tests the cache of statements, and how a statement earns and loses its credit.

use hotrow_core::normalise::Normaliser;

use hotrow_core::limits;

use super::*;

#[test]
fn every_text_of_one_shape_is_one_statement() {
    let statements = Statements::default();
    let mut normaliser = Normaliser::new();
    let one = statements.simple(&normaliser.run("update t set a = 1 where id = 5"));
    let other = statements.simple(&normaliser.run("update t set a = 2 where id = 67;"));
    let third = statements.simple(&normaliser.run("update t set a = 2 where id = 'x'"));
    assert_eq!(one.id, other.id);
    assert_ne!(one.id, third.id);
    assert_eq!(one.types, [0, 0, 0, 23, 0, 0, 0, 23][..]);
}

#[test]
fn the_cache_is_bounded_and_keeps_used_statements() {
    let statements = Statements::default();
    let kept = statements.extended(b"select 0", b"").id;
    for i in 1..limits::SHAPES_MAX * 3 {
        statements.extended(format!("select {i}").as_bytes(), b"");
        if i % 1000 == 0 {
            assert_eq!(statements.extended(b"select 0", b"").id, kept);
        }
    }
    let cache = statements.extended.lock();
    assert!(cache.young.len() <= limits::SHAPES_MAX && cache.old.len() <= limits::SHAPES_MAX);
}

#[test]
fn parameters_of_user_types_are_not_packed() {
    let statements = Statements::default();
    assert!(statements.extended(b"select $1", &23u32.to_be_bytes()).has_credit());
    assert!(!statements.extended(b"select $1", &16_385u32.to_be_bytes()).has_credit());
}

#[test]
fn a_statement_that_took_too_long_is_tried_again_after_a_thousand_runs() {
    let statement = Statements::default().extended(b"select 1", b"");
    statement.was_too_slow();
    for _ in 0..1_000 {
        assert!(!statement.has_credit());
        statement.succeeded();
    }
    statement.succeeded();
    assert!(statement.has_credit());
    statement.exclude();
    statement.was_too_slow();
    assert!(
        statement.explain().is_some_and(|explained| explained.verdict == "passed"),
        "the statement stays excluded"
    );
}

#[test]
fn a_statement_that_fails_often_loses_its_credit_and_earns_it_back() {
    let statement = Statements::default().extended(b"insert into t values ($1)", b"");
    for _ in 0..100 {
        (0..9).for_each(|_| statement.succeeded());
        statement.failed();
        assert!(statement.has_credit(), "one failure in ten does not exclude the statement");
    }
    (0..40).for_each(|_| statement.failed());
    assert!(!statement.has_credit());
    (0..1000).for_each(|_| statement.succeeded());
    assert!(statement.has_credit());
    statement.exclude();
    (0..1000).for_each(|_| statement.succeeded());
    assert!(!statement.has_credit());
}
