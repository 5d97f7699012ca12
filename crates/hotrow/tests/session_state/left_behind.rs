//! State that a statement leaves in its session: the session keeps its connection, and packs again after it has cleared
//! the state.

use hotrow_testkit::raw::{Raw, bind, execute, parse, query, sync, tags};
use hotrow_testkit::{rows, sqlstate, until, value};

use crate::Stage;

/// Statements that change settings, a query for the setting, its value, and a statement that resets it. The session moves
/// to the pool with the setting.
const SETTINGS: &[(&str, &str, &str, &str)] = &[
    ("set work_mem = '5MB'", "show work_mem", "5MB", "reset all"),
    ("set work_mem to '5MB'; set time zone 'Asia/Tokyo'", "show work_mem", "5MB", "reset work_mem"),
    ("set time zone 'Asia/Tokyo'", "show timezone", "Asia/Tokyo", "discard all"),
    (
        "begin; set local work_mem = '3MB'; set work_mem = '5MB'; commit",
        "show work_mem",
        "5MB",
        "set work_mem to default",
    ),
    (
        "begin; set work_mem = '9MB'; savepoint s; set work_mem = '5MB'; rollback to s; commit",
        "show work_mem",
        "9MB",
        "reset all",
    ),
    ("select set_config('work_mem', '6MB', false)", "show work_mem", "6MB", "discard all"),
    ("select sneaky()", "show work_mem", "7MB", "discard all"),
    ("do $$ begin perform sneaky(); end $$", "show work_mem", "7MB", "discard all"),
    ("set names 'sql_ascii'", "show client_encoding", "SQL_ASCII", "set names default"),
];

/// A statement that leaves state, a query for the state, its answer, and a statement that clears the state.
const LEFT_BEHIND: &[(&str, &str, &str, &str)] = &[
    (
        "set session characteristics as transaction isolation level serializable",
        "show transaction_isolation",
        "serializable",
        "reset all",
    ),
    ("set names 'latin1'", "show client_encoding", "LATIN1", "set names default"), // not packed in this encoding
    ("set role pg_monitor", "select current_user", "pg_monitor", "discard all"),
    ("set session authorization pg_monitor", "select session_user", "pg_monitor", "discard all"),
    ("create temporary table left_behind as select 4 as n", "select n from left_behind", "4", "discard temp"),
    ("create table pg_temp.left_behind as select 4 as n", "select n from left_behind", "4", "discard all"),
    ("select 4 as n into temporary left_behind", "select n from left_behind", "4", "discard all"),
    (
        "select pg_advisory_lock(11)",
        "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
        "1",
        "discard all",
    ),
    ("select pg_try_advisory_lock(11)", "select pg_advisory_unlock(11)", "t", "discard all"),
    ("prepare left_behind as select 8", "execute left_behind", "8", "discard all"),
    (
        "begin; declare left_behind cursor with hold for select generate_series(1, 100); commit",
        "fetch absolute 9 left_behind",
        "9",
        "close all",
    ),
    ("prepare left_behind as select 8", "select count(*) from pg_prepared_statements", "1", "deallocate all"),
    ("listen left_behind", "select * from pg_listening_channels()", "left_behind", "unlisten *"),
    (
        "set app.left_behind = 'x'",
        "select coalesce(current_setting('app.left_behind', true), '')",
        "x",
        "discard all",
    ),
];

