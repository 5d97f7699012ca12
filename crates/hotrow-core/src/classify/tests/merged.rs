//! Tests calls of functions with a merge rule: which of them are merged, with which statement and key.

use std::sync::Arc;

use super::*;
use crate::distribution::{Distribution, Shard};
use crate::key::{Format, ParamValue};

const TEXT: (u32, u32) = (25, 1009);
const BIGINT: (u32, u32) = (20, 1016);
const UUID: (u32, u32) = (2950, 2951);

fn rule(
    name: &str,
    composite: bool,
    columns: &[&str],
    parameters: &[(&str, (u32, u32))],
    required: usize,
) -> MergeRule {
    let parameter = |(name, (type_oid, array_oid)): &(&str, (u32, u32))| Parameter {
        name: (*name).to_owned(),
        type_oid: *type_oid,
        array_oid: *array_oid,
    };
    MergeRule {
        schema: "hotrow".to_owned(),
        name: name.to_owned(),
        visible: false,
        parameters: parameters.iter().map(parameter).collect(),
        required,
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        named: composite,
        result: if composite { ResultKind::Record } else { ResultKind::Plain },
        returns_set: false,
        batch_schema: "hotrow".to_owned(),
        batch_name: format!("{name}_batch"),
        key_argument: 0,
        key_space: "hotrow.counter".to_owned(),
        most_calls: 256,
        wait_argument: None,
        callable: true,
        may_change_other_nodes: false,
        distribution: None,
    }
}

fn function(schema: &str, name: &str, visible: bool) -> FunctionFact {
    FunctionFact {
        schema: schema.to_owned(),
        name: name.to_owned(),
        kind: "function".to_owned(),
        visible,
        volatility: Some('v'),
        special: false,
        extension: None,
        version: String::new(),
        language: Some("sql".to_owned()),
        source: Some("select length('x')".to_owned()),
    }
}

fn facts() -> Facts {
    let increment = [("counter", TEXT), ("amount", BIGINT), ("request_id", UUID)];
    let bump = MergeRule {
        schema: "public".to_owned(),
        visible: true,
        batch_schema: "public".to_owned(),
        ..rule("bump", false, &["bump"], &[("name", TEXT), ("by", BIGINT)], 2)
    };
    let merge = vec![rule("increment", true, &["value", "version"], &increment, 1), bump];
    Facts {
        functions: vec![function("hotrow", "increment", false), function("public", "bump", true)],
        rules: Rules { merge, pack: Vec::new() },
        ..Facts::default()
    }
}

fn decided(sql: &str, types: &[u32], facts: &Facts) -> Decision {
    match analyse(sql) {
        Analysis::Candidate(candidate) => decide(&candidate, facts, types),
        Analysis::Pass(Pass { reason, effect, .. }) => Decision::Pass { reason, effect, locks: None },
        other => panic!("{sql}: {other:?}"),
    }
}

fn packing(sql: &str, types: &[u32]) -> Packing {
    match decided(sql, types, &facts()) {
        Decision::Packed(packing) => packing,
        other => panic!("{sql}: {other:?}"),
    }
}

/// The statement, the types of the arrays, and the sources of their values.
fn merged(sql: &str, types: &[u32]) -> String {
    let Some(merging) = packing(sql, types).merging else { return "not merged".to_owned() };
    let sources = merging.elements.iter().map(|element| match &element.source {
        ElementSource::Param(index) => format!("${}", index + 1),
        ElementSource::NegatedParam(index) => format!("-${}", index + 1),
        ElementSource::Const(text) => format!("{text:?}"),
    });
    format!("{} {:?} {}", merging.text, merging.types, sources.collect::<Vec<_>>().join(" "))
}

