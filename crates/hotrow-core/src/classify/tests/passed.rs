//! Tests queries that are passed through because of their text or for lack of a key, and the text of the
//! reason.

use super::*;

#[test]
fn statements_without_a_row() {
    check_passed(&[
        ("update inv set stock = 0", "no WHERE"),
        ("update inv set stock = 0 where id > 5", "no WHERE"),
        ("update inv set stock = 0 where id = 5 or id = 6", "no WHERE"),
        ("update inv set stock = 0 where not (id = 5)", "no WHERE"),
        ("update inv set stock = 0 where id = stock", "no WHERE"),
        ("update inv set stock = 0 where id = $1 + 1", "no WHERE"),
        ("update inv set stock = 0 where id = -5", "no WHERE"),
        ("update inv set stock = 0 where id not in (1)", "no WHERE"),
        ("update inv set stock = 0 where id in (1, $1 + 1)", "no WHERE"),
        ("update inv set stock = 0 where id in (1, stock)", "no WHERE"),
        ("update inv set stock = 0 where id <> any($1)", "no WHERE"),
        ("update inv set stock = 0 where id = all($1)", "no WHERE"),
        ("update inv set stock = 0 where id = any('{{1},{2}}')", "no WHERE"),
        ("update inv set stock = 0 where id = any(array[array[1], array[2]])", "no WHERE"),
        ("update inv set stock = 0 where id = any($1 || $2)", "no WHERE"),
        ("update inv set stock = 0 where (id, stock) in ((1, 2))", "no WHERE"),
        ("update inv set stock = 0 where (id = $1) is true", "no WHERE"),
        ("update inv set stock = 0 where (id, stock) = ($1, $2)", "no WHERE"),
        ("update inv set stock = 0 where id = null", "no WHERE"),
        ("update inv set stock = 0 where stock = $1", "no unique index of inv"),
        ("update line set quantity = 0 where order_id = $1", "no unique index of line"),
        ("update log set message = $2 where message = $1", "no unique index of log"),
        ("delete from inv", "no WHERE"),
        ("delete from line where no = 1", "no unique index"),
        ("select * from inv", "no WHERE"),
        ("select * from inv where lower(sku) = $1", "no WHERE"),
        ("select * from log where at = $1", "no unique index"),
        ("select * from missing where id = 1", "table missing was not found"),
        ("update inv set note = 'x' where idd = 1", "idd is not a column"),
    ]);
}

#[test]
fn more_than_one_row_or_table() {
    check_passed(&[
        ("select * from inv where id = any(select 1)", "a subquery"),
        ("select * from inv where id = any(array(select 1))", "a subquery"),
        ("select * from inv where id in (select 1)", "a subquery"),
        ("select * from inv where id in (1, 2) limit 1", "LIMIT, OFFSET or FETCH of several rows"),
        ("select * from inv where id = any($1) offset 1", "LIMIT, OFFSET or FETCH of several rows"),
        (
            "select * from inv where id = any($1) fetch first row only",
            "LIMIT, OFFSET or FETCH of several rows",
        ),
        ("select * from inv where id = 1 and sku = any(secret($1))", "secret is not known"),
        ("update inv set stock = 0 where id = 1 and stock #= any($1)", ""),
        ("select * from inv i join users u on u.id = i.id where i.id = 1", "a join"),
        ("select * from inv, users where inv.id = 1", "a join"),
        ("select * from inv where id = (select 1)", "a subquery"),
        ("select * from inv where id = 1 and exists (select 1)", "a subquery"),
        ("select * from inv where id = 1 and sku in (select 'a')", "a subquery"),
        ("select (select 1) from inv where id = 1", "a subquery"),
        ("select array(select 1)", "a subquery"),
        ("update inv set stock = (select 1) where id = 1", "a subquery"),
        ("update inv set (stock, sold) = (select 1, 2) where id = 1", "a subquery"),
        ("update inv set stock = 1 from users u where inv.id = 1 and u.id = 1", "UPDATE with FROM"),
        ("delete from inv using users where inv.id = 1", "DELETE with USING"),
        ("insert into inv select * from inv", "INSERT from a query"),
        ("insert into inv (id) values ((select 1))", "a subquery"),
        ("with x as (select 1) select * from inv where id = 1", "WITH"),
        ("select * from generate_series(1, 2) where id = 1", "something other than a table"),
        ("select * from generate_series(1, 2)", "function generate_series has no rule"),
        ("select * from (select 1) x where id = 1", "a subquery"),
        ("select * from unnest(array[1]) x where x = 1", "something other than a table"),
        ("select * from inv tablesample system (1) where id = 1", "TABLESAMPLE"),
        ("select id from inv where id = 1 union select 2", "UNION"),
        ("values (1), (2)", "other than a plain SELECT"),
        ("table inv", ""),
        ("select * from inv where id = 1 order by id using <", "ORDER BY"),
        ("select * from inv where id = 1 order by my_order(id)", "my_order is not known"),
        ("select * from inv where id = 1 order by xmin", "system column"),
        ("select distinct id from inv where id = 1", "DISTINCT"),
        ("select id from inv where id = 1 group by id", "GROUP BY"),
        ("select 1 from inv where id = 1 having true", "HAVING"),
        ("select count(*) from inv where id = 1", "aggregate"),
        ("select count(id) from inv where id = 1", "count reads or returns more than one row"),
        ("select sum(stock) filter (where true) from inv where id = 1", "aggregate"),
        ("select generate_series(1, 3)", "more than one row"),
        ("select row_number() over () from inv where id = 1", "window"),
        ("select id from inv where id = 1 window w as (order by id)", "WINDOW"),
        ("select * from inv where id = 1 limit 1 + 1", "LIMIT"),
        ("select * from inv where id = 1 limit (select 1)", "a subquery"),
        ("select * from inv where id = 1 fetch first 1 rows with ties", "TIES"),
        ("select * into x from inv where id = 1", "SELECT INTO"),
    ]);
}

