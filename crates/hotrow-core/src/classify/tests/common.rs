//! Tests decisions about statements with WITH. Verdicts have the keys of all parts, in the order of the text.

use super::*;

#[test]
fn statements_in_with_that_change_rows_by_key_have_a_key_each() {
    check_exactly(&[
        (
            "with a as (update inv set stock = stock - 1 where id = $1 returning id, stock) \
             insert into log select now(), 'sold' from a",
            "write id=$1 + no key",
        ),
        (
            "with a as (update inv set stock = stock - $2 where id = $1 and stock >= $2 returning *) \
             update users set data = $3 where id = $1 returning id",
            "write id=$1 + id=$1, rows",
        ),
        (
            "with a as (update inv set sold = 1 where id = 5 returning stock) select stock from a",
            "write id=5 + no key, rows",
        ),
        (
            "with a as (delete from inv where id = $1 returning *) select * from a",
            "write id=$1 + no key, rows",
        ),
        (
            "with gone as (delete from inv where id = $1 returning sku), b as (insert into log values (now(), $2)) \
             update line set quantity = 1 where order_id = $3 and no = 4",
            "write id=$1 + no key + order_id=$3,no=4",
        ),
        (
            "with a as (update inv set sold = 0 where id in (1, $1) returning id) select id from a order by id desc",
            "write id=(1|$1) + no key, rows",
        ),
        ("with a as (update inv set sold = 0 where id = any($1)) select 1", "write id=any $1 + no key, rows"),
        // Its values are those of the row before the update: both parts see one snapshot.
        (
            "with old as (select * from inv where id = $1), a as (update inv set sold = 0 where id = $1) \
             insert into log select now(), sku || note from old",
            "write no key + id=$1 + no key",
        ),
        (
            "with a as (update inv set sold = 0 where id = 1) select * from inv where id = 1",
            "write id=1 + no key, rows",
        ),
        ("with a as (update inv set sold = 0 where id = 1) select 1", "write id=1 + no key, rows"),
        (
            "with a as (update inv set sold = 0 where id = 1) select nextval('s')",
            "write id=1 + no key, rows, sequence",
        ),
        (
            "with a as (insert into users (email) values ($1) returning id) select id from a",
            "write no key + no key, rows, sequence",
        ),
    ]);
}

#[test]
fn materialized_columns_names_and_qualifiers_change_nothing() {
    let update = "update inv i set sold = 0 where i.id = $1 returning";
    let verdict = |rest: &str, with: &str| verdict(&with.replace('@', update).replace('#', rest));
    let packed = "write id=$1 + no key, rows";
    for with in [
        "with a as (@ id, stock + 1) #",
        "WITH \"a\" AS materialized (@ id, stock + 1) #",
        "with a as not materialized (@ id, stock + 1) #",
        "with a (id) as (@ stock, stock + 1) #",
        "with a (other, id) as (@ *) #",
        "with a as (@ id, stock + 1) #",
    ] {
        assert_eq!(verdict("select id from a", with), packed, "{with}");
        assert_eq!(verdict("select x.id + 1 as more from a as x where x.id > 0", with), packed, "{with}");
    }
    let with = "with a (first, second) as (@ sku), b as (select first from a) #";
    assert_eq!(verdict("select first from b", with), packed.replace(" +", " + no key +"));
    assert!(verdict("select sku from b", with).contains("sku is not a column"));
}

#[test]
fn a_name_in_with_hides_a_table_only_from_later_selects() {
    check_exactly(&[
        (
            "with inv as (update inv set sold = 0 where id = $1 returning id) select id from inv",
            "write id=$1 + no key, rows",
        ),
        (
            "with log as (update inv set sold = 0 where id = $1) insert into log values (now())",
            "write id=$1 + no key",
        ),
        (
            "with inv as (delete from line where order_id = $1 and no = 1) update inv set sold = 0 where id = $2",
            "write order_id=$1,no=1 + id=$2",
        ),
        (
            "with line as (update inv set sold = 0 where id = 1 returning *) select no from public.line where order_id = $1 and no = 1",
            "write id=1 + no key, rows",
        ),
        (
            "with a as (select stock from inv where id = 1), inv as (delete from line where no = 1 and order_id = $1) select stock from a",
            "write no key + order_id=$1,no=1 + no key, rows",
        ),
    ]);
    check_passed(&[
        (
            "with line as (update inv set sold = 0 where id = 1 returning *) select no from line",
            "no is not a column that",
        ),
        (
            "with a as (select id from b), b as (delete from inv where id = 1 returning id) select id from a",
            "no WHERE",
        ),
        (
            "with recursive a as (update inv set sold = 0 where id = 1 returning id) select id from a",
            "WITH RECURSIVE",
        ),
        (
            "with a as (delete from inv where id = 1), a as (delete from line where no = 1 and order_id = $1) select 1",
            "of one name",
        ),
    ]);
}

