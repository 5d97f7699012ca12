//! Statements whose texts are new all the time, and commands of other clients that change nothing for them. Here a statement does not
//! wait for its verdict, as by default.

use hotrow_testkit::raw::{self, Raw, tags};
use hotrow_testkit::{Gateway, connect, new_database, new_schema, until, value};
use tokio_postgres::Client;

const NO_WAIT: [&str; 2] = ["--verdict-wait-ms", "0"];

/// A gateway, a client of it in a schema with a table, and a direct client there.
struct Stage {
    gateway: Gateway,
    schema: String,
    client: Client,
    direct: Client,
}

impl Stage {
    async fn new(options: &[&str]) -> Self {
        let (schema, direct) = new_schema().await;
        direct
            .batch_execute(
                "create table t (id int primary key, n int, note text); insert into t values (1, 0, '')",
            )
            .await
            .unwrap();
        let gateway = Gateway::start(&[&NO_WAIT, options].concat());
        let client = connect(&gateway.config_in(&schema)).await;
        Stage { gateway, schema, client, direct }
    }

    async fn raw(&self) -> Raw {
        let path = format!("-c search_path={}", self.schema);
        Raw::login(self.gateway.port(), &[("user", "postgres"), ("database", "postgres"), ("options", &path)])
            .await
    }

    /// Runs a statement until it is packed.
    async fn warm_up(&self, sql: &str) {
        let packed = self.gateway.metric("packed_units_total");
        until("the statement is packed", || async {
            self.client.simple_query(sql).await.unwrap();
            self.gateway.metric("packed_units_total") > packed
        })
        .await;
    }

    fn questions(&self) -> u64 {
        self.gateway.metric("catalog_questions_total")
    }
}

/// An extended query of one statement.
fn extended(text: &str, values: &[Option<&str>]) -> Vec<u8> {
    [raw::parse("", text), raw::bind("", "", values), raw::execute("", 0), raw::sync()].concat()
}

#[tokio::test]
async fn a_comment_of_its_own_in_each_statement_is_not_part_of_the_statement() {
    let stage = Stage::new(&[]).await;
    let mut client = stage.raw().await;
    let update = "update t set n = n + 1 where id = $1";
    while stage.gateway.metric("packed_units_total") < 5 {
        client.send(&extended(update, &[Some("1")])).await;
        assert_eq!(tags(&client.until_ready(1).await), "12CZ");
    }
    let before = (stage.questions(), stage.gateway.metric("packed_units_total"));
    for number in 0..200 {
        client.send(&extended(&format!("/* {number} */ {update} -- trace {number}"), &[Some("1")])).await;
        assert_eq!(tags(&client.until_ready(1).await), "12CZ");
    }
    assert_eq!(stage.gateway.metric("packed_units_total"), before.1 + 200);
    // The facts may have aged meanwhile.
    assert!(stage.questions() <= before.0 + 20, "{} of {}", stage.questions(), before.0);
}

