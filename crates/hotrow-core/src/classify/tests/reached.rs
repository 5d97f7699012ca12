//! Tests which state a passed-through statement can leave, given the code that its names reach.

use super::*;
use crate::limits;

fn function(name: &str, language: &str, body: &str) -> FoundCode {
    FoundCode {
        id: name.to_owned(),
        built_in: false,
        name: name.to_owned(),
        language: language.to_owned(),
        text: Some(body.to_owned()),
        volatility: Some('v'),
        settings: None,
        writes: false,
        extension: None,
    }
}

/// An expression of the catalog, found with the name of its object.
fn expression(name: &str, text: &str) -> FoundCode {
    function(name, "expression", text)
}

/// What a statement leaves if these are all objects of the database, each found by its name.
fn judged(sql: &str, objects: &[FoundCode]) -> Reach {
    let mut reach = reach(sql).unwrap_or_else(|| panic!("{sql}"));
    while let Some(names) = reach.names() {
        let has = |name: &String| {
            let Names { functions, fields, operators, read, written, .. } = names;
            [functions, fields, operators, read, written].iter().any(|names| names.contains(name))
        };
        let code = objects.iter().filter(|object| has(&object.name)).cloned().collect();
        reach.found(Some(Found { built_in: Vec::new(), code }));
    }
    reach
}

/// The same in words: `clean`, `asks`, or the state that the server does not show.
fn leaves(sql: &str, objects: &[FoundCode]) -> String {
    let reach = judged(sql, objects);
    match reach.hidden().names() {
        hidden if !hidden.is_empty() => hidden.join(", "),
        _ if reach.is_clean() => "clean".to_owned(),
        _ => "asks".to_owned(),
    }
}

/// What a call of a function with this body leaves.
fn body(language: &str, body: &str) -> String {
    leaves("select f(1)", &[function("f", language, body)])
}

#[test]
fn commands_that_run_no_other_code() {
    for sql in ["begin", "commit; begin", "set work_mem = '1MB'", "show all", "listen x", "discard all", ""] {
        assert!(reach(sql).is_some_and(|reach| reach.runs_nothing()), "{sql}");
    }
    for sql in [
        "do language plperl $$ $$",
        "create table t (a int)",
        "execute p",
        "fetch c",
        "copy inv to stdout",
        "explain analyze select 1",
        "refresh materialized view v",
        "declare c cursor for select 1",
        "no statement",
        "select 'open",
    ] {
        assert!(reach(sql).is_none(), "{sql}");
    }
}

#[test]
fn plain_queries_leave_the_session_unchanged() {
    for sql in [
        "select count(*) from inv join users on users.id = inv.id where name like 'a%'",
        "select pg_backend_pid(), currval('s')",
        "with x as (select 1 as a) select a from x union all select 2",
        "update inv set stock = 0 where stock > 5",
        "select (x).f, x.g from inv x",
        "select 1 operator(public.+) 2 from inv",
        "call p(1)",
        "do $$ begin update inv set stock = 0; end $$ language plpgsql",
    ] {
        assert_eq!(leaves(sql, &[]), "clean", "{sql}");
    }
}

#[test]
fn bodies_that_only_read_and_write_leave_nothing() {
    for text in [
        "select $1 + 1",
        "insert into t (a, b) values ($1, now()) on conflict (a) do update set b = excluded.b returning b",
        "begin atomic; select f.x from t f; end",
        "with x as (delete from t where id = $1 returning *) select count(*) from x",
        "select pg_notify('c', 'x'), pg_advisory_xact_lock(1), set_config('app.tenant', 'a', true)",
    ] {
        assert_eq!(body("sql", text), "clean", "{text}");
    }
    for text in [
        "begin return $1 + 1; end",
        "declare n int := 1; r t%rowtype; begin select * into r from t where id = n; return r.a; exception when others then raise; end",
        "<<outer>> declare x text[]; begin for i in 1..array_length(x, 1) loop x[i] := 'a'; continue outer when i > 2; end loop; end",
        "#variable_conflict use_column\nbegin if (a) then perform g(b); elsif (c) then return; else null; end if; end",
        "begin set local app.tenant = 'x'; perform set_config('work_mem', '1MB', true); end",
        "declare set int; begin set := 1; set = 2; case set when 1 then set := 3; else set := 4; end case; end",
        "begin get diagnostics n = row_count; return query select * from t where status in ('a', 'b'); end",
        "begin execute 'select 1 from t where id = $1' using 5; return query execute 'select 2'; end",
        "begin execute format('select %L from t', x) into y; execute 'select ' || quote_literal(x); end",
        "begin new.at := now(); if tg_op = 'INSERT' then perform pg_notify('c', new.id::text); end if; return new; end",
        "begin notify c; lock table t; truncate t; commit; end",
    ] {
        assert_eq!(body("plpgsql", text), "clean", "{text}");
    }
}

