//! SIGHUP: settings of the file apply at once, a file with a mistake changes nothing, and changes that need a restart
//! are reported.

use hotrow_testkit::{sqlstate, try_connect, until, value};

use crate::Stage;

#[tokio::test]
async fn reloaded_settings_apply_to_connected_clients() {
    let stage = Stage::new("pack = true\n", &[]).await;
    let client = stage.client().await;
    assert!(stage.packs(&client).await);
    stage.reload("pack = false\n").await;
    assert!(!stage.packs(&client).await);
    assert_eq!(value(&client, "show hotrow.pack").await, "off");
    stage.reload("").await;
    assert!(stage.packs(&client).await, "a setting that is removed has its default again");
    assert!(!client.is_closed());
}

/// The switch for one table.
#[tokio::test]
async fn statements_of_a_table_are_passed_through_from_a_reload_to_another() {
    let stage = Stage::new("", &[]).await;
    let client = stage.client().await;
    assert!(stage.packs(&client).await);
    stage.reload("unpacked_tables = \"other, t\"\n").await;
    assert!(!stage.packs(&client).await);
    let console = stage.console().await;
    let statements = hotrow_testkit::rows(&console, "show statements").await.unwrap();
    assert!(
        statements.iter().any(|row| format!("{row:?}").contains("unpacked_tables names its table")),
        "{statements:?}"
    );
    stage.reload("[[pool]]\nunpacked_tables = \"nowhere.t\"\n").await;
    assert!(stage.packs(&client).await, "a table of another schema");
}

#[tokio::test]
async fn lanes_that_run_keep_their_connections_for_the_reloaded_time() {
    let stage = Stage::new("lanes = 1\n", &[]).await;
    let client = stage.client().await;
    assert!(stage.packs(&client).await);
    stage.reload("lanes = 1\nheld_idle_ms = 200\n").await;
    assert!(stage.packs(&client).await);
    let console = stage.console().await;
    // With the time of the start, a minute, the connection would stay open for longer than this waits.
    until("the lane has closed its connection", async || {
        let lanes = hotrow_testkit::rows(&console, "show lanes").await.unwrap();
        lanes
            .iter()
            .map(|lane| format!("{lane:?}"))
            .any(|lane| lane.contains("write") && lane.contains("closed"))
    })
    .await;
}

#[tokio::test]
async fn limits_grow_and_shrink_while_they_are_used() {
    let stage = Stage::new("clients_max = 2\nheld_connections_max = 1\nheld_wait_ms = 1000\n", &[]).await;
    let config = stage.gateway.config_in(&stage.schema);
    let (one, two) = (stage.client().await, stage.client().await);
    let refused = try_connect(&config).await.err().unwrap();
    assert_eq!(sqlstate(&refused), "53300");
    one.batch_execute("begin; select 1").await.unwrap();
    let busy = two.batch_execute("begin; select 1").await.unwrap_err();
    assert_eq!(sqlstate(&busy), "53300", "{busy:?}");
    two.batch_execute("rollback").await.unwrap(); // of the failed transaction
    stage.reload("clients_max = 3\nheld_connections_max = 2\nheld_wait_ms = 20000\n").await;
    two.batch_execute("begin; select 1").await.unwrap();
    let three = stage.client().await;
    assert_eq!(sqlstate(&try_connect(&config).await.err().unwrap()), "53300");
    stage.reload("clients_max = 1\nheld_connections_max = 1\nheld_wait_ms = 1000\n").await;
    one.batch_execute("commit").await.unwrap();
    assert_eq!(
        sqlstate(&one.batch_execute("begin; select 1").await.unwrap_err()),
        "53300",
        "one connection is over the limit already"
    );
    one.batch_execute("rollback").await.unwrap();
    two.batch_execute("commit").await.unwrap();
    one.batch_execute("begin; commit").await.unwrap();
    let text = try_connect(&config).await.err().unwrap();
    assert!(text.as_db_error().unwrap().message().contains("the gateway takes 1"), "{text:?}");
    drop(three);
}

#[tokio::test]
async fn a_file_with_a_mistake_changes_nothing_and_the_log_has_its_line() {
    let stage = Stage::new("pack = false\nlanes = 2\n", &[]).await;
    let client = stage.client().await;
    for (settings, text) in [
        ("pack = true\nlane = 2\n", "hotrow.toml:2: unknown field `lane`"),
        ("pack = true\n\nlanes = 65\n", "hotrow.toml:3: lanes is 65 and must be 1 to 64"),
        ("pack = yes\n", "hotrow.toml:1: "),
    ] {
        let log = stage.reload(settings).await;
        assert!(log.contains("not reloaded"), "{log}");
        assert!(log.contains(text), "{settings:?}: {log}");
        assert!(!stage.packs(&client).await, "{settings:?}");
    }
    std::fs::remove_file(stage.file()).unwrap();
    stage.gateway.signal(nix::sys::signal::Signal::SIGHUP);
    until("the log reports that the file is gone", || async {
        stage.gateway.log().contains("cannot read the configuration file")
    })
    .await;
    stage.reload("pack = true\n").await;
    assert!(stage.packs(&client).await);
}

#[tokio::test]
async fn flags_override_the_file_and_changes_that_need_a_restart_are_reported() {
    let stage = Stage::new("", &["--pack", "false", "--lanes", "1"]).await;
    let client = stage.client().await;
    let log = stage.reload("pack = true\nlanes = 3\nworkers = 2\nlisten = \"127.0.0.1:1\"\n").await;
    assert!(!stage.packs(&client).await);
    assert!(log.contains("workers has changed, and takes effect at the next start"), "{log}");
    assert!(!log.contains("lanes has changed") && !log.contains("listen has changed"), "{log}");
    assert!(stage.client().await.simple_query("select 1").await.is_ok(), "the address stays");
}

#[tokio::test]
async fn reload_reports_an_error_in_the_access_file_or_users_file_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (hba, users) = (folder.path().join("hba.conf"), folder.path().join("users.txt"));
    let (good_hba, good_users) = ("host all,hotrow all 127.0.0.1/32 trust\n", "\"bob\" \"x\"\n");
    std::fs::write(&hba, good_hba).unwrap();
    std::fs::write(&users, good_users).unwrap();
    let options = ["--hba-file", hba.to_str().unwrap(), "--users-file", users.to_str().unwrap()];
    let stage = Stage::new("pack = true\n", &options).await;
    let (client, console) = (stage.client().await, stage.console().await);
    std::fs::write(stage.file(), "pack = false\n").unwrap();
    for (file, good, bad, text) in [
        (&hba, good_hba, "host all all all reject\nhost all all all ident\n", "hba_file"),
        (&users, good_users, "\"bob\" \"x\"\n\"bob\" \"sesame\"\n", "users_file"),
    ] {
        std::fs::write(file, bad).unwrap();
        let error = console.simple_query("reload").await.unwrap_err();
        assert_eq!(sqlstate(&error), "F0000", "{error:?}");
        let message = error.as_db_error().unwrap().message();
        assert!(message.starts_with(text) && message.contains("line 2"), "{message}");
        assert!(!message.contains("sesame"), "{message}");
        assert!(stage.packs(&client).await, "the new setting does not apply either");
        assert!(
            try_connect(&stage.gateway.config_in(&stage.schema)).await.is_ok(),
            "the old file still applies"
        );
        std::fs::write(file, good).unwrap();
    }
    console.simple_query("reload").await.unwrap();
    assert!(!stage.packs(&client).await);
}
