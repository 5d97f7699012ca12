//! A slow statement holds up others of its lane for a bounded time, keeps its own outcome, and can be cancelled.

use std::time::Instant;

use hotrow_testkit::{
    Gateway, PATIENCE, connect, describe, new_schema, sqlstate, until, until_it_blocks, value,
};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// At least ten seconds of work that can be cancelled at any time. A statement with it can be packed.
const ENDLESS: &str =
    "length(factorial(32000)::text) + length(factorial(32001)::text) + length(factorial(32002)::text)
    + length(factorial(32003)::text) + length(factorial(32004)::text) + length(factorial(32005)::text)
    + length(factorial(32006)::text) + length(factorial(32007)::text) + length(factorial(32008)::text)";
/// Work for longer than a lane allows: about a second.
const LONG: &str = "length(factorial(25000)::text)";

/// A table with ten rows and a gateway in front of it.
struct Stage {
    gateway: Gateway,
    schema: String,
    direct: Client,
}

impl Stage {
    async fn new(options: &[&str]) -> Self {
        let (schema, direct) = new_schema().await;
        let made =
            "create table t (id int primary key, n int); insert into t select generate_series(1, 10), 0";
        direct.batch_execute(made).await.unwrap();
        Stage { gateway: Gateway::start(options), schema, direct }
    }

    async fn client(&self) -> Client {
        connect(&self.gateway.config_in(&self.schema)).await
    }

    /// Runs of the slow statements that left their lane because they took too long. On a busy machine, others can too.
    async fn slow_units(&self) -> u64 {
        let console = connect(self.gateway.config().dbname("hotrow")).await;
        let messages = console.simple_query("show statements").await.unwrap();
        let count = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) if row.get("statement")?.contains("factorial") => {
                row.get("left_lane_too_slow")?.parse::<u64>().ok()
            }
            _ => None,
        };
        messages.iter().filter_map(count).sum()
    }

    /// Waits until a backend runs a statement that mentions this test's schema: a lane's backend, or another.
    async fn works(&self, in_lane: bool) {
        // The gateway's own connections, on which it asks the server to describe statements, are called `hotrow`.
        let (schema, name) =
            (&self.schema, if in_lane { "like 'hotrow%lane%'" } else { "not like 'hotrow%'" });
        let active = format!(
            "select count(*) > 0 from pg_stat_activity where state = 'active' and pid <> pg_backend_pid()
             and application_name {name} and query like '%as {schema}'"
        );
        until("a backend runs the statement", async || value(&self.direct, &active).await == "t").await;
    }
}

/// Runs a statement in the background. Returns its outcome and the client.
fn run(client: Client, sql: &str) -> JoinHandle<(Client, Result<(), tokio_postgres::Error>)> {
    let sql = sql.to_owned();
    tokio::spawn(async move {
        let outcome = client.simple_query(&sql).await.map(drop);
        (client, outcome)
    })
}

/// A handler in a trigger would take the lane's timeout for the client's, and a trigger can read any relation: neither runs in a lane.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn triggers_that_catch_errors_or_read_relations_see_what_they_see_directly() {
    let stage = Stage::new(&["--lanes", "1"]).await;
    let made = format!(
        "alter table t add st text;
         create function patient() returns trigger language plpgsql as $$ begin
           if new.id = 1 then new.st := {LONG}; end if; return new;
         exception when query_canceled then new.st := 'gave up'; return new; end $$;
         create trigger patient before update on t for each row execute function patient();
         create function seen() returns text language sql volatile as
           $$ select set_config('app.seen', coalesce(current_setting('app.seen', true), '') || '+', false) $$;
         create view spy as select seen() as seen;
         create table u (id int primary key, n int, st text); insert into u values (1, 0);
         create function spies() returns trigger language plpgsql as $$ begin new.st := spy.seen from spy; return new; end $$;
         create trigger spies before update on u for each row execute function spies();"
    );
    stage.direct.batch_execute(&made).await.unwrap();
    for round in 1..=3 {
        let client = stage.client().await;
        let slow = value(&client, "update t set n = n + 1 where id = 1 returning st").await;
        assert!(slow.parse::<u32>().is_ok(), "round {round}: {slow}");
        let seen = value(&client, "update u set n = n + 1 where id = 1 returning st").await;
        assert_eq!(seen, "+", "a setting of another client");
    }
}

