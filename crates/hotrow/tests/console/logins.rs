//! The server decides for each new client whether its role may log in, also while other clients of that role are
//! connected through the gateway. A role that is dropped and created again is another role.

use hotrow_testkit::{connect, rows, sqlstate, try_connect, until, value};
use tokio_postgres::Client;

use crate::Stage;

const UPDATE: &str = "update t set n = n + 1 where id = 1 returning n";

/// The rights that a role needs to use the table.
fn grants(stage: &Stage, role: &str) -> String {
    format!(
        "alter role {role} set search_path = {0}; grant usage on schema {0} to {role}; grant all on {0}.t to {role}",
        stage.schema
    )
}

async fn new_role(stage: &Stage, name: &str) -> String {
    let role = format!("{}_{name}", stage.schema);
    let sql = format!("create role {role} login; {}", grants(stage, &role));
    stage.direct.batch_execute(&sql).await.unwrap();
    role
}

/// Drops the role and creates another one with the same name.
async fn create_again(stage: &Stage, by: &Client, role: &str) {
    let sql =
        format!("drop owned by {role}; drop role {role}; create role {role} login; {}", grants(stage, role));
    by.batch_execute(&sql).await.unwrap();
}

/// Connects a client and runs statements in lanes and on a held connection.
async fn works(stage: &Stage, config: &tokio_postgres::Config) -> Client {
    let client = connect(config).await;
    assert!(stage.packs(&client).await);
    client.batch_execute("begin; select 1; commit").await.unwrap();
    client
}

