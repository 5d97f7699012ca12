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
fn a_source_that_contradicts_the_declaration_is_not_packed() {
    let sql = "select push($1, $2)";
    let session = "changes the session, although it has a pack rule";
    let errors = "catches errors, and with them the timeouts of a lane";
    for (source, why) in [
        ("begin update t set a = 1 where id = $1; end", ""),
        ("begin raise exception 'no'; end", ""),
        ("begin execute format('update %I set a = $1', 'x') using $2; end", ""),
        ("begin insert into t values (1) on conflict (id) do update set a = 2; end", ""),
        ("begin perform pg_advisory_xact_lock($1); perform nextval('s'); end", ""),
        ("begin update t set a = 1; exception when others then null; end", errors),
        ("begin set work_mem = '1MB'; end", session),
        ("begin perform 1; set local search_path = x; end", session),
        ("begin if true then reset all; end if; end", session),
        ("begin perform set_config('work_mem', '1MB', true); end", session),
        ("begin execute 'select set_config(''a.b'', ''c'', false)'; end", session),
        ("begin set shop.tenant = 'a'; end", session),
        ("begin set local shop.tenant to 'a'; end", session),
        ("begin update t set a = 1; set \"shop.tenant\" = 'a'; end", session),
        ("begin execute 'set session shop.tenant = a'; end", session),
        ("begin execute format('set %I.%I = x', 'a', 'b'); end", session),
        ("begin listen news; end", session),
        ("begin deallocate all; end", session),
        ("begin perform setseed(0.5); end", session),
        ("begin return currval('s'); end", "reads the session's sequence values"),
        ("begin execute 'insert into t values (lastval())'; end", "reads the session's sequence values"),
        ("begin perform pg_try_advisory_lock(1); end", "takes or releases a lock of the session"),
        ("begin perform pg_advisory_unlock(1); end", "takes or releases an advisory lock"),
        ("begin if x <> pg_current_xact_id() then null; end if; end", "depends on the transaction"),
        ("begin perform pg_sleep(1); end", "waits, which a lane must not do"),
        ("begin \u{a0} 'unclosed; end", "has a source that cannot be read"),
    ] {
        let mut facts = facts();
        facts.functions[0].source = Some(source.to_owned());
        let expected = if why.is_empty() { "$1".to_owned() } else { format!("function public.push {why}") };
        assert_eq!(key(sql, &facts), expected, "{source}");
    }
}

#[test]
fn functions_that_the_source_calls_are_read_too() {
    let sql = "select push($1, $2)";
    let inner = |source: &str| FunctionFact {
        name: "inner".to_owned(),
        source: Some(source.to_owned()),
        ..function(300, "public", true)
    };
    for (source, why) in [
        ("begin insert into t values (lower($1)); end", ""),
        ("begin perform inner(1); end", ""), // calls itself, like a function for a tree
        (
            "begin perform set_config('a.b', 'c', false); end",
            "changes the session, although it has a pack rule",
        ),
        ("begin perform innermost(1); end", "calls a function that calls others"),
    ] {
        let mut facts = facts();
        facts.functions[0].source = Some("begin perform inner($1); end".to_owned());
        facts.functions.push(inner(source));
        let expected = if why.is_empty() { "$1".to_owned() } else { format!("function public.push {why}") };
        assert_eq!(key(sql, &facts), expected, "{source}");
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