#[test]
fn state_that_the_server_shows_is_asked_for() {
    for text in [
        "begin perform set_config('work_mem', '1MB', false); end",
        "begin set work_mem = '1MB'; end",
        "begin begin set role x; exception when others then null; end; end",
        "begin if a then reset all; end if; end",
        "begin while true loop listen c; end loop; end",
        "<<label>> begin unlisten *; end",
        "begin perform pg_advisory_lock(1); end",
        "begin return pg_try_advisory_lock(1) and b; end",
        "begin perform pg_advisory_unlock(1); end",
        "begin create temp table x (a int) on commit drop; end",
        "begin create table pg_temp.x (a int); drop table if exists y; end",
        "begin case a when 1 then prepare p as select 1; else deallocate all; end case; end",
        "begin execute 'listen c'; end",
        "begin execute format('create table s.%I (like s.job including defaults)', x); end",
        "begin execute format('alter table s.%1$I add constraint c check (a = %2$L)', x, y); end",
        "declare v varchar := 'j' || encode(sha224(n::bytea), 'hex'); begin execute format('create index %1$s_i on s.%1$I (a)', v); end",
    ] {
        assert_eq!(body("plpgsql", text), "asks", "{text}");
    }
    for text in
        ["select 1 as a into x", "declare c cursor with hold for select 1", "create temp table x (a int)"]
    {
        assert_eq!(body("sql", text), "asks", "{text}");
    }
}

#[test]
fn state_that_the_server_does_not_show_is_read_from_the_text() {
    let custom = "settings that no view lists";
    let any_setting = "settings that no view lists, the seed of random()";
    let dynamic = "dynamic SQL in a function";
    for (text, hidden) in [
        ("begin perform set_config('app.tenant', $1, false); end", custom),
        ("begin set app.tenant = 'x'; end", custom),
        ("begin if a then set session app.tenant to x; end if; end", custom),
        ("begin exception when others then perform set_config('app.tenant', $1, a); end", custom),
        ("begin perform set_config(name, $1, false); end", any_setting),
        ("begin update pg_settings set setting = a where name = b; end", any_setting),
        ("begin execute 'update pg_settings set setting = $1' using a; end", any_setting),
        ("begin perform setseed(0.5); end", "the seed of random()"),
        ("begin set local seed = 0.5; end", "the seed of random()"),
        ("begin execute sql; end", dynamic),
        ("begin execute format('select %s', sql); end", dynamic),
        ("begin execute 'select ' || sql; end", dynamic),
        ("begin for r in execute sql loop return next r; end loop; end", dynamic),
        ("begin return query execute sql using x; end", dynamic),
        ("begin open c for execute sql; end", dynamic),
        ("begin execute format('insert into %I values (1)', x); end", dynamic),
        ("begin execute format('create table %I as select 1', x); end", dynamic),
        ("begin execute format('alter table %I add x text default g()', x); end", dynamic),
        ("begin execute 'set app.tenant = 1'; end", custom),
        ("begin execute $x$ select set_config('app.tenant', 'x', false) $x$; end", custom),
        // The value is not certain to be a word.
        (
            "declare v text := 'j' || encode(sha224(n), 'hex'); begin v := n; execute format('drop table %s', v); end",
            dynamic,
        ),
        (
            "declare v text := 'j' || encode(sha224(n), 'hex'); begin select n into v; execute format('drop table %s', v); end",
            dynamic,
        ),
        ("declare v text := 'j' || n; begin execute format('drop table %s', v); end", dynamic),
        ("begin execute 'execute p'; end", "unknown"),
        ("begin do $x$ begin end $x$; end", "unknown"),
        ("begin load 'x'; end", "unknown"),
        ("begin truncate t cascade; end", "unknown"),
        ("begin create function g() returns int language sql as 'select 1'; end", "unknown"),
        ("begin alter table t rename to u; end", "unknown"),
        ("begin perform 'x' || '\\'; end", "unknown"),
        ("begin perform 'open; end", "unknown"),
    ] {
        assert_eq!(body("plpgsql", text), hidden, "{text}");
    }
    for (text, hidden) in [
        ("frobnicate x", "unknown"),
        ("execute p(1)", "unknown"),
        ("begin atomic; select set_config('app.tenant', 'x', false); end", custom),
        ("select 1; set app.tenant = 'x'", custom),
    ] {
        assert_eq!(body("sql", text), hidden, "{text}");
    }
}