#[test]
fn two_changes_of_one_table_are_passed_through() {
    let twice = "two parts of the statement change inv";
    check_passed(&[
        ("with a as (update inv set sold = 0 where id = 1) update inv set stock = 0 where id = 2", twice),
        ("with a as (insert into inv (id) values (1)) delete from public.inv where sku = 'x'", twice),
        (
            "with a as (update inv set sold = 0 where id = 1), b as (select 1), c as (delete from inv where id = 1) select 1",
            twice,
        ),
    ]);
    // By the name of a view: the facts about it are those about its table.
    let sql = "with a as (update inv set sold = 0 where id = 1) update users set name = '' where id = 2";
    assert_eq!(verdict(sql), "write id=1 + id=2");
    let view = verdict_with(sql, |facts| facts.table.as_mut().unwrap().oid = inv().oid);
    assert!(view.contains("two parts of the statement change users"), "{view}");
}

#[test]
fn every_part_is_judged_like_a_statement_of_its_own() {
    check_passed(&[
        ("with a as (select 1) select * from a", "no statement changes rows"),
        ("with a as (select id from inv) delete from line where order_id = $1 and no = 1", "no WHERE"),
        ("with a as (update inv set sold = 0) select 1", "no WHERE"),
        ("with a as (update inv set sold = 0 where sold = 1) select 1", "no unique index"),
        (
            "with a as (update inv set sold = 0 where id = 1 returning txid_current()) select 1",
            "depends on the transaction",
        ),
        ("with a as (update inv set note = f(note) where id = 1) select 1", "not known to be harmless"),
        (
            "with a as (update inv set sold = 0 where id = 1 returning id) select f(id) from a",
            "not known to be harmless",
        ),
        (
            "with a as (update inv set sold = 0 where id = 1 returning id) select a.f from a",
            "f is not a column that",
        ),
        (
            "with a as (update inv set sold = 0 where id = 1 returning id) select a from a",
            "a is not a column that",
        ),
        ("with a as (update inv set sold = 0 where id = 1 returning xmin) select 1", "xmin"),
        ("with a as (update inv set sold = 0 where id = 1 returning id) select a.ctid from a", "ctid"),
        ("with a as (update inv set sold = 0 where id = 1) select id from a", "returns no rows"),
        ("with a as (update inv set sold = 0 where id = 1 returning id) select id from a limit 1", "LIMIT"),
        (
            "with a as (update inv set sold = 0 where id = 1 returning id) select id from a for update",
            "row lock",
        ),
        (
            "with a as (select id from inv where id = 1 for update) delete from line where order_id = $1 and no = 1",
            "row lock",
        ),
    ]);
    let sql = "with a as (update inv set sold = 0 where id = 1 returning id) insert into log select now(), 'x' from a";
    let refused = |change: fn(&mut TableFacts)| {
        verdict_with(sql, |facts| change(facts.with[0].table.as_mut().unwrap()))
    };
    assert!(refused(|table| table.row_security = true).contains("row security"));
    assert!(refused(|table| table.deferrable = true).contains("deferrable"));
    assert!(refused(|table| table.expressions.push("CHECK (f(stock))".to_owned())).contains("calls f"));
    let no_facts = verdict_with(sql, |facts| facts.with.clear());
    assert!(no_facts.contains("was not found"), "{no_facts}");
}

#[test]
fn other_forms_than_single_reads_of_a_part_are_passed_through() {
    check_passed(&[
        (
            "with a as (update inv set sold = 0 where id = 1 returning id) select sum(id) from a",
            "more than one row",
        ),
        (
            "with a as (update inv set sold = 0 where id = 1 returning id) select count(*) filter (where true) from a",
            "an aggregate",
        ),
        (
            "with a as (update inv set sold = 0 where id = 1 returning id) select id from a union select 1",
            "UNION",
        ),
        ("with a as (update inv set sold = 0 where id = 1 returning id) select a.id from a, a b", "a join"),
        (
            "with a as (update inv set sold = 0 where id = 1 returning id) select (select id from a)",
            "a subquery",
        ),
        (
            "with a as (update inv set sold = 0 where id = 1 returning id) update users set name = '' from a where users.id = 1",
            "FROM",
        ),
        (
            "with a as (update inv set sold = 0 where id = 1 returning id) update users set name = '' where id = (select id from a)",
            "a subquery",
        ),
        (
            "with a as (with b as (select 1) update inv set sold = 0 where id = 1) select 1",
            "WITH within WITH",
        ),
        (
            "with a as (update inv set sold = 0 where id = 1 returning id) insert into log with b as (select 1) select 1 from a",
            "WITH",
        ),
        (
            "with a as (update inv set sold = 0 where id = 1 returning sku) insert into log select at, message from log",
            "no WHERE",
        ),
        (
            "with a as (update inv set sold = 0 where id = 1) insert into log select now(), 'x'",
            "INSERT from a query",
        ),
        (
            "with a as (update inv set sold = 0 where id = 1) select * from hotrow.push(1, 2, 'x')",
            "FROM with something other",
        ),
        ("with a as (merge into inv using line on true when matched then delete) select 1", "MERGE"),
    ]);
}

