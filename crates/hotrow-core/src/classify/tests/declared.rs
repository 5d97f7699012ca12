//! Tests calls of functions with a pack rule: which of them are packed, and with which key.

use super::*;
use crate::key::KeySource;

const TEXT: u32 = 25;
const BIGINT: u32 = 20;

fn function(oid: u32, schema: &str, visible: bool) -> FunctionFact {
    FunctionFact {
        schema: schema.to_owned(),
        name: "push".to_owned(),
        kind: "function".to_owned(),
        visible,
        volatility: Some('v'),
        special: false,
        extension: None,
        version: format!("{oid} 700"),
        language: Some("plpgsql".to_owned()),
        source: Some("begin execute format('insert into inbox_%s ...', $1); end".to_owned()),
    }
}

fn rule(oid: u32, parameters: &[(&str, u32)], key_argument: Option<usize>) -> PackRule {
    let parameter =
        |(name, type_oid): &(&str, u32)| DeclaredParameter { name: (*name).to_owned(), type_oid: *type_oid };
    PackRule {
        oid,
        schema: "public".to_owned(),
        name: "push".to_owned(),
        parameters: parameters.iter().map(parameter).collect(),
        key_argument,
        key_space: "push".to_owned(),
        may_change_other_nodes: false,
    }
}

fn facts() -> Facts {
    let pack = vec![rule(100, &[("inbox", BIGINT), ("body", TEXT)], Some(0))];
    Facts {
        functions: vec![function(100, "public", true)],
        rules: Rules { merge: Vec::new(), pack },
        ..Facts::default()
    }
}

/// The key's value of a packed call, "none" for a call without a key, or the reason why it is passed through.
fn key(sql: &str, facts: &Facts) -> String {
    let Analysis::Candidate(candidate) = analyse(sql) else { panic!("{sql} is no candidate") };
    match decide(&candidate, facts, &[]) {
        Decision::Packed(packing) => {
            assert!(packing.is_declared && packing.in_key_space && packing.merging.is_none(), "{sql}");
            assert!(packing.touches_sequence, "it may advance any sequence");
            let Some(key) = packing.key else { return "none".to_owned() };
            match key.columns.first().map(|column| &column.source) {
                None => "all".to_owned(),
                Some(KeySource::Param(index)) => format!("${}", index + 1),
                Some(source) => format!("{source:?}"),
            }
        }
        Decision::Pass { reason, .. } => reason.to_string(),
    }
}

#[test]
fn a_declared_call_is_packed_under_the_key_of_its_argument() {
    for (sql, expected) in [
        ("select push($1, $2)", "$1"),
        ("select * from push($2, $1)", "$2"),
        ("select push(body => $1, inbox => $2)", "$2"),
        ("select public.push(7, repeat(md5($1), 64))", "Const(\"7\")"),
        ("select push($1 + 1, $2)", "none"),
        ("select push(null, $1)", "none"),
    ] {
        assert_eq!(key(sql, &facts()), expected, "{sql}");
    }
    let mut without_key = facts();
    without_key.rules.pack[0].key_argument = None;
    assert_eq!(key("select push($1, $2)", &without_key), "all");
}

#[test]
fn a_call_that_can_mean_a_function_without_a_rule_is_passed_through() {
    let passes = |sql: &str, change: fn(&mut Facts)| {
        let mut facts = facts();
        change(&mut facts);
        let Analysis::Candidate(candidate) = analyse(sql) else { panic!("{sql} is no candidate") };
        matches!(decide(&candidate, &facts, &[]), Decision::Pass { .. })
    };
    let sql = "select push($1, $2)";
    assert!(!passes(sql, |_| {}));
    assert!(passes(sql, |facts| facts.rules.pack.clear()));
    assert!(passes(sql, |facts| facts.functions.clear()));
    assert!(passes(sql, |facts| facts.functions.push(function(101, "other", true))));
    assert!(!passes(sql, |facts| facts.functions.push(function(101, "other", false))));
    // The function was dropped and created again.
    assert!(passes(sql, |facts| facts.functions[0].version = "200 800".to_owned()));
    assert!(passes(sql, |facts| facts.rules.pack[0].may_change_other_nodes = true));
    assert!(passes("select push($1, lower_of($2))", |facts| {
        facts.functions.push(FunctionFact { name: "lower_of".to_owned(), ..function(300, "public", true) });
    }));
    assert!(passes("select push($1, $2), push($3, $4)", |_| {}));
    assert!(passes("select push($1, $2) from item where id = $3", |_| {}));
}

#[test]
fn a_function_that_may_make_a_custom_setting_is_not_packed() {
    let sql = "select push($1, $2)";
    let why = "function public.push calls set_config or makes a custom setting, although it has a pack rule";
    for (source, is_packed) in [
        ("begin update t set a = 1 where id = $1; end", true),
        ("begin set work_mem = '1MB'; end", true), // a lane notices it
        ("begin perform set_config('work_mem', '1MB', true); end", false),
        ("begin execute 'select set_config(''a.b'', ''c'', false)'; end", false),
        ("begin set shop.tenant = 'a'; end", false),
        ("begin set local shop.tenant to 'a'; end", false),
        ("begin execute 'set session shop.tenant = a'; end", false),
    ] {
        let mut facts = facts();
        facts.functions[0].source = Some(source.to_owned());
        assert_eq!(key(sql, &facts), if is_packed { "$1" } else { why }, "{source}");
    }
}

#[test]
fn overloaded_functions_share_a_key_if_all_have_the_same_one() {
    let mut facts = facts();
    facts.functions.push(function(101, "public", true));
    let sql = "select push($1, $2, $3)";
    assert_eq!(key(sql, &facts), "function push is user-defined and not proven to use its arguments only");
    facts.rules.pack.push(rule(101, &[("inbox", BIGINT), ("body", TEXT), ("delay", 23)], Some(0)));
    assert_eq!(key(sql, &facts), "$1");
    facts.rules.pack[1].key_argument = Some(1);
    assert_eq!(key(sql, &facts), "none", "the gateway does not know which of them the server calls");
}

#[test]
fn the_explanation_names_the_pack_rule() {
    let sql = "select push($1, $2)";
    let Analysis::Candidate(candidate) = analyse(sql) else { panic!() };
    let decision = decide(&candidate, &facts(), &[]);
    assert_eq!(
        explain(&analyse(sql), Some(&decision), &[]),
        "packed
  lane      writes
  function  public.push
  key       inbox = $1
  at most   128 units of one row per commit
  sequence  moved
  because   a pack rule declares that a call leaves nothing in the session
"
    );
}
