//! Calls of users' functions: those that leave nothing keep no connection, and state that others leave at any depth stays
//! with its session.

use hotrow_testkit::raw::{Raw, bind, execute, parse, sync, tags};
use hotrow_testkit::{config_in, connect, has_extension, rows, seed, server, sqlstate, until, value};
use tokio_postgres::Client;

use crate::Stage;

/// Tables and functions in the forms of job queues: writes, row locks, notifications, composite arguments, triggers, cascades,
/// row security, defaults that advance sequences, and tables that are made for each queue.
const QUEUES: &str = "
    create type state as enum ('todo', 'doing', 'done');
    create table queue (name text primary key, made_at timestamptz not null default now());
    create table job (
        id bigint generated always as identity, queue text not null references queue (name) on delete cascade,
        payload jsonb not null default '{}', state state not null default 'todo', priority smallint default 0,
        key text check (length(key) < 100), run_at timestamptz not null default now(), attempts int not null default 0,
        primary key (queue, id)) partition by list (queue);
    create table job_event (id bigserial primary key, job_id bigint, kind text, at timestamptz default now());
    alter table job_event enable row level security;
    create policy all_events on job_event using (coalesce(current_setting('app.tenant', true), '') <> 'nobody');
    create type spec as (queue text, payload jsonb, priority smallint);
    create function notifies() returns trigger language plpgsql as $$
        begin perform pg_notify('job:' || new.queue, json_build_object('id', new.id)::text); return new; end $$;
    create function records() returns trigger language plpgsql as $$
        begin
            if tg_op = 'INSERT' then insert into job_event (job_id, kind) values (new.id, 'inserted');
            elsif new.state is distinct from old.state then
                with event as (select case when new.state = 'done' then 'done' else 'other' end as kind)
                insert into job_event (job_id, kind) select new.id, kind from event;
            end if;
            return null;
        end $$;
    create trigger a after insert on job for each row execute function notifies();
    create trigger b after insert or update on job for each row execute function records();
    create function make_queue(queue_name text) returns void language plpgsql as $$
        declare
            part varchar := 'j' || encode(sha224(queue_name::bytea), 'hex');
            made timestamptz;
        begin
            with q as (insert into queue (name) values (queue_name) on conflict do nothing returning made_at)
            select made_at into made from q;
            if made is null then return; end if;
            execute format('create table %I (like job including defaults including constraints)', part);
            execute format('alter table %1$I add primary key (queue, id)', part);
            execute format('create index %1$s_key on %1$I (key) where key is not null', part);
            execute format('alter table %I add constraint c check (queue = %L)', part, queue_name);
            execute format('alter table job attach partition %I for values in (%L)', part, queue_name);
        end $$;
    create function drop_queue(queue_name text) returns void language plpgsql as $$
        begin
            execute format('drop table if exists %I', 'j' || encode(sha224(queue_name::bytea), 'hex'));
            delete from queue where name = queue_name;
        end $$;
    create function add_jobs(specs spec[], preserve boolean default false) returns setof job language plpgsql as $$
        #variable_conflict use_column
        begin
            insert into queue (name) select distinct s.queue from unnest(specs) s on conflict do nothing;
            return query insert into job (queue, payload, priority)
                select s.queue, coalesce(s.payload, '{}'), coalesce((s).priority, 0) from unnest(specs) s
                on conflict (queue, id) do update set attempts = 0, payload = excluded.payload returning *;
        end $$;
    create function add_job(queue text, payload jsonb default null, priority int default 0) returns job language plpgsql as $$
        declare v_job job;
        begin
            if (queue is null or payload is null) then raise exception 'no payload' using errcode = 'P0001'; end if;
            select * into v_job from add_jobs(array[(queue, payload, priority::smallint)::spec], (priority = 0)) limit 1;
            return v_job;
        end $$;
    create function fetch_job(names text[], worker bigint) returns job language plpgsql as $$
        declare found_job job;
        begin
            with candidate as (
                select j.id from job as j where j.queue = any (names) and j.state = 'todo' and j.run_at <= now()
                order by j.priority desc, j.id limit 1 for update of j skip locked)
            update job set state = 'doing', attempts = attempts + 1 from candidate where job.id = candidate.id
            returning job.* into found_job;
            return found_job;
        end $$;
    create function finish_job(job_id bigint, deletes boolean) returns void language plpgsql as $$
        begin
            perform pg_advisory_xact_lock(hashtextextended('finish', job_id));
            case when deletes then delete from job where id = job_id; else update job set state = 'done' where id = job_id; end case;
        exception when unique_violation then raise notice 'again %', job_id;
        end $$;
    create function complete(ids bigint[]) returns setof job language sql as $$
        update job set state = 'done', run_at = now() + interval '4 hours' where id = any (ids) returning * $$;
    create function open_jobs(q text) returns bigint language sql stable security definer set search_path = SCHEMA as $$
        select count(*) from job where queue = q and state <> 'done' $$;
    create function whole(q text) returns table (id bigint, n int) stable begin atomic
        select j.id, j.attempts from job j where j.queue = whole.q; end;
    create function plus(a int) returns int language sql as 'select a + 1';
    create function plus_stable(a int) returns int language plpgsql stable as 'begin return a + 1; end';
    create function plus_immutable(a int) returns int language plpgsql immutable as 'begin return plus(a); end';
    create function tenant() returns text language sql stable as $$ select current_setting('app.tenant', true) $$;
    create function on_commit() returns int language plpgsql as $$
        begin create temp table scratch (a int) on commit drop; insert into scratch values (1); return (select count(*) from scratch); end $$;
    create procedure sweeps() language plpgsql as $$
        begin for i in 1..2 loop delete from job_event where at < now() - interval '1 day'; commit; end loop; end $$";

