//! Sales: reservations, the order of refusals, and the expiry of holds.

use crate::script::{check, check_in};

#[test]
fn refusals_come_in_the_stated_order() {
    check(
        "reserve('x', 'ann') -> unknown_item - -
        create_sale('x', 3, 2) -> created
        create_sale('x', 3, 2) -> exists
        create_sale('x', 4, 2) -> differs
        reserve('x', 'ann', 2) -> reserved #1 1
        reserve('x', 'ann', 2) -> sold_out - 1
        reserve('x', 'ann', 1) -> limit_reached - 1
        reserve('x', 'bob', 1) -> reserved #2 0
        reserve('x', 'bob', 1) -> sold_out - 0
        create_sale('soon', 0, null, clock_timestamp() + interval '1 hour') -> created
        reserve('soon', 'ann') -> not_started - 0
        create_sale('gone', 0, null, null, clock_timestamp() - interval '1 hour') -> created
        reserve('gone', 'ann') -> ended - 0
        create_sale('gone2', 2, null, null, clock_timestamp() - interval '1 hour') -> created
        reserve('gone2', 'ann', 9, gen_random_uuid()) -> ended - 2
        create_sale('soon2', 2, null, clock_timestamp() + interval '1 hour') -> created
        reserve('soon2', 'ann', 9, gen_random_uuid()) -> not_started - 2",
    );
}

#[test]
fn sales_are_listed_in_pages() {
    check(
        "create_sale('b', 4) -> created
        create_sale('a', 3, 2) -> created
        create_sale('C', 5) -> created
        reserve('b', 'ann', 3) -> reserved #1 1
        list_sales() -> C 5 0 0 - - - - | a 3 0 0 2 - - - | b 1 3 0 - - - -
        list_sales('C', 1) -> a 3 0 0 2 - - -
        list_sales('b') -> nothing
        list_sales('', 0) -> 22023
        list_sales('', 1001) -> 22023
        list_sales(null) -> 22004",
    );
}

#[test]
fn a_batch_is_judged_in_call_order_across_items() {
    let (_database, session) = check(
        "create_sale('y', 4) -> created
        create_sale('x', 5, 3) -> created
        reserve_batch('{y,x,z,x,x,y,x}', '{a,a,a,a,b,b,b}', '{3,2,1,2,3,2,1}') -> reserved #1 1 | reserved #2 3 | unknown_item - - | limit_reached - 3 | reserved #3 0 | sold_out - 1 | sold_out - 0
        reserve_batch('{}', '{}') -> nothing
        reserve_batch('{x,y}', '{a,c}') -> sold_out - 0 | reserved #4 0
        sale('x') -> x 0 5 0 3 - - -",
    );
    assert_eq!(session.ask("select buyer, quantity from hotrow.buyer order by 1").unwrap(), ["a 2", "b 3"]);
}