#[tokio::test]
async fn state_stays_with_its_session_until_it_is_cleared() {
    let stage = Stage::new(&[]).await;
    let sneaky = "create function sneaky() returns text language sql as $$ select set_config('work_mem', '7MB', false) $$";
    stage.direct.batch_execute(sneaky).await.unwrap();
    let rights =
        format!("grant usage on schema {0} to pg_monitor; grant all on {0}.t to pg_monitor", stage.schema);
    stage.direct.batch_execute(&rights).await.unwrap();
    // A session that listens needs no connection of its own.
    let left_behind = LEFT_BEHIND.iter().map(|case| (case, case.0.starts_with("listen")));
    for ((leaves, look, there, clears), packs) in SETTINGS.iter().map(|case| (case, true)).chain(left_behind)
    {
        let (client, other) = (stage.client().await, stage.client().await);
        let by_default = rows(&other, look).await.unwrap_or_default();
        assert!(stage.packs(&client).await, "before {leaves}");
        client.simple_query(leaves).await.unwrap_or_else(|error| panic!("{leaves}: {error:?}"));
        assert_eq!(stage.packs(&client).await, packs, "after {leaves}");
        // Other clients take and return connections in the meantime and do not see the state.
        assert_eq!(rows(&other, look).await.unwrap_or_default(), by_default, "another after {leaves}");
        assert_eq!(value(&client, look).await, *there, "{leaves}");
        assert_eq!(rows(&other, look).await.unwrap_or_default(), by_default, "another after {leaves}");
        assert!(stage.packs(&stage.client().await).await, "another after {leaves}");

        client.simple_query(clears).await.unwrap_or_else(|error| panic!("{clears}: {error:?}"));
        assert!(stage.packs(&client).await, "after {clears} following {leaves}");
        for client in [&client, &other] {
            assert_eq!(
                rows(client, look).await.unwrap_or_default(),
                by_default,
                "after {clears} following {leaves}"
            );
        }
    }
}

#[tokio::test]
async fn state_ends_with_its_client() {
    let stage = Stage::new(&[]).await;
    let count = "select count(*) from pg_locks where locktype = 'advisory' and objid = 4712";
    let client = stage.client().await;
    client.batch_execute("set work_mem = '5MB'; select pg_advisory_lock(4712)").await.unwrap();
    assert_eq!(value(&stage.direct, count).await, "1");
    drop(client);
    until("the lock is gone", async || value(&stage.direct, count).await == "0").await;
    for _ in 0..3 {
        assert_ne!(value(&stage.client().await, "show work_mem").await, "5MB");
    }
}

#[tokio::test]
async fn discard_all_returns_the_connection_to_the_pool() {
    let stage = Stage::new(&[]).await;
    let held = "select count(*) from pg_stat_activity where application_name = 'keeper'";
    let (client, other) = (stage.named("keeper").await, stage.named("other").await);
    client.batch_execute("set work_mem = '5MB'").await.unwrap();
    let backend = value(&client, "select pg_backend_pid()").await;
    assert_eq!(value(&client, "select pg_backend_pid()").await, backend);
    assert_ne!(value(&other, "select pg_backend_pid()").await, backend);
    assert_eq!(value(&stage.direct, held).await, "1");
    client.batch_execute("discard all").await.unwrap();
    let (mut served, mut clients) = (Vec::new(), Vec::new());
    // More clients than connections that can be idle, because the gateway's own queries have used some, too.
    for _ in 0..12 {
        let late = stage.named("late").await;
        late.batch_execute("begin").await.unwrap();
        served.push(value(&late, "select pg_backend_pid()").await);
        assert_ne!(value(&late, "show work_mem").await, "5MB");
        assert_eq!(value(&late, "show application_name").await, "late");
        clients.push(late); // keeps its connection
    }
    assert!(served.contains(&backend), "the connection serves another client");
    assert_eq!(value(&stage.direct, held).await, "0", "the connection has the other client's name now");
}

#[tokio::test]
async fn statements_prepared_by_the_driver_outlive_deallocate_of_others() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let update = client.prepare("update t set n = n + $1 where id = 1 returning n").await.unwrap();
    client.batch_execute("prepare mine as select 1; deallocate mine").await.unwrap();
    assert_eq!(client.query_one(&update, &[&1]).await.unwrap().get::<_, i32>(0), 1);
    client.batch_execute("deallocate all").await.unwrap();
    let refused = client.query_one(&update, &[&1]).await.unwrap_err();
    assert_eq!(
        sqlstate(&refused),
        "26000",
        "DEALLOCATE ALL includes the driver's statements, as on the server"
    );
}

