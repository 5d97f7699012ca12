//! Secrets that the gateway reads from the server: by a function, and logins if the server rejects the query.

use crate::{Stage, login};
use hotrow_testkit::{server, value};

const LIST: &str = "host all all all scram-sha-256";

/// A gateway whose own user is not a superuser.
fn gateway(stage: &Stage, user: &str, password: &str, options: &[&str]) -> crate::Gateway {
    let url = format!("postgres://{user}:{password}@127.0.0.1:{}/postgres", server().port());
    let list = stage.file("hba.conf", LIST);
    crate::Gateway::in_front_of(&url, &[&["--hba-file", &list], options].concat())
}

#[tokio::test]
async fn secrets_can_come_from_a_function_that_the_gateways_user_may_call() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let weak = stage.role("weak", "scram-sha-256", "weaks password").await;
    let function = stage.name("user_secret");
    let sql = format!(
        "create function public.{function}(name text) returns table (usename name, secret text)
         language sql security definer set search_path = pg_catalog
         as $$ select rolname, rolpassword from pg_authid where rolname = name and rolcanlogin and not rolsuper $$;
         revoke all on function public.{function} from public;
         grant execute on function public.{function} to {weak}"
    );
    stage.direct.batch_execute(&sql).await.unwrap();
    let query = format!("select * from public.{function}($1)");
    let gateway = gateway(&stage, &weak, "weaks password", &["--auth-query", &query]);
    assert_eq!(login(gateway.port(), &ann, "anns password").await.as_ref(), Ok(&ann));
    assert_eq!(login(gateway.port(), &weak, "weaks password").await.as_ref(), Ok(&weak));
    assert!(login(gateway.port(), "gate", crate::GATES_PASSWORD).await.unwrap_err().starts_with("28P01"));
    // Names are passed as values, never as text of the query.
    let clever = "x' or true --";
    assert!(login(gateway.port(), clever, "anns password").await.unwrap_err().starts_with("28P01"));
    let connections =
        "select count(*) from pg_stat_activity where application_name = 'hotrow auth' and usename = '{}'";
    assert_eq!(
        value(&stage.direct, &connections.replace("{}", &weak)).await,
        "1",
        "one connection reads all secrets"
    );
}

#[tokio::test]
async fn a_query_that_the_server_rejects_is_logged_once() {
    let stage = Stage::new().await;
    let weak = stage.role("weak", "scram-sha-256", "weaks password").await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let gateway = gateway(&stage, &weak, "weaks password", &[]);
    for user in [&ann, &weak, &stage.name("nobody")] {
        let refused = login(gateway.port(), user, "anns password").await.unwrap_err();
        assert!(refused.starts_with("28P01 password authentication failed"), "{refused}");
    }
    let log = gateway.log();
    assert_eq!(log.matches("the server refuses auth_query").count(), 1, "{log}");
    assert!(log.contains("permission denied for table pg_authid"), "{log}");
}

#[tokio::test]
async fn an_answer_for_another_user_is_not_used() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let query = format!("select '{ann}', rolpassword from pg_authid where rolname = '{ann}' or $1 = ''");
    let gateway = stage.gateway(LIST, &["--auth-query", &query]);
    assert_eq!(login(gateway.port(), &ann, "anns password").await.as_ref(), Ok(&ann));
    assert!(login(gateway.port(), "gate", "anns password").await.unwrap_err().starts_with("28P01"));
}