#[test]
fn cancelled_pieces_can_be_sold_again_and_confirmed_pieces_cannot() {
    check(
        "create_sale('x', 3, 2) -> created
        reserve('x', 'ann', 2) -> reserved #1 1
        reserve('x', 'bob', 1) -> reserved #2 0
        confirm(#2) -> confirmed
        confirm(#2) -> confirmed
        cancel(#2) -> confirmed
        extend(#2, '1 s') -> confirmed -
        cancel(#1) -> cancelled
        cancel(#1) -> cancelled
        confirm(#1) -> cancelled
        extend(#1, '1 s') -> cancelled -
        sale('x') -> x 2 0 1 2 - - -
        reserve('x', 'ann', 2) -> reserved #3 0
        extend(#3, '1 s') -> extended -
        restock('x', 4) -> restocked 4
        restock('y', 4) -> unknown_item -
        reserve('x', 'ann', 1) -> limit_reached - 4
        confirm(gen_random_uuid()) -> unknown_reservation
        cancel(gen_random_uuid()) -> unknown_reservation
        extend(gen_random_uuid(), '1 s') -> unknown_reservation -
        confirm_batch(array[#3, #1, #3]::uuid[]) -> confirmed | cancelled | confirmed
        cancel_batch(array[#3, #1, #1]::uuid[]) -> confirmed | cancelled | cancelled
        sale('x') -> x 4 0 3 2 - - -",
    );
}

#[test]
fn several_items_are_reserved_all_or_none() {
    check(
        "create_sale('x', 3) -> created
        create_sale('y', 2, 1) -> created
        reserve_all('{y,x}', '{1,2}', 'ann') -> reserved {#1,#2} -
        reserve_all('{x,y}', '{1,1}', 'ann') -> limit_reached - y
        reserve_all('{y,x}', '{1,2}', 'bob') -> sold_out - x
        reserve_all('{x,x}', '{1,1}', 'bob') -> sold_out - x
        reserve_all('{x,nix}', '{1,1}', 'bob') -> unknown_item - nix
        sale('x') -> x 1 2 0 - - - -
        sale('y') -> y 1 1 0 1 - - -
        cancel_batch(array[#1, #2]::uuid[]) -> cancelled | cancelled
        sale('x') -> x 3 0 0 - - - -
        reserve_all('{}', '{}', 'bob') -> 22023
        reserve_all('{x,y}', '{1}', 'bob') -> 22023
        reserve_all('{x}', '{0}', 'bob') -> 22023
        reserve_all(null, '{1}', 'bob') -> 22004
        reserve_all('{x}', '{1}', null) -> 22004",
    );
}

#[test]
fn a_hold_that_expires_gives_back_stock_and_limit() {
    let (_database, session) = check(
        "create_sale('x', 2, 2, null, null, '50 ms') -> created
        reserve('x', 'ann', 2) -> reserved #1 0",
    );
    session.until("every(expires_at < clock_timestamp()) from hotrow.reservation");
    // No call has released the hold yet, but it already counts as remaining.
    check_in(&session, "sale('x') -> x 2 0 0 2 - - 00:00:00.05\nreserve('x', 'ann', 1) -> reserved #1 1");
    assert_eq!(session.value("select quantity from hotrow.buyer where buyer = 'ann'"), "1");
    assert_eq!(
        session.ask("select status from hotrow.reservation order by reserved_at").unwrap(),
        ["expired", "held"]
    );
}

#[test]
fn an_expired_hold_is_never_confirmed_cancelled_or_extended() {
    let (_database, session) = check(
        "create_sale('x', 2, null, null, null, '50 ms') -> created
        reserve('x', 'ann', 2) -> reserved #1 0",
    );
    session.until("every(expires_at < clock_timestamp()) from hotrow.reservation");
    let id = session.value("select reservation_id from hotrow.reservation");
    for released in [false, true] {
        check_in(
            &session,
            &format!(
                "confirm('{id}') -> expired
                cancel('{id}') -> expired
                extend('{id}', '1 hour') -> expired -
                expire_holds() -> {}",
                if released { 0 } else { 1 }
            ),
        );
    }
    check_in(&session, "restock('x', 1) -> restocked 3\nsale('x') -> x 3 0 0 - - - 00:00:00.05");
}

#[test]
fn restock_counts_expired_holds() {
    let (_database, session) = check(
        "create_sale('x', 1, null, null, null, '50 ms') -> created
        reserve('x', 'ann') -> reserved #1 0",
    );
    session.until("every(expires_at < clock_timestamp()) from hotrow.reservation");
    check_in(&session, "restock('x', 1) -> restocked 2\nsale('x') -> x 2 0 0 - - - 00:00:00.05");
}

#[test]
fn extending_only_ever_lengthens_a_hold() {
    let (_database, session) = check(
        "create_sale('x', 2, null, null, null, '1 hour') -> created
        reserve('x', 'ann') -> reserved #1 1",
    );
    let id = session.value("select reservation_id from hotrow.reservation");
    let left = "select extract(epoch from expires_at - reserved_at)::int / 60 from hotrow.reservation";
    session.run(&format!("select hotrow.extend('{id}', '1 minute')"));
    assert_eq!(session.value(left), "60");
    session.run(&format!("select hotrow.extend_batch(array['{id}', '{id}']::uuid[], '{{2 hours,1 hour}}')"));
    assert_eq!(session.value(left), "120");
    check_in(&session, "extend(gen_random_uuid(), '0') -> 22023\nextend(gen_random_uuid(), null) -> 22004");
    check_in(
        &session,
        "extend_batch('{}', null) -> nothing\nextend_batch(array[gen_random_uuid()], null) -> 22023",
    );
}

#[test]
fn invalid_arguments_are_refused() {
    check(
        "create_sale('x', 9) -> created
        reserve('x', 'ann', 0) -> 22023
        reserve('x', 'ann', -1) -> 22023
        reserve('x', 'ann', -9223372036854775808) -> 22023
        reserve('x', 'ann', 9223372036854775807) -> sold_out - 9
        reserve('x', 'ann', null) -> 22004
        reserve('x', null) -> 22004
        reserve(null, 'ann') -> 22004
        reserve('x', 'ann', 1, null, null) -> 22004
        reserve('', 'ann') -> 22023
        reserve('x', '') -> 22023
        reserve(repeat('x', 10240), 'ann') -> 22023
        reserve('x', repeat('x', 10240)) -> 22023
        reserve_batch('{x,x}', '{ann}') -> 22023
        reserve_batch('{x,x}', null) -> 22004
        reserve_batch('{x,x}', '{ann,bob}', '{1,0}') -> 22023
        sale('x') -> x 9 0 0 - - - -
        sale('nix') -> nothing
        restock('x', 0) -> 22023
        restock('x', null) -> 22004
        restock('x', 9223372036854775807) -> 22023
        create_sale('y', -1) -> 22023
        create_sale('y', null) -> 22004
        create_sale('y', 1, 0) -> 22023
        create_sale('y', 1, null, '2030-01-02', '2030-01-02') -> 22023
        create_sale('y', 1, null, null, null, '0') -> 22023
        create_sale('y', 1, null, null, null, '7 days') -> 22023
        create_sale('', 1) -> 22023
        confirm(null) -> 22004
        cancel(null) -> 22004
        extend(null, '1 s') -> 22004
        expire_holds(null) -> 22004",
    );
}