#[test]
fn locks_and_system_columns() {
    check_passed(&[
        ("select * from inv where id = 1 for update", "row lock"),
        ("select * from inv where id = 1 for share nowait", "row lock"),
        ("select * from inv where id = 1 for no key update skip locked", "row lock"),
        ("select * from inv i where id = 1 for no key update of i", "row lock"),
        ("select * from inv where id = 1 for key share", "row lock"),
        ("select xmin from inv where id = 1", "system column xmin"),
        ("select inv.XMAX from inv where id = 1", "system column xmax"),
        ("select \"ctid\" from inv where id = 1", "system column ctid"),
        ("update inv set stock = 1 where id = 1 and xmin = $1", "system column xmin"),
        ("update inv set stock = 1 where ctid = '(0,1)'", "system column ctid"),
        ("update inv set stock = 1 where id = 1 returning cmin", "system column cmin"),
        ("select tableoid from inv where id = 1", "system column tableoid"),
        ("delete from inv where current of c", ""),
    ]);
}

#[test]
fn functions_that_depend_on_the_transaction_or_are_unknown() {
    check_passed(&[
        ("select txid_current()", "depends on the transaction"),
        ("select pg_current_xact_id()", "depends on the transaction"),
        ("select pg_backend_pid()", "depends on the connection"),
        ("select inet_client_addr()", "depends on the connection"),
        ("select current_query()", "depends on the connection"),
        ("select current_setting('x.y')", "reads the session's settings"),
        (
            "select set_config('a.b', 'c', false)",
            "set_config of a custom setting changes or reads the session",
        ),
        ("select lastval()", "sequence values"),
        ("select currval('s')", "sequence values"),
        ("select setval('s', 5)", "sets a sequence"),
        ("select pg_sleep(1)", "waits"),
        ("select pg_advisory_lock(1)", "advisory lock"),
        ("select pg_try_advisory_xact_lock(1)", "advisory lock"),
        ("select stock from inv where id = 1 and pg_try_advisory_xact_lock(1)", "advisory lock"),
        ("insert into inv values (1, pg_try_advisory_xact_lock(1)::int)", "advisory lock"),
        ("update inv set stock = 1 where id = 1 and pg_advisory_xact_lock(1) is null", "advisory lock"),
        ("select pg_notify('a', 'b')", "notifications"),
        ("select pg_catalog.txid_current()", "depends on the transaction"),
        ("select lo_create(0)", "lo_create is not known"),
        ("select dblink_exec('x', 'y')", "not known"),
        ("select query_to_xml('select 1', true, true, '')", "not known"),
        ("select my_function(1)", "my_function is not known"),
        ("select hotrow.increment('a')", "hotrow.increment is not known"),
        ("select other.lower('A')", "other.lower is not known"),
        ("select \"LOWER\"('A')", "LOWER is not known"),
        ("update inv set stock = my_function(stock) where id = 1", "my_function is not known"),
        ("insert into log values (now(), pg_backend_pid()::text)", "depends on the connection"),
        ("insert into inv (id) values (1) on conflict (id) do update set stock = f()", "f is not known"),
        ("select i.secret from inv i where i.id = 1", "secret is not a column"),
        ("select (i).secret from inv i where i.id = 1", "composite"),
        ("select i from inv i where i.id = 1", "i is not a column"),
        ("select inv.id from inv i where i.id = 1", "not belong to the table"),
    ]);
}

