//! Merge rules: which rules are accepted, what a gateway reads, and which rules are left out.

use hotrow_sql::DEFAULT_ROLE;

use crate::script::check_in;
use crate::server::{Database, Session};

const PAIR: &str = "
    create schema shop;
    create function shop.buy(item text, n int default 1, out left_over int, out note text)
        language sql as $$ select 1, 'x' $$;
    create function shop.buy_batch(item text[], n int[] default null) returns table (left_over int, note text)
        language sql as $$ select 1, 'x' from unnest(item) $$;
    create function shop.twice(n bigint) returns bigint language sql as $$ select 2 * n $$;
    create function shop.twice_batch(n bigint[]) returns setof bigint language sql as $$ select 2 * u from unnest(n) u $$;";

fn shop() -> (Database, Session) {
    let database = Database::migrated();
    let session = database.session("postgres");
    session.run(PAIR);
    (database, session)
}

fn rule_field(session: &Session, name: &str, field: &str) -> String {
    session.value(&format!("select hotrow.merge_rules('{{{name}}}')::jsonb #>> '{{0,{field}}}'"))
}

#[test]
fn rules_contain_everything_that_a_gateway_needs() {
    let (_database, session) = shop();
    session
        .run("select hotrow.add_merge_rule('shop.buy(text, int)', 'shop.buy_batch(text[],int[])', 'item')");
    session.run(
        "select hotrow.add_merge_rule('shop.twice(int8)', 'shop.twice_batch(bigint[])', 'n', 'twos', 8)",
    );
    for (field, value) in [
        ("schema", "shop"),
        ("name", "buy"),
        ("visible", "false"),
        ("required", "1"),
        ("named", "true"),
        ("result", "record"),
        ("returns_set", "false"),
        ("wait_argument", "-"),
        ("columns", "[\"left_over\", \"note\"]"),
        ("batch_schema", "shop"),
        ("batch_name", "buy_batch"),
        ("key_argument", "0"),
        ("key_space", "shop.buy"),
        ("most_calls", "256"),
        ("callable", "true"),
        (
            "parameters",
            "[{\"name\": \"item\", \"type_oid\": 25, \"array_oid\": 1009}, {\"name\": \"n\", \"type_oid\": 23, \"array_oid\": 1007}]",
        ),
    ] {
        assert_eq!(rule_field(&session, "buy", field), value, "{field}");
    }
    for (field, value) in [
        ("named", "false"),
        ("result", "plain"),
        ("columns", "[\"twice\"]"),
        ("key_space", "twos"),
        ("most_calls", "8"),
    ] {
        assert_eq!(rule_field(&session, "twice", field), value, "{field}");
    }
    assert_eq!(rule_field(&session, "reserve", "columns"), "[\"status\", \"reservation_id\", \"remaining\"]");
    assert_eq!(rule_field(&session, "confirm", "columns"), "[\"status\"]");
    for (name, key_space) in [
        ("increment", "counter"),
        ("drain", "counter"),
        ("reserve", "sale"),
        ("confirm", "sale"),
        ("cancel", "sale"),
        ("extend", "sale"),
    ] {
        assert_eq!(rule_field(&session, name, "key_space"), format!("hotrow.{key_space}"));
        assert_eq!(rule_field(&session, name, "key_argument"), "0");
    }
}

#[test]
fn visibility_and_execute_rights_are_those_of_the_caller() {
    let database = Database::migrated();
    let (member, stranger) = (database.login("member", true), database.login("stranger", false));
    assert_eq!(rule_field(&member, "increment", "callable"), "true");
    assert_eq!(rule_field(&stranger, "increment", "callable"), "false");
    assert_eq!(rule_field(&member, "increment", "visible"), "false");
    member.run("set search_path = hotrow");
    assert_eq!(rule_field(&member, "increment", "visible"), "true");
}

