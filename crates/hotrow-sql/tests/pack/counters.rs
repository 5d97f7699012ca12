//! Counters of both strategies: the same scripts must have the same answers.

use crate::script::{check, check_in};
use crate::server::Database;

#[test]
fn increments_and_drains_are_judged_one_after_another() {
    for strategy in ["ledger", "log"] {
        let (_database, session) = check(&format!(
            "counter('a') -> 0 0
            create_counter('a', '{strategy}') -> created
            create_counter('a', '{strategy}') -> exists
            create_counter('a', '{strategy}', 0) -> differs
            increment('a', 2) -> 2 1 ok
            increment('a') -> 3 2 ok
            drain('a') -> 3 3 ok
            drain('a') -> 0 4 ok
            increment('a', -5) -> -5 5 ok
            increment('a', 0) -> -5 6 ok
            counter('a') -> -5 6
            increment_batch(array['a', 'b', 'a', 'b'], '{{1,2,3,4}}') -> -4 7 ok | 2 1 ok | -1 8 ok | 6 2 ok
            drain_batch(array['a', 'b', 'a']) -> -1 9 ok | 6 3 ok | 0 10 ok
            increment_batch(array['a', 'a']) -> 1 11 ok | 2 12 ok
            increment_batch('{{}}') -> nothing
            counter('a') -> 2 12"
        ));
        check_in(&session, "counter('b') -> 0 3");
        let history = if strategy == "log" { "command_log" } else { "ledger" };
        let versions =
            format!("select array_agg(version order by version) from hotrow.{history} where counter = 'a'");
        assert_eq!(session.value(&versions), "{1,2,3,4,5,6,7,8,9,10,11,12}");
    }
}

#[test]
fn bounds_refuse_and_use_no_version() {
    for strategy in ["ledger", "log"] {
        check(&format!(
            "create_counter('a', '{strategy}', -3, 10) -> created
            increment('a', 10) -> 10 1 ok
            increment('a', 1) -> 10 1 out_of_bounds
            increment('a', 9223372036854775807) -> 10 1 out_of_bounds
            increment_batch(array['a', 'a', 'a', 'a'], '{{-13,-1,1,14}}') -> -3 2 ok | -3 2 out_of_bounds | -2 3 ok | -2 3 out_of_bounds
            increment('a', -9223372036854775808) -> -2 3 out_of_bounds
            drain('a') -> -2 4 ok
            create_counter('b', '{strategy}', 5, 9) -> created
            increment('b', 4) -> 0 0 out_of_bounds
            increment('b', 5) -> 5 1 ok
            drain('b') -> 5 1 out_of_bounds
            counter('b') -> 5 1"
        ));
    }
}

#[test]
fn both_ends_of_bigint_are_reached_and_not_passed() {
    for strategy in ["ledger", "log"] {
        check(&format!(
            "create_counter('a', '{strategy}') -> created
            increment('a', 9223372036854775807) -> 9223372036854775807 1 ok
            increment('a', 1) -> 9223372036854775807 1 overflow
            increment('a', 9223372036854775807) -> 9223372036854775807 1 overflow
            increment('a', -9223372036854775808) -> -1 2 ok
            increment('a', -9223372036854775808) -> -1 2 overflow
            increment('a', -9223372036854775807) -> -9223372036854775808 3 ok
            increment('a', -1) -> -9223372036854775808 3 overflow
            increment('a', -9223372036854775808) -> -9223372036854775808 3 overflow
            counter('a') -> -9223372036854775808 3
            drain('a') -> -9223372036854775808 4 ok
            increment('a', 7) -> 7 5 ok"
        ));
    }
}

#[test]
fn invalid_arguments_are_refused_with_a_hint() {
    let (_database, session) = check(
        "increment(null) -> 22004
        increment('a', null) -> 22004
        increment('') -> 22023
        increment(repeat('x', 10240)) -> 22023
        increment(repeat('x', 500)) -> 1 1 ok
        increment(repeat('é', 251)) -> 22023
        counter('') -> 22023
        drain(null) -> 22004
        create_counter('a', 'fast') -> 22023
        create_counter('a', null) -> 22004
        create_counter('a', 'log', 2, 1) -> 22023
        increment_batch(null) -> 22004
        increment_batch('{a,b}', '{1}') -> 22023
        increment_batch('{a,b}', '{}') -> 22023
        increment_batch('{a,b}', '[0:1]={1,2}') -> 22023
        increment_batch('{{a,b}}') -> 22023
        increment_batch('{a,NULL}') -> 22004
        increment_batch('{a,b}', '{1,NULL}') -> 22004
        increment_batch(array_fill('a'::text, '{1001}')) -> 22023
        drain_batch('{a,b}', '{}') -> 22023
        counter('a') -> 0 0",
    );
    let (message, hint) = session.complaint("select hotrow.increment('')");
    assert!(message.contains("0 bytes") && hint.contains("1 to 500"), "{message} {hint}");
}

#[test]
fn a_function_with_the_tables_name_is_still_a_function() {
    let session = Database::migrated().session("postgres");
    session.run("select hotrow.increment('a'), hotrow.create_sale('x', 1)");
    assert_eq!(session.value("select hotrow.counter('a')"), "(1,1)");
    assert_eq!(session.value("select hotrow.sale('x')"), "(x,1,0,0,,,,)");
}

#[test]
fn counters_are_listed_in_pages() {
    let (_database, session) = check(
        "create_counter('b', 'ledger', 0, 9) -> created
        create_counter('a', 'log') -> created
        increment('a', 5) -> 5 1 ok
        increment('c', 7) -> 7 1 ok
        list_counters('', 0) -> 22023
        list_counters('', 1001) -> 22023
        list_counters(max => null) -> 22004",
    );
    let list = "select counter, strategy, minimum, maximum, value, version, changed_at is null from";
    let page = |call: &str| session.ask(&format!("{list} {call}")).unwrap();
    assert_eq!(
        page("hotrow.list_counters()"),
        ["a log - - 5 1 f", "b ledger 0 9 0 0 t", "c ledger - - 7 1 f"]
    );
    assert_eq!(page("hotrow.list_counters('a', 1)"), ["b ledger 0 9 0 0 t"]);
}
