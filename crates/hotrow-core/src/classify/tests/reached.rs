//! Tests which objects a passed-through statement can reach, and whether they are known to leave the session
//! unchanged.

use super::catalogue::trigger;
use super::*;

/// Whether a text leaves the session unchanged, given tables and other objects with names from the text.
fn is_clean(sql: &str, tables: &[TableFacts], facts: &[FunctionFact]) -> bool {
    reach(sql).is_some_and(|reach| reach.is_clean(tables, facts))
}

fn fact(kind: &str, name: &str, source: &str) -> FunctionFact {
    FunctionFact {
        schema: "public".to_owned(),
        name: name.to_owned(),
        kind: kind.to_owned(),
        visible: true,
        volatility: Some('i'),
        special: false,
        language: Some("sql".to_owned()),
        source: Some(source.to_owned()),
        extension: None,
        version: String::new(),
    }
}

#[test]
fn commands_that_run_no_other_code() {
    for sql in ["begin", "commit; begin", "set work_mem = '1MB'", "show all", "listen x", "discard all", ""] {
        assert_eq!(reach(sql).map(|reach| reach.names), Some(Vec::new()), "{sql}");
    }
    for sql in [
        "call p()",
        "do $$ begin end $$",
        "create table t (a int)",
        "execute p",
        "fetch c",
        "copy inv to stdout",
        "explain analyze select 1",
        "refresh materialized view v",
        "declare c cursor for select 1",
        "no statement",
    ] {
        assert_eq!(reach(sql), None, "{sql}");
    }
}

#[test]
fn plain_queries_leave_the_session_unchanged() {
    for sql in [
        "select count(*) from inv join users on users.id = inv.id where name like 'a%'",
        "select pg_backend_pid()",
        "with x as (select 1 as a) select a from x union all select 2",
        "update inv set stock = 0 where stock > 5",
    ] {
        assert!(is_clean(sql, &[inv(), users()], &[]), "{sql}");
    }
}

#[test]
fn objects_with_a_name_from_the_statement_count() {
    let sql = "select stock, inv.hide, 1 ## 2, x::kind from inv";
    assert!(is_clean(sql, &[inv()], &[]));
    let harmless = fact("function", "hide", "select length('x')");
    assert!(is_clean(sql, &[inv()], std::slice::from_ref(&harmless)));
    let hides = "select set_config('x.y', 'z', false)";
    for (kind, name) in [("function", "hide"), ("operator", "##")] {
        assert!(!is_clean(sql, &[inv()], &[fact(kind, name, hides)]), "{kind}");
    }
    let domain = FunctionFact { special: true, language: None, source: None, ..fact("type", "kind", "") };
    assert!(!is_clean(sql, &[inv()], std::slice::from_ref(&domain)));
    let row = FunctionFact { special: false, ..domain };
    assert!(is_clean(sql, &[inv()], &[row]), "a table's row, or an enumeration");
}

#[test]
fn a_table_counts_by_the_code_that_it_runs() {
    let (read, write) = ("select count(*) from inv", "delete from inv where stock > 5");
    let with = |change: fn(&mut TableFacts)| {
        let mut table = inv();
        change(&mut table);
        [read, write].map(|sql| is_clean(sql, std::slice::from_ref(&table), &[]))
    };
    assert_eq!(with(|_| {}), [true, true]);
    assert_eq!(with(|table| table.relkind = 'v'), [false, false]);
    assert_eq!(with(|table| table.row_security = true), [false, false]);
    assert_eq!(
        with(|table| table
            .triggers
            .push(trigger("begin perform set_config('a.b', 'c', false); return new; end"))),
        [true, false]
    );
    assert_eq!(
        with(|table| table.triggers.push(trigger("begin new.note := lower(new.note); return new; end"))),
        [true, true]
    );
    assert_eq!(with(|table| table.columns[1].default = Some("currval('s')".to_owned())), [true, false]);
    assert_eq!(with(|table| table.expressions.push("CHECK (unknown(id))".to_owned())), [true, false]);
}

#[test]
fn a_text_with_effects_of_its_own_is_not_clean() {
    for sql in [
        "select set_config('a.b', 'c', false) from inv",
        "select currval('s') from inv",
        "select pg_advisory_lock(1)",
        "with x as (select 1) select pg_advisory_unlock_all() from x where false",
        "select unknown_function(1)",
        "select (x).f from inv x",
        "select 1 operator(public.+) 2 from inv",
        "select * into copied from inv",
    ] {
        assert_eq!(reach(sql), None, "{sql}");
    }
}

#[test]
fn sequences_that_defaults_and_triggers_advance() {
    let moves = |change: fn(&mut TableFacts)| {
        let mut table = inv();
        change(&mut table);
        ["insert into inv select 1, 2", "select * from inv"]
            .map(|sql| reach(sql).unwrap().moves_sequence(&[table.clone()]))
    };
    assert_eq!(moves(|_| {}), [false, false]);
    assert_eq!(moves(|table| table.columns[0].identity = true), [true, false]);
    assert_eq!(
        moves(|table| table.columns[0].default = Some("nextval('s'::regclass)".to_owned())),
        [true, false]
    );
    assert_eq!(
        moves(|table| table.columns[0].default = Some("\"nextval\"('\"s\"'::\"regclass\")".to_owned())),
        [true, false]
    );
    assert_eq!(
        moves(|table| table.triggers.push(trigger("begin new.id := nextval('s'); return new; end"))),
        [true, false]
    );
}