#[test]
fn pairs_that_do_not_fit_are_refused_with_a_reason() {
    let (_database, session) = shop();
    session.run(
        "create function shop.other(item text[], m int[] default null) returns table (left_over int, note text)
            language sql as $$ select 1, 'x' $$;
        create function shop.flat(item text, n int) returns table (left_over int, note text) language sql as $$ select 1, 'x' $$;
        create function shop.strict_batch(item text[], n int[]) returns table (left_over int, note text)
            language sql as $$ select 1, 'x' $$;
        create function shop.renamed(item text[], n int[] default null) returns table (rest int, note text)
            language sql as $$ select 1, 'x' $$;
        create function shop.one_row(item text[], n int[] default null, out left_over int, out note text)
            language sql as $$ select 1, 'x' $$;
        create function shop.buy_strictly(item text, n int default null, out left_over int, out note text)
            language sql strict as $$ select 1, 'x' $$;
        create function shop.buy_as_owner(item text, n int default null, out left_over int, out note text)
            language sql security definer as $$ select 1, 'x' $$;
        create function shop.buy_in_tokyo(item text, n int default null, out left_over int, out note text)
            language sql set timezone = 'Asia/Tokyo' as $$ select 1, 'x' $$;
        create function shop.buy_planned(item text, n int default null, out left_over int, out note text)
            language sql set jit = off set enable_seqscan = off as $$ select 1, 'x' $$;
        select hotrow.add_merge_rule('shop.buy_planned(text,int)', 'shop.buy_batch(text[],int[])', 'item');",
    );
    let buy = "shop.buy(text,int)";
    for (function, batch, key, reason) in [
        (buy, "shop.other(text[],int[])", "item", "names differ"),
        (buy, "shop.flat(text,int)", "item", "array"),
        (buy, "shop.strict_batch(text[],int[])", "item", "optional"),
        (buy, "shop.renamed(text[],int[])", "item", "columns differ"),
        (buy, "shop.one_row(text[],int[])", "item", "return a set"),
        (buy, "shop.buy_batch(text[],int[])", "colour", "key argument"),
        ("shop.buy_strictly(text,int)", "shop.buy_batch(text[],int[])", "item", "is STRICT"),
        ("shop.buy_as_owner(text,int)", "shop.buy_batch(text[],int[])", "item", "SECURITY DEFINER and SET"),
        ("shop.buy_in_tokyo(text,int)", "shop.buy_batch(text[],int[])", "item", "SECURITY DEFINER and SET"),
        (buy, "shop.nothing(text[])", "item", "does not exist"),
        ("shop.nothing(text)", "shop.buy_batch(text[],int[])", "item", "does not exist"),
    ] {
        let add = format!("select hotrow.add_merge_rule('{function}', '{batch}', '{key}')");
        assert_eq!(session.ask(&add), Err("22023".to_owned()), "{batch}");
        let (message, hint) = session.complaint(&add);
        assert!(message.contains(reason) && !hint.is_empty(), "{message}");
    }
    let fits = "add_merge_rule('shop.buy(text,int)', 'shop.buy_batch(text[],int[])', 'item', null";
    check_in(
        &session,
        &format!("{fits}, 1) -> 22023\n{fits}, 1001) -> 22023\nadd_merge_rule(null, null, null) -> 22004"),
    );
}

/// Functions that return sets, and batch functions that fit or do not fit them.
const SETS: &str = "
    create type shop.parcel as (id bigint, name text);
    create function shop.fetch(queue text, most int, wait interval default null) returns table (id bigint, name text)
        language sql as $$ select 1, 'x' $$;
    create function shop.parcels(queue text, most int, wait interval default null) returns setof shop.parcel
        language sql as $$ select 1::bigint, 'x' $$;
    create function shop.names(queue text) returns setof text language sql as $$ select 'x' $$;
    create function shop.fetch_batch(queue text[], most int[], wait interval[] default null)
        returns table (call int, again_in interval, id bigint, name text)
        language sql as $$ select 1, null::interval, 1::bigint, 'x' $$;
    create function shop.rows_batch(queue text[], most int[], wait interval[] default null)
        returns table (call int, id bigint, name text) language sql as $$ select 1, 1::bigint, 'x' $$;
    create function shop.flat_batch(queue text[], most int[], wait interval[] default null)
        returns table (id bigint, name text) language sql as $$ select 1::bigint, 'x' $$;
    create function shop.bare_batch(queue text[]) returns setof text language sql as $$ select 'x' $$;
    create function shop.names_batch(queue text[]) returns table (call int, one text) language sql as $$ select 1, 'x' $$;";

