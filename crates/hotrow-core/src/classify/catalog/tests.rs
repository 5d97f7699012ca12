//! Tests which questions are asked, how long an answer counts, and that the memory is bounded.

use serde_json::json;

use super::*;
use crate::classify::{self, Analysis, Refusal};
use crate::limits;

const NOW: Asked = Asked { epoch: 1, at: Duration::from_secs(10) };

fn candidate(sql: &str) -> Candidate {
    match classify::analyse(sql) {
        Analysis::Candidate(candidate) => *candidate,
        other => panic!("{sql}: {other:?}"),
    }
}

fn table(name: &str) -> TableFacts {
    serde_json::from_value(json!({
        "oid": 100, "schema": "public", "name": name, "relkind": "r", "persistence": "p", "has_rules": false,
        "row_security": false, "has_children": false, "is_partition": false, "deferrable": false,
        "deferred_columns": [], "unique_indexes": [{"name": "k", "primary": true, "columns": ["id"]}],
        "columns": [{"name": "id", "attnum": 1, "type_oid": 23, "type_kind": "builtin", "avg_width": 4, "default": null,
                     "generated": false, "identity": false}],
        "triggers": [], "expressions": [], "referrers": [],
    }))
    .unwrap()
}

fn function(name: &str, source: &str) -> FunctionFact {
    serde_json::from_value(json!({
        "schema": "public", "name": name, "kind": "function", "visible": true, "volatility": "i", "special": false,
        "language": "sql", "source": source, "extension": null,
    }))
    .unwrap()
}

/// Answers as a server with one table `t` and one function `f` does.
fn answers(questions: &Questions) -> Answers {
    let of_table =
        |name: &String| (name.clone(), Ok(matches!(name.as_str(), "\"t\"" | "public.t").then(|| table("t"))));
    Answers {
        tables: questions.tables.iter().map(of_table).collect(),
        names: questions.objects.iter().cloned().collect(),
        objects: Some(Ok(vec![function("f", "select g(1)")])),
        rules: questions.rules.iter().map(|name| (name.clone(), Ok(Rules::default()))).collect(),
        cached_sequences: questions.cached_sequences.then_some(Ok(false)),
    }
}

/// Asks until there are facts about a statement. Returns what was asked, round by round.
fn learn(known: &mut Catalog, sql: &str, now: Asked) -> Vec<Questions> {
    let mut rounds = Vec::new();
    while let Err(lack) = known.facts(&candidate(sql), now) {
        assert!(rounds.len() < 4, "{lack:?}");
        known.put(answers(&lack.questions), now);
        rounds.push(lack.questions);
    }
    rounds
}

#[test]
fn a_new_statement_about_known_objects_asks_nothing() {
    let mut known = Catalog::default();
    assert_eq!(learn(&mut known, "update t set n = n + 1 where id = 1", NOW).len(), 1);
    for sql in [
        "update t set n = n + 2 where id = $1",
        "delete from t where id = 5",
        "update t as a set n = 0 where id = 7",
    ] {
        let rounds = learn(&mut known, sql, NOW);
        assert!(rounds.iter().all(|round| round.tables.is_empty()), "{sql}: {rounds:?}");
    }
    assert_eq!(learn(&mut known, "update t set n = n + 1 where id = 99", NOW), []);
}

#[test]
fn names_in_the_source_of_a_function_are_asked_for_too() {
    let mut known = Catalog::default();
    let rounds = learn(&mut known, "update t set n = f(n) where id = 1", NOW);
    assert!(rounds[0].objects.contains("f") && rounds[0].objects.contains(""), "{rounds:?}");
    assert!(rounds[1].objects.contains("g"), "{rounds:?}");
}

#[test]
fn all_parts_of_a_statement_are_asked_for_at_once() {
    let mut known = Catalog::default();
    let sql = "with a as (delete from t where id = 1 returning id) insert into u select id from a";
    let rounds = learn(&mut known, sql, NOW);
    assert_eq!(rounds[0].tables.iter().collect::<Vec<_>>(), ["\"t\"", "\"u\""]);
    let found = known.facts(&candidate(sql), NOW).unwrap();
    assert_eq!((found.value.table, found.value.with.len(), found.asked), (None, 1, NOW.at));
}

#[test]
fn a_fact_counts_in_its_epoch_and_until_it_is_too_old() {
    let mut known = Catalog::default();
    let sql = "update t set n = 1 where id = 1";
    learn(&mut known, sql, NOW);
    assert!(known.facts(&candidate(sql), Asked { at: NOW.at, ..NOW }).is_ok());
    let later = Asked { at: NOW.at + Duration::from_millis(1), ..NOW };
    assert!(known.facts(&candidate(sql), later).is_err());
    assert!(known.facts(&candidate(sql), Asked { epoch: 2, ..NOW }).is_err());
    // A late answer to an earlier question does not replace a newer fact.
    learn(&mut known, sql, later);
    let lack = Catalog::default().facts(&candidate(sql), NOW).unwrap_err();
    known.put(answers(&lack.questions), NOW);
    assert_eq!(known.facts(&candidate(sql), NOW).unwrap().asked, later.at);
}

#[test]
fn a_refusal_is_remembered() {
    let mut known = Catalog::default();
    let sql = "update t set n = 1 where id = 1";
    let refusal = Refusal { code: "42501".to_owned(), message: "permission denied for schema s".to_owned() };
    let lack = known.facts(&candidate(sql), NOW).unwrap_err();
    let mut answers = answers(&lack.questions);
    answers.tables[0].1 = Err(refusal.clone());
    known.put(answers, NOW);
    let lack = known.facts(&candidate(sql), NOW).unwrap_err();
    assert_eq!((lack.refusal, lack.questions), (Some(refusal.into()), Questions::default()));
}

#[test]
fn the_memory_is_bounded() {
    let mut known: Known<bool> = Known::default();
    for place in 0..3 * limits::FACTS_MAX {
        known.put(place.to_string(), Ok(true), NOW, 0);
        assert!(known.get("0", NOW).is_some(), "a fact that is used stays");
    }
    assert!(known.len() <= 2 * limits::FACTS_MAX + 1);
    for place in 0..1_000 {
        known.put(format!("{place} is large"), Ok(true), NOW, limits::FACTS_BYTES_MAX / 10);
    }
    assert!(known.len() <= 30);
}
