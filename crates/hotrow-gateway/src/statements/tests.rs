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
fn texts_that_differ_only_in_values_share_their_credit_and_counts() {
    let statements = Statements::default();
    let one = statements.extended(b"update t set a = 1 where id = $1", &23u32.to_be_bytes());
    let other = statements.extended(b"update t set a = 22 where id = $1 -- 7", &23u32.to_be_bytes());
    assert_ne!(one.name, other.name, "the server prepares each text");
    one.record.was_too_slow();
    one.count(RunOutcome::TooSlow);
    assert!(!other.has_credit());
    assert_eq!(other.record.counts().of(RunOutcome::TooSlow), 1);
    for (text, types) in [
        (&b"update t set a = 1 where id = $1"[..], &20u32.to_be_bytes()[..]),
        (b"update t set a = b where id = $1", &23u32.to_be_bytes()),
    ] {
        assert!(statements.extended(text, types).has_credit(), "{}", text.escape_ascii());
    }
    let mut normaliser = Normaliser::new();
    let mut simple = |text| statements.simple(&normaliser.run(text));
    simple("select f(1) from t where id = 5").record.exclude();
    assert!(!simple("select f(2) from t where id = 6").has_credit());
}

#[test]
fn a_change_of_the_catalog_renews_the_credit() {
    let statements = Statements::default();
    let statement = statements.extended(b"select a from t where id = $1", b"");
    statement.count(RunOutcome::TooSlow);
    statement.record.was_too_slow();
    statements.supersede(&statement);
    let successor = statements.successor(&statement);
    assert_ne!(successor.name, statement.name);
    assert!(successor.has_credit());
    assert_eq!(successor.record.counts().of(RunOutcome::TooSlow), 1, "the counts continue");
}

#[test]
fn a_superseded_statement_is_not_known_to_be_passed_through() {
    let statements = Statements::default();
    let statement = statements.extended(b"update t set a = 1 where id = $1", b"");
    let now = Instant::now();
    statement.decide(VerdictRecord::new(Verdict::Pass, None, 0, (1, now)));
    let passes = || statement.passes(now, 1, Duration::from_secs(9));
    assert!(passes());
    statements.supersede(&statement);
    assert!(!passes(), "its successor may be packed");
}

#[test]
fn records_of_forgotten_statements_are_forgotten() {
    let records = Records::default();
    let kept = records.of(b"select a from t where id = 0", b"");
    for i in 0..4 * limits::SHAPES_MAX {
        records.of(format!("select a{i} from t").as_bytes(), b"");
    }
    assert!(records.len() < 2 * limits::SHAPES_MAX, "{} records", records.len());
    assert!(Arc::ptr_eq(&kept, &records.of(b"select a from t where id = 1", b"")));
}

#[test]
fn parameters_of_user_types_are_not_packed() {
    let statements = Statements::default();
    assert!(statements.extended(b"select $1", &23u32.to_be_bytes()).has_credit());
    assert!(!statements.extended(b"select $1", &16_385u32.to_be_bytes()).has_credit());
}

#[test]
fn a_statement_that_took_too_long_is_tried_again_after_more_and_more_runs() {
    let statement = Statements::default().extended(b"select 1", b"");
    let passed_through = || {
        statement.record.was_too_slow();
        let mut runs = 0;
        while !statement.has_credit() {
            statement.succeeded();
            runs += 1;
        }
        runs - 1
    };
    assert_eq!([(); 6].map(|()| passed_through()), [32, 128, 512, 1_000, 1_000, 1_000]);
    (0..10_000).for_each(|_| statement.record.succeeded_in_lane());
    assert_eq!(passed_through(), 1_000);
    (0..10_001).for_each(|_| statement.record.succeeded_in_lane());
    assert_eq!(passed_through(), 32);
    statement.record.pass_for_long();
    assert_eq!(passed_through(), 1_000, "it stays out as long as was said before");
    statement.record.exclude();
    statement.record.was_too_slow();
    assert!(
        statement.explain().is_some_and(|explained| explained.verdict == "passed"),
        "the statement stays excluded"
    );
}

#[test]
fn units_in_lanes_neither_earn_credit_back_nor_lose_more_when_their_statement_has_none() {
    let statement = Statements::default().extended(b"select 1", b"");
    (0..4).for_each(|_| statement.record.was_too_slow()); // in four lanes at once
    (0..64).for_each(|_| statement.record.succeeded_in_lane());
    (0..32).for_each(|_| statement.succeeded());
    assert!(!statement.has_credit());
    statement.succeeded();
    assert!(statement.has_credit());
}

#[test]
fn slow_batches_take_a_statement_out_for_longer_each_time() {
    let statement = Statements::default().extended(b"select 1", b"");
    for passed in [32, 128, 512, 1_000, 1_000] {
        (0..64).for_each(|_| statement.record.was_in_slow_batch());
        (0..passed).for_each(|_| statement.succeeded());
        assert!(!statement.has_credit());
        statement.succeeded();
        assert!(statement.has_credit());
    }
    let other = Statements::default().extended(b"select 2", b"");
    for _ in 0..100 {
        (0..8).for_each(|_| other.record.was_in_slow_batch());
        (0..64).for_each(|_| other.record.succeeded_in_lane());
        assert!(other.has_credit(), "a slow batch in nine does not take it out");
    }
}

#[test]
fn a_statement_that_fails_often_loses_its_credit_and_earns_it_back() {
    let statement = Statements::default().extended(b"insert into t values ($1)", b"");
    for _ in 0..100 {
        (0..9).for_each(|_| statement.succeeded());
        statement.record.failed();
        assert!(statement.has_credit(), "one failure in ten does not exclude the statement");
    }
    (0..40).for_each(|_| statement.record.failed());
    assert!(!statement.has_credit());
    (0..1000).for_each(|_| statement.succeeded());
    assert!(statement.has_credit());
    statement.record.exclude();
    (0..1000).for_each(|_| statement.succeeded());
    assert!(!statement.has_credit());
}