#[test]
fn casts_and_operators() {
    check_passed(&[
        ("select 'inv'::regclass", "cast to regclass"),
        ("update inv set note = 'x'::mood where id = 1", "cast to mood"),
        ("select * from inv where id = $1::public.my_id", "my_id"),
        ("select cast(1 as \"char\")", "char"),
        ("select pg_lsn '0/0'", "an unusual item"),
        ("select note 'x' from inv where id = 1", "an unusual item"),
        ("update inv set note = my_type 'x' where id = 1", "does not understand"),
        ("select id", "id is not a column"),
        ("select 1 operator(public.+) 2", "operator"),
        ("select 1 <-> 2", "<->"),
        ("select note ||-5 from inv where id = 1", "operator ||-"),
        ("select 1 =*2", "the operator =*"),
        ("update inv set stock = 1 where id == 1", "operator =="),
        ("select stock from inv where id = 1 and stock == 2", "operator =="),
    ]);
}

#[test]
fn conflicts_without_a_known_row() {
    check_passed(&[
        (
            "insert into inv (sku) values ($1) on conflict (id) do update set stock = 1",
            "ON CONFLICT would update",
        ),
        (
            "insert into inv (id) values ($1 + 1) on conflict (id) do update set stock = 1",
            "ON CONFLICT would update",
        ),
        (
            "insert into inv (id) values (1) on conflict on constraint nix do update set stock = 1",
            "would update",
        ),
        ("insert into users (id) values (default) on conflict (id) do update set name = 'x'", "would update"),
        ("insert into inv (id) values (1) on conflict (lower(sku)) do update set stock = 1", ""),
        ("insert into inv (id) values (1) on conflict (id) where stock > 0 do update set stock = 1", ""),
    ]);
}

#[test]
fn statements_that_the_parser_rejects() {
    check_passed(&[
        ("selec 1", "SELEC is not a SELECT"),
        ("select a b c from inv", "does not understand"),
        ("select 'a", "does not understand"),
        ("", "an empty statement"),
        ("-- nothing", "an empty statement"),
        ("select 1; select 2", "several statements"),
        ("update inv set stock = 1 where id = 1; commit", "several statements"),
        ("select 1\u{a0}from inv", "white space"),
        ("select 1 ||/* ' */ 2 -- '", "comment begins inside an operator"),
        ("merge into inv using users u on u.id = inv.id when matched then delete", "MERGE"),
        ("123", "does not understand"),
        ("select a.b.c.d from inv where id = 1", "not belong to the table"),
        ("select other.inv.id from public.inv where id = 1", "not belong to the table"),
        ("select public.inv.id from public.inv i where id = 1", "not belong to the table"),
        ("select * from a.b.inv where id = 1", "more than two parts"),
    ]);
}

#[test]
fn reasons_contain_no_constants() {
    for text in [
        "update inv set stock = 1 where id = 1 'secret'",
        "select 1 from inv where id = 1 order 'secret'",
        "select 1 from inv where id = 'secret''s' 'it''s secret'",
        "select 1 from inv where (id = $a$secret$a$ 4711)",
        "insert into inv values (1, 'secret'",
        "select 1 4711",
        "select e'secret' e'secret'",
        "with a as (select 'secret' 4711) select 1",
        "4711",
        "update inv set 'secret' = 1",
        "select interval 'secret' 4711 'secret'",
        "select cast('secret' as 4711)",
    ] {
        let reason = match analyse(text) {
            Analysis::Pass(pass) => pass.reason.to_string(),
            other => panic!("{text}: {other:?}"),
        };
        assert!(!reason.contains("secret") && !reason.contains("4711"), "{text}: {reason}");
    }
}

