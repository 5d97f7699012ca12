//! Tests INSERTs of several rows: VALUES, and arrays that `unnest` makes rows of. Each row has a key.

use super::*;
use crate::limits;

#[test]
fn values_of_several_rows() {
    check_exactly(&[
        ("insert into inv (id, stock) values ($1, $2), ($3, $4)", "write id=[$1 $3]"),
        ("insert into inv values (1, 0, 0, 'a', 'b'), ($1::int, 0, 0, 'c', 'd')", "write id=[1 $1]"),
        ("insert into inv (id, stock) values (1, default), (2, $1 * 2)", "write id=[1 2]"),
        // NULL equals no row, and a key that the server makes is known to nobody.
        ("insert into inv (id, stock) values (1, 2), (null, 3), (null::int, 4)", "write id=[1 null null]"),
        ("insert into inv (id, stock) values (1, 2), (default, 3)", "write no key"),
        ("insert into inv (id, stock) values (1, 2), ($1 + 1, 3)", "write no key"),
        ("insert into inv (sku) values ($1), ($2)", "write no key"),
        (
            "insert into inv (id, stock) values ($1, $2), ($3, $4) on conflict (id) do update \
             set stock = inv.stock + excluded.stock returning id, stock",
            "write id=[$1 $3], rows",
        ),
        (
            "insert into inv (id, sku) values ($1, $2), ($3, $4) on conflict (sku) do update set note = 'x'",
            "write sku=[$2 $4]",
        ),
        (
            "insert into inv (id, sku) values (1, 'a'), (2, 'b') on conflict on constraint inv_sku_key do nothing",
            "write sku=[a b]",
        ),
        ("insert into inv (id) values (1), (2) on conflict do nothing", "write id=[1 2]"),
        ("insert into inv (sku) values ($1), ($2) on conflict do nothing", "write no key"),
        (
            "insert into line (order_id, no, quantity) values ($1, 1, $2), ($1, 2, $3) \
             on conflict (order_id, no) do update set quantity = excluded.quantity where line.quantity < 5",
            "write order_id=[$1 $1],no=[1 2]",
        ),
        (
            "insert into users (email, name) values ($1, $2), ($3, $4) on conflict (email) \
             do update set name = excluded.name returning id",
            "write email=[$1 $3], rows, sequence",
        ),
    ]);
    check_passed(&[
        (
            "insert into inv (id) values ($1), (default) on conflict (id) do update set stock = 1",
            "does not show which row ON CONFLICT would update",
        ),
        ("insert into inv (id) values ($1), ((select 1)) on conflict (id) do nothing", "a subquery"),
        ("insert into inv (id) values ($1), (secret($2)) on conflict (id) do nothing", "secret is not known"),
    ]);
}

#[test]
fn rows_of_arrays() {
    check_exactly(&[
        ("insert into inv (id, stock) select * from unnest($1::int[], $2::int[])", "write id=unnest $1"),
        ("insert into inv (id, stock) select * from unnest($1::int[], $2::int[]) as t", "write id=unnest $1"),
        (
            "insert into inv (id, stock) select * from unnest($1::int[], $2::int[]) as t(a, b) \
             on conflict (id) do update set stock = inv.stock + excluded.stock returning inv.id",
            "write id=unnest $1, rows",
        ),
        (
            "insert into inv (stock, id, note) select b, t.a::int, coalesce(t.b, 1)::text \
             from unnest(cast($1 as bigint[]), ($2::int[])) t(a, b) on conflict (id) do nothing",
            "write id=unnest $1",
        ),
        (
            "insert into inv (id, stock) select t.*, 5 from unnest($1::int[]) as t(a) order by a desc, 2",
            "write id=unnest $1",
        ),
        ("insert into inv (id) select a from unnest($1::int[]) as a", "write id=unnest $1"),
        ("insert into inv (id) select unnest from unnest($1::int[])", "write id=unnest $1"),
        (
            "insert into inv (id, stock) select unnest($1::int[]), pg_catalog.now()::text::int \
             on conflict (id) do nothing",
            "write id=unnest $1",
        ),
        (
            "insert into inv (id, stock) select (unnest($1::int[])), unnest($2::text[])::int \
             on conflict (id) do update set stock = excluded.stock",
            "write id=unnest $1",
        ),
        (
            "insert into line (order_id, no, quantity) select $1::uuid, unnest($2::int[]), unnest($3::int[]) \
             on conflict (order_id, no) do nothing",
            "write order_id=$1,no=unnest $2",
        ),
        (
            "insert into inv (id, stock) select pg_catalog.unnest($1::int[]), pg_catalog.unnest(array[1, $2, null])",
            "write id=unnest $1",
        ),
        (
            "insert into inv (id, stock) select * from unnest('{1,null,3}'::int[], array[4, 5, 6]) \
             on conflict (id) do update set stock = 1",
            "write id=[1 null 3]",
        ),
        // No key depends on them.
        ("insert into log (message) select unnest($1::text[])", "write no key"),
        ("insert into users (email) select unnest($1::text[])", "write no key, sequence"),
        (
            "with a as (insert into inv (id) select unnest($1::int[]) on conflict do nothing returning id) \
             update users set name = 'x' where id = $2",
            "write id=unnest $1 + id=$2",
        ),
    ]);
}