#[test]
fn a_batch_function_of_a_function_that_returns_a_set_needs_the_columns_of_the_gateway() {
    let (_database, session) = shop();
    session.run(SETS);
    let buy = "shop.buy(text,int)";
    let (fetch, parcels) = ("shop.fetch(text,int,interval)", "shop.parcels(text,int,interval)");
    let batch_function = |name: &str| format!("shop.{name}_batch(text[],int[],interval[])");
    for (function, batch, wait, refused) in [
        (fetch, batch_function("rows"), "null", None),
        (fetch, batch_function("fetch"), "'wait'", None),
        (parcels, batch_function("rows"), "null", None),
        (parcels, batch_function("fetch"), "'wait'", None),
        ("shop.names(text)", "shop.names_batch(text[])".to_owned(), "null", None),
        (fetch, batch_function("flat"), "null", Some("call int in front")),
        (fetch, batch_function("fetch"), "null", Some("call int in front")),
        (fetch, batch_function("rows"), "'wait'", Some("call int and again_in interval in front")),
        ("shop.names(text)", "shop.bare_batch(text[])".to_owned(), "null", Some("call int in front")),
        (fetch, batch_function("fetch"), "'most'", Some("no interval")),
        (fetch, batch_function("fetch"), "'patience'", Some("no parameter")),
        (buy, "shop.buy_batch(text[],int[])".to_owned(), "'n'", Some("must return a set")),
    ] {
        let key = if function == buy { "item" } else { "queue" };
        let add = format!(
            "select hotrow.add_merge_rule('{function}', '{batch}', '{key}', 'shop.parcel', wait_argument => {wait})"
        );
        match refused {
            None => session.run(&add),
            Some(reason) => {
                let (message, _) = session.complaint(&add);
                assert!(message.contains(reason), "{message}");
            }
        }
    }
    assert_eq!(rule_field(&session, "fetch", "wait_argument"), "2");
    assert_eq!(rule_field(&session, "fetch", "result"), "record");
    assert_eq!(rule_field(&session, "parcels", "result"), "row");
    assert_eq!(rule_field(&session, "parcels", "returns_set"), "true");
}

#[test]
fn a_rule_whose_function_has_changed_or_gone_is_left_out() {
    let (_database, session) = shop();
    session.run("select hotrow.add_merge_rule('shop.buy(text,int)', 'shop.buy_batch(text[],int[])', 'item')");
    let rules = "select json_array_length(hotrow.merge_rules('{buy}'))";
    assert_eq!(session.value(rules), "1");
    session.run("drop function shop.buy_batch(text[],int[])");
    assert_eq!(session.value(rules), "0");
    session.run(
        "create function shop.buy_batch(item text[], n int[]) returns table (left_over int, note text)
        language sql as $$ select 1, 'x' $$",
    );
    assert_eq!(session.value(rules), "0");
    session.run("select hotrow.remove_merge_rule('shop.buy(text,integer)')");
    check_in(&session, "remove_merge_rule('shop.buy(text,integer)') -> 22023");
}

#[test]
fn rules_of_the_pack_that_the_owner_has_removed_or_changed_stay_so() {
    let database = Database::migrated();
    let mut session = database.session("postgres");
    session.run(
        "select hotrow.remove_merge_rule('hotrow.drain(text,uuid)');
        select hotrow.add_merge_rule('hotrow.confirm(uuid)', 'hotrow.confirm_batch(uuid[])', 'reservation_id', 'hotrow.sale', 8)",
    );
    session.migrate(DEFAULT_ROLE).unwrap();
    assert_eq!(session.value("select json_array_length(hotrow.merge_rules('{drain}'))"), "0");
    assert_eq!(rule_field(&session, "confirm", "most_calls"), "8");
}

