//! The gateway's logins to the server: as which user and by which secret, with the client's own key, with a stored
//! secret, and again when no client is connected.

use crate::{Stage, login};
use hotrow_testkit::{PATIENT_LANES, config, connect, until, value};

const LIST: &str = "host all all all md5";

/// How often a pool of this user was opened.
fn pools(gateway: &crate::Gateway, user: &str) -> usize {
    let opened = format!("{user}@postgres");
    gateway.log().lines().filter(|line| line.contains("pool opened") && line.contains(&opened)).count()
}

/// Waits for the log line of a pool of this user. The log arrives in its own pipe, so the line may arrive after the answer.
async fn one_pool(gateway: &crate::Gateway, user: &str) {
    until("a pool is opened", async || pools(gateway, user) > 0).await;
    assert_eq!(pools(gateway, user), 1);
}

/// Ends all connections of this user at the server.
async fn end_connections(stage: &Stage, user: &str) {
    let of_user = format!("from pg_stat_activity where usename = '{user}'");
    value(&stage.direct, &format!("select count(pg_terminate_backend(pid)) {of_user}")).await;
    let count = format!("select count(*) {of_user}");
    until("the connections are gone", || async { value(&stage.direct, &count).await == "0" }).await;
}

#[tokio::test]
async fn clients_of_one_user_share_a_pool_and_failed_logins_open_none() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let gateway = stage.gateway(LIST, &[]);
    login(gateway.port(), &ann, "wrong").await.unwrap_err();
    // The gateway itself could open a pool of this user.
    login(gateway.port(), "gate", "wrong").await.unwrap_err();
    assert_eq!((pools(&gateway, &ann), pools(&gateway, "gate")), (0, 0));
    for _ in 0..2 {
        assert_eq!(login(gateway.port(), &ann, "anns password").await.as_ref(), Ok(&ann));
    }
    login(gateway.port(), &ann, "wrong").await.unwrap_err();
    one_pool(&gateway, &ann).await;
}

#[tokio::test]
async fn lanes_login_again_with_the_key_of_a_client() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let table = stage.name("t");
    let sql = format!(
        "create table {table} (id int primary key, n int); insert into {table} values (1, 0); alter table {table} owner to {ann}"
    );
    stage.direct.batch_execute(&sql).await.unwrap();
    let gateway = stage.gateway(LIST, &PATIENT_LANES);
    let client = connect(&config(gateway.port()).user(&*ann).password("anns password").to_owned()).await;
    let update = format!("update {table} set n = n + 1 where id = 1 returning n");
    assert_eq!(value(&client, &update).await, "1");
    assert!(gateway.metric("packed_units_total") > 0);
    for n in 2..5 {
        let kill =
            format!("select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = '{ann}'");
        assert_ne!(value(&stage.direct, &kill).await, "0");
        // The outcome of a unit sent to a server that has just gone is unknown, which other tests cover.
        until("the gateway has noticed", || async { gateway.metric("lanes_connected") == 0 }).await;
        assert_eq!(value(&client, &update).await, n.to_string());
    }
}

#[tokio::test]
async fn a_password_can_change_while_clients_are_connected() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "first password").await;
    let gateway = stage.gateway(LIST, &["--server-wait-ms", "500"]);
    let ann_with = |password: &str| config(gateway.port()).user(&*ann).password(password).to_owned();
    let client = connect(&ann_with("first password")).await;
    assert_eq!(value(&client, "select current_user").await, ann);
    let secret_before = stage.secret(&ann).await;
    let change = format!("alter role {ann} password 'second password'");
    stage.direct.batch_execute(&change).await.unwrap();
    assert_ne!(stage.secret(&ann).await, secret_before);
    assert_eq!(value(&client, "select current_user").await, ann, "connected clients stay");
    // The first try may use the remembered secret. Its failure makes the gateway read the secret again at once.
    let _ = login(gateway.port(), &ann, "second password").await;
    assert_eq!(login(gateway.port(), &ann, "second password").await.as_ref(), Ok(&ann));
    assert!(login(gateway.port(), &ann, "first password").await.unwrap_err().starts_with("28P01"));
    end_connections(&stage, &ann).await;
    // The pool has the new key from the last client, also for the first client.
    assert_eq!(value(&client, "select current_user").await, ann);
    one_pool(&gateway, &ann).await;
}

