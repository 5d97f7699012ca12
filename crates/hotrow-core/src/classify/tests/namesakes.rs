//! Tests how objects outside `pg_catalog` with a name from the statement change the verdict: functions,
//! operators, types. Tables are tested in `catalog`.

use super::catalog::{INSERT, SELECT, UPDATE, trigger};
use super::*;
use crate::classify::judge::decision::names_to_look_up;

pub(super) fn function(schema: &str, name: &str, volatility: char) -> FunctionFact {
    FunctionFact {
        schema: schema.to_owned(),
        name: name.to_owned(),
        kind: "function".to_owned(),
        visible: true,
        volatility: Some(volatility),
        special: false,
        extension: None,
        version: String::new(),
        language: Some("sql".to_owned()),
        source: Some("select length('x')".to_owned()),
    }
}

#[test]
fn namesakes_of_known_functions() {
    let sql = "update inv set note = lower(note) where id = $1";
    let with = |fact: FunctionFact| verdict_with(sql, |facts| facts.functions.push(fact));
    assert_eq!(with(function("citext", "lower", 'i')), "write id=$1");
    assert!(
        with(function("public", "lower", 'v'))
            .contains("lower is user-defined and not proven to use its arguments only")
    );
    assert_eq!(with(FunctionFact { visible: false, ..function("x", "lower", 'v') }), "write id=$1");
    assert_eq!(with(FunctionFact { kind: "type".into(), ..function("x", "lower", 'v') }), "write id=$1");
    assert_eq!(with(function("public", "upper", 'v')), "write id=$1");
    assert!(
        with(FunctionFact { special: true, ..function("x", "lower", 'i') })
            .contains("not proven to use its arguments only")
    );
}

/// Some drivers cast each parameter to the type of its column.
#[test]
fn casts_to_the_type_of_a_column() {
    let with = |sql: &str, own: (&str, bool), fact: FunctionFact| {
        verdict_with(sql, |facts| {
            let own = OwnType { schema: own.0.to_owned(), name: "mood".to_owned(), is_domain: own.1 };
            let table = facts.table.as_mut().unwrap();
            table.columns[4].type_kind = TypeKind::Harmless;
            table.columns[4].own_type = Some(own);
            facts.functions.push(fact);
        })
    };
    let mood = || FunctionFact { kind: "type".to_owned(), ..function("public", "mood", 'i') };
    let update = "update inv set note = $2::mood where id = $1::int";
    assert_eq!(with(update, ("public", false), mood()), "write id=$1");
    assert_eq!(with(update, ("public", true), mood()), "write id=$1");
    assert_eq!(
        with(
            "select note from inv where id = $1 and note = any($2::public.mood[])",
            ("public", false),
            mood()
        ),
        "read id=$1, rows"
    );
    // Another type with its name comes first in search_path, or the domain's checks are not judged.
    for (sql, own, fact) in [
        (update, ("hidden", false), mood()),
        (update, ("public", false), FunctionFact { visible: false, ..mood() }),
        (update, ("public", false), function("public", "mood", 'i')),
        ("update inv set note = $2::other.mood where id = $1", ("public", false), mood()),
        ("update inv set note = $2::mood(3) where id = $1", ("public", false), mood()),
        ("select note from inv where id = $1 and note = $2::mood", ("public", true), mood()),
    ] {
        assert!(with(sql, own, fact).contains("cast to"), "{sql}");
    }
    assert!(verdict("select $1::mood").contains("cast to mood"));
}

#[test]
fn user_defined_functions() {
    let sql = "insert into inv (id, note) values ($1, slug($2))";
    let with = |fact: FunctionFact| verdict_with(sql, |facts| facts.functions.push(fact));
    assert_eq!(with(function("public", "slug", 'i')), "write id=$1");
    assert!(with(function("public", "slug", 's')).contains("slug is user-defined"));
    assert!(
        with(FunctionFact { visible: false, ..function("x", "slug", 'i') }).contains("slug is not known")
    );
    let qualified = "select shop.slug('x')";
    let fact = FunctionFact { visible: false, ..function("shop", "slug", 'i') };
    assert_eq!(verdict_with(qualified, |facts| facts.functions.push(fact)), "read no key, rows");
    let elsewhere = function("other", "slug", 'i');
    assert!(verdict_with(qualified, |facts| facts.functions.push(elsewhere)).contains("not known"));
    let uuid =
        FunctionFact { extension: Some("uuid-ossp".into()), ..function("public", "uuid_generate_v4", 'v') };
    assert_eq!(
        verdict_with("select uuid_generate_v4()", |facts| facts.functions.push(uuid)),
        "read no key, rows"
    );
}