#[test]
fn the_select_list_is_applied_to_the_batch_function() {
    let batch = r#""hotrow"."increment_batch"("counter" => $1)"#;
    for (sql, text) in [
        ("select * from hotrow.increment($1)", format!(r#"select * from {batch} as "increment""#)),
        ("SELECT value FROM hotrow.increment($1);", format!(r#"select "value" from {batch} as "increment""#)),
        (
            "select version as v, value from hotrow.increment($1) as i",
            format!(r#"select "version" as "v", "value" from {batch} as "i""#),
        ),
        (
            "select hotrow.increment($1)",
            format!(r#"select hotrow_answer as "increment" from {batch} as hotrow_answer"#),
        ),
        (
            "select hotrow.increment(counter => $1) as answer",
            format!(r#"select hotrow_answer as "answer" from {batch} as hotrow_answer"#),
        ),
    ] {
        assert_eq!(merged(sql, &[]), format!("{text} [1009] $1"), "{sql}");
    }
    let batch = r#""public"."bump_batch"("name" => $1, "by" => $2)"#;
    for (sql, text) in [
        ("select bump($1, $2)", format!(r#"select hotrow_answer as "bump" from {batch} as hotrow_answer"#)),
        ("select * from bump($1, $2) as result", format!(r#"select * from {batch} as "result""#)),
        ("select result from bump($1, $2) as result", format!(r#"select "result" from {batch} as "result""#)),
    ] {
        assert_eq!(merged(sql, &[]), format!("{text} [1009, 1016] $1 $2"), "{sql}");
    }
}

/// A pack that is distributed over two nodes by the hash of this parameter.
fn distributed(column: &str) -> Facts {
    let shard = |id, least, greatest, node| Shard { id, least, greatest, node };
    let mut facts = facts();
    facts.rules.merge[0].distribution = Some(Arc::new(Distribution {
        method: 'h',
        column: column.to_owned(),
        type_oid: TEXT.0,
        is_deterministic: true,
        probe: Some(-1_550_461_895), // hashtext('7')
        local_node: 0,
        shards: vec![shard(8, i32::MIN, -1, 1), shard(9, 0, i32::MAX, 2)],
        nodes: Vec::new(),
        has_lanes: true,
        privileges: String::new(),
    }));
    facts
}

#[test]
fn calls_of_a_distributed_pack_are_merged_on_the_node_of_their_key() {
    let node = |value: &'static [u8]| {
        let Decision::Packed(packing) =
            decided("select * from hotrow.increment($1)", &[TEXT.0], &distributed("counter"))
        else {
            panic!("not packed")
        };
        assert!(packing.merging.is_some() && packing.in_key_space);
        let value = ParamValue { format: Format::Text, bytes: value };
        let distribution = packing.distribution.clone().unwrap();
        distribution.shards(&packing.key.unwrap(), |_| Some(value)).unwrap()[0].node
    };
    assert_eq!((node(b"abc"), node(b"a")), (1, 2), "hashtext('abc') is negative, hashtext('a') is not");
}

#[test]
fn calls_of_a_distributed_pack_whose_node_is_unknown_are_passed_through() {
    let call = "select * from hotrow.increment($1)";
    let is_passed = |types: &[u32], facts: &Facts| {
        matches!(decided(call, types, facts), Decision::Pass { reason: Reason::Distributed { .. }, .. })
    };
    assert!(!is_passed(&[TEXT.0], &distributed("counter")));
    assert!(!is_passed(&[0], &distributed("counter")), "the server takes it for a text");
    assert!(is_passed(&[TEXT.0], &distributed("")), "the arguments do not show the node");
    const BPCHAR: u32 = 1042;
    assert!(is_passed(&[BPCHAR], &distributed("counter")), "the server removes blanks before it hashes");
    let mut without_lanes = distributed("counter");
    let distribution = without_lanes.rules.merge[0].distribution.as_mut().unwrap();
    Arc::make_mut(distribution).has_lanes = false;
    assert!(is_passed(&[TEXT.0], &without_lanes), "a lane of the coordinator could not tell the outcome");
    let mut of_other_type = distributed("counter");
    of_other_type.rules.merge[0].parameters[1].type_oid = 16_400;
    let both = "select * from hotrow.increment($1, $2)";
    let decision = decided(both, &[TEXT.0, 16_400], &of_other_type);
    assert!(matches!(decision, Decision::Pass { reason: Reason::Distributed { .. }, .. }), "{decision:?}");
}

#[test]
fn calls_that_may_change_other_nodes_are_passed_through() {
    let mut facts = facts();
    let call = "select * from hotrow.increment($1)";
    assert!(matches!(decided(call, &[TEXT.0], &facts), Decision::Packed(_)));
    facts.rules.merge.iter_mut().for_each(|rule| rule.may_change_other_nodes = true);
    let decision = decided(call, &[TEXT.0], &facts);
    assert!(matches!(decision, Decision::Pass { reason: Reason::Distributed { .. }, .. }), "{decision:?}");
}

#[test]
fn calls_of_a_distributed_pack_can_have_a_number_as_their_key() {
    let mut facts = distributed("counter");
    facts.rules.merge[0].parameters[0].type_oid = BIGINT.0;
    facts.rules.merge[0].parameters[0].array_oid = BIGINT.1;
    let distribution = Arc::make_mut(facts.rules.merge[0].distribution.as_mut().unwrap());
    (distribution.type_oid, distribution.probe) = (BIGINT.0, Some(-978_793_473)); // hashint8(7)
    let node = |sql: &str, types: &[u32]| match decided(sql, types, &facts) {
        Decision::Packed(packing) => {
            let value = ParamValue { format: Format::Text, bytes: b"7" };
            let shards = packing.distribution.as_ref()?.shards(packing.key.as_ref()?, |_| Some(value));
            Some(shards?[0].node)
        }
        Decision::Pass { .. } => None,
    };
    const NUMERIC: u32 = 1700;
    let call = "select * from hotrow.increment($1)";
    assert_eq!([BIGINT.0, 23, 21, 0].map(|declared| node(call, &[declared])), [Some(1); 4]);
    assert_eq!(node("select * from hotrow.increment(7)", &[]), Some(1));
    assert_eq!([TEXT.0, NUMERIC].map(|declared| node(call, &[declared])), [None; 2]);
}

#[test]
fn rows_of_set_returning_calls_have_the_call_number_first() {
    let mut facts = facts();
    facts.rules.merge[0].returns_set = true;
    facts.rules.merge[1].returns_set = true;
    let merged = |sql: &str, facts: &Facts| match decided(sql, &[], facts) {
        Decision::Packed(Packing { merging: Some(merging), .. }) => (merging.text, merging.returns),
        other => panic!("{sql}: {other:?}"),
    };
    let batch = r#"from "hotrow"."increment_batch"("counter" => $1) as"#;
    let columns = r#"(hotrow_call, "value", "version")"#;
    for (sql, items, alias) in [
        ("select * from hotrow.increment($1)", r#""value", "version""#, "increment"),
        ("select version as v from hotrow.increment($1) i", r#""version" as "v""#, "i"),
        ("select hotrow.increment($1)", r#"row("value", "version") as "increment""#, "increment"),
        ("select hotrow.increment($1) as it", r#"row("value", "version") as "it""#, "it"),
    ] {
        let text = format!(r#"select hotrow_call, {items} {batch} "{alias}" {columns}"#);
        assert_eq!(merged(sql, &facts), (text, Returns::Rows), "{sql}");
    }
    let batch = r#"from "public"."bump_batch"("name" => $1, "by" => $2) as"#;
    for (sql, items, alias) in [
        ("select * from bump($1, $2)", r#""bump""#, "bump"),
        ("select b as c from bump($1, $2) b", r#""b" as "c""#, "b"),
        ("select bump($1, $2)", r#""bump" as "bump""#, "bump"),
    ] {
        let text = format!(r#"select hotrow_call, {items} {batch} "{alias}" (hotrow_call, "{alias}")"#);
        assert_eq!(merged(sql, &facts), (text, Returns::Rows), "{sql}");
    }
    facts.rules.merge[0].result = ResultKind::Row;
    let value = decided("select hotrow.increment($1)", &[], &facts);
    assert!(matches!(value, Decision::Packed(Packing { merging: None, .. })), "its type would differ");
}

#[test]
fn the_server_computes_how_long_a_call_waits() {
    let mut facts = facts();
    facts.rules.merge[0].returns_set = true;
    facts.rules.merge[0].parameters[1] =
        Parameter { name: "wait".to_owned(), type_oid: 1186, array_oid: 1187 };
    facts.rules.merge[0].wait_argument = Some(1);
    let merged = |sql: &str| match decided(sql, &[], &facts) {
        Decision::Packed(Packing { merging: Some(merging), .. }) => Some((merging.text, merging.returns)),
        Decision::Packed(packing) => panic!("unmerged, it would wait in the lane: {packing:?}"),
        Decision::Pass { .. } => None,
    };
    let milliseconds = |interval: &str| {
        format!(
            "case when {interval} is not null then cast(least(pg_catalog.date_part('epoch', {interval}), 1e9) \
             operator(pg_catalog.*) 1000 as pg_catalog.int8) end"
        )
    };
    let batch = r#""value" from "hotrow"."increment_batch""#;
    let columns = r#"as "increment" (hotrow_call, hotrow_again_in, "value", "version")"#;
    let again_in = milliseconds("hotrow_again_in");
    for (call, arguments, wait) in [
        ("$1, '1 s'", r#""counter" => $1, "wait" => $2"#, milliseconds("($2)[hotrow_call]")),
        ("wait => $1, counter => $2", r#""counter" => $1, "wait" => $2"#, milliseconds("($2)[hotrow_call]")),
        ("$1", r#""counter" => $1"#, "cast(null as pg_catalog.int8)".to_owned()),
    ] {
        let text = format!("select hotrow_call, {again_in}, {wait}, {batch}({arguments}) {columns}");
        let sql = format!("select value from hotrow.increment({call})");
        assert_eq!(merged(&sql), Some((text, Returns::RowsOrWait)), "{sql}");
    }
    assert_eq!(merged("select i from hotrow.increment($1, '1 s') i"), None);
    let sql = "select * from hotrow.increment($1, '1 s')";
    assert!(
        explain(&analyse(sql), Some(&decided(sql, &[], &facts)), &[])
            .contains("\n  waits     in the gateway")
    );
}

#[test]
fn every_argument_becomes_an_array() {
    let select = r#"select * from "hotrow"."increment_batch""#;
    let two = format!(r#"{select}("counter" => $1, "amount" => $2) as "increment""#);
    let three = format!(r#"{select}("counter" => $1, "amount" => $2, "request_id" => $3) as "increment""#);
    for (call, types, text) in [
        ("$1, $2", &[][..], format!("{two} [1009, 1016] $1 $2")),
        ("$2, $1", &[], format!("{two} [1009, 1016] $2 $1")),
        ("amount => $1, counter => $2", &[], format!("{two} [1009, 1016] $2 $1")),
        ("'likes', 5", &[], format!(r#"{two} [1009, 1007] Some("likes") Some("5")"#)),
        ("'likes', -5", &[], format!(r#"{two} [1009, 1007] Some("likes") Some("-5")"#)),
        ("$1, -$2", &[0, 23], format!("{two} [1009, 1007] $1 -$2")),
        ("$1, 5000000000", &[], format!(r#"{two} [1009, 1016] $1 Some("5000000000")"#)),
        ("$1, null, $2", &[], format!("{three} [1009, 1016, 2951] $1 None $2")),
        // Types that drivers declare, and casts.
        ("$1, $2", &[1043, 21], format!("{two} [1015, 1005] $1 $2")),
        ("$1, $2", &[705, 23], format!("{two} [1009, 1007] $1 $2")),
        ("$1::text, $2::int", &[], format!("{two} [1009, 1007] $1 $2")),
        ("$1, $2, $3::uuid", &[25, 20, 0], format!("{three} [1009, 1016, 2951] $1 $2 $3")),
        ("$1, $2::bigint", &[25, 23], format!("{two} [1009, 1007] $1 $2")),
        ("$1, $2::int", &[25, 21], format!("{two} [1009, 1005] $1 $2")),
        ("$1, 7::bigint", &[], format!(r#"{two} [1009, 1016] $1 Some("7")"#)),
        ("$1, cast(7 as int)", &[], format!(r#"{two} [1009, 1007] $1 Some("7")"#)),
        ("$1, '7'", &[], format!(r#"{two} [1009, 1016] $1 Some("7")"#)),
    ] {
        assert_eq!(merged(&format!("select * from hotrow.increment({call})"), types), text, "{call}");
    }
}

#[test]
fn arguments_that_the_function_may_reject_are_left_to_the_server() {
    for (call, types) in [
        ("5, 1", &[][..]),            // not text
        ("$1, $2", &[0, 25]),         // not a bigint
        ("$1, $2", &[0, 1700]),       // needs rounding
        ("$1, 1.5", &[]),             // needs rounding
        ("$1, true", &[]),            // not a bigint
        ("$1, 1.5::bigint", &[]),     // needs rounding
        ("$1, 5000000000::int", &[]), // out of range
        ("$1, $2::int", &[0, 20]),    // can be out of range
        ("$1::varchar(3), $2", &[]),  // truncates
        ("$1, -$2", &[]),             // can be an interval
        ("$1, $2", &[0, 16_400]),
    ] {
        let sql = format!("select * from hotrow.increment({call})");
        match decided(&sql, types, &facts()) {
            Decision::Packed(packing) => assert_eq!(packing.merging, None, "{call}"),
            Decision::Pass { reason, .. } => {
                assert_eq!(call, "$1::varchar(3), $2", "{reason}");
            }
        }
    }
}

/// The server reads the text of a string with a cast, and converts a Boolean: `true::int` is 1.
#[test]
fn a_boolean_with_a_cast_to_another_type_is_not_merged() {
    let mut facts = facts();
    for (type_oid, array_oid, value, is_merged) in [
        (16, 1000, "true", true),
        (16, 1000, "true::boolean", true),
        (114, 199, "'true'::json", true),
        (114, 199, "true::json", false),
        (17, 1001, "cast(false as bytea)", false),
    ] {
        facts.rules.merge[1].parameters[1] = Parameter { name: "by".to_owned(), type_oid, array_oid };
        let Decision::Packed(packing) = decided(&format!("select bump('k', {value})"), &[], &facts) else {
            panic!("{value}")
        };
        assert_eq!(packing.merging.is_some(), is_merged, "{value}");
    }
}

/// The server computes an expression for each call, from columns with the types of the parameters.
#[test]
fn arguments_that_are_expressions_are_computed_in_the_merged_statement() {
    let array = |expression: &str, arrays: &str, columns: &str| {
        format!(
            "array(select {expression} from rows from ({arrays}) with ordinality as hotrow_calls \
             ({columns}, hotrow_call) order by hotrow_call)"
        )
    };
    let one = |expression: &str, number: usize, column: &str| {
        array(expression, &format!("pg_catalog.unnest(${number})"), column)
    };
    for (call, types, amount, rest) in [
        ("$1, $2 + 1", &[25, 20][..], one("hotrow_2 + 1", 2, "hotrow_2"), "[1009, 1016] $1 $2"),
        ("$1, length($1)", &[25], one("length(hotrow_1)", 1, "hotrow_1"), "[1009] $1"),
        ("$1, 2 * -(3 - 1)", &[25], one("2 * - (3 - 1)", 1, "hotrow_any"), "[1009] $1"),
        ("$1, random()::int", &[25], one("random()::INT", 1, "hotrow_any"), "[1009] $1"),
        (
            "$1, case when $2 is null or $2 not in (1, -2) then 1 else $2 end + 1",
            &[25, 20],
            one(
                "case when hotrow_2 is null OR hotrow_2 not in (1, - 2) then 1 else hotrow_2 end + 1",
                2,
                "hotrow_2",
            ),
            "[1009, 1016] $1 $2",
        ),
        (
            "$1, case $2 when 1 then 2 when 2 then array_length(array[1, $2], 1) end",
            &[25, 20],
            one(
                "case hotrow_2 when 1 then 2 when 2 then array_length(array[1, hotrow_2], 1) end",
                2,
                "hotrow_2",
            ),
            "[1009, 1016] $1 $2",
        ),
        (
            "$1, cast($2 as numeric(5, 2)) * $3 + $2",
            &[25, 1700, 23],
            array(
                "cast(hotrow_2 as NUMERIC(5,2)) * hotrow_3 + hotrow_2",
                "pg_catalog.unnest($2), pg_catalog.unnest($3)",
                "hotrow_2, hotrow_3",
            ),
            "[1009, 1231, 1007] $1 $2 $3",
        ),
        (
            "$1, length('it''s \\' || $2)",
            &[25, 25],
            one(r"length('it''s \' || hotrow_2)", 2, "hotrow_2"),
            "[1009, 1009] $1 $2",
        ),
    ] {
        let sql = format!("select * from hotrow.increment({call})");
        let call = format!(r#""hotrow"."increment_batch"("counter" => $1, "amount" => {amount})"#);
        assert_eq!(merged(&sql, types), format!(r#"select * from {call} as "increment" {rest}"#), "{sql}");
    }
    // An argument with a plain parameter keeps its array, and an expression can use it too.
    let sql = "select * from hotrow.increment(request_id => $3, amount => $2 + $2, counter => $1)";
    let text = one("hotrow_2 + hotrow_2", 3, "hotrow_2");
    let call =
        format!(r#""hotrow"."increment_batch"("counter" => $1, "amount" => {text}, "request_id" => $2)"#);
    let due = format!(r#"select * from {call} as "increment" [1009, 2951, 1016] $1 $3 $2"#);
    assert_eq!(merged(sql, &[25, 20, 2950]), due);
}

#[test]
fn expressions_that_cannot_be_computed_exactly_are_not_merged() {
    let verdict = |call: &str, types: &[u32]| match decided(
        &format!("select * from hotrow.increment({call})"),
        types,
        &facts(),
    ) {
        Decision::Packed(packing) => packing.merging.map_or("single", |_| "merged"),
        Decision::Pass { .. } => "passed",
    };
    for (call, types, due) in [
        ("$1, $2 + 1", &[25, 20][..], "merged"),
        ("$1, $2 + 1", &[], "single"),           // the type of $2 is not known
        ("$1, $2 + 1", &[25, 16_400], "single"), // the type of its arrays is not known
        ("lower($1), 1", &[25], "passed"),       // the key is not known
        ("$1, nextval('s')", &[25], "passed"),   // the session's currval would be wrong
        ("$1, my_function($2)", &[25, 20], "passed"),
        ("$1, pg_backend_pid()", &[25], "passed"),
        ("$1, count($2)", &[25, 20], "passed"),
        ("$1, $2::my_type", &[25, 20], "passed"),
        ("$1, ($2 + 1)::bpchar('1) || version(')::int", &[25, 20], "passed"),
        ("$1, ($2 + 1)::bpchar(x)::int", &[25, 20], "passed"),
        ("$1, ($2 + 1)::bpchar(3)::int", &[25, 20], "merged"),
        ("$1, stock + 1", &[25], "passed"),
        ("$1, case when $2 > 1 then 1 else 2 end", &[25, 20], "merged"),
        ("$1, case when $2 > 1 then my_function($2) else 2 end", &[25, 20], "passed"),
        ("$1, case when $2 > 1 then nextval('s') else 2 end", &[25, 20], "passed"),
        ("$1, case when stock > 1 then 1 else 2 end", &[25, 20], "passed"),
        ("$1, case when $2 in (select 1) then 1 else 2 end", &[25, 20], "passed"),
        ("$1, $2 between 1 and 2", &[25, 20], "passed"),
        ("$1, \"length\"($1)", &[25], "passed"),
        ("$1, array_length(array[$2, 1], 1)", &[25, 20], "merged"),
        ("$1, array_length(array[stock], 1)", &[25, 20], "passed"),
        ("$1, extract(epoch from now())::bigint", &[25], "merged"),
        ("$1, extract('epoch' from now())::bigint", &[25], "passed"),
        ("$1, (hotrow.increment($1, 1)).value", &[25], "passed"),
        // The server would leave out the division if NULL were a constant and the other numbers were columns.
        ("$1, null::bigint + 1 / ($2 - 1)", &[25, 20], "passed"),
        ("$1, ($2 in (null, 1 / ($2 - 1)))::int", &[25, 20], "passed"),
        ("$1, (1 / $2 = 1 or true)::int", &[25, 20], "passed"),
        ("$1, coalesce(null, $2)", &[25, 20], "passed"),
        ("$1, case when $2 > 1 then null else 2 end + 1", &[25, 20], "merged"),
        ("$1, case when $2 > 1 then 1 else cast(null as bigint) end", &[25, 20], "merged"),
        ("$1, case when pi() > pi() then null else $2 end + 1", &[25, 20], "passed"),
        (
            "$1, case when ($2 > 1) = (case when $2 = 1 then true else false end) then 1 end",
            &[25, 20],
            "merged",
        ),
        ("$1, array_length(array[null, $2], 1)", &[25, 20], "merged"),
        // PostgreSQL has no such syntax, but a user can create the operator.
        ("$1, case when $2 == 1 then 1 else 2 end", &[25, 20], "passed"),
        ("$1, try_cast('5' as bigint)", &[25], "passed"),
        ("$1, try_cast($2 as bigint) + 1", &[25, 25], "passed"),
        ("$1, safe_cast($2 as bigint) + 1", &[25, 25], "passed"),
        ("$1, hotrow.increment($1, 1)", &[25], "passed"),
    ] {
        assert_eq!(verdict(call, types), due, "{call}");
    }
    let nested = decided("select bump($1, bump($1, 1))", &[25], &facts());
    assert!(matches!(nested, Decision::Pass { .. }), "a call in a call: {nested:?}");
    let mut facts = facts();
    facts.rules.merge[0].returns_set = true;
    facts.rules.merge[0].parameters[1] =
        Parameter { name: "wait".to_owned(), type_oid: 1186, array_oid: 1187 };
    facts.rules.merge[0].wait_argument = Some(1);
    let waits = decided("select * from hotrow.increment($1, $2 * 2)", &[25, 1186], &facts);
    assert!(matches!(waits, Decision::Pass { .. }), "the gateway has to know how long it waits: {waits:?}");
}

#[test]
fn calls_of_one_counter_have_one_key() {
    let spec = |sql| packing(sql, &[]).key.unwrap();
    let one = spec("select * from hotrow.increment('a')").key(|_| None);
    let other = spec("select hotrow.increment('a', 5)").key(|_| None);
    assert!(one.is_some() && one == other && one.unwrap().table >= 0x8000_0000);
    let param = ParamValue { format: Format::Text, bytes: b"a" };
    assert_eq!(one, spec("select * from hotrow.increment($1)").key(|_| Some(param)));
    assert_ne!(one, spec("select * from hotrow.increment('b')").key(|_| None));
}

#[test]
fn equivalent_statements_are_in_one_group() {
    let group = |sql, types: &[u32]| packing(sql, types).merging.unwrap().group;
    let one = group("select * from hotrow.increment($1, $2)", &[]);
    assert_eq!(one, group("select  * from hotrow.increment(amount => $1, counter => $2) ;", &[20, 25]));
    assert_ne!(one, group("select * from hotrow.increment($1, $2)", &[0, 23]));
    assert_ne!(one, group("select value from hotrow.increment($1, $2)", &[]));
}

#[test]
fn a_select_with_more_than_a_call_is_passed_through() {
    for sql in [
        "select * from hotrow.increment($1) where value > 3",
        "select * from hotrow.increment($1) i, hotrow.increment($2) j",
        "select * from hotrow.increment($1) limit 1 for update",
        "select * from hotrow.increment($1) limit 0",
        "select * from hotrow.increment($1) offset 1",
        "select * from hotrow.increment($1) fetch first row only",
        "select * from hotrow.increment($1) order by value",
        "select hotrow.increment($1) order by 1",
        "select hotrow.increment($1) limit 1",
        "select value + 1 from hotrow.increment($1)",
        "select i from hotrow.increment($1) i",
        "select i.value from hotrow.increment($1) i",
        "select * from hotrow.increment($1) as i(a, b)",
        "select * from hotrow.increment($1) with ordinality",
        "select hotrow.increment($1), hotrow.increment($2)",
        "select hotrow.increment(lower($1))",
        "select hotrow.increment($1) + 1",
        "select * from hotrow.increment($1, $2, $3, $4)",
        "select * from hotrow.increment(nope => $1)",
        "select * from hotrow.increment($1, counter => $2)",
        "select * from hotrow.increment()",
        "select * from hotrow.increment(amount => $1)",
        "select * from hotrow.other($1)",
        "select * from increment($1)",
        "select * from bump($1, $2), inv",
        "select * from hotrow.increment(null)",
    ] {
        match analyse(sql) {
            Analysis::Pass(_) => {}
            Analysis::Candidate(candidate) => match decide(&candidate, &facts(), &[]) {
                Decision::Pass { .. } => {}
                Decision::Packed(packing) => assert_eq!(packing.merging, None, "{sql}"),
            },
            other => panic!("{sql}: {other:?}"),
        }
    }
}

#[test]
fn a_rule_applies_only_to_its_function() {
    let sql = "select * from bump($1, $2)";
    let passes = |change: fn(&mut Facts)| {
        let mut facts = facts();
        change(&mut facts);
        matches!(decided(sql, &[], &facts), Decision::Pass { .. })
    };
    assert!(!passes(|_| {}));
    assert!(passes(|facts| facts.rules.merge.clear()));
    assert!(passes(|facts| facts.rules.merge[1].callable = false));
    assert!(passes(|facts| facts.rules.merge[1].visible = false));
    assert!(passes(|facts| facts.functions.push(function("other", "bump", true))));
    assert!(!passes(|facts| facts.functions.push(function("other", "bump", false))));
}

#[test]
fn the_explanation_mentions_the_merge_rule() {
    let sql = "select * from hotrow.increment($1)";
    let text = explain(&analyse(sql), Some(&decided(sql, &[], &facts())), &[]);
    assert_eq!(
        text,
        "merged
  lane      writes
  function  hotrow.increment
  key       counter = $1
  as        select * from \"hotrow\".\"increment_batch\"(\"counter\" => $1) as \"increment\"
  at most   256 calls in one
  because   a merge rule combines concurrent calls into one call of hotrow.increment_batch
"
    );
}