#[test]
fn code_that_is_reached_at_any_depth_counts() {
    let leaks = || function("leaks", "sql", "select set_config('app.tenant', 'x', false)");
    let custom = "settings that no view lists";
    for text in [
        "begin perform g(); end",
        "begin return x.g; end",
        "begin return (x).g; end",
        "begin return 1 ## 2; end",
        "begin insert into g values (1); end",
        "declare x g; begin return x; end",
        "begin return query select * from g; end",
        "begin execute 'select * from g'; end",
        "begin return 1 operator(public.##) 2; end",
        "begin call g(); end",
    ] {
        let objects = [
            function("f", "plpgsql", text),
            expression("g", "leaks()"),
            expression("##", "leaks()"),
            leaks(),
        ];
        assert_eq!(leaves("select f(1)", &objects), custom, "{text}");
        assert_eq!(leaves("select f(1)", &objects[..1]), "clean", "{text}");
    }
    for sql in
        ["select * from g", "insert into g values (1)", "select 1 ## 2", "call g()", "select x.g from x"]
    {
        assert_eq!(
            leaves(sql, &[expression("g", "leaks()"), expression("##", "leaks()"), leaks()]),
            custom,
            "{sql}"
        );
    }
    // f1 calls f2, and so on.
    let chain = |length: usize| -> Vec<_> {
        (0..length).map(|n| function(&format!("f{n}"), "sql", &format!("select f{}()", n + 1))).collect()
    };
    assert_eq!(leaves("select f0()", &chain(limits::REACHED_DEPTH_MAX - 1)), "clean");
    assert_eq!(leaves("select f0()", &chain(limits::REACHED_DEPTH_MAX)), "unknown", "too deep");
}

#[test]
fn code_without_a_readable_text_counts_by_what_is_known_of_it() {
    let in_c = |extension: Option<&str>| FoundCode {
        text: None,
        extension: extension.map(str::to_owned),
        ..function("f", "c", "")
    };
    let other = "a function in another language";
    assert_eq!(leaves("select f(1)", &[in_c(None)]), other);
    assert_eq!(leaves("select f(1)", &[in_c(Some("dblink"))]), other);
    assert_eq!(leaves("select f(1)", &[in_c(Some("postgis"))]), "clean");
    assert_eq!(leaves("select f(1)", &[function("f", "plpython3u", "GD['x'] = 1")]), other);
    let built_in = |name: &str, volatility| FoundCode {
        built_in: true,
        volatility: Some(volatility),
        text: None,
        ..function(name, "internal", "")
    };
    assert_eq!(leaves("select 1 ## int4pl", &[built_in("int4pl", 'i')]), "clean");
    assert_eq!(leaves("select pg_advisory_lock from t", &[built_in("pg_advisory_lock", 'v')]), "asks");
    assert_eq!(leaves("select pg_unlock from t", &[built_in("pg_unlock", 'v')]), "unknown");
    let with_seed = FoundCode {
        settings: Some(vec!["search_path=a".to_owned(), "seed=0.5".to_owned()]),
        ..function("f", "sql", "select 1")
    };
    assert_eq!(leaves("select f(1)", &[with_seed]), "the seed of random()");
    // A user's function could compose another text than PostgreSQL's own.
    let composes = function("f", "plpgsql", "begin execute format('select %L', 'x'); end");
    let format = function("format", "sql", "select 'x'");
    assert_eq!(leaves("select f(1)", &[composes, format]), "dynamic SQL in a function");
}

#[test]
fn too_much_code_counts_as_unknown() {
    let mut too_much = reach("select f(1)").unwrap();
    too_much.found(None);
    assert!(!too_much.is_clean() && too_much.hidden().names() == ["unknown"]);
    let long = function("f", "sql", &format!("select '{}'", "x".repeat(limits::REACHED_BYTES_MAX)));
    assert_eq!(leaves("select f(1)", &[long]), "unknown");
    let mut built_in = reach("select f(1)").unwrap();
    built_in.found(Some(Found { built_in: vec!["query_to_xml".to_owned()], code: Vec::new() }));
    assert_eq!(built_in.hidden().names(), ["unknown"], "PostgreSQL's own function, which runs a text");
}

#[test]
fn sequences_that_code_advances() {
    let moves = |sql: &str, objects: &[FoundCode]| judged(sql, objects).moves_sequence();
    assert!(!moves("insert into inv select 1, 2", &[]));
    assert!(moves("select nextval('s')", &[]));
    assert!(moves("insert into inv select 1, 2", &[expression("inv", "\"nextval\"('s'::regclass)")]));
    assert!(moves("select f(1)", &[function("f", "plpgsql", "begin return nextval('s'); end")]));
    assert!(!moves("select f(1)", &[function("f", "plpgsql", "begin return 1; end")]));
    assert!(moves("select f(1)", &[function("f", "plpgsql", "begin execute x; end")]), "it is not known");
}

#[test]
fn code_that_changes_the_meaning_of_names_for_its_transaction_is_clean() {
    let changes = [
        "begin set local search_path = x; end",
        "begin perform set_config('search_path', 'x', true); end",
        "begin set local role a; end",
    ];
    for text in changes {
        let found = judged("select f(1)", &[function("f", "plpgsql", text)]);
        assert!(found.is_clean() && found.changes_meaning(), "{text}");
    }
    let keeps = judged("select f(1)", &[function("f", "plpgsql", "begin update t set n = 1; end")]);
    assert!(keeps.is_clean() && !keeps.changes_meaning());
    assert!(judged("select f(1)", &[function("f", "c", "")]).changes_meaning(), "unknown code");
}
