//! Callers: the rights of the group role's members and of other roles, and calls with a hostile search_path.

use crate::script::check_in;
use crate::server::Database;

#[test]
fn members_can_call_but_not_read_and_other_roles_cannot_call() {
    let database = Database::migrated();
    let member = database.login("member", true);
    check_in(
        &member,
        "increment('a') -> 1 1 ok
        increment_batch('{a}') -> 2 2 ok
        drain('a') -> 2 3 ok
        create_counter('l', 'log') -> created
        increment('l') -> 1 1 ok
        create_sale('x', 2) -> created
        reserve('x', 'ann', 1, gen_random_uuid()) -> reserved #1 1
        confirm(#1) -> confirmed
        sale('x') -> x 1 0 1 - - - -
        rotate_history() -> 42501
        forget_requests() -> 42501
        add_merge_rule('f(int)', 'g(int[])', 'x') -> 42501
        apply_commands('increment', '{a}', '{1}', null, false) -> 42501
        apply_reservations('{x}', '{ann}', '{-5}', null, null, false) -> 42501
        memory('x', 'a', '1', '1', '1') -> 42501",
    );
    assert_eq!(member.ask("select from hotrow.command_log"), Err("42501".to_owned()));
    for table in [
        "counter",
        "ledger",
        "ledger_0",
        "log_entry",
        "snapshot",
        "sale",
        "reservation",
        "buyer",
        "request",
        "setting",
        "merge_rule",
        "pack_rule",
        "migration",
        "history_part",
    ] {
        for sql in ["select from hotrow.$", "insert into hotrow.$ default values", "delete from hotrow.$"] {
            assert_eq!(member.ask(&sql.replace('$', table)), Err("42501".to_owned()), "{sql} {table}");
        }
    }
    let stranger = database.login("stranger", false);
    check_in(&stranger, "increment('a') -> 42501\nsale('x') -> 42501\nmerge_rules('{nothing}') -> []");
}

#[test]
fn a_hostile_search_path_changes_nothing() {
    let database = Database::migrated();
    let owner = database.session("postgres");
    // Objects with the names that the functions use, in the two places where a caller can create them.
    owner.run("create table public.stolen (who text); grant insert on public.stolen to public; grant create on schema public to public");
    let member = database.login("hostile", true);
    for schema in ["public", "pg_temp"] {
        member.run(&format!(
            "create function {schema}.clock_timestamp() returns timestamptz language plpgsql as $$ begin
                insert into public.stolen values (current_user); return '2000-01-01'; end $$;
            create function {schema}.cardinality(text[]) returns int language plpgsql as $$ begin
                insert into public.stolen values (current_user); return 0; end $$;
            create function {schema}.gen_random_uuid() returns uuid language plpgsql as $$ begin
                insert into public.stolen values (current_user); return null; end $$;
            create function {schema}.steal(text, text) returns boolean language plpgsql as $$ begin
                insert into public.stolen values (current_user); return true; end $$;
            create operator {schema}.= (leftarg = text, rightarg = text, function = {schema}.steal);
            create operator {schema}.<> (leftarg = text, rightarg = text, function = {schema}.steal);"
        ));
    }
    member.run("create temp table counter (counter text, strategy text, value bigint); create temp table setting (one boolean)");
    member.run("create type pg_temp.uuid as (x int)");
    member.run("set search_path = pg_temp, public, pg_catalog");
    // A function without a pinned search_path runs the traps, which shows that they work.
    owner.run(
        "create function public.naive() returns timestamptz language plpgsql security definer as $$ begin
            return clock_timestamp(); end $$",
    );
    member.run("select public.naive()");
    assert_eq!(owner.ask("delete from public.stolen returning who").unwrap(), ["postgres"]);
    check_in(
        &member,
        "increment_batch('{b,a,b}') -> 1 1 ok | 1 1 ok | 2 2 ok
        increment('a', 1, '00000000-0000-0000-0000-000000000001') -> 2 2 ok
        create_counter('l', 'log') -> created
        increment('l') -> 1 1 ok
        create_sale('x', 2, 2, null, null, '1 hour') -> created
        reserve_batch('{x,x}', '{ann,bob}') -> reserved #1 1 | reserved #2 0
        confirm(#1) -> confirmed
        cancel(#2) -> cancelled
        reserve_all('{x}', '{1}', 'ann') -> reserved {#3} -
        sale('x') -> x 0 1 1 2 - - 01:00:00
        merge_rules('{nothing}') -> []",
    );
    assert_eq!(owner.ask("select who from public.stolen").unwrap(), Vec::<String>::new());
}