/// A trigger has removed the driver's statement, so the connection is closed when the session needs it no longer.
#[tokio::test]
async fn settings_outlive_a_connection_that_serves_no_other_client() {
    let stage = Stage::new(&[]).await;
    let forgets = "create function forget() returns trigger language plpgsql as
                       $$begin execute 'deallocate all'; return new; end$$;
                   create table u (n int);
                   create trigger forget before insert on u for each row execute function forget()";
    stage.direct.batch_execute(forgets).await.unwrap();
    let client = stage.client().await;
    client.batch_execute("prepare mine as select 1").await.unwrap();
    let number = client.prepare("select 1").await.unwrap();
    client.query_one(&number, &[]).await.unwrap();
    client.batch_execute("insert into u values (1)").await.unwrap();
    assert_eq!(sqlstate(&client.query_one(&number, &[]).await.unwrap_err()), "26000");
    let backend = value(&client, "select pg_backend_pid()").await;
    client.batch_execute("set work_mem = '5MB'").await.unwrap();
    client.batch_execute("deallocate all").await.unwrap();
    assert_eq!(value(&client, "show work_mem").await, "5MB");
    assert_ne!(value(&client, "select pg_backend_pid()").await, backend);
    assert!(stage.packs(&client).await);
}

#[tokio::test]
async fn packing_can_be_switched_off_and_on() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    assert_eq!(value(&client, "show hotrow.pack").await, "on");
    assert!(stage.packs(&client).await);
    for (off, on) in [
        ("set hotrow.pack = off", "set hotrow.pack = on"),
        ("set hotrow.pack to 'false'", "reset hotrow.pack"),
        ("SET SESSION hotrow.pack = 0;", "set hotrow.pack to default"),
    ] {
        client.simple_query(off).await.unwrap();
        assert_eq!(value(&client, "show hotrow.pack").await, "off", "{off}");
        assert!(!stage.packs(&client).await, "{off}");
        assert!(!stage.packs(&client).await, "{off}");
        let backend = value(&client, "select pg_backend_pid()").await;
        assert_eq!(
            value(&client, "select pg_backend_pid()").await,
            backend,
            "the session has its own connection"
        );
        client.simple_query(on).await.unwrap();
        assert_eq!(value(&client, "show hotrow.pack").await, "on", "{on}");
        assert!(stage.packs(&client).await, "{on}");
    }
    // A driver that prepares every statement.
    client.execute("set hotrow.pack = off", &[]).await.unwrap();
    assert!(!stage.packs(&client).await);
    assert!(stage.packs(&stage.client().await).await, "each session has its own setting");
}

/// The server's setting has the same values, because PostgreSQL accepts any name with a dot.
#[tokio::test]
async fn the_gateways_settings_follow_transactions_like_those_of_the_server() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let (change, back) = ("set hotrow.pack = off", "rollback to a");
    let table = "create table u (a int primary key deferrable initially deferred)";
    stage.direct.batch_execute(table).await.unwrap();
    for texts in [
        &["begin", change, "rollback"][..],
        &["begin", change, "commit"],
        &["begin", "set local hotrow.pack = off", "commit"],
        &["begin", "select 1", change, "rollback"],
        &["begin", "select 1", "set local hotrow.pack = off", change, "commit"],
        &["begin", change, "savepoint a", "set hotrow.pack = on", back, "commit"],
        &["begin", "savepoint a", change, "savepoint b", back, "commit"],
        &[
            "begin",
            "savepoint a",
            change,
            "release a",
            "commit and chain",
            "set hotrow.pack = on",
            "rollback",
        ],
        &["begin", change, "select 1 / 0", "set hotrow.pack = on", "show hotrow.pack", "commit"],
        &["begin", "savepoint a", change, "select 1 / 0", back, "show hotrow.pack", "commit"],
        &["begin", change, "insert into u values (1), (1)", "commit"],
    ] {
        stage.direct.batch_execute("set hotrow.pack = on").await.unwrap();
        client.batch_execute("set hotrow.pack = on").await.unwrap();
        for text in texts {
            let code = |result: Result<(), tokio_postgres::Error>| {
                result.map_err(|error| sqlstate(&error).to_owned())
            };
            let through = code(client.batch_execute(text).await);
            assert_eq!(through, code(stage.direct.batch_execute(text).await), "{text} of {texts:?}");
            if client.batch_execute("select 1").await.is_ok() {
                let shown = value(&client, "show hotrow.pack").await;
                assert_eq!(
                    shown,
                    value(&stage.direct, "show hotrow.pack").await,
                    "after {text} of {texts:?}"
                );
            }
        }
    }
    for fails in [false, true] {
        client.batch_execute("set hotrow.pack = on").await.unwrap();
        client.batch_execute("begin").await.unwrap();
        client.execute(change, &[]).await.unwrap();
        assert_eq!(value(&client, "show hotrow.pack").await, "off", "a driver has prepared the SET");
        if fails {
            client.batch_execute("select 1 / 0").await.unwrap_err();
        }
        client.batch_execute("commit").await.unwrap();
        assert_eq!(value(&client, "show hotrow.pack").await, if fails { "on" } else { "off" });
    }
}