#[tokio::test]
async fn the_server_gets_the_comments_of_a_statement_that_is_passed_through() {
    let stage = Stage::new(&[]).await;
    let mut client = stage.raw().await;
    for comment in ["one", "two"] {
        let text = format!(
            "select count(*) from pg_stat_activity where query like '%trace=' || $1 || '%' /* trace={comment} */"
        );
        client.send(&extended(&text, &[Some(comment)])).await;
        let answer = client.until_ready(1).await;
        assert_eq!(answer[2].values()[0].as_deref(), Some(&b"1"[..]), "{comment}");
    }
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn constants_in_functions_and_types_ask_nothing_anew() {
    let stage = Stage::new(&[]).await;
    let shapes: [fn(u32) -> String; 4] = [
        |n| format!("update t set note = nullif('a{n}', '') where id = 1"),
        |n| format!("update t set note = (now() + interval '{n} seconds')::text where id = 1"),
        |n| format!("update t set note = concat_ws('-', 'b{n}', format('%s', 'c{n}')) where id = 1"),
        |n| format!("update t set note = substring('d{n}', 1, {n}) where id = 1"),
    ];
    for shape in shapes {
        stage.warm_up(&shape(1_000)).await;
        let before = (stage.questions(), stage.gateway.metric("packed_units_total"));
        for number in 1..=100 {
            stage.client.simple_query(&shape(number)).await.unwrap();
        }
        let packed = stage.gateway.metric("packed_units_total") - before.1;
        assert!(packed >= 90, "{packed} of 100 are packed: {}", shape(1));
        assert!(stage.questions() <= before.0 + 20, "{}: {}", shape(1), stage.questions() - before.0);
    }
    let note = value(&stage.direct, "select note from t where id = 1").await;
    assert_eq!(note, "d100");
}

#[tokio::test]
async fn commands_that_change_nothing_for_a_statement_are_not_followed_by_questions() {
    const UPDATE: &str = "update t set n = n + 1 where id = 1";
    let stage = Stage::new(&["--catalog-age-ms", "600000"]).await;
    let other = connect(&stage.gateway.config_in(&stage.schema)).await;
    stage.warm_up(UPDATE).await;
    stage.direct.batch_execute("create table other (a int)").await.unwrap();
    // The first run of each command may ask what state it leaves.
    let commands = [
        "begin; create temp table x (a int) on commit drop; commit",
        "do $$ begin perform 1; end $$",
        "truncate other",
        "comment on table other is 'x'",
        "grant select on other to public",
        "analyze other",
    ];
    for round in 0..20 {
        let before = (stage.questions(), stage.gateway.metric("packed_units_total"));
        for command in commands {
            other.batch_execute(command).await.unwrap();
            stage.client.simple_query(UPDATE).await.unwrap();
        }
        let packed = stage.gateway.metric("packed_units_total") - before.1;
        assert_eq!(packed, commands.len() as u64, "in round {round}");
        assert!(round == 0 || stage.questions() == before.0, "questions in round {round}");
    }
    // A command that can change what a name means.
    let before = stage.questions();
    other.batch_execute("create function harmless() returns int language sql as 'select 1'").await.unwrap();
    stage.warm_up(UPDATE).await;
    assert!(stage.questions() > before);
}

/// The tables of an application, or of tenants with a schema each, are updated in turns by few lanes.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_table_is_compared_once_by_each_lane_however_many_tables_there_are() {
    const TABLES: u64 = 60;
    let stage = Stage::new(&["--lanes", "2"]).await;
    for table in 0..TABLES {
        let table =
            format!("create table t{table} (id int primary key, n int); insert into t{table} values (1, 0)");
        stage.direct.batch_execute(&table).await.unwrap();
    }
    let update_all = async || {
        for table in 0..TABLES {
            stage.client.simple_query(&format!("update t{table} set n = n + 1 where id = 1")).await.unwrap();
        }
    };
    let packed = || stage.gateway.metric("packed_units_total");
    until("all updates are packed", || async {
        let before = packed();
        update_all().await;
        packed() == before + TABLES
    })
    .await;
    // A change of the catalog by another test of this server begins a new epoch, in which each lane compares again.
    until("a round compares nothing", async || {
        let compared = stage.gateway.metric("table_comparisons_total");
        update_all().await;
        stage.gateway.metric("table_comparisons_total") == compared
    })
    .await;
}

#[tokio::test]
async fn a_statement_is_packed_although_other_clients_have_all_connections() {
    const UPDATE: &str = "update t set n = n + 1 where id = 1";
    let stage =
        Stage::new(&["--held-connections-max", "2", "--held-wait-ms", "600000", "--catalog-age-ms", "50"])
            .await;
    let mut holders = Vec::new();
    for _ in 0..2 {
        let holder = connect(&stage.gateway.config_in(&stage.schema)).await;
        holder.batch_execute("begin; select 1").await.unwrap();
        holders.push(holder);
    }
    // The first run needs a connection, until there is a verdict. Later verdicts age and are made again.
    for _ in 0..20 {
        stage.client.simple_query(UPDATE).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await; // the age of facts is a time
    }
    assert_eq!(value(&stage.direct, "select n from t where id = 1").await, "20");
    assert_eq!(stage.gateway.metric("packed_units_total"), 20);
    holders[0].batch_execute("rollback").await.unwrap();
    drop(holders);
}

