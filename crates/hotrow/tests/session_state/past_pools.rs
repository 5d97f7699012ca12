//! More combinations of settings than there are pools: the sessions past the bound keep their connections until they reset
//! their settings, and the pools stay with those that use them in turns.

use futures_util::future::join_all;
use hotrow_testkit::{Gateway, connect, new_database, rows, until, value};
use tokio_postgres::{Client, Config, Statement};

/// Clients, of which each has other settings. A role may have 25 pools with settings.
const CLIENTS: usize = 40;
const PAST: u64 = 15;
const ROUNDS: usize = 2;

/// A client with its own settings, and statements that it has prepared under them.
struct Customer {
    number: usize,
    client: Client,
    whose: Statement,
    date: Statement,
}

/// The styles of dates, with the 1st of February in each.
const STYLES: [(&str, &str); 4] = [
    ("ISO, DMY", "2020-02-01"),
    ("German, DMY", "01.02.2020"),
    ("SQL, DMY", "01/02/2020"),
    ("Postgres, DMY", "01-02-2020"),
];

/// A gateway, and a database with a schema and a table for each client.
async fn stage() -> (Gateway, Config, Client) {
    let (name, direct) = new_database().await;
    for number in 0..CLIENTS {
        let schema = format!(
            "create schema s{number};
             create table s{number}.whose (n int, {0} int);
             insert into s{number}.whose values ({number}, 0)",
            ["a", "b", "c"][number % 3]
        );
        direct.batch_execute(&schema).await.unwrap();
    }
    // On a busy machine, a client may wait long for its turn.
    let gateway = Gateway::start(&["--held-wait-ms", "30000"]);
    let mut config = gateway.config_in("public");
    config.dbname(&name);
    (gateway, config, direct)
}

impl Customer {
    async fn new(config: &Config, number: usize) -> Self {
        let client = connect(config).await;
        let style = STYLES[number % STYLES.len()].0;
        let settings = format!("set work_mem = '{}kB'; set datestyle = '{style}'", 1030 + number);
        client.batch_execute(&settings).await.unwrap();
        client.batch_execute(&format!("set search_path = s{number}")).await.unwrap();
        let whose = client.prepare("select * from whose").await.unwrap();
        let date = client.prepare("select '1/2/2020'::date::text").await.unwrap();
        Customer { number, client, whose, date }
    }

    /// Each answer is the one of a session with these settings.
    async fn work(&self) {
        let Customer { number, client, whose, date } = self;
        let (style, shown) = STYLES[number % STYLES.len()];
        let memory = format!("{}kB", 1030 + number);
        assert_eq!(value(client, "show work_mem").await, memory);
        assert_eq!(value(client, "show datestyle").await, style);
        assert_eq!(value(client, "select '1/2/2020'::date").await, shown);
        assert_eq!(value(client, "select n from whose").await, number.to_string());
        let row = client.query_one(whose, &[]).await.unwrap();
        assert_eq!(row.columns()[1].name(), ["a", "b", "c"][number % 3]);
        assert_eq!(row.get::<_, i32>(0), i32::try_from(*number).unwrap());
        assert_eq!(client.query_one(date, &[]).await.unwrap().get::<_, &str>(0), shown);
        let columns = ["a", "b", "c"][number % 3];
        let update = format!("update whose set {columns} = {columns} + 1 returning n");
        assert_eq!(value(client, &update).await, number.to_string());

        client.batch_execute("begin; set local work_mem = '70MB'").await.unwrap();
        assert_eq!(value(client, "show work_mem").await, "70MB");
        assert_eq!(value(client, "select n from whose").await, number.to_string());
        client.batch_execute("commit").await.unwrap();
        client.batch_execute("begin; set datestyle = 'ISO, MDY'; rollback").await.unwrap();
        assert_eq!(value(client, "select '1/2/2020'::date").await, shown);
    }
}

/// This number of customers. They come one after another, because each needs a pool on the way to its settings.
async fn customers(config: &Config, count: usize) -> Vec<Customer> {
    let mut customers = Vec::new();
    for number in 0..count {
        customers.push(Customer::new(config, number).await);
    }
    customers
}