/// A statement of another client in the same lane is answered while an endless one runs. The endless one can be
/// cancelled.
async fn runs_beside(endless: &str, quick: &str) {
    let stage = Stage::new(&["--lanes", "1"]).await;
    let (slow, other) = (stage.client().await, stage.client().await);
    let endless = format!("{endless} as {}", stage.schema);
    value(&other, quick).await; // now it is known to be packable, and prepared in the lane
    let token = slow.cancel_token();
    let running = run(slow, &endless);
    stage.works(false).await;
    assert_eq!(stage.slow_units().await, 1, "the statement was in a lane before");
    for _ in 0..20 {
        value(&other, quick).await;
    }
    assert!(!running.is_finished());
    token.cancel_query(NoTls).await.unwrap();
    let (slow, outcome) = running.await.unwrap();
    assert_eq!(sqlstate(&outcome.unwrap_err()), "57014");

    // The statement has no credit left. The error arrives before the backend is idle, so another statement runs first.
    value(&slow, quick).await;
    let token = slow.cancel_token();
    let again = run(slow, &endless);
    stage.works(false).await;
    value(&other, quick).await;
    assert_eq!(stage.slow_units().await, 1);
    token.cancel_query(NoTls).await.unwrap();
    assert_eq!(sqlstate(&again.await.unwrap().1.unwrap_err()), "57014");
}

#[tokio::test]
async fn reads_continue_beside_a_slow_read() {
    runs_beside(&format!("select {ENDLESS}"), "select n from t where id = 2").await;
}

#[tokio::test]
async fn updates_continue_beside_a_slow_update() {
    let endless = format!("update t set n = {ENDLESS} where id = 1 returning n");
    runs_beside(&endless, "update t set n = n + 1 where id = 2 returning n").await;
}

#[tokio::test]
async fn a_slow_statement_has_the_outcome_of_a_direct_connection() {
    let stage = Stage::new(&["--lanes", "1"]).await;
    let (client, other) = (stage.client().await, stage.client().await);
    let update = format!("update t set n = n + {LONG} where id = 1 returning n");
    let began = Instant::now();
    let digits: u64 = value(&stage.direct, &format!("select {LONG}")).await.parse().unwrap();
    assert!(began.elapsed().as_millis() > 250, "the update is too quick for this test");
    let crowd: Vec<_> = (0..5).map(|_| run_on(&stage, "update t set n = n + 1 where id = 2")).collect();
    let first = value(&client, &update).await;
    for one in crowd {
        one.await.unwrap();
    }
    assert_eq!(first, digits.to_string());
    assert_eq!(value(&client, &update).await, (2 * digits).to_string());
    assert_eq!(value(&other, "select n from t where id = 2").await, "500");
    assert_eq!(stage.slow_units().await, 1);
}