async fn until_refused(config: &tokio_postgres::Config, code: &str) {
    until("the login is refused", || async {
        match try_connect(config).await {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(sqlstate(&error), code, "{error:?}");
                true
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_role_that_lost_its_login_right_is_rejected_and_its_clients_continue() {
    let stage = Stage::new("", &[]).await;
    let role = new_role(&stage, "gone").await;
    let config = stage.gateway.config().user(&role).to_owned();
    let client = works(&stage, &config).await;
    stage.direct.batch_execute(&format!("alter role {role} nologin")).await.unwrap();
    until_refused(&config, "28000").await;
    let refused = try_connect(&config).await.err().unwrap();
    assert_eq!(
        refused.as_db_error().unwrap().message(),
        format!("role \"{role}\" is not permitted to log in"),
        "the server's own message"
    );
    assert!(stage.packs(&client).await);
    assert_eq!(value(&client, "begin; select current_user; commit").await, role);
    stage.direct.batch_execute(&format!("alter role {role} login")).await.unwrap();
    works(&stage, &config).await;
}

#[tokio::test]
async fn a_role_that_lost_its_connect_right_is_rejected() {
    let stage = Stage::new("", &[]).await;
    let role = new_role(&stage, "kept_out").await;
    let database = format!("{role}_database");
    stage.direct.simple_query(&format!("create database {database}")).await.unwrap();
    let sql = format!(
        "revoke connect on database {database} from public; grant connect on database {database} to {role}"
    );
    stage.direct.batch_execute(&sql).await.unwrap();
    let config = stage.gateway.config().user(&role).dbname(&database).to_owned();
    let client = connect(&config).await;
    assert_eq!(value(&client, "select current_user").await, role);
    let sql = format!("revoke connect on database {database} from {role}");
    stage.direct.batch_execute(&sql).await.unwrap();
    until_refused(&config, "42501").await;
    assert_eq!(value(&client, "select current_user").await, role);
}

#[tokio::test]
async fn connections_with_another_search_path_than_that_of_the_next_login_are_replaced() {
    const SHOW: &str = "show search_path";
    let stage = Stage::new("", &[]).await;
    let role = new_role(&stage, "path").await;
    let config = stage.gateway.config().user(&role).to_owned();
    let early = connect(&config).await;
    let before = value(&early, SHOW).await;
    stage.direct.batch_execute(&format!("alter role {role} set search_path = pg_catalog")).await.unwrap();
    until("a new session has the new path", || async {
        value(&connect(&config).await, SHOW).await == "pg_catalog"
    })
    .await;
    assert_ne!(before, "pg_catalog");
    let others = [connect(&config).await, connect(&config).await];
    for client in others.iter().chain([&early]) {
        for _ in 0..5 {
            assert_eq!(value(client, SHOW).await, "pg_catalog");
            assert_eq!(value(client, "begin; show search_path; commit").await, "pg_catalog");
        }
    }
}

#[tokio::test]
async fn a_role_that_is_created_again_is_another_role() {
    let stage = Stage::new("", &[]).await;
    let role = new_role(&stage, "again").await;
    let config = stage.gateway.config().user(&role).to_owned();
    drop(works(&stage, &config).await);
    create_again(&stage, &stage.direct, &role).await;
    // The gateway relies on the old role's login for some time.
    tokio::time::sleep(std::time::Duration::from_millis(hotrow_core::limits::LOGIN_AGE_MS)).await;
    works_as(&stage, &connect(&config).await, &role).await;
}

#[tokio::test]
async fn a_role_created_again_by_a_client_of_the_gateway_is_another_role_at_once() {
    let stage = Stage::new("", &[]).await;
    let role = new_role(&stage, "again").await;
    let config = stage.gateway.config().user(&role).to_owned();
    let admin = stage.client().await;
    drop(works(&stage, &config).await);
    create_again(&stage, &admin, &role).await;
    works_as(&stage, &connect(&config).await, &role).await;
}

#[tokio::test]
async fn a_client_that_connected_before_the_next_check_continues_as_the_new_role() {
    let stage = Stage::new("", &[]).await;
    let role = new_role(&stage, "again").await;
    let config = stage.gateway.config().user(&role).to_owned();
    drop(works(&stage, &config).await);
    create_again(&stage, &stage.direct, &role).await;
    let client = connect(&config).await;
    until("its connections are replaced", || async { rows(&client, "select current_user").await.is_ok() })
        .await;
    works_as(&stage, &client, &role).await;
}

async fn works_as(stage: &Stage, client: &Client, role: &str) {
    for _ in 0..3 {
        assert_eq!(value(client, "select current_user").await, role);
        assert_eq!(value(client, "begin; select current_user; commit").await, role);
        value(client, UPDATE).await;
    }
    assert!(stage.packs(client).await, "lanes run as the new role");
}

#[tokio::test]
async fn a_role_at_its_connection_limit_shares_the_existing_connections() {
    let stage = Stage::new("", &[]).await;
    let role = new_role(&stage, "limited").await;
    let config = stage.gateway.config().user(&role).to_owned();
    let client = works(&stage, &config).await;
    stage.direct.batch_execute(&format!("alter role {role} connection limit 1")).await.unwrap();
    // Only after this time is the next login checked at the server again.
    tokio::time::sleep(std::time::Duration::from_millis(hotrow_core::limits::LOGIN_AGE_MS)).await;
    let other = connect(&config).await;
    value(&other, UPDATE).await;
    value(&client, UPDATE).await;
}

#[tokio::test]
async fn a_name_cannot_leave_its_line_of_the_log() {
    let stage = Stage::new("", &[]).await;
    let name = "x\"\n2026-11-24T19:10:00.000000Z  WARN forged\u{1b}[2J";
    try_connect(stage.gateway.config().user(name)).await.err().unwrap();
    try_connect(stage.gateway.config().dbname(name)).await.err().unwrap();
    let log = || stage.gateway.log();
    until("both refusals are in the log", async || log().matches("refused the gateway").count() == 2).await;
    let log = log();
    assert!(
        log.lines().filter(|line| line.contains("forged")).all(|line| line.contains(" hotrow_gateway::")),
        "{log}"
    );
    assert!(log.contains(r"\n2026-11-24T19:10:00.000000Z  WARN forged\u{1b}[2J"), "{log}");
    assert!(!log.contains('\u{1b}'), "{log:?}");
}