#[tokio::test]
async fn state_cleared_in_a_pipeline_is_cleared_when_the_command_has_run() {
    let stage = Stage::new(&[]).await;
    let options = format!("-c search_path={}", stage.schema);
    let mut raw = Raw::login(stage.gateway.port(), &[("options", &options)]).await;
    let (creates, fails) = ("create temp table left_behind ()", "select 1 / 0");
    for (texts, answers, packs) in [
        // An error before the clearing command, whose ReadyForQuery has not arrived when the command is sent.
        (&[creates, fails, "discard temp"][..], "CZEZCZ", true),
        // A clearing command that fails clears nothing.
        (&[creates, "begin", fails, "discard all", "rollback"], "CZCZEZEZCZ", false),
        // State from a later statement stays.
        (&["discard all", creates], "CZCZ", false),
        (&["discard all"], "CZ", true),
    ] {
        let all: Vec<u8> = texts.iter().flat_map(|text| query(text)).collect();
        raw.send(&all).await;
        let replies = raw.until_ready(texts.len()).await;
        assert_eq!(tags(&replies).replace('S', ""), answers, "{texts:?}");
        let before = stage.gateway.metric("packed_units_total");
        assert_eq!(tags(&raw.query(crate::UPDATE).await), "TDCZ");
        assert_eq!(stage.gateway.metric("packed_units_total") > before, packs, "{texts:?}");
    }
}

