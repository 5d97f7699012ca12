//! Pack rules: which rules are accepted, and what a gateway reads.

use crate::script::check_in;
use crate::server::Database;

#[test]
fn a_rule_has_the_parameters_and_the_key_of_its_function() {
    let database = Database::migrated();
    let session = database.session("postgres");
    session.run(
        "create schema shop;
        create function shop.push(bigint, body text default '') returns void language plpgsql as $$ begin end $$;
        create function shop.push(bigint, body text, priority int) returns void language plpgsql as $$ begin end $$;
        create function shop.tick() returns int language sql as $$ select 1 $$;
        select hotrow.add_pack_rule('shop.push(int8,text)', '1'),
            hotrow.add_pack_rule('shop.push(bigint, text, int)', 'body', 'inboxes'),
            hotrow.add_pack_rule('shop.tick()')",
    );
    let rule = |name: &str, place: u32, field: &str| {
        session.value(&format!("select hotrow.pack_rules('{{{name}}}')::jsonb #>> '{{{place},{field}}}'"))
    };
    for (place, field, value) in [
        (0, "schema", "shop"),
        (0, "name", "push"),
        (0, "key_argument", "0"),
        (0, "key_space", "shop.push"),
        (0, "parameters", "[{\"name\": \"\", \"type_oid\": 20}, {\"name\": \"body\", \"type_oid\": 25}]"),
        (1, "key_argument", "1"),
        (1, "key_space", "inboxes"),
    ] {
        assert_eq!(rule("push", place, field), value, "{place} {field}");
    }
    let oid = session.value("select 'shop.push(bigint,text)'::regprocedure::oid::bigint");
    assert_eq!(rule("push", 0, "oid"), oid);
    assert_eq!((rule("tick", 0, "key_argument"), rule("tick", 0, "parameters")), ("-".into(), "[]".into()));

    // The rule of a function that is gone has no effect, and can be removed.
    session.run("drop function shop.tick()");
    assert_eq!(session.value("select json_array_length(hotrow.pack_rules('{tick}'))"), "0");
    session.run("select hotrow.remove_pack_rule('shop.tick()')");
    check_in(&session, "remove_pack_rule('shop.tick()') -> 22023");
}

#[test]
fn a_rule_that_cannot_be_is_refused_and_changes_nothing() {
    let database = Database::migrated();
    let session = database.session("postgres");
    session.run(
        "create schema shop;
        create function shop.one(a int) returns int language sql as $$ select a $$;
        create function shop.many(variadic a int[]) returns int language sql as $$ select 1 $$;
        create procedure shop.proc(a int) language sql as $$ select 1 $$;
        create aggregate shop.total(int) (sfunc = int4pl, stype = int)",
    );
    check_in(
        &session,
        "add_pack_rule(null) -> 22004
        add_pack_rule('shop.none(int)') -> 22023
        add_pack_rule('one') -> 22023
        add_pack_rule('shop.many(int[])') -> 22023
        add_pack_rule('shop.proc(int)') -> 22023
        add_pack_rule('shop.total(int)') -> 22023
        add_pack_rule('shop.one(int)', 'b') -> 22023
        add_pack_rule('shop.one(int)', '') -> 22023
        add_pack_rule('shop.one(int)', '0') -> 22023
        add_pack_rule('shop.one(int)', '2') -> 22023",
    );
    assert_eq!(session.value("select count(*) from hotrow.pack_rule"), "0");
    let stranger = database.login("declares", true);
    check_in(&stranger, "add_pack_rule('shop.one(int)') -> 42501\npack_rules('{nothing}') -> []");
}