#[test]
fn queries_that_look_like_rows_of_arrays_are_passed_through() {
    let query = "INSERT from a query";
    check_passed(&[
        ("insert into inv (id) select a from unnest($1::int[]) with ordinality as t(a, b)", query),
        ("insert into inv (id) select a from unnest($1::int[]) t(a) where a > 0", query),
        ("insert into inv (id) select a from unnest($1::int[]) t(a) limit 5", query),
        ("insert into inv (id) select distinct a from unnest($1::int[]) t(a)", "DISTINCT"),
        ("insert into inv (id) select a from unnest($1::int[]) t(a) group by a", "GROUP BY"),
        ("insert into inv (id) select a from unnest($1::int[]) t(a), unnest($2::int[]) u(b)", "a join"),
        ("insert into inv (id) select a from unnest($1::int[]) t(a) cross join inv", "a join"),
        ("insert into inv (id) select t from unnest($1::int[]) t(a)", query),
        ("insert into inv (id) select a from unnest($1::int[], $2::int[]) t(a)", query),
        ("insert into inv (id) select unnest from unnest($1::int[], $2::int[])", query),
        ("insert into inv (id) select a from unnest(string_to_array($1, ',')::int[]) t(a)", query),
        ("insert into inv (id) select unnest($1::int[]) + 1", query),
        ("insert into inv (id) select coalesce(unnest($1::int[]), unnest($2::int[]))", query),
        ("insert into inv (id) select unnest($1::int[]), pg_catalog.unnest($2::int[])", query),
        ("insert into inv (id) select stock from inv, unnest($1::int[])", "a join"),
        ("insert into inv (id) select id from inv where id = any(select unnest($1::int[]))", query),
        ("insert into inv (id) select unnest($1::int[]) union select 2", query),
        ("insert into inv (id) select * from shop.unnest($1::int[])", query),
        ("insert into inv (id) select * from \"UNNEST\"($1::int[])", query),
        ("insert into inv (id) values (unnest($1::int[]))", "unnest reads or returns more than one row"),
        ("insert into inv (id) select unnest($1::my_type[])", "my_type"),
        // PostgreSQL makes several columns of an array of rows, and of other types.
        ("insert into inv select * from unnest($1)", "not known to be an array"),
        ("insert into inv (note) select unnest($1)", "not known to be an array"),
        ("insert into inv (note) select unnest($1::tsvector)", query),
        (
            "insert into inv (id, stock) select unnest($1::int[])::int + 0, 1 on conflict (id) do update set stock = 1",
            query,
        ),
        (
            "insert into inv (id, stock) select abs(a), 1 from unnest($1::int[]) t(a) \
             on conflict (id) do update set stock = 1",
            "does not show which row ON CONFLICT would update",
        ),
    ]);
}

#[test]
fn more_rows_than_a_unit_can_have_are_passed_through() {
    let rows = |count: usize, of: &str| vec![of; count].join(", ");
    let most = limits::UNIT_ROWS_MAX;
    let upsert = "on conflict (id) do update set stock = 1";
    let values = |count, end: &str| format!("insert into inv (id) values {} {end}", rows(count, "(1)"));
    assert!(verdict(&values(most, upsert)).starts_with("write id=[1 1 "));
    for end in [upsert, "on conflict do nothing"] {
        assert_eq!(verdict(&values(most + 1, end)), "pass: more than 100 rows", "{end}");
    }
    assert_eq!(verdict(&values(most + 1, "")), "write no key", "rows that are new");
    let list = |count| format!("insert into inv (id) select unnest(array[{}])", rows(count, "1"));
    assert!(verdict(&list(most)).starts_with("write id=[1 1 "));
    assert_eq!(verdict(&list(most + 1)), "pass: more than 100 rows");
    // Without a key, no row of another client is known to be the same.
    assert_eq!(
        verdict(&format!("insert into log (message) values {}", rows(most + 1, "('x')"))),
        "write no key"
    );
}