/// A pool that only sessions with other settings use has the key of the last client too.
#[tokio::test]
async fn a_session_that_enters_a_pool_brings_its_key() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "first password").await;
    let gateway = stage.gateway(LIST, &["--server-wait-ms", "500"]);
    let ann_with = |password: &str| config(gateway.port()).user(&*ann).password(password).to_owned();
    let set = "set work_mem = '5MB'";
    let former = connect(&ann_with("first password")).await;
    former.batch_execute(set).await.unwrap();
    former.batch_execute(set).await.unwrap();
    let change = format!("alter role {ann} password 'second password'");
    stage.direct.batch_execute(&change).await.unwrap();
    let _ = login(gateway.port(), &ann, "second password").await;
    let client = connect(&ann_with("second password")).await;
    end_connections(&stage, &ann).await;
    client.batch_execute(set).await.unwrap();
    until("it is served", async || client.simple_query("show work_mem").await.is_ok()).await;
    // A session that has only the former key changes nothing for the others.
    former.batch_execute("set jit = off").await.unwrap();
    former.batch_execute("reset jit").await.unwrap();
    end_connections(&stage, &ann).await;
    until("it is served", async || client.simple_query("show work_mem").await.is_ok()).await;
}

#[tokio::test]
async fn each_kind_of_secret_in_the_users_file_works() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let bob = stage.role("bob", "scram-sha-256", "bobs password").await;
    let old = stage.role("old", "md5", "olds password").await;
    let stale = stage.role("stale", "scram-sha-256", "stales password").await;
    let (anns, olds, stales) =
        (stage.secret(&ann).await, stage.secret(&old).await, stage.secret(&stale).await);
    // The same password with another salt.
    stage.direct.batch_execute(&format!("alter role {stale} password 'stales password'")).await.unwrap();
    let users = format!(
        "\"{ann}\" \"{anns}\"\n\"{bob}\" \"bobs password\"\n\"{old}\" \"{olds}\"\n\"{stale}\" \"{stales}\"\n"
    );
    let users = stage.file("users.txt", &users);
    let gateway = stage.gateway(LIST, &["--users-file", &users, "--auth-query", ""]);
    for (user, password) in [(&ann, "anns password"), (&bob, "bobs password"), (&old, "olds password")] {
        assert_eq!(login(gateway.port(), user, password).await.as_ref(), Ok(user));
        assert!(login(gateway.port(), user, "wrong").await.unwrap_err().starts_with("28P01"));
    }
    let refused = login(gateway.port(), &stale, "stales password").await.unwrap_err();
    assert!(refused.starts_with("28000 the gateway cannot log in at the server"), "{refused}");
    assert!(refused.contains("another SCRAM verifier") && refused.contains("users_file"), "{refused}");
    // Without a query, only users in the file exist.
    let known = stage.role("known", "scram-sha-256", "knowns password").await;
    assert!(login(gateway.port(), &known, "knowns password").await.unwrap_err().starts_with("28P01"));
}

#[tokio::test]
async fn a_user_trusted_by_the_gateway_and_not_by_the_server_gets_the_reason() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let list = stage.file("hba.conf", "host all all all trust");
    // Without a password in the URL, the gateway has none for ann.
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", crate::server().port());
    let gateway = crate::Gateway::in_front_of(&url, &["--hba-file", &list]);
    let refused = login(gateway.port(), &ann, "anything").await.unwrap_err();
    assert!(refused.starts_with("28000 the gateway cannot log in at the server"), "{refused}");
    assert!(refused.contains(&format!("asks for the password of user \"{ann}\"")), "{refused}");
    // With the users file, it has one.
    let users = stage.file("users.txt", &format!("\"{ann}\" \"anns password\""));
    let gateway = crate::Gateway::in_front_of(&url, &["--hba-file", &list, "--users-file", &users]);
    assert_eq!(login(gateway.port(), &ann, "anything").await.as_ref(), Ok(&ann));
}