/// The source of a function counts, not its declaration as immutable.
#[test]
fn sources_of_user_defined_functions() {
    let sql = "insert into inv (id, note) values ($1, slug($2))";
    let with = |language: &str, source: &str, others: &[FunctionFact]| {
        let language = Some(language.to_owned());
        let fact =
            FunctionFact { language, source: Some(source.to_owned()), ..function("public", "slug", 'i') };
        verdict_with(sql, |facts| facts.functions.extend(others.iter().cloned().chain([fact])))
    };
    for (language, source) in [
        ("sql", "select lower($1) || '-' || length($1)"),
        ("sql", "SELECT regexp_replace($1, '[^a-z]', '-')"),
        ("plpgsql", "begin return upper($1); end"),
    ] {
        assert_eq!(with(language, source, &[]), "write id=$1", "{source}");
    }
    for (language, source) in [
        ("sql", "select set_config('search_path', 'x', false)"),
        ("sql", "select currval('s')::text"),
        ("sql", "select note from other limit 1"),
        ("sql", "select other_of_users($1)"),
        ("sql", "select shop.lower($1)"),
        ("plpgsql", "begin perform pg_advisory_lock(1); return $1; end"),
        ("plpgsql", "begin execute 'set work_mem = 1'; return $1; end"),
        ("plpgsql", "begin set local work_mem = 1; return $1; end"),
        ("sql", "select 'unclosed"),
        ("plperl", "return $_[0]"),
        ("c", "$libdir/anything"),
        ("internal", "set_config_by_name"),
    ] {
        assert!(with(language, source, &[]).contains("slug is user-defined"), "{language}: {source}");
    }
    let shadow = [function("public", "lower", 'i')];
    assert!(
        with("sql", "select lower($1)", &shadow).contains("slug is user-defined"),
        "it can mean another lower"
    );
    let operator = [FunctionFact { kind: "operator".into(), ..function("public", "||", 'i') }];
    assert!(
        with("sql", "select $1 || 'x'", &operator).contains("slug is user-defined"),
        "it can mean another ||"
    );
}

#[test]
fn functions_of_extensions() {
    let with = |extension: &str, name: &str, volatility: char| {
        let extension = Some(extension.to_owned());
        let fact = FunctionFact { extension, ..function("public", name, volatility) };
        verdict_with(&format!("select {name}('x')"), |facts| facts.functions.push(fact))
    };
    for (extension, name) in [("pg_trgm", "similarity"), ("hstore", "hstore"), ("pgcrypto", "crypt")] {
        assert_eq!(with(extension, name, 'i'), "read no key, rows");
    }
    for (extension, name) in [
        ("pg_trgm", "set_limit"),
        ("pg_trgm", "show_limit"),
        ("isn", "isn_weak"),
        ("pgcrypto", "pgp_pub_encrypt"),
        ("other", "f"),
    ] {
        assert!(with(extension, name, 'i').starts_with("pass"), "{extension}: {name}");
    }
}

#[test]
fn functions_whose_names_are_also_syntax() {
    for name in
        "by elseif elsif escape if ilike index is like return similar varbit varying while zone".split(' ')
    {
        let verdict = |exists: bool, visible: bool| {
            let with_fact = |facts: &mut Facts| {
                let fact = FunctionFact { visible, ..function("public", name, 'v') };
                facts.functions.extend(exists.then_some(fact));
            };
            let in_default = verdict_with(INSERT, |facts| {
                with_fact(facts);
                facts.table.as_mut().unwrap().columns[4].default = Some(format!("{name}(1)"));
            });
            let in_trigger = verdict_with(UPDATE, |facts| {
                with_fact(facts);
                let source = format!("begin new.stock := {name}(1); return new; end");
                facts.table.as_mut().unwrap().triggers.push(trigger(&source));
            });
            [in_default, in_trigger].map(|verdict| verdict.starts_with("pass"))
        };
        assert_eq!(verdict(true, true), [true; 2], "{name}");
        assert_eq!(verdict(true, false), [false; 2], "{name} means no function here");
        assert_eq!(verdict(false, true), [false; 2], "{name}");
    }
}