/// The first answer of the gateway's query before it calls a function with parameters of these types, for an upstream URL with
/// this user.
pub fn trusts(upstream_user: &str, function: &str, types: &str) -> String {
    let query = include_str!("../../../hotrow-connect/sql/pack_trusted.sql")
        .replace("$1", &format!("'{upstream_user}'"))
        .replace("$2", &format!("'{function}'"))
        .replace("$3", &format!("'{types}'"));
    format!("select is_trusted from ({query}) as answers (is_trusted, is_there)")
}

/// The first answer of the gateway's query before it reads rules, for an upstream URL with this user, with the rights of its
/// client.
fn can_ask(upstream_user: &str) -> String {
    trusts(upstream_user, "merge_rules", "1009")
}

#[test]
fn rules_are_read_only_if_the_schema_belongs_to_a_trusted_role() {
    let database = Database::empty();
    let owner = database.session("postgres");
    assert_eq!(owner.value(&can_ask("postgres")), "f", "the hotrow schema is not installed");
    let (mallory, other) = (database.login("mallory", false), database.login("other", false));
    let name = mallory.value("select current_user");
    owner.run(&format!("create schema hotrow authorization {name}"));
    mallory.run(
        "grant usage on schema hotrow to public;
        create function hotrow.merge_rules(names text[]) returns json language sql as $$ select '[]'::json $$",
    );
    let answers = |upstream_user: &str| {
        [&mallory, &other, &owner].map(|session| session.value(&can_ask(upstream_user))).join(" ")
    };
    assert_eq!(answers("postgres"), "t f f", "an ordinary role created the schema");
    assert_eq!(answers(&name), "t t f", "the gateway logs in as that role");
    owner.run(&format!("alter database {} owner to {name}", owner.value("select current_database()")));
    assert_eq!(answers("postgres"), "t t f", "the database belongs to that role");
    owner.run("alter function hotrow.merge_rules(text[]) owner to postgres");
    assert_eq!(answers("postgres"), "f f f", "the schema's owner could replace the superuser's function");
    owner.run("alter schema hotrow owner to postgres");
    assert_eq!(answers("postgres"), "t t t");
    owner.run(&format!("grant create on schema hotrow to {name}"));
    mallory.run("create function hotrow.other() returns int language sql as 'select 1'");
    assert_eq!(answers("postgres"), "f f f", "another role has put a function there");
}

#[test]
fn the_query_about_trust_never_fails() {
    let database = Database::migrated();
    assert_eq!(database.session("postgres").value(&can_ask("postgres")), "t");
    let stranger = database.login("stranger", false);
    assert_eq!(stranger.value(&can_ask("postgres")), "t");
    let owner = database.session("postgres");
    owner.run("revoke execute on function hotrow.merge_rules(text[]) from public");
    assert_eq!(stranger.value(&can_ask("postgres")), "f");
    owner.run("grant execute on function hotrow.merge_rules(text[]) to public");
    owner.run("revoke usage on schema hotrow from public");
    assert_eq!(stranger.value(&can_ask("postgres")), "f");
}

/// The owner of the database can choose the current role of every session.
#[test]
fn a_session_whose_current_role_is_a_superuser_does_not_trust_the_databases_owner() {
    let database = Database::empty();
    let owner = database.session("postgres");
    let (mallory, admin) = (database.login("mallory", false), database.login("admin", false));
    let [mallory_name, admin_name] = [&mallory, &admin].map(|session| session.value("select current_user"));
    owner.run(&format!(
        "grant postgres to {admin_name}; create schema hotrow authorization {mallory_name};
        alter database {} owner to {mallory_name}",
        owner.value("select current_database()")
    ));
    mallory.run(
        "grant usage on schema hotrow to public;
        create function hotrow.merge_rules(names text[]) returns json language sql as $$ select '[]'::json $$",
    );
    assert_eq!(admin.value(&can_ask("postgres")), "t");
    admin.run("set role postgres");
    assert_eq!(admin.value(&can_ask("postgres")), "f");
}
