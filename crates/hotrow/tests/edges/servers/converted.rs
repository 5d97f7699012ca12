//! `hotrow convert`: a gateway starts with the settings that it writes, and serves clients as the other pooler did.

use std::path::Path;

use hotrow_testkit::{Gateway, connect, hotrow, rows, value};

use crate::servers::{Stage, client, config, refusal};

/// Runs `hotrow convert`. Returns its standard error, and the settings file.
fn convert(stage: &Stage, name: &str, text: &str) -> (String, std::path::PathBuf) {
    let from = stage.file(name, text);
    let to = stage.folder.path().join("converted.toml");
    let output = hotrow()
        .arg("convert")
        .arg(&from)
        .arg("--output")
        .arg(&to)
        .current_dir(stage.folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    (said, to)
}

#[test]
fn a_file_that_exists_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("pgbouncer.ini"), folder.path().join("hotrow.toml"));
    std::fs::write(&from, "[databases]\nshop = host=127.0.0.1\n").unwrap();
    std::fs::write(&to, "mine").unwrap();
    let output = hotrow().arg("convert").arg(&from).arg("--output").arg(&to).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("hotrow.toml exists, and nothing was written"), "{error}");
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no access file beside it");
}

/// A gateway with these settings, on a port of its own choice.
fn start(file: &Path) -> Gateway {
    Gateway::with(&["--config", file.to_str().unwrap(), "--listen", "127.0.0.1:0"])
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_file_of_pgbouncer_becomes_a_gateway_for_the_same_clients() {
    let stage = Stage::new();
    let (one, two) = (stage.one.port(), stage.two.port());
    for port in [one, two] {
        let text = "create role ann login password 'anns'; create role app login; create role bob login password 'bobs'";
        client(port, "postgres").await.batch_execute(text).await.unwrap();
    }
    stage.file("userlist.txt", "\"ann\" \"anns\"\n\"postgres\" \"\"\n");
    let ini = format!(
        "[databases]\nshop = host=127.0.0.1 port={one} dbname=postgres user=app\n\"the rest\" = host=127.0.0.1 port={two} dbname=postgres auth_user=postgres\n* = host=127.0.0.1 port={two}\n
[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = 6432\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\nauth_user = postgres\nmax_client_conn = 50\nserver_lifetime = 60\nadmin_users = ann\n",
        stage.folder.path().join("userlist.txt").display()
    );
    let (said, file) = convert(&stage, "pgbouncer.ini", &ini);
    assert!(said.contains("server_lifetime: no counterpart"), "{said}");
    let gateway = start(&file);
    let place = "select concat(current_user, ' ', current_setting('port'))";
    let ann = |database: &str, password: &str| {
        config(gateway.port(), database).user("ann").password(password).clone()
    };
    assert_eq!(value(&connect(&ann("shop", "anns")).await, place).await, format!("app {one}"));
    assert_eq!(value(&connect(&ann("the rest", "anns")).await, place).await, format!("ann {two}"));
    assert_eq!(value(&connect(&ann("postgres", "anns")).await, place).await, format!("ann {two}"));
    assert_eq!(refusal(&ann("shop", "other")).await.0, "28P01");
    // By auth_query, as auth_user.
    let bob = config(gateway.port(), "postgres").user("bob").password("bobs").clone();
    assert_eq!(value(&connect(&bob).await, place).await, format!("bob {two}"));
    let console = connect(&ann("hotrow", "anns")).await;
    console.simple_query("show databases").await.unwrap();
    let settings = rows(&console, "show config").await.unwrap();
    assert!(
        settings
            .iter()
            .any(|row| row[0].as_deref() == Some("clients_max") && row[1].as_deref() == Some("50"))
    );
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_file_of_pgcat_becomes_a_gateway_for_the_same_clients() {
    let stage = Stage::new();
    let (one, two) = (stage.one.port(), stage.two.port());
    client(one, "postgres").await.batch_execute("create role simple_user login").await.unwrap();
    client(two, "postgres")
        .await
        .batch_execute("create role app login; create role simple_user login")
        .await
        .unwrap();
    let toml = format!(
        "[general]\nhost = \"127.0.0.1\"\nport = 6433\nadmin_username = \"admin\"\nadmin_password = \"secret\"\nban_time = 60\n
[pools.simple.users.0]\nusername = \"simple_user\"\npassword = \"simple\"\npool_size = 5\n[pools.simple.shards.0]\nservers = [[\"127.0.0.1\", {one}, \"primary\"]]\ndatabase = \"postgres\"\n
[pools.mapped.users.0]\nusername = \"someone\"\npassword = \"theirs\"\nserver_username = \"app\"\nserver_password = \"\"\npool_size = 5\n[pools.mapped.shards.0]\nservers = [[\"127.0.0.1\", {two}, \"primary\"]]\ndatabase = \"postgres\"\n"
    );
    let (said, file) = convert(&stage, "pgcat.toml", &toml);
    assert!(said.contains("general.ban_time: no counterpart"), "{said}");
    let users = std::fs::read_to_string(stage.folder.path().join("hotrow_users.txt")).unwrap();
    assert!(users.contains("\"simple_user\" \"simple\"") && !said.contains("theirs"), "{users}{said}");
    let gateway = start(&file);
    let place = "select concat(current_user, ' ', current_setting('port'))";
    let of = |database: &str, user: &str, password: &str| {
        config(gateway.port(), database).user(user).password(password).clone()
    };
    assert_eq!(
        value(&connect(&of("simple", "simple_user", "simple")).await, place).await,
        format!("simple_user {one}")
    );
    assert_eq!(value(&connect(&of("mapped", "someone", "theirs")).await, place).await, format!("app {two}"));
    assert_eq!(refusal(&of("mapped", "someone", "wrong")).await.0, "28P01");
    // A user is admitted to the pools that list it only, although the server would let it in.
    for (database, user, password) in [
        ("mapped", "simple_user", "simple"),
        ("simple", "someone", "theirs"),
        ("sharded", "someone", "theirs"),
        ("hotrow", "someone", "theirs"),
        ("simple", "admin", "secret"),
    ] {
        assert_eq!(refusal(&of(database, user, password)).await.0, "28000", "{user} to {database}");
    }
    connect(&of("hotrow", "admin", "secret")).await.simple_query("show pools").await.unwrap();
}

#[test]
fn what_cannot_be_converted_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, words) in [
        ("pgbouncer.ini", "[databases]\na = host='x\n", "line 2: "),
        ("pgbouncer.ini", "[pgbouncer]\nauth_type = md5\n", "names no database"),
        ("pgcat.toml", "[general\n", "pgcat.toml: "),
        ("odyssey.conf", "storage {}", "neither an .ini file"),
    ] {
        let path = crate::servers::write(folder.path(), name, text);
        let output = hotrow().arg("convert").arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words) && output.stdout.is_empty(), "{said}");
    }
}