#[test]
fn operators_in_expressions_and_triggers_of_tables() {
    let operator =
        |volatility| FunctionFact { kind: "operator".into(), ..function("hidden", "##", volatility) };
    for (volatility, is_packed) in [('i', true), ('v', false)] {
        let in_default = verdict_with(INSERT, |facts| {
            facts.table.as_mut().unwrap().columns[4].default = Some("('a'::text ## 'b'::text)".to_owned());
            facts.functions.push(FunctionFact { visible: false, ..operator(volatility) });
        });
        assert_eq!(!in_default.starts_with("pass"), is_packed, "{in_default}");
        let in_trigger = verdict_with(UPDATE, |facts| {
            facts
                .table
                .as_mut()
                .unwrap()
                .triggers
                .push(trigger("begin new.note := new.note ## 'x'; return new; end"));
            facts.functions.push(operator(volatility));
        });
        assert_eq!(!in_trigger.starts_with("pass"), is_packed, "{in_trigger}");
    }
    let names = verdict_with(UPDATE, |facts| {
        facts
            .table
            .as_mut()
            .unwrap()
            .triggers
            .push(trigger("begin new.note := 'a' operator(x.||) 'b'; return new; end"));
    });
    assert!(names.starts_with("pass"), "{names}");
}

#[test]
fn sequences_with_a_cache() {
    assert_eq!(verdict_with("select nextval('s')", |_| {}), "write no key, rows, sequence");
    let cached = verdict_with("select nextval('s')", |facts| facts.cached_sequences = true);
    assert!(cached.contains("sequence with a cache"), "{cached}");
    let insert = verdict_with("insert into inv (stock) values ($1)", |facts| {
        let column = &mut facts.table.as_mut().unwrap().columns[0];
        column.default = Some("nextval('s'::regclass)".to_owned());
        column.cached_sequence = true;
    });
    assert!(insert.contains("sequence with a cache"), "{insert}");
    let given = verdict_with(INSERT, |facts| facts.table.as_mut().unwrap().columns[0].cached_sequence = true);
    assert!(!given.starts_with("pass"), "the default is not used: {given}");
}

#[test]
fn namesakes_of_operators_and_types() {
    let operator =
        |volatility| FunctionFact { kind: "operator".into(), ..function("public", "-", volatility) };
    assert!(verdict_with(UPDATE, |facts| facts.functions.push(operator('v'))).contains("operator -"));
    assert_eq!(verdict_with(UPDATE, |facts| facts.functions.push(operator('i'))), "write id=$1");
    let date = FunctionFact { kind: "type".into(), volatility: None, ..function("public", "date", 'i') };
    let sql = "select $1::date";
    assert!(verdict_with(sql, |facts| facts.functions.push(date.clone())).contains("cast to date"));
    let hidden = FunctionFact { visible: false, ..date };
    assert_eq!(verdict_with(sql, |facts| facts.functions.push(hidden)), "read no key, rows");
}

/// The text does not show a cast between two built-in types. It is a fact for every statement.
#[test]
fn user_defined_casts() {
    let cast = |language: Option<&str>, volatility: char, source: &str| FunctionFact {
        name: "character varying as integer".to_owned(),
        kind: "cast".to_owned(),
        volatility: language.is_some().then_some(volatility),
        language: language.map(str::to_owned),
        source: language.is_some().then(|| source.to_owned()),
        ..function("public", "", 'i')
    };
    for sql in [UPDATE, INSERT, SELECT, "select 1", "select nextval('s')"] {
        let with = |fact: FunctionFact| verdict_with(sql, |facts| facts.functions.push(fact));
        for tame in [
            cast(None, 'i', ""),
            cast(Some("internal"), 'i', "textin"),
            cast(Some("c"), 'i', "f"),
            cast(Some("sql"), 'i', "select length($1)"),
        ] {
            assert!(!with(tame.clone()).starts_with("pass"), "{sql}: {tame:?}");
        }
        for wild in [
            cast(Some("internal"), 'v', "pg_try_advisory_lock_int8"),
            cast(Some("sql"), 'v', "select length($1)"),
            cast(Some("sql"), 'i', "select set_config('a.b', $1, false)"),
            cast(Some("plpgsql"), 'i', "begin perform f(); return 1; end"),
            FunctionFact { special: true, ..cast(Some("sql"), 'i', "select length($1)") },
            FunctionFact { extension: Some("citext".into()), ..cast(Some("sql"), 's', "select 1") },
        ] {
            let verdict = with(wild.clone());
            assert!(verdict.contains("cast from character varying as integer"), "{sql}: {verdict}");
        }
    }
}