/// Waits until this number of clients keeps a connection because of settings without a pool. A session's settings are looked at
/// after its client has the answer.
async fn until_past(gateway: &Gateway, count: u64) {
    let is_it = async || gateway.metric("pinned_clients{reason=\"SET\"}") == count;
    until(&format!("{count} clients have settings without a pool"), is_it).await;
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn sessions_with_more_combinations_of_settings_than_pools_keep_connections() {
    let (gateway, config, direct) = stage().await;
    let customers = customers(&config, CLIENTS).await;
    for _ in 0..ROUNDS {
        join_all(customers.iter().map(Customer::work)).await;
    }
    for number in 0..CLIENTS {
        let column = ["a", "b", "c"][number % 3];
        assert_eq!(
            value(&direct, &format!("select {column} from s{number}.whose")).await,
            ROUNDS.to_string()
        );
    }
    // A client without settings of its own finds none of theirs on the connections that they have had.
    let other = connect(&config).await;
    join_all((0..20).map(|_| async { assert_eq!(value(&other, "show work_mem").await, "4MB") })).await;

    until_past(&gateway, PAST).await;
    // The connections are given back when the sessions give up their settings.
    join_all(customers.into_iter().map(|Customer { client, date, .. }| async move {
        drop(date); // its constant means something else afterwards
        client.batch_execute("reset all").await.unwrap();
        assert_eq!(value(&client, "show work_mem").await, "4MB");
        assert_eq!(value(&client, "show search_path").await, "public");
    }))
    .await;
    until_past(&gateway, 0).await;
}

/// Clients with as many combinations of settings as there are pools for.
async fn fill_pools(gateway: &Gateway, config: &Config) -> Vec<Customer> {
    let customers = customers(config, 25).await;
    // On their way to these settings they have had others, each in a pool that no client has now.
    join_all(customers.iter().map(Customer::work)).await;
    until_past(gateway, 0).await;
    customers
}

/// Each time, the client's statement is not prepared on the connection that it gets.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_constant_keeps_its_meaning_in_and_after_transactions_that_set_other_settings() {
    let (gateway, config, _direct) = stage().await;
    let customers = fill_pools(&gateway, &config).await;
    let console = connect(gateway.config().dbname("hotrow")).await;
    let client = connect(&config).await;
    client.batch_execute("set work_mem = '77MB'; set timezone = 'Europe/Berlin'").await.unwrap();
    until_past(&gateway, 1).await;
    let text = "select extract(epoch from '2024-06-01 00:00'::timestamptz)::int8";
    let midnight = client.prepare(text).await.unwrap();
    let berlin = 1_717_192_800;
    let drawn = async || client.query_one(&midnight, &[]).await.unwrap().get::<_, i64>(0);
    for set in ["set timezone = 'Asia/Tokyo'", "set local timezone = 'Asia/Tokyo'"] {
        for end in ["commit; set timezone = 'Europe/Berlin'", "rollback"] {
            console.batch_execute("reconnect").await.unwrap();
            client.batch_execute("begin").await.unwrap();
            client.batch_execute(set).await.unwrap();
            assert_eq!(drawn().await, berlin, "{set}");
            client.batch_execute(end).await.unwrap();
            assert_eq!(drawn().await, berlin, "after {set}; {end}");
        }
        console.batch_execute("reconnect").await.unwrap();
        client.batch_execute("begin; select 1").await.unwrap();
        client.batch_execute(set).await.unwrap();
        drawn().await; // the server may read the text now
        client.batch_execute("rollback").await.unwrap();
        assert_eq!(drawn().await, berlin, "after select 1; {set}; rollback");
    }
    drop(customers);
}

/// A text that was prepared under other settings keeps its meaning only on its connection.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_session_past_the_bound_keeps_its_connection_for_a_text_of_other_settings() {
    let (gateway, config, _direct) = stage().await;
    let customers = fill_pools(&gateway, &config).await;
    let client = connect(&config).await;
    client.batch_execute("set datestyle = 'SQL, DMY'").await.unwrap();
    until_past(&gateway, 1).await;
    let date = client.prepare("select '1/2/2020'::date = '2020-02-01'::date").await.unwrap();
    for style in ["SQL, MDY", "ISO, MDY", "German, YMD"] {
        client.batch_execute(&format!("set datestyle = '{style}'")).await.unwrap();
        assert_eq!(value(&client, "show datestyle").await, style);
        assert!(client.query_one(&date, &[]).await.unwrap().get::<_, bool>(0), "{style}");
        customers[3].work().await;
    }
    let console = connect(gateway.config().dbname("hotrow")).await;
    until("the session is shown as pinned", async || {
        let clients = rows(&console, "show clients").await.unwrap();
        clients.iter().flatten().flatten().any(|cell| cell.starts_with("pinned: SET"))
    })
    .await;
    drop(date);
    client.batch_execute("discard all").await.unwrap();
    assert_eq!(value(&client, "show datestyle").await, "ISO, MDY");
    until_past(&gateway, 0).await;
}

/// Each request sets the tenant's schema and resets it. There are more tenants than pools.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn pools_stay_with_sessions_that_use_their_settings_in_turns() {
    const TENANTS: usize = 32;
    const TURNS: usize = 4;
    let (gateway, config, direct) = stage().await;
    let work = |first: usize| {
        let config = &config;
        async move {
            let client = connect(config).await;
            for tenant in (0..TENANTS).cycle().skip(first).take(TURNS * TENANTS) {
                client.batch_execute(&format!("set search_path = s{tenant}")).await.unwrap();
                let column = ["a", "b", "c"][tenant % 3];
                let update = format!("update whose set {column} = {column} + 1 returning n");
                assert_eq!(value(&client, &update).await, tenant.to_string());
                client.batch_execute("reset search_path").await.unwrap();
                assert_eq!(value(&client, "show search_path").await, "public");
            }
        }
    };
    join_all([0, 11].map(work)).await;
    for tenant in 0..TENANTS {
        let sum = format!("select {} from s{tenant}.whose", ["a", "b", "c"][tenant % 3]);
        assert_eq!(value(&direct, &sum).await, (2 * TURNS).to_string());
    }
    let opened = gateway.log().matches("pool opened").count();
    assert!(opened <= TURNS * TENANTS / 2, "{opened} pools were opened, of which 26 can be open");
    until_past(&gateway, 0).await;
}
