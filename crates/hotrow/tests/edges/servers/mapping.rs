//! Names of databases and users at the gateway and at the server, the wildcard, secrets of each server, and the console.

use hotrow_testkit::{Gateway, connect, rows, until, value};
use tokio_postgres::Client;

use crate::servers::{Stage, client, config, databases, refusal};

const ALL_BY_PASSWORD: &str = "host all all 127.0.0.1/32 scram-sha-256\n";

async fn direct(port: u16, text: &str) -> Client {
    let client = client(port, "postgres").await;
    client.batch_execute(text).await.unwrap();
    client
}

/// `user@database on port`, as the server sees it.
async fn place(client: &Client) -> String {
    value(client, "select concat(current_user, '@', current_database(), ' on ', current_setting('port'))")
        .await
}

#[tokio::test]
async fn names_at_the_gateway_stand_for_names_at_the_servers() {
    let stage = Stage::new();
    let (one, two) = (stage.one.port(), stage.two.port());
    direct(one, "create role app login; create role ann login")
        .await
        .batch_execute("create database live")
        .await
        .unwrap();
    direct(two, "create role app login; create role ann login")
        .await
        .batch_execute("create database other")
        .await
        .unwrap();
    let tables = databases(&[
        ("shop", "one", "database = \"live\"\nuser = \"app\"\npassword = \"unused\""),
        ("plain", "one", "database = \"live\""),
        ("*", "two", ""),
    ]);
    let gateway = stage.gateway(&tables, &[]);
    let ann = |database: &'static str| connect_as(&gateway, database, "ann");
    assert_eq!(place(&ann("shop").await).await, format!("app@live on {one}"));
    assert_eq!(place(&ann("plain").await).await, format!("ann@live on {one}"));
    assert_eq!(place(&ann("other").await).await, format!("ann@other on {two}"));
    assert_eq!(place(&client(gateway.port(), "postgres").await).await, format!("postgres@postgres on {two}"));

    // What only the server knows keeps the server's own error.
    let (code, _) = refusal(&config(gateway.port(), "missing")).await;
    assert_eq!(code, "3D000");

    // Two clients of different users share the connections of the user at the server.
    let (first, second) = (ann("shop").await, connect_as(&gateway, "shop", "bob").await);
    for client in [&first, &second] {
        client.batch_execute("listen c").await.unwrap();
        assert_eq!(place(client).await, format!("app@live on {one}"));
    }
    // A session that changes a setting moves to another pool of the same server.
    first.batch_execute("set statement_timeout = '9s'").await.unwrap();
    assert_eq!(value(&first, "show statement_timeout").await, "9s");
    assert_eq!(place(&first).await, format!("app@live on {one}"));
}