/// The OID of the object that a constant names is part of the catalog state of a statement.
#[test]
fn objects_named_in_constants_are_part_of_the_state() {
    let sequence = FunctionFact {
        kind: "relation".to_owned(),
        volatility: None,
        language: None,
        source: None,
        version: "16400 ".to_owned(),
        ..function("public", "s", 'i')
    };
    let state =
        |functions: &[FunctionFact]| Facts { functions: functions.to_vec(), ..Facts::default() }.state();
    let shadow =
        FunctionFact { schema: "first".to_owned(), version: "16500 ".to_owned(), ..sequence.clone() };
    let hidden = FunctionFact { visible: false, ..sequence.clone() };
    let one = state(std::slice::from_ref(&sequence));
    assert_eq!(one, state(std::slice::from_ref(&sequence)));
    assert_ne!(one, state(&[hidden, shadow]));
    let sql = "select nextval('s')";
    assert_eq!(verdict_with(sql, |facts| facts.functions.push(sequence)), "write no key, rows, sequence");
}

#[test]
fn names_to_look_up_are_complete() {
    let names = |sql: &str, change: fn(&mut TableFacts)| {
        let Analysis::Candidate(candidate) = analyse(sql) else { panic!("{sql}") };
        let mut table = candidate.table.as_ref().and_then(find);
        table.iter_mut().for_each(change);
        names_to_look_up(&candidate, table.as_ref())
    };
    assert_eq!(names("select lower($1)::text || now()", |_| {}), ["lower", "now", "text", "||"]);
    assert_eq!(names("select pg_catalog.lower($1), current_user", |_| {}), [""; 0]);
    // A constant argument can be a name, and so can any word in it.
    assert_eq!(names("select nextval('s')", |_| {}), ["nextval", "s"]);
    assert_eq!(names("select nextval((E'Shop.\\x73'))", |_| {}), ["Shop", "nextval", "s", "shop"]);
    assert_eq!(names("select nextval($$a.\"B c\"$$)", |_| {}), ["B", "B c", "a", "b", "c", "nextval"]);
    assert_eq!(names("select nextval('\"a\".\"b\"\"c\"')", |_| {}), ["a", "b", "b\"c", "c", "nextval"]);
    assert_eq!(
        names("select to_tsvector('English', note) from inv where id = $1", |_| {}),
        ["=", "English", "english", "to_tsvector"]
    );
    assert_eq!(names("select $1 || 'x' collate shop.\"De\"", |_| {}), ["De", "||"]);
    assert_eq!(names(&format!("select nextval('{}')", "x".repeat(1001)), |_| {}), ["nextval"]);
    // PostgreSQL's own functions whose arguments are values.
    assert_eq!(names("select lower('x'), pg_catalog.lower('y'), lpad('z', 1)", |_| {}), ["lower", "lpad"]);
    assert_eq!(names("select shop.lower('x'), slug('y')", |_| {}), ["lower", "slug", "x", "y"]);
    let table = |table: &mut TableFacts| {
        table.expressions.push("CHECK (valid(note))".to_owned());
        table.triggers.push(trigger("begin new.note := slug(new.note); return new; end"));
        table.columns[4].default = Some("make_note()".to_owned());
    };
    // Any word of a source can be a type.
    let trigger = ["begin", "check", "end", "new", "note", "return", "slug", "valid"];
    assert_eq!(names(UPDATE, table), [&["-", "="], &trigger[..]].concat());
    assert_eq!(names(INSERT, table), [&trigger[..3], &["make_note"], &trigger[3..]].concat());
    assert_eq!(names(SELECT, table), ["="]);
}