const CALLS: &[&str] = &[
    "select make_queue('mail')",
    "select add_job('mail', '{}')",
    "select * from add_job('mail', payload => '{\"a\": 1}')",
    "select add_jobs(array[('mail', '{}', 1)::spec])",
    "select * from fetch_job('{mail}', 1)",
    "select finish_job(1, false)",
    "select finish_job(2, true)",
    "select count(*) from complete('{1,2,3}')",
    "select open_jobs('mail')",
    "select * from whole('mail')",
    "select plus(1), plus_stable(1), plus_immutable(1)",
    "select on_commit()",
    "call sweeps()",
    "do $$ begin perform plus(1); end $$",
    "insert into queue values ('x' || plus(1)) on conflict do nothing",
    "begin; select add_job('mail', '{}'); rollback",
    "begin; select set_config('app.tenant', 'a', true); select tenant(), add_job('mail', '{}'); commit",
    "select set_config('app.tenant', 'a', true), tenant()",
    "select drop_queue('mail')",
];

impl Stage {
    /// Waits until no client keeps a connection.
    async fn pins_nobody(&self, after: &str) {
        let console = connect(self.gateway.config().dbname("hotrow")).await;
        until(&format!("no client keeps a connection after {after}"), async || {
            let clients = rows(&console, "show clients").await.unwrap();
            clients.iter().all(|row| row[7].as_deref() == Some("idle"))
        })
        .await;
    }
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn functions_that_leave_nothing_pin_nobody() {
    let stage = Stage::alone(&[]).await;
    stage.direct.batch_execute(&QUEUES.replace("SCHEMA", &stage.schema)).await.unwrap();
    let client = stage.client().await;
    // The second time, it is known what the calls leave.
    for _ in 0..2 {
        for call in CALLS {
            client.batch_execute(call).await.unwrap_or_else(|error| panic!("{call}: {error:?}"));
            assert!(stage.packs(&client).await, "after {call}");
            stage.pins_nobody(call).await;
        }
    }
    let options = format!("-c search_path={}", stage.schema);
    let mut raw =
        Raw::login(stage.gateway.port(), &[("database", &stage.database), ("options", &options)]).await;
    for call in
        ["begin", "select set_config('app.tenant', $1, true)", "select plus(length($1::text))", "commit"]
    {
        let value: &[Option<&str>] = if call.contains('$') { &[Some("a")] } else { &[] };
        raw.send(&[parse("", call), bind("", "", value), execute("", 0), sync()].concat()).await;
        assert!(tags(&raw.until_ready(1).await).ends_with("CZ"), "{call}");
    }
    stage.pins_nobody("a transaction in the extended protocol").await;
}

/// More clients than the connections that sessions may hold.
#[tokio::test]
async fn clients_that_have_called_functions_need_no_connection() {
    let stage = Stage::new(&["--held-connections-max", "2", "--held-wait-ms", "100"]).await;
    let functions = "create function plus(a int) returns int language sql as 'select a + 1';
        create function locks() returns void language plpgsql as $$ begin perform pg_advisory_lock(pg_backend_pid()); end $$";
    stage.direct.batch_execute(functions).await.unwrap();
    let mut clients = Vec::new();
    for number in 0..8 {
        let client = stage.client().await;
        assert_eq!(value(&client, "select plus(1)").await, "2", "{number}");
        stage.pins_nobody("a call").await;
        clients.push(client);
    }
    for client in &clients[..2] {
        rows(client, "select locks()").await.unwrap();
    }
    let refused = rows(&clients[2], "select plus(1)").await.unwrap_err();
    let refused = refused.as_db_error().unwrap();
    assert_eq!(refused.code().code(), "53300");
    let hint = refused.hint().unwrap();
    assert!(hint.contains("(advisory lock: 2)") && hint.contains("SHOW CLIENTS"), "{hint}");
}

/// Ways to leave state, each with a query that shows it.
const LEAKS: &[(&str, &str)] = &[
    ("perform set_config('app.kept', 'x', false)", "select coalesce(current_setting('app.kept', true), '')"),
    (
        "perform set_config('app.' || 'kept', 'x', false)",
        "select coalesce(current_setting('app.kept', true), '')",
    ),
    (
        "execute 'set app.kept = ' || quote_literal(lower('X'))",
        "select coalesce(current_setting('app.kept', true), '')",
    ),
    ("execute lower('SET app.kept = x')", "select coalesce(current_setting('app.kept', true), '')"),
    ("set app.kept = 'x'", "select coalesce(current_setting('app.kept', true), '')"),
    ("perform set_config('work_mem', '7MB', false)", "show work_mem"),
    ("set session work_mem to '7MB'", "show work_mem"),
    ("execute format('set work_mem = %L', '7MB')", "show work_mem"),
    ("set role pg_monitor", "select current_user"),
    (
        "perform pg_advisory_lock(pg_backend_pid())",
        "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
    ),
    (
        "perform pg_try_advisory_lock_shared(4715)",
        "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
    ),
    ("execute 'listen left_behind'", "select count(*) from pg_listening_channels()"),
    ("listen left_behind", "select count(*) from pg_listening_channels()"),
    ("prepare left_behind as select 1", "select count(*) from pg_prepared_statements where from_sql"),
    (
        "create temp table if not exists left_behind (a int)",
        "select coalesce(to_regclass('pg_temp.left_behind')::text, '')",
    ),
    (
        "execute format('create temp table if not exists %I (a int)', 'left_behind')",
        "select coalesce(to_regclass('pg_temp.left_behind')::text, '')",
    ),
];

/// Ways from one function to the next: objects, and the statement in a function that reaches them. NEXT is the next function,
/// N the number of this one.
const WAYS: &[(&str, &str)] = &[
    ("select", "perform NEXT()"),
    ("select", "begin perform 1 / 0; exception when division_by_zero then perform NEXT(); end"),
    ("select", "for i in 1..2 loop if i = 2 then perform NEXT(); end if; end loop"),
    ("create view v_N as select NEXT() as x", "perform x from v_N"),
    (
        "create function o_N(int, int) returns int language sql as 'select NEXT()'; create operator =%N= (leftarg = int, rightarg = int, function = o_N)",
        "perform 1 =%N= 2",
    ),
    ("create table d_N (a int, b int default NEXT())", "insert into d_N values (1)"),
    ("create table k_N (a int check (NEXT() is not null))", "insert into k_N values (1)"),
    (
        "create table t_N (a int); create function tf_N() returns trigger language plpgsql as 'begin perform NEXT(); return new; end'; create trigger g_N after insert on t_N for each row execute function tf_N()",
        "insert into t_N values (1)",
    ),
    (
        "create table p_N (a int primary key); create table c_N (a int references p_N on delete cascade); create function cf_N() returns trigger language plpgsql as 'begin perform NEXT(); return old; end'; create trigger g_N before delete on c_N for each row execute function cf_N()",
        "insert into p_N values (1); insert into c_N values (1); delete from p_N",
    ),
    (
        "create table pp_N (a int) partition by list (a); create table pq_N partition of pp_N for values in (1); create function pf_N() returns trigger language plpgsql as 'begin perform NEXT(); return new; end'; create trigger g_N before insert on pq_N for each row execute function pf_N()",
        "insert into pp_N values (1)",
    ),
    ("create domain m_N as int check (NEXT() is not null)", "perform 1::m_N"),
    (
        "create domain n_N as int check (NEXT() is not null); create type r_N as (a n_N)",
        "perform jsonb_populate_record(null::r_N, '{\"a\": 1}')",
    ),
    ("create domain l_N as int check (NEXT() is not null)", "declare x l_N; begin x := 1; end"),
    (
        "create type y_N as (a int); create function yf_N(y_N) returns int language sql as 'select NEXT()'; create cast (y_N as int) with function yf_N(y_N) as assignment",
        "declare x int; begin x := row(1)::y_N::int; end",
    ),
    (
        "create table f_N (a int); insert into f_N values (1); create function fa_N(f_N) returns int language sql as 'select NEXT()'",
        "perform f.fa_N from f_N f",
    ),
    (
        "create function af_N(int, int) returns int language sql as 'select NEXT()'; create aggregate a_N(int) (sfunc = af_N, stype = int)",
        "perform a_N(1)",
    ),
    ("create function u_N(a int default NEXT()) returns int language sql as 'select 1 + a'", "perform u_N()"),
    (
        "create table w_N (a int); create rule w_N as on insert to w_N do also select NEXT()",
        "insert into w_N values (1)",
    ),
    ("create function b_N() returns int begin atomic select NEXT(); end", "perform b_N()"),
    (
        "create function s_N() returns int language plpgsql security definer set enable_sort = off as 'begin return NEXT(); end'",
        "perform s_N()",
    ),
    // The server computes an immutable function of constants once for each connection.
    (
        "create function i_N(int) returns int language sql immutable as 'select NEXT()'",
        "perform i_N(pg_backend_pid())",
    ),
    ("create procedure q_N() language plpgsql as 'begin perform NEXT(); end'", "call q_N()"),
    ("select", "execute 'select NEXT()'"),
    ("select", "do 'begin perform NEXT(); end'"),
];

/// Objects of a random way from `f_0` to a leak, and the query that shows it.
fn leak(random: &mut fastrand::Rng) -> (Vec<String>, &'static str) {
    let (leaves, look) = LEAKS[random.usize(..LEAKS.len())];
    let length = random.usize(..4);
    let function = |number: usize, statement: &str| {
        format!(
            "create function f_{number}() returns int language plpgsql as $body$ begin {statement}; return 1; end $body$"
        )
    };
    let mut objects = vec![function(length, leaves)];
    for number in (0..length).rev() {
        let (setup, statement) = WAYS[random.usize(..WAYS.len())];
        let fill = |text: &str| {
            text.replace("NEXT", &format!("f_{}", number + 1))
                .replace("=%N=", ["=%=", "=%=#", "#%=", "#%#"][number])
                .replace("_N", &format!("_{number}"))
        };
        objects.push(fill(setup));
        objects.push(function(number, &fill(statement)));
    }
    (objects, look)
}

#[tokio::test]
async fn state_that_functions_leave_at_any_depth_stays_with_its_session() {
    let stage = Stage::alone(&[]).await;
    let mut random = fastrand::Rng::with_seed(seed());
    for round in 0..25 {
        let schema = format!("round_{round}");
        let (objects, look) = leak(&mut random);
        let path = format!(
            "create schema {schema}; grant usage on schema {schema} to pg_monitor; set search_path = {schema}"
        );
        stage.direct.batch_execute(&path).await.unwrap();
        for object in &objects {
            stage.direct.batch_execute(object).await.unwrap_or_else(|error| panic!("{object}: {error:?}"));
        }
        let mut config = stage.gateway.config_in(&schema);
        config.dbname(&stage.database);
        let mut direct = config_in(server().port(), &schema);
        direct.dbname(&stage.database);
        let other = connect(&config).await;
        let by_default = value(&other, look).await;
        let call = ["select f_0()", "begin; select f_0(); commit", "do 'begin perform f_0(); end'"]
            [random.usize(..3)];
        for again in 0..2 {
            let (client, expected) = (connect(&config).await, connect(&direct).await);
            let through = outcome(&client, call).await;
            assert_eq!(through, outcome(&expected, call).await, "{call} of {objects:#?}");
            let told = format!("{again}: {call} of {objects:#?}");
            assert_eq!(value(&other, look).await, by_default, "another session after {told}");
            assert_eq!(
                value(&client, look).await,
                value(&expected, look).await,
                "the same session after {told}"
            );
            assert_eq!(value(&connect(&config).await, look).await, by_default, "a new session after {told}");
        }
    }
}

/// The error of a call, after which no transaction is open.
async fn outcome(client: &Client, call: &str) -> Option<String> {
    let error = client.batch_execute(call).await.err()?;
    client.batch_execute("rollback").await.unwrap();
    Some(sqlstate(&error).to_owned())
}

/// No command of the server takes a seed back.
#[tokio::test]
async fn a_seed_that_a_function_sets_reaches_no_other_client() {
    let stage = Stage::new(&[]).await;
    let draw = "select random()::text";
    let seeds =
        "create function seeds() returns void language plpgsql as $$ begin perform setseed(0.5); end $$;
        create function calls() returns void language sql as 'select seeds()'";
    stage.direct.batch_execute(seeds).await.unwrap();
    stage.direct.batch_execute("select setseed(0.5)").await.unwrap();
    let predicted = value(&stage.direct, draw).await;
    for _ in 0..2 {
        let (ann, bob) = (stage.client().await, stage.client().await);
        rows(&ann, "select calls()").await.unwrap();
        assert_ne!(value(&bob, draw).await, predicted);
        assert_eq!(value(&ann, draw).await, predicted);
    }
}

/// A function is changed in the transaction in which it was called, so the catalog no longer shows what has run.
#[tokio::test]
async fn functions_that_change_in_the_transaction_of_their_call_count_as_unknown() {
    let stage = Stage::new(&[]).await;
    let look = "select coalesce(current_setting('app.kept', true), '')";
    let leaks = "create or replace function f() returns text language sql as $$ select set_config('app.kept', 'x', false) $$";
    let plain = "create or replace function f() returns text language sql as $$ select 'x' $$";
    for (first, second) in [(leaks, plain), (plain, leaks)] {
        stage.direct.batch_execute(first).await.unwrap();
        let texts = match first == leaks {
            true => ["begin", "select f()", second, "commit"],
            false => ["begin", second, "select f()", "commit"],
        };
        let (client, other) = (stage.client().await, stage.client().await);
        for text in texts {
            client.batch_execute(text).await.unwrap();
        }
        assert_eq!(value(&other, look).await, "");
        assert_eq!(value(&client, look).await, "x", "{texts:?}");
        client.batch_execute("discard all").await.unwrap();
        assert!(stage.packs(&client).await);
    }
}

/// State that the server shows keeps a session on its connection only while it is there.
#[tokio::test]
async fn a_session_gives_its_connection_back_when_the_state_is_gone() {
    let stage = Stage::new(&[]).await;
    let functions = format!(
        "create function locks() returns void language sql as 'select pg_advisory_lock(pg_backend_pid())';
         create function unlocks() returns bool language sql as 'select pg_advisory_unlock(pg_backend_pid())';
         create function makes() returns void language plpgsql as 'begin create temp table made (); end';
         grant usage on schema {0} to pg_monitor; grant all on {0}.t to pg_monitor",
        stage.schema
    );
    stage.direct.batch_execute(&functions).await.unwrap();
    let client = stage.client().await;
    for (leaves, removes) in [
        ("select locks()", "select unlocks()"),
        ("select pg_advisory_lock(pg_backend_pid())", "do 'begin perform unlocks(); end'"),
        ("select makes()", "drop table made"),
        ("create temp table made ()", "drop table made"),
        ("set role pg_monitor", "reset role"),
        ("set role pg_monitor", "set role none"),
        ("begin; declare c cursor with hold for select 1; commit", "close c"),
    ] {
        client.batch_execute(leaves).await.unwrap_or_else(|error| panic!("{leaves}: {error:?}"));
        assert!(!stage.packs(&client).await, "after {leaves}");
        client.batch_execute(removes).await.unwrap_or_else(|error| panic!("{removes}: {error:?}"));
        assert!(stage.packs(&client).await, "after {removes} following {leaves}");
    }
}

/// Variables of such a function could live as long as the connection, and DISCARD ALL does not know them.
#[tokio::test]
async fn no_other_session_gets_a_connection_on_which_a_function_in_another_language_ran() {
    let stage = Stage::new(&[]).await;
    let function = "create function backend() returns int language internal as 'pg_backend_pid'";
    stage.direct.batch_execute(function).await.unwrap();
    let client = stage.client().await;
    let backend = value(&client, "select backend()").await;
    let console = connect(stage.gateway.config().dbname("hotrow")).await;
    until("the session keeps its connection", async || {
        let clients = rows(&console, "show clients").await.unwrap();
        clients.iter().any(|row| row[7].as_deref() == Some("pinned: function in another language"))
    })
    .await;
    rows(&client, "discard all").await.unwrap();
    let open = format!("select count(*) from pg_stat_activity where pid = {backend}");
    until("the connection is closed", async || value(&stage.direct, &open).await == "0").await;
    assert!(stage.packs(&client).await);
}

#[tokio::test]
async fn state_of_an_extension_stays_in_one_session() {
    let stage = Stage::new(&[]).await;
    if !has_extension(&stage.direct, "pg_trgm").await {
        return;
    }
    stage.direct.batch_execute("create extension if not exists pg_trgm schema public").await.unwrap();
    let (client, other) = (stage.client().await, stage.client().await);
    for client in [&client, &other] {
        assert_eq!(value(client, "select public.show_limit()").await, "0.3");
    }
    rows(&client, "select public.set_limit(0.9)").await.unwrap();
    assert_eq!(value(&other, "select public.show_limit()").await, "0.3");
    assert_eq!(value(&client, "select public.show_limit()").await, "0.9");
    assert_eq!(value(&stage.client().await, "select public.show_limit()").await, "0.3");
}