#[tokio::test]
async fn a_verdict_of_an_earlier_catalog_does_not_prove_that_a_run_leaves_nothing() {
    const UPDATE: &str = "update t set n = plus(n) where id = 1";
    let stage = Stage::new(&[]).await;
    let lock = format!("1, hashtext('{}')", stage.schema);
    let others = connect(&stage.gateway.config_in(&stage.schema)).await;
    for round in 0..3 {
        let harmless =
            "create or replace function plus(int) returns int language sql immutable as 'select $1 + 1'";
        others.batch_execute(harmless).await.unwrap();
        stage.warm_up(UPDATE).await;
        let leaver = connect(&stage.gateway.config_in(&stage.schema)).await;
        let locking = format!(
            "create or replace function plus(int) returns int language plpgsql as
             $$begin perform pg_advisory_lock({lock}); return $1 + 1; end$$"
        );
        others.batch_execute(&locking).await.unwrap();
        leaver.simple_query(UPDATE).await.unwrap();
        let is_free = format!("select pg_try_advisory_lock({lock})");
        assert_eq!(value(&stage.direct, &is_free).await, "f", "round {round}");
        drop(leaver);
        until("the lock ends with its client", || async { value(&stage.direct, &is_free).await == "t" })
            .await;
        value(&stage.direct, &format!("select pg_advisory_unlock({lock})")).await;
    }
}

/// More statements wait for a verdict than the gateway keeps in mind, and a session waits for a connection with one more.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_session_waits_for_its_connection_if_too_many_statements_wait_for_verdicts() {
    let stage = Stage::new(&["--held-connections-max", "1", "--held-wait-ms", "600000"]).await;
    let (mut first, mut second) = (stage.raw().await, stage.raw().await);
    let update =
        |name: &str| format!("update t set n = n + 1, note = note || '' where id = 1 and '{name}' <> ''");
    for round in 0..3 {
        let mut many = extended("begin", &[]);
        for number in 0..1_500 {
            let columns = format!("n as r{round}, n as c{number}");
            many.extend(extended(&format!("select {columns} from t where id = $1"), &[Some("1")]));
        }
        first.send(&many).await;
        second.send(&extended(&update(&format!("round {round}")), &[])).await;
        first.until_ready(1_501).await;
        first.send(&extended("commit", &[])).await;
        assert_eq!(tags(&first.until_ready(1).await), "12CZ");
        assert_eq!(tags(&second.until_ready(1).await), "12CZ", "round {round}");
    }
}

/// A migration has locked a table, and an application with a timeout tries again and again.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_locked_table_does_not_keep_statements_on_others_from_their_verdicts() {
    let (database, direct) = new_database().await;
    for table in ["t", "a", "b", "c"] {
        let table =
            format!("create table {table} (id int primary key, n int); insert into {table} values (1, 0)");
        direct.batch_execute(&table).await.unwrap();
    }
    direct
        .batch_execute(&format!("alter database {database} set statement_timeout = '100ms'"))
        .await
        .unwrap();
    let gateway = Gateway::start(&NO_WAIT);
    let mut config = gateway.config();
    let client = connect(config.dbname(&database)).await;
    let parameters = [("user", "postgres"), ("database", &*database)];
    let mut applications = Vec::new();
    for _ in 0..3 {
        applications.push(Raw::login(gateway.port(), &parameters).await);
    }
    let stage = Stage { gateway, schema: "public".to_owned(), client, direct };
    stage.direct.batch_execute("begin; lock table t in access exclusive mode").await.unwrap();
    let tries = applications.into_iter().enumerate().map(|(client, mut application)| {
        tokio::spawn(async move {
            for number in 0_u64.. {
                let text = format!("update t set n = n + $1 where id = $2 returning n as n{client}_{number}");
                application.send(&extended(&text, &[Some("1"), Some("1")])).await;
                application.until_ready(1).await;
            }
        })
    });
    let tries: Vec<_> = tries.collect();
    for table in ["a", "b", "c"] {
        stage.warm_up(&format!("update {table} set n = n + 1 where id = 1")).await;
    }
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'hotrow'
        and wait_event_type = 'Lock' and clock_timestamp() - query_start > interval '2 s'";
    assert_eq!(value(&stage.direct, waiting).await, "0", "questions of the gateway wait for the lock");
    tries.iter().for_each(tokio::task::JoinHandle::abort);
    stage.direct.batch_execute("rollback").await.unwrap();
}
