//! How what bears a name outside `pg_catalog` changes the verdict: functions, operators, types; tables are next door.

use super::catalogue::{INSERT, SELECT, UPDATE, trigger};
use super::*;

fn function(schema: &str, name: &str, volatility: char) -> FunctionFact {
    FunctionFact {
        schema: schema.to_owned(),
        name: name.to_owned(),
        kind: "function".to_owned(),
        visible: true,
        volatility: Some(volatility),
        special: false,
        extension: None,
    }
}

#[test]
fn namesakes_of_known_functions() {
    let sql = "update inv set note = lower(note) where id = $1";
    let with = |fact: FunctionFact| verdict_with(sql, |facts| facts.functions.push(fact));
    assert_eq!(with(function("citext", "lower", 'i')), "write id=$1");
    assert!(with(function("public", "lower", 'v')).contains("lower is a user's, and not declared immutable"));
    assert_eq!(with(FunctionFact { visible: false, ..function("x", "lower", 'v') }), "write id=$1");
    assert_eq!(with(FunctionFact { kind: "type".into(), ..function("x", "lower", 'v') }), "write id=$1");
    assert_eq!(with(function("public", "upper", 'v')), "write id=$1");
    assert!(
        with(FunctionFact { special: true, ..function("x", "lower", 'i') })
            .contains("not declared immutable")
    );
}

#[test]
fn functions_of_users() {
    let sql = "insert into inv (id, note) values ($1, slug($2))";
    let with = |fact: FunctionFact| verdict_with(sql, |facts| facts.functions.push(fact));
    assert_eq!(with(function("public", "slug", 'i')), "write id=$1");
    assert!(with(function("public", "slug", 's')).contains("slug is a user's"));
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

#[test]
fn what_to_look_up() {
    let names = |sql: &str, change: fn(&mut TableFacts)| {
        let Analysis::Candidate(candidate) = analyse(sql) else { panic!("{sql}") };
        let mut table = candidate.table.as_ref().and_then(find);
        table.iter_mut().for_each(change);
        names_to_look_up(&candidate, table.as_ref())
    };
    assert_eq!(names("select lower($1)::text || now()", |_| {}), ["lower", "now", "text", "||"]);
    assert_eq!(names("select pg_catalog.lower('x'), current_user", |_| {}), [""; 0]);
    let table = |table: &mut TableFacts| {
        table.expressions.push("CHECK (valid(note))".to_owned());
        table.triggers.push(trigger("begin new.note := slug(new.note); return new; end"));
        table.columns[4].default = Some("make_note()".to_owned());
    };
    assert_eq!(names(UPDATE, table), ["-", "=", "slug", "valid"]);
    assert_eq!(names(INSERT, table), ["make_note", "slug", "valid"]);
    assert_eq!(names(SELECT, table), ["="]);
}