#[test]
fn rows_of_another_part_are_inserted_under_a_known_key_or_none() {
    let insert = |into: &str| {
        let update = "with a as (update inv set sold = 0 where id = $1 returning id, sku, sold) insert into";
        verdict(&format!("{update} {into}"))
    };
    assert_eq!(insert("users (id, email) select $2, sku from a"), "write id=$1 + id=$2");
    assert_eq!(insert("users (id, email) select id, sku from a"), "write id=$1 + no key");
    let upsert = "on conflict (id) do update set name = users.name || excluded.email";
    assert_eq!(insert(&format!("users (id, email) select $2, sku from a {upsert}")), "write id=$1 + id=$2");
    assert!(
        insert(&format!("users (id, email) select id, sku from a {upsert}"))
            .contains("which row ON CONFLICT")
    );
    let nothing = "on conflict do nothing";
    assert!(
        insert(&format!("users (id, email) select $2, sku from a {nothing}"))
            .contains("ON CONFLICT with several rows")
    );
    // A column that gets no value has its default.
    assert_eq!(insert("users (email, name) select sku, sku from a"), "write id=$1 + no key, sequence");
    assert_eq!(insert("users select * from a"), "write id=$1 + no key");
    assert_eq!(insert("users (email, id, name) select * from a"), "write id=$1 + no key");
}

#[test]
fn the_facts_of_all_parts_make_the_state_of_the_catalog() {
    let Analysis::Candidate(candidate) =
        analyse("with a as (delete from inv where id = 1) delete from users where id = 1")
    else {
        panic!("a candidate")
    };
    let facts = facts_of(&candidate);
    let mut changed = facts.clone();
    changed.with[0].table.as_mut().unwrap().fingerprint = "another".to_owned();
    assert_ne!(facts.state(), changed.state());
    assert!(candidate.needs_description(), "a parameter can have its type from another part");
}

#[test]
fn the_explanation_names_the_row_of_each_part() {
    let Analysis::Candidate(candidate) = analyse(
        "with a as (delete from inv where id = $1 returning sku) update users set name = $2 where id = $3",
    ) else {
        panic!("a candidate")
    };
    let decision = decide(&candidate, &facts_of(&candidate), &[]);
    let literals = ["7", "x", "8"].map(str::to_owned);
    let text = explain(&Analysis::Candidate(candidate), Some(&decision), &literals);
    let (first, second) = text.split_once("public.users").unwrap();
    assert!(first.contains("public.inv") && first.contains("id = 7"), "{text}");
    assert!(second.contains("id = 8") && !second.contains("id = 7"), "{text}");
    let Decision::Packed(packing) = decision else { panic!("packed") };
    let locks: Vec<_> = packing.parts().map(|part| part.lock_statement.is_some()).collect();
    assert_eq!(locks, [true, false], "the role may lack the privilege to lock the row that it deletes");
    assert_eq!(
        packing.parts().filter_map(|part| part.watch.as_ref()).map(|watch| watch.oid).collect::<Vec<_>>(),
        [200, 100]
    );
}

#[test]
fn a_statement_with_with_that_is_passed_through_leaves_what_its_parts_leave() {
    let effect = |sql: &str| match analyse(sql) {
        Analysis::Candidate(candidate) => candidate.effect(),
        other => panic!("{other:?}"),
    };
    let update = "with a as (update inv set sold = 0 where id = 1)";
    assert_eq!(effect(&format!("{update} select 1")), Effect::NONE);
    assert!(effect(&format!("{update} select nextval('s')")).touches_sequence);
    assert!(effect("with a as (insert into inv (id) values (1)) select 1").touches_sequence);
    assert!(effect("with a as (update inv set note = other.f() where id = 1) select 1").unknown);
}
