//! Statements on tables of Citus. The value that decides on which node a row is has to be the row's own: a transaction that
//! runs on a wrong node writes elsewhere, and this node does not know its outcome.

use std::sync::Arc;

use super::*;
use crate::distribution::{Distribution, Node, Shard};

const OTHER: &str = "the statement converts the value that decides where its row is";

/// `inv`, distributed by this column.
pub(super) fn distributed(by: &str) -> TableFacts {
    let mut table = inv();
    let type_oid = table.column(by).unwrap().type_oid;
    table.distribution = Some(Arc::new(Distribution {
        method: 'h',
        column: by.to_owned(),
        type_oid,
        is_deterministic: true,
        probe: Some(if type_oid == 25 { -1550461895 } else { -978_793_473 }),
        privileges: String::new(),
        local_node: 0,
        shards: vec![Shard { id: 8, least: i32::MIN, greatest: i32::MAX, node: 1 }],
        nodes: Vec::new(),
        has_lanes: true,
    }));
    table
}

/// Whether the statement can run on a node, with these declared types of its parameters.
fn runs_on_node(sql: &str, by: &str, types: &[u32]) -> bool {
    let Analysis::Candidate(candidate) = analyse(sql) else { panic!("{sql} is no candidate") };
    let facts = Facts { table: Some(distributed(by)), ..Facts::default() };
    let verdict = describe(&decide(&candidate, &facts, types));
    assert!(verdict.starts_with("write ") || verdict.contains(OTHER), "{sql}: {verdict}");
    verdict.starts_with("write ")
}

#[test]
fn an_integer_decides_where_a_row_is_if_no_other_type_was_between() {
    for (condition, types, expected) in [
        ("id = 7", &[][..], true),
        ("id = '7'", &[], true),
        ("id = $1", &[], true),
        ("id = $1", &[20], true),
        ("id = $1", &[705], true),
        ("id = $1::bigint", &[], true),
        ("id = int8 '7'", &[], true),
        ("id in (1, '2', $1)", &[21], true),
        ("id = any ($1)", &[1007], true),
        ("id = any ($1::bigint[])", &[], true),
        ("id = any ('{1,2}')", &[], true),
        ("id = $1", &[1700], false),
        ("id = $1", &[701], false),
        ("id = $1::numeric", &[], false),
        ("id = '7'::boolean::int", &[], false),
        ("id = $1::text::int", &[], false),
        ("id in (1, $1)", &[1700], false),
        ("id = any ($1)", &[1231], false),
        ("id = any ($1::numeric[])", &[], false),
    ] {
        let sql = format!("update inv set stock = 1 where {condition}");
        assert_eq!(runs_on_node(&sql, "id", types), expected, "{condition} {types:?}");
    }
}

#[test]
fn a_text_decides_where_a_row_is_if_it_was_a_text_before() {
    for (value, types, expected) in [
        ("'a'", &[][..], true),
        ("$1", &[], true),
        ("$1", &[1043], true),
        ("'a'::text", &[], true),
        ("$1::varchar", &[], true),
        ("'ab'::varchar(1)", &[], false),
        ("$1::varchar(1)", &[], false),
        ("'a '::char(2)", &[], false),
        ("$1", &[1042], false),
        ("$1", &[19], false),
    ] {
        let update = format!("update inv set stock = 1 where sku = {value}");
        assert_eq!(runs_on_node(&update, "sku", types), expected, "{update} {types:?}");
        let insert = format!(
            "insert into inv (id, sku) values (1, {value}) on conflict (sku) do update set stock = 1"
        );
        assert_eq!(runs_on_node(&insert, "sku", types), expected, "{insert} {types:?}");
    }
    for value in ["007", "1e3", "true", "date '2020-1-1'", "$1::int"] {
        let insert = format!(
            "insert into inv (id, sku) values (1, {value}) on conflict (sku) do update set stock = 1"
        );
        assert!(!runs_on_node(&insert, "sku", &[]), "{insert}");
    }
    let insert = "insert into inv (id, sku) values (1, $1) on conflict (sku) do update set stock = 1";
    assert!(!runs_on_node(insert, "sku", &[23]), "the text of a number in binary format is another one");
}

#[test]
fn the_explanation_names_the_node_and_the_shards() {
    let shard = |id, least, greatest, node| Shard { id, least, greatest, node };
    let mut table = distributed("id");
    let distribution = Arc::get_mut(table.distribution.as_mut().unwrap()).unwrap();
    distribution.shards =
        vec![shard(8, i32::MIN, -1_000_000_000, 1), shard(9, -999_999_999, -1, 2), shard(10, 0, i32::MAX, 1)];
    distribution.nodes = vec![Node { id: 1, host: "node1".to_owned(), port: 5432 }];
    let facts = Facts { table: Some(table), ..Facts::default() };
    // The hashes of 1, 7, 0 and -1 are in the shards 8, 9, 9 and 10.
    for (values, expected) in [
        (&["1"][..], "1 (node1:5432), shard 8"),
        (&["7"], "2, shard 9"),
        (&["0", "7"], "2, shard 9"),
        (&["1", "-1", "1"], "1 (node1:5432), shard 8, 10"),
        (&[], "the one that has the shard of the value of id"),
    ] {
        let places: Vec<String> = (1..=values.len().max(1)).map(|place| format!("${place}")).collect();
        let sql = format!("update inv set stock = 1 where id in ({})", places.join(", "));
        let analysis = analyse(&sql);
        let Analysis::Candidate(candidate) = &analysis else { panic!("{sql} is no candidate") };
        let decision = decide(candidate, &facts, &[]);
        let literals: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        let text = explain(&analysis, Some(&decision), &literals);
        assert!(text.contains(&format!("\n  node      {expected}\n")), "{values:?}: {text}");
        assert!(text.contains("citus_lanes = true"), "{text}");
    }
    let analysis = analyse("update inv set stock = 1 where id in ($1, $2)");
    let Analysis::Candidate(candidate) = &analysis else { panic!("no candidate") };
    let text = explain(&analysis, Some(&decide(candidate, &facts, &[])), &["1", "7"].map(str::to_owned));
    assert!(text.starts_with("passed through\n  reason    its rows are on several nodes\n"), "{text}");
}
