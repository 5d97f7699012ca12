//! A reload of `[[server]]` and `[[database]]` tables: connected clients finish where they are, new clients see the new
//! tables, and a file with an error changes nothing. The errors name the table and the remedy.

use hotrow_testkit::{hotrow, until, value};

use crate::servers::{Stage, client, config, databases, refusal};

const PORT: &str = "select current_setting('port')";

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_changed_table_applies_to_new_clients_and_a_removed_one_refuses_them() {
    let stage = Stage::new();
    let (one, two) = (stage.one.port().to_string(), stage.two.port().to_string());
    let here = "database = \"postgres\"";
    let gateway = stage.gateway(&databases(&[("app", "one", here), ("stays", "one", here)]), &[]);
    let old = client(gateway.port(), "app").await;
    let stays = client(gateway.port(), "stays").await;
    let statement = old.prepare(PORT).await.unwrap();
    assert_eq!(value(&old, PORT).await, one);
    old.batch_execute("create table t (id int primary key, n int); insert into t values (1, 0); begin; update t set n = 1 where id = 1")
        .await
        .unwrap();

    stage
        .reload(&gateway, &databases(&[("app", "two", here), ("stays", "one", here), ("new", "two", here)]))
        .await;
    old.batch_execute("commit").await.unwrap();
    let new = client(gateway.port(), "app").await;
    assert_eq!(value(&new, PORT).await, two);
    assert_eq!(value(&client(gateway.port(), "new").await, PORT).await, two);
    for _ in 0..3 {
        assert_eq!(value(&old, PORT).await, one, "the connected client stays at its server");
        assert_eq!(old.query_one(&statement, &[]).await.unwrap().get::<_, String>(0), one);
        assert_eq!(
            value(&old, "update t set n = n + 1 where id = 1 returning current_setting('port')").await,
            one
        );
        assert_eq!(value(&new, PORT).await, two);
    }
    // A session that changes a setting changes its pool, and not its server.
    old.batch_execute("set statement_timeout = '9s'").await.unwrap();
    assert_eq!(value(&old, PORT).await, one);

    stage.reload(&gateway, &databases(&[("stays", "one", here)])).await;
    assert_eq!(refusal(&config(gateway.port(), "app")).await.0, "3D000");
    assert_eq!((value(&old, PORT).await, value(&new, PORT).await), (one.clone(), two));
    assert_eq!(value(&stays, PORT).await, one);
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_pause_lasts_until_it_is_ended_although_the_clients_leave_and_the_server_changes() {
    let stage = Stage::new();
    let here = "database = \"postgres\"";
    for command in ["pause", "kill"] {
        let gateway = stage.gateway(
            &databases(&[("app", "one", here), ("other", "one", here)]),
            &["--server-wait-ms", "300"],
        );
        let old = client(gateway.port(), "app").await;
        assert_eq!(value(&old, PORT).await, stage.one.port().to_string());
        let console = client(gateway.port(), "hotrow").await;
        console.batch_execute(&format!("{command} app")).await.unwrap();
        drop(old);
        until("the client has left", async || gateway.metric("clients") == 0).await;
        stage.reload(&gateway, &databases(&[("app", "two", here), ("other", "one", here)])).await;
        until("its pool is closed", async || gateway.log().contains("pool closed")).await;
        assert_eq!(refusal(&config(gateway.port(), "app")).await.0, "57P03", "after {command}");
        client(gateway.port(), "other").await;
        console.batch_execute("resume app").await.unwrap();
        let new = client(gateway.port(), "app").await;
        assert_eq!(value(&new, PORT).await, stage.two.port().to_string());
    }
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_file_with_an_error_in_a_table_changes_nothing() {
    let stage = Stage::new();
    let here = "database = \"postgres\"";
    let good = databases(&[("app", "one", here)]);
    let gateway = stage.gateway(&good, &[]);
    let connected = client(gateway.port(), "app").await;
    for (settings, words) in [
        (databases(&[("app", "three", here)]), ["no such [[server]]", "one, two"]),
        (databases(&[("app", "one", here), ("app", "two", here)]), ["two [[database]]", "\"app\""]),
        (format!("{good}[[database]]\nname = \"b\"\n"), ["\"b\" names no server", "server ="]),
        (
            format!("{good}[[database]]\nname = \"b\"\nhost = \"x\"\n"),
            ["hotrow.toml:", "unknown field `host`"],
        ),
        (format!("upstream = \"postgres://x\"\n{good}"), ["upstream is set", "remove one"]),
        (String::new(), ["no [[database]] table", "name = \"*\""]),
    ] {
        let log = stage.reload(&gateway, &settings).await;
        assert!(log.contains("not reloaded"), "{settings}: {log}");
        assert!(words.iter().all(|word| log.contains(word)), "{settings}: {log}");
        assert_eq!(value(&connected, PORT).await, stage.one.port().to_string());
        assert_eq!(value(&client(gateway.port(), "app").await, PORT).await, stage.one.port().to_string());
    }
    // The same errors at the start, with the exit status of a failure.
    let file = stage.file("wrong.toml", &databases(&[("app", "three", here)]));
    let output = hotrow().args(["serve", "--config", file.to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("no such [[server]]"), "{text}");
}