/// A client that runs a statement a hundred times.
fn run_on(stage: &Stage, sql: &'static str) -> JoinHandle<()> {
    let config = stage.gateway.config_in(&stage.schema);
    tokio::spawn(async move {
        let client = connect(&config).await;
        for _ in 0..100 {
            client.simple_query(sql).await.unwrap();
        }
    })
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_statement_that_runs_in_a_lane_can_be_cancelled() {
    // Long enough that the request arrives while the statement is still in its lane, and shorter than the statement.
    let stage = Stage::new(&["--lanes", "1", "--lane-lock-timeout-ms", "5000"]).await;
    let (slow, other) = (stage.client().await, stage.client().await);
    let quick = "update t set n = n + 1 where id = 2 returning n";
    value(&other, quick).await;
    let token = slow.cancel_token();
    let endless = format!("update t set n = {ENDLESS} where id = 3 returning n as {}", stage.schema);
    let running = run(slow, &endless);
    stage.works(true).await;
    token.cancel_query(NoTls).await.unwrap();
    let (slow, outcome) = tokio::time::timeout(PATIENCE, running).await.unwrap().unwrap();
    assert_eq!(sqlstate(&outcome.unwrap_err()), "57014");
    assert_eq!(stage.gateway.metric("slow_units_total"), 0, "the statement was not run again alone");
    assert_eq!(value(&slow, "select n from t where id = 3").await, "0");
    assert_eq!(value(&other, quick).await, "2");
}

#[tokio::test]
async fn a_client_that_disconnects_during_its_statement_holds_up_no_other() {
    let stage = Stage::new(&["--lanes", "1", "--drain-timeout-ms", "400"]).await;
    let other = stage.client().await;
    let quick = "select n from t where id = 2";
    value(&other, quick).await;
    let config = stage.gateway.config_in(&stage.schema);
    let (leaver, connection) = config.connect(NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let running = run(leaver, &format!("select {ENDLESS} as {}", stage.schema));
    stage.works(true).await;
    connection.abort();
    running.await.unwrap().1.unwrap_err();
    for _ in 0..20 {
        value(&other, quick).await;
    }
    until("its session has ended", async || stage.gateway.metric("clients") == 1).await;
    // As on a direct connection, the server continues the statement without its client.
    let end = format!(
        "select pg_terminate_backend(pid) from pg_stat_activity
         where state = 'active' and pid <> pg_backend_pid() and query like '%as {}'",
        stage.schema
    );
    stage.direct.simple_query(&end).await.unwrap();
}

#[tokio::test]
async fn units_that_wait_for_a_slow_batch_move_to_another_lane() {
    let stage = Stage::new(&["--lanes", "2", "--lane-lock-timeout-ms", "60000"]).await;
    let (blocked, second, third) = (stage.client().await, stage.client().await, stage.client().await);
    value(&second, "update t set n = n + 1 where id = 2 returning n").await;
    // A lane that waits for a lock counts as slow, and this lane never gives up.
    stage.direct.batch_execute("begin; update t set n = n where id = 1").await.unwrap();
    let blocked = run(blocked, "update t set n = n + 1 where id = 1");
    until_it_blocks(&stage.direct).await;
    for expected in 2..20 {
        let answer = value(&second, "update t set n = n + 1 where id = 2 returning n");
        let answer = tokio::time::timeout(PATIENCE, answer).await.expect("the unit moves to another lane");
        assert_eq!(answer, expected.to_string());
        value(&third, "update t set n = n + 1 where id = 3 returning n").await;
    }
    assert!(!blocked.is_finished());
    stage.direct.batch_execute("rollback").await.unwrap();
    blocked.await.unwrap().1.unwrap();
    assert_eq!(value(&second, "select n from t where id = 1").await, "1");
}

#[tokio::test]
async fn a_statement_timeout_of_the_client_applies_in_a_lane() {
    let stage = Stage::new(&["--lanes", "1"]).await;
    let options =
        |milliseconds: u32| format!("-c search_path={} -c statement_timeout={milliseconds}", stage.schema);
    let mut config = stage.gateway.config_in(&stage.schema);
    let hasty = connect(config.options(options(50))).await;
    let patient = connect(config.options(options(20_000))).await;
    let update = format!("update t set n = {LONG} where id = 1 returning n > 0");
    let error = hasty.simple_query(&update).await.unwrap_err();
    assert_eq!(sqlstate(&error), "57014");
    assert!(describe(&error).contains("statement timeout"), "{}", describe(&error));
    assert_eq!(value(&patient, &update).await, "t");
    assert!(stage.gateway.metric("slow_units_total") > 0);
}