#[test]
fn explanations_of_settings_say_until_when_the_session_keeps_a_connection() {
    for (sql, remedy) in [
        ("reset datestyle", "packed with those of clients that have the same settings"),
        ("select set_config('datestyle', 'iso', false)", "packed with those of clients that have"),
        ("set app.tenant = 'x'", "use SET LOCAL in the transaction that needs the setting"),
        ("set App.Tenant to default", "until RESET ALL or DISCARD ALL"),
        ("select set_config('app.tenant', 'x', false)", "pass true as the third argument"),
        ("select set_config($1, 'x', true)", "write the setting's name as a constant"),
        ("reset app.tenant", "use RESET ALL or DISCARD ALL"),
        ("set Seed = 0.5", "no command takes the seed back"),
        ("set local seed = 0.5", "no command takes the seed back"),
        ("select setseed(0.5)", "no command takes the seed back"),
        ("select set_config('seed', '0.5', true)", "no command takes the seed back"),
        ("set role ann", "log in as that role"),
        ("set Role = 'ann'", "until RESET ROLE or DISCARD ALL"),
        ("set session authorization ann", "log in as that role"),
        ("set session_authorization = 'ann'", "log in as that role"),
        ("select set_config('role', 'ann', false)", "log in as that role"),
    ] {
        let text = explain(&analyse(sql), None, &[]);
        let found = text.lines().find_map(|line| line.strip_prefix("  instead   "));
        assert!(found.is_some_and(|found| found.contains(remedy)), "{sql}: {text}");
    }
}

#[test]
fn explanations_of_open_transactions_say_what_the_gateway_does() {
    for (sql, at_primary) in [
        ("begin", ""),
        ("start transaction read only", ""),
        ("begin isolation level serializable", " and the server is a primary"),
    ] {
        let text = explain(&analyse(sql), None, &[]);
        let start = format!("answered by the gateway, if it is a message of its own{at_primary}\n  then");
        assert!(text.starts_with(&start), "{text}");
        assert!(text.contains("the first statement takes a server connection"), "{text}");
        assert!(text.contains("use autocommit"), "{text}");
    }
    let explained = |sql: &str| {
        let Analysis::Candidate(candidate) = analyse(sql) else { panic!("{sql}") };
        let decision = decide(&candidate, &facts_of(&candidate), &[]);
        explain(&Analysis::Candidate(candidate), Some(&decision), &[])
    };
    let waits =
        "\n  waits     as the first statement of an open transaction: in the gateway, while two other";
    for sql in [
        "update inv set stock = 1 where id = 1",
        "delete from inv where id = $1",
        "insert into inv (id) values (1) on conflict (id) do nothing",
    ] {
        let text = explained(sql);
        assert!(text.starts_with("packed\n") && text.contains(waits), "{sql}: {text}");
    }
    let held_back = "\n  deferred  in a transaction, until COMMIT";
    for sql in ["update inv set stock = 1 where id = 1", "insert into inv (id) values ($1)"] {
        assert!(explained(sql).contains(held_back), "{sql}: {}", explained(sql));
    }
    for sql in [
        "delete from inv where id = $1",
        "update inv set stock = 1 where id = 1 returning stock",
        "update inv set stock = 1 where id in (1, 2)",
        "insert into inv (id) values (1) on conflict (id) do nothing",
        "insert into inv (id) values (1), (2)",
    ] {
        assert!(!explained(sql).contains(held_back), "{sql}: {}", explained(sql));
    }
    let locks = explained("select stock from inv where id = 7 for update");
    assert!(locks.starts_with("passed through\n") && locks.contains(waits), "{locks}");
    assert!(locks.contains("  key       id = 7\n"), "{locks}");
    for sql in [
        "select stock from inv where id = 1",
        "update inv set stock = 1 where id in (1, 2)",
        "update inv set stock = 1 where stock = 2",
    ] {
        assert!(!explained(sql).contains("  waits "), "{sql}: {}", explained(sql));
    }
}

/// What `hotrow explain` says to write instead of a statement on a table that is changed like this.
fn instead(sql: &str, change: fn(&mut TableFacts)) -> Option<String> {
    let analysis = analyse(sql);
    let decision = match &analysis {
        Analysis::Candidate(candidate) => {
            let mut facts = facts_of(candidate);
            facts.table.iter_mut().for_each(change);
            Some(decide(candidate, &facts, &[]))
        }
        _ => None,
    };
    let text = explain(&analysis, decision.as_ref(), &[]);
    assert!(text.starts_with("passed through\n"), "{sql}: {text}");
    text.lines().find_map(|line| line.strip_prefix("  instead   ").map(str::to_owned))
}