/// Objects that change a setting without a sign of it in the statement: a view, an operator, a function in the notation
/// of a column, a cast, a default, a trigger.
const HIDDEN: &str = "
    create function hide(text) returns text language sql as $$ select set_config('work_mem', $1, false) $$;
    create view v as select hide('7MB') as s;
    create function by_operator(int, int) returns bool language sql as $$ select hide('7MB') is not null $$;
    create operator === (leftarg = int, rightarg = int, function = by_operator);
    create function like_column(t) returns text language sql as $$ select hide('7MB') $$;
    create function declared_immutable(int) returns text immutable language sql as $$ select hide('7MB') $$;
    create table by_default (id int primary key, v text default ('7MB' ##! 1));
    create table by_trigger (id int primary key, v text);
    insert into by_trigger values (1);
    create function trigger_hides() returns trigger language plpgsql as $$
        begin new.v := '7MB' ##! 1; return new; end $$;
    create trigger hides before update on by_trigger for each row execute function trigger_hides()";

#[tokio::test]
async fn hidden_changes_of_settings_stay_with_their_session_too() {
    let stage = Stage::new(&[]).await;
    let operator = "create function hide_by(text, int) returns text language sql as $$ select set_config('work_mem', $1, false) $$;
        create operator ##! (leftarg = text, rightarg = int, function = hide_by)";
    stage.direct.batch_execute(operator).await.unwrap();
    stage.direct.batch_execute(HIDDEN).await.unwrap();
    let look = "show work_mem";
    let by_default = value(&stage.direct, look).await;
    for leaves in [
        "select * from v",
        "select 1 === 2",
        "select t.like_column from t where id = 1",
        "select declared_immutable(1)",
        "insert into by_default (id) values (1)",
        "update by_trigger set v = null where id = 1",
    ] {
        let (client, other) = (stage.client().await, stage.client().await);
        assert_eq!(value(&other, look).await, by_default);
        rows(&client, leaves).await.unwrap_or_else(|error| panic!("{leaves}: {error:?}"));
        assert_eq!(value(&other, look).await, by_default, "another after {leaves}");
        assert_eq!(value(&client, look).await, "7MB", "the same session after {leaves}");
        assert_eq!(value(&stage.client().await, look).await, by_default, "a new session after {leaves}");
        rows(&client, "discard all").await.unwrap();
        assert!(stage.packs(&client).await, "after discard all following {leaves}");
        assert_eq!(value(&client, look).await, by_default);
    }
}

#[tokio::test]
async fn state_of_a_function_called_by_oid_is_tracked() {
    let stage = Stage::new(&[]).await;
    let lock = value(&stage.direct, "select 'pg_advisory_lock(bigint)'::regprocedure::oid").await;
    let lock: u32 = lock.parse().unwrap();
    let call = {
        let mut body = lock.to_be_bytes().to_vec();
        body.extend([0, 0, 0, 1, 0, 0, 0, 4]); // one argument, as text
        body.extend(b"4713");
        body.extend([0, 0]);
        hotrow_testkit::raw::frame(b'F', &body)
    };
    let mut client = Raw::login(stage.gateway.port(), &[]).await;
    client.send(&call).await;
    assert_eq!(tags(&client.until_ready(1).await), "VZ");
    let mut other = Raw::login(stage.gateway.port(), &[]).await;
    let tried = other.query("select pg_try_advisory_lock(4713)").await;
    assert_eq!(tried[1].values(), [Some(b"f".to_vec())]);
    drop(client);
    let held = "select count(*) from pg_locks where locktype = 'advisory' and objid = 4713";
    until("the lock ends with its session", async || value(&stage.direct, held).await == "0").await;
}

#[tokio::test]
async fn a_lock_is_released_by_an_unlock_that_runs_and_not_by_its_text() {
    let stage = Stage::new(&[]).await;
    let (client, other) = (stage.client().await, stage.client().await);
    value(&client, "select 'x' || pg_advisory_lock(4714)::text").await;
    rows(&client, "with x as (select 1) select pg_advisory_unlock_all() from x where false").await.unwrap();
    assert_eq!(value(&other, "select pg_try_advisory_lock(4714)").await, "f");
    assert!(!stage.packs(&client).await);
    rows(&client, "select pg_advisory_unlock_all()").await.unwrap();
    assert!(stage.packs(&client).await);
    assert_eq!(value(&other, "select pg_try_advisory_lock(4714)").await, "t");
    assert_eq!(value(&other, "select pg_advisory_unlock(4714)").await, "t");
    assert!(stage.packs(&other).await);
}

/// Only a statement that ran has cleared any state.
#[tokio::test]
async fn a_command_that_is_bound_and_not_executed_clears_nothing() {
    let stage = Stage::new(&[]).await;
    let options = format!("-c search_path={}", stage.schema);
    for clears in ["reset all", "discard all"] {
        let mut first = Raw::login(stage.gateway.port(), &[("options", &options)]).await;
        first.query("set work_mem = '77MB'").await;
        first.send(&[parse("", clears), bind("", "", &[]), sync()].concat()).await;
        assert_eq!(tags(&first.until_ready(1).await), "12Z");
        let second = stage.client().await;
        assert_ne!(value(&second, "show work_mem").await, "77MB", "{clears}");
        let replies = first.query("show work_mem").await;
        assert_eq!(replies[1].values(), [Some(b"77MB".to_vec())], "{clears}");
    }
}

/// The server does not list custom settings.
#[tokio::test]
async fn a_custom_setting_that_a_trigger_sets_reaches_no_other_client() {
    let stage = Stage::new(&[]).await;
    let trigger = "create function tells() returns trigger language plpgsql as $$
            begin perform set_config('app.tenant', 'ann', false); return new; end $$;
        create trigger tells after update on t for each row execute function tells()";
    stage.direct.batch_execute(trigger).await.unwrap();
    for _ in 0..3 {
        let ann = stage.client().await;
        rows(&ann, "update t set n = n + 1 where id = 1").await.unwrap();
        let bob = stage.client().await;
        assert_eq!(value(&bob, "select coalesce(current_setting('app.tenant', true), '')").await, "");
    }
}

/// No command of the server takes a seed back. From PostgreSQL 16 on, RESET of the seed is an error.
#[tokio::test]
async fn the_seed_of_a_client_reaches_no_other_client() {
    let stage = Stage::new(&[]).await;
    let draw = "select random()::text";
    stage.direct.batch_execute("set seed to 0.5").await.unwrap();
    let predicted = value(&stage.direct, draw).await;
    for seeds in [
        "set seed to 0.5",
        "begin; set local seed to 0.5; commit",
        "select setseed(0.5)",
        "select set_config('seed', '0.5', true)",
        "select set_config('se' || 'ed', '0.5', false)",
    ] {
        for clears in ["reset all", "discard all", "reset seed"] {
            let ann = stage.client().await;
            ann.batch_execute(seeds).await.unwrap();
            let _ = ann.batch_execute(clears).await;
            let bob = stage.client().await;
            assert_ne!(value(&bob, draw).await, predicted, "{seeds}; {clears}");
            assert_eq!(value(&ann, draw).await, predicted, "{seeds}; {clears}");
        }
    }
}

#[tokio::test]
async fn checks_of_domains_within_other_types_count_as_leaving_state() {
    let stage = Stage::new(&[]).await;
    let types = "create domain checked as int check (set_config('datestyle', 'German', false) is not null);
        create type pair as (a int, c checked);
        create table kept (pairs pair[]);
        create domain \"Odd\" as checked";
    stage.direct.batch_execute(types).await.unwrap();
    let look = "show datestyle";
    for leaves in [
        "select '(1,5)'::pair",
        "select row(1, 5)::pair",
        "select '{5}'::_checked",
        "select jsonb_populate_record(null::pair, '{\"a\": 1, \"c\": 5}')",
        "select jsonb_populate_record(null::kept, '{\"pairs\": [{\"c\": 5}]}')",
        "select 5::U&\"\\004fdd\"",
    ] {
        // In the first runs, the gateway reads the types from the catalog.
        for _ in 0..4 {
            let client = stage.client().await;
            rows(&client, leaves).await.unwrap_or_else(|error| panic!("{leaves}: {error:?}"));
            stage.all_is_given_back().await;
            assert_eq!(value(&stage.client().await, look).await, "ISO, MDY", "another after {leaves}");
        }
    }
}

/// The code of a domain, an argument's default or a cast is not part of the text that the gateway gets.
#[tokio::test]
async fn code_of_types_and_arguments_is_not_run_in_lanes() {
    let stage = Stage::new(&[]).await;
    let german = "set_config('datestyle', 'German', false)";
    let before = format!(
        "create domain checked as int check ({german} is not null);
         create domain filled as text default {german};
         create function argument(int, text default {german}) returns int language plpgsql immutable as 'begin return $1; end';
         create function declares(int) returns int language plpgsql immutable as 'declare d checked; begin d := $1; return d; end';
         create table with_domain (id int primary key, n int, f filled);
         create table with_check (id int primary key, n int check (n::checked > -5));
         insert into with_check values (1, 1);
         create type pair as (c checked);
         create table other (c checked);
         create table days (id int primary key, day date);
         insert into days values (1, '2020-12-31')"
    );
    stage.direct.batch_execute(&before).await.unwrap();
    let variables = [
        ("composed", "p pair", "row(new.n)"),
        ("of_column", "p other.c%type", "new.n"),
        ("of_row", "p other[]", "array[row(new.n)]"),
    ];
    for (table, variable, value) in variables {
        let trigger = format!(
            "create table {table} (id int primary key, n int); insert into {table} values (1, 1);
             create function {table}_f() returns trigger language plpgsql as
                 $$ declare {variable}; begin p := {value}; return new; end $$;
             create trigger f before update on {table} for each row execute function {table}_f()"
        );
        stage.direct.batch_execute(&trigger).await.unwrap();
    }
    for hidden in [
        "insert into with_domain (id, n) values (1, 1) on conflict (id) do nothing",
        "update with_check set n = n + 1 where id = 1",
        "update t set n = argument(n) where id = 1",
        "update t set n = declares(n) where id = 1",
        "update composed set n = n + 1 where id = 1",
        "update of_column set n = n + 1 where id = 1",
        "update of_row set n = n + 1 where id = 1",
    ] {
        let client = stage.client().await;
        for _ in 0..3 {
            rows(&client, hidden).await.unwrap();
        }
        let other = stage.client().await;
        for read in ["select day from days where id = 1", "update days set id = 1 where id = 1 returning day"]
        {
            assert_eq!(value(&other, read).await, "2020-12-31", "{hidden}");
        }
    }
}

/// A cast between two built-in types is visible neither in a text nor on a column.
#[tokio::test]
async fn casts_between_built_in_types_are_not_run_in_lanes() {
    let stage = Stage::alone(&[]).await;
    let tables = "create function as_number(varchar) returns int language plpgsql as
            $$ begin perform set_config('datestyle', 'German', false), pg_try_advisory_lock(77); return 7; end $$;
        create table numbers (id int primary key, n int, v varchar, day date);
        insert into numbers values (1, 0, '5', '2020-12-31')";
    stage.direct.batch_execute(tables).await.unwrap();
    let client = stage.client().await;
    assert!(stage.packs(&client).await);
    let updates = [
        "update numbers set n = v where id = 1",
        "insert into numbers values (1, 'x'::varchar) on conflict (id) do update set n = 'x'::varchar",
    ];
    for update in updates {
        assert!(client.simple_query(update).await.is_err(), "the cast does not exist yet");
    }
    client
        .batch_execute("create cast (varchar as int) with function as_number(varchar) as assignment")
        .await
        .unwrap();
    for update in updates {
        let client = stage.client().await;
        for _ in 0..3 {
            client.simple_query(update).await.unwrap();
        }
        let other = stage.client().await;
        for read in
            ["select day from numbers where id = 1", "update numbers set id = 1 where id = 1 returning day"]
        {
            assert_eq!(value(&other, read).await, "2020-12-31", "{update}");
        }
        drop(client);
        let locks = "select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())";
        until("the lock is gone with its session", async || value(&stage.direct, locks).await == "0").await;
    }
    client.batch_execute("drop cast (varchar as int)").await.unwrap();
    assert!(stage.packs(&client).await);
    // A cast whose function provably uses only its argument does no harm.
    let harmless =
        "create function measures(varchar) returns int immutable language sql as 'select length($1)';
        create cast (varchar as int) with function measures(varchar) as assignment";
    client.batch_execute(harmless).await.unwrap();
    assert!(stage.packs(&client).await);
    client.simple_query(updates[0]).await.unwrap();
    assert_eq!(value(&stage.direct, "select n from numbers").await, "1");
}

/// A function that deallocates drops the statements of all sessions that the connection has served.
#[tokio::test]
async fn statements_that_a_function_deallocates_are_prepared_again() {
    let stage = Stage::new(&[]).await;
    let options = format!("-c search_path={}", stage.schema);
    let mut ann = Raw::login(stage.gateway.port(), &[("options", &options)]).await;
    let run = [bind("", "s", &[]), execute("", 0), sync()].concat();
    ann.send(&[parse("s", "select pg_backend_pid() > 0"), sync(), run.clone()].concat()).await;
    assert_eq!(tags(&ann.until_ready(2).await), "1Z2DCZ");
    for _ in 0..3 {
        let bob = stage.client().await;
        rows(&bob, "do $$ begin execute 'deallocate all'; end $$").await.unwrap();
        ann.send(&run).await;
        assert_eq!(tags(&ann.until_ready(1).await), "2DCZ");
    }
}