async fn connect_as(gateway: &Gateway, database: &'static str, user: &'static str) -> Client {
    connect(config(gateway.port(), database).user(user)).await
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_database_that_no_table_names_is_refused_after_the_login() {
    let stage = Stage::new();
    direct(stage.one.port(), "create role ann login password 'right'").await;
    let list = stage.file("hba.conf", ALL_BY_PASSWORD);
    let gateway =
        stage.gateway(&databases(&[("postgres", "one", "")]), &["--hba-file", list.to_str().unwrap()]);
    let ann = |database: &str, password: &str| {
        config(gateway.port(), database).user("ann").password(password).clone()
    };
    connect(&ann("postgres", "right")).await;
    let (code, text) = refusal(&ann("shop", "right")).await;
    assert_eq!(code, "3D000");
    assert!(text.contains("\"shop\"") && text.contains("[[database]]"), "{text}");
    // A stranger does not learn which databases there are.
    let (code, _) = refusal(&ann("shop", "wrong")).await;
    assert_eq!(code, "28P01");
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn secrets_are_those_of_the_databases_own_server() {
    let stage = Stage::new();
    for (port, password) in [(stage.one.port(), "first"), (stage.two.port(), "second")] {
        let text =
            format!("create role ann login password '{password}'; create role app login password 'apps'");
        direct(port, &text).await;
    }
    // Server two requires passwords of everyone but the gateway's own user: the client's proof is used there.
    let admin = client(stage.two.port(), "postgres").await;
    let file = value(&admin, "show hba_file").await;
    std::fs::write(file, "host all postgres 127.0.0.1/32 trust\nlocal all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n").unwrap();
    value(&admin, "select pg_reload_conf()").await;
    until("the server requires passwords", async || {
        hotrow_testkit::try_connect(config(stage.two.port(), "postgres").user("ann")).await.is_err()
    })
    .await;
    let list = stage.file("hba.conf", ALL_BY_PASSWORD);
    let tables = databases(&[
        ("left", "one", "database = \"postgres\""),
        ("right", "two", "database = \"postgres\""),
        ("mapped", "two", "database = \"postgres\"\nuser = \"app\"\npassword = \"apps\""),
        ("broken", "two", "database = \"postgres\"\nuser = \"app\"\npassword = \"other\""),
    ]);
    let gateway = stage.gateway(&tables, &["--hba-file", list.to_str().unwrap()]);
    let ann = |database: &str, password: &str| {
        config(gateway.port(), database).user("ann").password(password).clone()
    };
    let (one, two) = (stage.one.port(), stage.two.port());
    assert_eq!(place(&connect(&ann("left", "first")).await).await, format!("ann@postgres on {one}"));
    assert_eq!(place(&connect(&ann("right", "second")).await).await, format!("ann@postgres on {two}"));
    assert_eq!(refusal(&ann("left", "second")).await.0, "28P01");
    assert_eq!(refusal(&ann("right", "first")).await.0, "28P01");
    // The client proves its own password, and the gateway logs in with the table's.
    assert_eq!(place(&connect(&ann("mapped", "second")).await).await, format!("app@postgres on {two}"));
    assert_eq!(refusal(&ann("mapped", "apps")).await.0, "28P01");
    assert_eq!(refusal(&ann("broken", "second")).await.0, "28P01");
    assert!(!gateway.log().contains("apps"), "the log has a password");
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn the_console_shows_and_pauses_each_database_by_its_own_name() {
    let stage = Stage::new();
    for port in [stage.one.port(), stage.two.port()] {
        direct(port, "create role app login").await;
    }
    let tables = databases(&[
        ("left", "one", "database = \"postgres\"\nuser = \"app\""),
        ("right", "two", "database = \"postgres\""),
        ("unused", "two", ""),
    ]);
    let gateway = stage.gateway(&tables, &[]);
    let (left, right) = (client(gateway.port(), "left").await, client(gateway.port(), "right").await);
    value(&left, "select 1").await;
    let console = client(gateway.port(), "hotrow").await;
    let shown = rows(&console, "show databases").await.unwrap();
    let columns = |row: &Vec<Option<String>>| {
        [0, 2, 3, 4].map(|index| row[index].clone().unwrap_or_default()).join(" ")
    };
    let shown: Vec<String> = shown.iter().map(columns).collect();
    let (one, two) = (stage.one.port(), stage.two.port());
    assert_eq!(
        shown,
        [
            format!("left {one} postgres app"),
            format!("right {two} postgres "),
            format!("unused {two} unused ")
        ]
    );
    let servers = rows(&console, "show servers").await.unwrap();
    let names: Vec<&str> = servers.iter().map(|row| row[2].as_deref().unwrap_or_default()).collect();
    assert!(names.contains(&"left") && names.contains(&"right"), "{names:?}");

    console.batch_execute("pause right").await.unwrap();
    let waits = tokio::spawn(async move { value(&right, "select current_setting('port')").await });
    for _ in 0..3 {
        assert_eq!(value(&left, "select current_setting('port')").await, one.to_string());
    }
    assert!(!waits.is_finished());
    let paused: Vec<Option<String>> =
        rows(&console, "show databases").await.unwrap().into_iter().map(|row| row[11].clone()).collect();
    assert_eq!(paused, ["0", "1", "0"].map(|text| Some(text.to_owned())));
    console.batch_execute("resume right").await.unwrap();
    assert_eq!(waits.await.unwrap(), two.to_string());
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_change_of_the_catalog_through_one_name_takes_effect_under_all_names_of_a_database() {
    let stage = Stage::new();
    direct(
        stage.one.port(),
        "create table t (id int primary key, v varchar); insert into t values (1, 'abc')",
    )
    .await;
    let here = "database = \"postgres\"";
    let before = databases(&[("left", "one", here), ("alias", "one", here)]);
    let gateway = stage.gateway(&before, &["--catalog-age-ms", "600000"]);
    let (left, alias) = (client(gateway.port(), "left").await, client(gateway.port(), "alias").await);
    let read = "select left(v, 2) from t where id = 1";
    let create = |answer: &str| {
        format!(
            "create or replace function public.left(varchar, int) returns text immutable as 'select ''{answer}''::text' language sql"
        )
    };
    for _ in 0..3 {
        assert_eq!(value(&left, read).await, "ab");
    }
    alias.batch_execute(&create("other name")).await.unwrap();
    assert_eq!(value(&left, read).await, "other name");
    left.batch_execute("drop function public.left(varchar, int)").await.unwrap();
    for _ in 0..3 {
        assert_eq!(value(&left, read).await, "ab");
    }
    // The same after a reload that gives the name another table: connected clients keep the earlier one.
    stage.reload(&gateway, &databases(&[("left", "one", &format!("{here}\nuser = \"postgres\""))])).await;
    client(gateway.port(), "left").await.batch_execute(&create("new table")).await.unwrap();
    assert_eq!(value(&left, read).await, "new table");
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn the_hotrow_schema_is_kept_in_each_database_and_http_serves_the_first() {
    let stage = Stage::new();
    for port in [stage.one.port(), stage.two.port()] {
        hotrow_testkit::migrate(&format!("postgres://postgres@127.0.0.1:{port}/postgres"));
    }
    let tables =
        databases(&[("left", "one", "database = \"postgres\""), ("right", "two", "database = \"postgres\"")]);
    let gateway = stage.gateway(&tables, &["--http", "127.0.0.1:0"]);
    let port = gateway.http_port();
    request(port, "PUT", "/v1/counters/visits").await;
    request(port, "POST", "/v1/counters/visits/increment").await;
    let counters = "select value from hotrow.counter('visits')";
    let (one, two) = (direct(stage.one.port(), "select").await, direct(stage.two.port(), "select").await);
    assert_eq!([value(&one, counters).await, value(&two, counters).await], ["1", "0"]);

    // A post that is fanned out in chunks arrives, although no client fans it out. The metrics count both databases.
    let work = [
        "update hotrow.setting set feed_inline = 0",
        "select hotrow.follow(1, 9)",
        "select hotrow.post(9, 'hello')",
        "select hotrow.create_queue('jobs', max_attempts => 1)",
        "select hotrow.enqueue('jobs', gen_random_uuid())",
        "select hotrow.fail('jobs', receipt) from hotrow.take('jobs', 1)",
    ];
    for direct in [&one, &two] {
        for text in work {
            direct.batch_execute(text).await.unwrap();
        }
    }
    for direct in [&one, &two] {
        until("the post is delivered", async || {
            value(direct, "select count(*) from hotrow.fan_out").await == "0"
        })
        .await;
    }
    until("both rounds are counted", async || gateway.metrics().contains("hotrow_dead_letters 2\n")).await;
    assert_eq!(gateway.metric("maintenance_failures_total"), 0, "{}", gateway.log());
}

/// A request to the HTTP API, which must succeed.
async fn request(port: u16, method: &str, path: &str) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn each_server_has_its_own_replicas() {
    let stage = Stage::new();
    let made = "create table item (id int primary key, n int); insert into item values (1, 0)";
    for port in [stage.one.port(), stage.two.port()] {
        direct(port, made).await;
    }
    let standby = stage.one.standby().unwrap();
    let replicas = format!("replicas = \"host=127.0.0.1 port={} sslmode=disable\"\n", standby.port());
    let tables = databases(&[
        ("first", "one", "database = \"postgres\""),
        ("second", "two", "database = \"postgres\""),
    ]);
    let servers = stage.servers().replacen("\n[[server]]", &format!("\n{replicas}[[server]]"), 1);
    let file = stage.file("hotrow.toml", &format!("{tables}\n{servers}"));
    let gateway = Gateway::with(&["--config", file.to_str().unwrap()]);
    let reader = async |database: &str| {
        let client = client(gateway.port(), database).await;
        client.batch_execute("set hotrow.reads = replica").await.unwrap();
        client
    };
    let read = "select n from item where id = 1";
    let (first, second) = (reader("first").await, reader("second").await);
    until("the replica answers reads", || async {
        first.batch_execute(read).await.unwrap();
        gateway.metric("replica_reads_total") > 0
    })
    .await;
    let before = gateway.metric("replica_reads_total");
    for _ in 0..20 {
        second.batch_execute(read).await.unwrap();
    }
    assert_eq!(gateway.metric("replica_reads_total"), before, "the other server has no replica");
    let console = client(gateway.port(), "hotrow").await;
    let shown = rows(&console, "show replicas").await.unwrap();
    let port = format!(":{}", standby.port());
    assert!(shown.len() == 1 && shown[0][3].as_ref().unwrap().ends_with(&port), "{shown:?}");
}