#[test]
fn explanations_name_a_form_that_can_be_packed() {
    for (sql, remedy) in [
        ("update inv set stock = 1", "nothing, if the statement is for several rows"),
        ("delete from line where no = 1", "nothing, if several rows can have the compared values"),
        ("commit", "use autocommit"),
        ("savepoint a", "without savepoints"),
        ("set datestyle = iso", "packed with those of clients that have the same settings"),
        ("do $$ begin update inv set stock = 1; end $$", "send its statements instead, all in one message"),
        ("call restock(1)", "send its statements instead"),
        ("select * from inv where id = 1 for update", "UPDATE ... WHERE key = value AND condition"),
        ("update inv set stock = (select 1) where id = 1", "repeat the subquery's conditions"),
        ("insert into inv (id) values ((select 1))", "send them in VALUES"),
        ("insert into inv (id) select id from line", "send them in VALUES"),
        ("update inv set stock = l.no from line l where l.sku = inv.sku", "all in one message"),
        ("with a as (delete from inv where id = 1) delete from inv where id = 2", "all in one message"),
        ("update inv set note = timestamptz 'now' where id = 1", "use now()"),
        ("select my_function(1)", "an IMMUTABLE function"),
        ("select * from hotrow.other(1)", "docs/merge-rules.md says which calls are merged"),
        ("select currval('s')", "use RETURNING"),
        ("select pg_advisory_lock(1)", "write pg_try_advisory_xact_lock into the WHERE"),
        ("update inv set note = current_setting('a.b') where id = 1", "as a parameter"),
        ("insert into inv (id) values (1) on conflict (sku) do update set stock = 1", "ON CONFLICT (column"),
    ] {
        let found = instead(sql, |_| {}).unwrap_or_else(|| panic!("no remedy: {sql}"));
        assert!(found.contains(remedy), "{sql}: {found}");
    }
    for sql in [
        "create table x (id int)",
        "truncate inv",
        "notify news",
        "lock table inv",
        "select pg_backend_pid()",
        "select txid_current()",
        "select * from nowhere where id = 1",
        "vacuum",
    ] {
        assert_eq!(instead(sql, |_| {}), None, "{sql}");
    }
}

#[test]
fn there_is_nothing_to_do_about_statements_that_read_many_rows_and_about_casts_of_drivers() {
    for sql in [
        "copy inv from stdin",
        "table inv",
        "values (1)",
        "select count(*) from inv",
        "select count(*) from inv where id = 1",
        "select * from inv order by id desc limit 10",
        "select * from inv where sold = $1",
        "select * from inv where sku like 'a%'",
        "select * from inv i join users u on u.id = i.id where i.id = 1",
        "select * from inv i, users u where u.id = i.id",
        "select * from inv where id in (select order_id from line)",
        "select distinct sku from inv",
        "select id from inv union select id from users",
        "select sku, sum(stock) from inv group by sku",
        "with a as (select 1) select * from a",
        "delete from users where created_at < now() - interval '1 day'",
        "update users set is_active = $1::custom_enum where id = $2",
    ] {
        let found = instead(sql, |_| {}).unwrap_or_else(|| panic!("no remedy: {sql}"));
        assert!(found.starts_with("nothing"), "{sql}: {found}");
    }
    let view = instead("select * from inv where id = 1", |table| table.relkind = 'm').unwrap_or_default();
    assert!(!view.contains("instead of the view"), "{view}");
}

#[test]
fn a_statement_with_skip_locked_is_never_told_to_read_first() {
    let claim = "select inv.id from inv join users on users.id = inv.id order by 1 limit 1 for update of inv skip locked";
    for sql in [
        claim.to_owned(),
        format!("update inv set stock = 0 where id = ({claim}) returning *"),
        format!("delete from inv where id = any (array ({claim})) returning id"),
        format!(
            "with next as ({claim}) update inv set stock = 0 from next where inv.id = next.id returning *"
        ),
        format!("with next as materialized ({claim}) delete from inv using next where inv.id = next.id"),
        "select id from inv where id = 1 for no key update skip locked".to_owned(),
    ] {
        let found = instead(&sql, |_| {}).unwrap_or_else(|| panic!("no remedy: {sql}"));
        assert!(found.contains("docs/queues.md"), "{sql}: {found}");
    }
}

#[test]
fn explanations_name_a_change_of_the_table() {
    type Change = fn(&mut TableFacts);
    let changes: &[(Change, &str)] = &[
        (|table| table.relkind = 'v', "name the table instead of the view"),
        (|table| table.is_partition = true, "name the partitioned table"),
        (|table| table.deferrable = true, "NOT DEFERRABLE"),
        (|table| table.partition_key = vec!["stock".to_owned()], "leave the column out of SET"),
        (|table| table.triggers.push(catalog::trigger("begin perform f(); end")), "its own row only"),
        (|table| table.expressions.push("CHECK (f(id))".to_owned()), "an IMMUTABLE function"),
    ];
    for (change, remedy) in changes {
        let found = instead("update inv set stock = 1 where id = $1", *change);
        let found = found.unwrap_or_else(|| panic!("no remedy: {remedy}"));
        assert!(found.contains(remedy), "{remedy}: {found}");
    }
}
