//! Request IDs: a retry gets the recorded answer, also a refusal. Another call with the same ID is an error.

use crate::script::{check, check_in};

const ID: &str = "00000000-0000-0000-0000-00000000000";

/// `$1` stands for the first request id, and so on.
fn check_requests(script: &str) -> (crate::server::Database, crate::server::Session) {
    let script = (1..=6).fold(script.to_owned(), |script, number| {
        script.replace(&format!("${number}"), &format!("'{ID}{number}'"))
    });
    check(&script)
}

#[test]
fn a_retry_has_the_recorded_answer() {
    for strategy in ["ledger", "log"] {
        check_requests(&format!(
            "create_counter('a', '{strategy}', null, 10) -> created
            increment('a', 6, $1) -> 6 1 ok
            increment('a', 1) -> 7 2 ok
            increment('a', 6, $1) -> 6 1 ok
            increment('a', 4, $2) -> 7 2 out_of_bounds
            drain('a', $3) -> 7 3 ok
            increment('a', 4, $2) -> 7 2 out_of_bounds
            drain('a', $3) -> 7 3 ok
            counter('a') -> 0 3"
        ));
    }
}

#[test]
fn an_id_twice_in_one_batch_counts_once() {
    let (_database, session) = check_requests(
        "increment_batch('{a,a,b,a}', '{2,2,1,3}', array[$1, $1, null, $2]::uuid[]) -> 2 1 ok | 2 1 ok | 1 1 ok | 5 2 ok
        increment_batch('{a,a,a}', '{3,2,1}', array[$2, $1, $3]::uuid[]) -> 5 2 ok | 2 1 ok | 6 3 ok
        drain_batch('{a,a}', array[$4, $4]::uuid[]) -> 6 4 ok | 6 4 ok
        create_sale('x', 5, 3) -> created
        reserve_batch('{x,x,x}', '{ann,ann,bob}', '{2,2,2}', array[$5, $5, $6]::uuid[]) -> reserved #1 3 | reserved #1 3 | reserved #2 1
        reserve('x', 'ann', 2, $5) -> reserved #1 3
        counter('a') -> 0 4",
    );
    assert_eq!(session.value("select count(*) from hotrow.reservation"), "2");
}

#[test]
fn another_call_under_a_used_id_changes_nothing() {
    check_requests(
        "increment('a', 2, $1) -> 2 1 ok
        increment('a', 3, $1) -> 22023
        increment('b', 2, $1) -> 22023
        drain('a', $1) -> 22023
        increment_batch('{a,a}', '{1,2}', array[$2, $2]::uuid[]) -> 22023
        increment_batch('{a,b}', '{1,1}', array[$2, $2]::uuid[]) -> 22023
        counter('a') -> 2 1
        create_sale('x', 5) -> created
        reserve('x', 'ann', 1, $1) -> 22023
        reserve('x', 'ann', 1, $3) -> reserved #1 4
        reserve('x', 'ann', 2, $3) -> 22023
        reserve('x', 'bob', 1, $3) -> 22023
        restock('x', 1, $3) -> 22023
        reserve_all('{x}', '{1}', 'ann', $3) -> 22023
        reserve_batch('{x,x}', '{ann,bob}', null, array[$4, $4]::uuid[]) -> 22023
        sale('x') -> x 4 1 0 - - - -
        restock('x', 1, $4) -> restocked 5
        restock('x', 1, $4) -> restocked 5
        restock('x', 2, $4) -> 22023
        reserve('x', 'x', 1, $5) -> reserved #2 4",
    );
}

#[test]
fn refusals_of_sales_are_recorded() {
    check_requests(
        "reserve('x', 'ann', 1, $1) -> unknown_item - -
        create_sale('x', 1, 1) -> created
        reserve('x', 'ann', 1, $1) -> unknown_item - -
        reserve('x', 'ann', 2, $2) -> sold_out - 1
        restock('x', 5) -> restocked 6
        reserve('x', 'ann', 2, $2) -> sold_out - 1
        reserve('x', 'ann', 2, $3) -> limit_reached - 6
        reserve_all('{x,y}', '{1,1}', 'bob', $4) -> unknown_item - y
        create_sale('y', 1) -> created
        reserve_all('{x,y}', '{1,1}', 'bob', $4) -> unknown_item - y
        reserve_all('{x,y}', '{1,1}', 'bob', $5) -> reserved {#1,#2} -
        reserve_all('{x,y}', '{1,1}', 'bob', $5) -> reserved {#1,#2} -
        restock('z', 1, $6) -> unknown_item -
        restock('z', 1, $6) -> unknown_item -",
    );
}

#[test]
fn requests_are_deleted_after_their_retention_and_not_before() {
    let (_database, session) = check_requests("increment('a', 1, $1) -> 1 1 ok\nforget_requests() -> 0");
    session.run("select hotrow.create_sale('x', 1)");
    check_in(
        &session,
        &format!(
            "reserve('x', 'ann', 1, '{ID}5') -> reserved #1 0\nreserve('x', 'bob', 1, '{ID}6') -> sold_out - 0"
        ),
    );
    session.run("update hotrow.request set at = at - interval '8 days'");
    session.run(&format!("select hotrow.increment('a', 1, '{ID}2')"));
    assert_eq!(session.value("select hotrow.forget_requests()"), "2");
    // A reservation is not deleted by age, and a retry still gets its answer: the ID is the reservation's own.
    check_in(
        &session,
        &format!(
            "restock('x', 1) -> restocked 1\nreserve('x', 'bob', 1, '{ID}6') -> reserved #1 0\nreserve('x', 'ann', 1, '{ID}5') -> reserved #2 0\ncancel('{ID}5') -> cancelled"
        ),
    );
    assert_eq!(session.value(&format!("select hotrow.increment('a', 1, '{ID}2')")), "(2,2,ok)");
    assert_eq!(session.value(&format!("select hotrow.increment('a', 1, '{ID}1')")), "(3,3,ok)");
}