#[test]
fn a_users_function_named_unnest_is_not_taken_for_postgresqls() {
    let hidden = FunctionFact {
        schema: "public".to_owned(),
        name: "unnest".to_owned(),
        kind: "function".to_owned(),
        visible: true,
        volatility: Some('i'),
        special: false,
        extension: None,
        version: String::new(),
        language: Some("sql".to_owned()),
        source: Some("select 1".to_owned()),
    };
    let with = |sql: &str, fact: &FunctionFact| verdict_with(sql, |facts| facts.functions.push(fact.clone()));
    for sql in [
        "insert into inv (id) select unnest($1::int[])",
        "insert into inv (id) select * from unnest($1::int[])",
    ] {
        assert!(with(sql, &hidden).starts_with("pass: function unnest is user-defined"), "{sql}");
        let elsewhere = FunctionFact { visible: false, ..hidden.clone() };
        assert_eq!(with(sql, &elsewhere), "write id=unnest $1", "{sql}");
    }
    let certain = "insert into inv (id) select pg_catalog.unnest($1::int[])";
    assert_eq!(with(certain, &hidden), "write id=unnest $1");
}

/// The parameters' types, as the client declares them, tell what `unnest` returns.
#[test]
fn an_array_without_a_cast_needs_a_declared_type() {
    let decided = |types: &[u32]| {
        let Analysis::Candidate(candidate) = analyse("insert into inv (id) select unnest($1)") else {
            panic!()
        };
        describe(&decide(&candidate, &facts_of(&candidate), types))
    };
    assert_eq!(decided(&[1007]), "write id=unnest $1");
    for types in [&[0][..], &[705], &[3614], &[16_500]] {
        assert!(decided(types).contains("not known to be an array"), "{types:?}");
    }
}

/// A row that can be updated is locked ahead by the values of its key.
#[test]
fn rows_that_can_be_updated_can_be_locked_ahead() {
    let locks = |sql: &str, types: &[u32]| {
        let Analysis::Candidate(candidate) = analyse(sql) else { panic!() };
        let Decision::Packed(packing) = decide(&candidate, &facts_of(&candidate), types) else { panic!() };
        packing.lock_statement.map(|lock| lock.types)
    };
    let values = "insert into inv (id, stock) values ($1, 1), ($2, 2)";
    let arrays = "insert into inv (id) select unnest($1::int[])";
    let update = "on conflict (id) do update set stock = excluded.stock";
    assert_eq!(locks(values, &[]), None, "new rows");
    assert_eq!(locks(&format!("{values} on conflict do nothing"), &[]), None, "no row is changed");
    assert_eq!(locks(&format!("{values} {update}"), &[23, 23]), Some(vec![23]));
    assert_eq!(locks(&format!("{values} {update}"), &[23, 20]), None, "values of one column have one type");
    assert_eq!(locks(&format!("{arrays} {update}"), &[1007]), Some(vec![23]));
    assert_eq!(locks(&format!("{arrays} {update}"), &[]), Some(vec![0]));
}

#[test]
fn each_node_of_a_distributed_table_has_other_rows() {
    let pass = |sql: &str| verdict_with(sql, |facts| facts.table = Some(distributed::distributed("id")));
    assert!(pass("insert into inv (id) values (1), (2)").contains("is distributed"));
    assert!(pass("insert into inv (id) select unnest($1::int[])").contains("is distributed"));
}

#[test]
fn an_explanation_shows_the_key_of_each_row() {
    let explained = |sql: &str| {
        let analysis = analyse(sql);
        let Analysis::Candidate(candidate) = &analysis else { panic!() };
        let decision = decide(candidate, &facts_of(candidate), &[]);
        explain(&analysis, Some(&decision), &[])
    };
    let text = explained("insert into inv (id, stock) values (7, 1), ($1, 2) on conflict (id) do nothing");
    for line in ["key       id in (7, $1)", "the conflict target (id) of each row is given"] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let text = explained("insert into inv (id) select unnest($1::int[])");
    assert!(text.contains("key       id in unnest($1)"), "{text}");
}
