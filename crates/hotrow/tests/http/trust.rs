//! Functions that the user of --upstream must not call, because they belong to a role that could make that user run its
//! code.

use hotrow_testkit::{config, connect, value};

use crate::client::json;
use crate::{Api, migrate, private};

const PATH: &str = "/v1/counters/x/increment";

/// Replaces the hotrow schema's function, and records the role that runs it.
const FOREIGN: &str = "create table public.seen (by text); grant all on public.seen to public;
    create schema hotrow;
    create function hotrow.increment(counter text, amount bigint default 1, request_id uuid default null,
        out value bigint, out version bigint, out status text) language plpgsql as $$
        begin insert into public.seen values (current_user); value := 1; version := 1; status := 'ok'; end $$;
    create function hotrow.merge_rules(names text[]) returns json language plpgsql as $$
        begin insert into public.seen values (current_user); return '[]'; end $$;";

#[tokio::test(flavor = "multi_thread")]
async fn a_superuser_does_not_run_another_roles_functions() {
    let server = private("httptrust").await;
    let admin = connect(&config(server.port())).await;
    admin.batch_execute("create role mallory login; grant all on schema public to mallory").await.unwrap();
    admin.simple_query("create database shop owner mallory").await.unwrap();
    let mallory = connect(config(server.port()).user("mallory").dbname("shop")).await;
    mallory.batch_execute(FOREIGN).await.unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/shop", server.port());
    let api = Api::in_front_of(&url, &[]);
    for (method, path) in [("POST", PATH), ("GET", "/health/ready")] {
        let reply = json(api.port, method, path, "").await;
        assert_eq!((reply.status, reply.problem().as_str()), (503, "pack-missing"), "{reply:?}");
        let (detail, hint) = (reply.json()["detail"].clone(), reply.json()["hint"].clone());
        assert!(detail.as_str().unwrap().contains("exists, and its functions are not trusted"), "{reply:?}");
        assert!(hint.as_str().unwrap().contains("alter schema hotrow owner to"), "{reply:?}");
    }
    // The gateway does not query merge rules with the rights of a client that calls its own function.
    let superuser = connect(api.gateway.config().dbname("shop")).await;
    superuser
        .batch_execute("create function public.own(int) returns int language sql as 'select 1'")
        .await
        .unwrap();
    for _ in 0..3 {
        superuser.query("select public.own($1)", &[&1]).await.unwrap();
    }
    assert_eq!(value(&mallory, "select count(*) from public.seen").await, "0");
}

/// Without the hotrow schema, a role that may create schemas creates functions in a schema of its name. Clients of the
/// gateway that call other functions must not run them.
#[tokio::test(flavor = "multi_thread")]
async fn no_client_runs_the_functions_of_a_role_that_created_the_schema() {
    let server = private("mergetrust").await;
    let admin = connect(&config(server.port())).await;
    admin.batch_execute("create role mallory login; create role alice login").await.unwrap();
    admin.simple_query("create database shop").await.unwrap();
    admin.simple_query("grant create on database shop to mallory").await.unwrap();
    let shop = connect(config(server.port()).dbname("shop")).await;
    shop.batch_execute("grant create on schema public to mallory").await.unwrap();
    let mallory = connect(config(server.port()).user("mallory").dbname("shop")).await;
    mallory.batch_execute(FOREIGN).await.unwrap();
    mallory.batch_execute("grant usage on schema hotrow to public").await.unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/shop", server.port());
    let gateway = hotrow_testkit::Gateway::in_front_of(&url, &[]);
    let alice = connect(gateway.config().user("alice").dbname("shop")).await;
    for _ in 0..3 {
        assert_eq!(value(&alice, "select lower('X')").await, "x");
        alice.query("select pg_catalog.lower($1)", &[&"X"]).await.unwrap();
    }
    assert_eq!(
        value(&mallory, "select coalesce(string_agg(by, ' '), 'none') from public.seen").await,
        "none"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_the_packs_role_is_told_to_grant_it() {
    let server = private("httpgrant").await;
    migrate(&server.url());
    connect(&config(server.port())).await.batch_execute("create role gate login").await.unwrap();
    let url = format!("postgres://gate@127.0.0.1:{}/postgres", server.port());
    let api = Api::in_front_of(&url, &[]);
    let reply = json(api.port, "POST", PATH, "").await;
    assert_eq!((reply.status, reply.problem().as_str()), (503, "pack-missing"), "{reply:?}");
    let hint = reply.json()["hint"].clone();
    assert!(hint.as_str().unwrap().contains("grant hotrow_caller to USER"), "{reply:?}");
    assert!(!hint.as_str().unwrap().contains("migrate"), "the hotrow schema is installed: {reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_functions_must_belong_to_the_packs_owner() {
    let server = private("httpowner").await;
    migrate(&server.url());
    let admin = connect(&config(server.port())).await;
    let api = Api::in_front_of(&server.url(), &[]);
    assert_eq!(api.ok("POST", PATH, "").await["value"], 1);
    drop(api);
    let sql = "create role mallory; alter function hotrow.counter(text) owner to mallory";
    admin.batch_execute(sql).await.unwrap();
    let api = Api::in_front_of(&server.url(), &[]);
    let reply = json(api.port, "POST", PATH, "").await;
    assert_eq!((reply.status, reply.problem().as_str()), (503, "pack-missing"), "{reply:?}");
    admin.batch_execute("alter function hotrow.counter(text) owner to postgres").await.unwrap();
    assert_eq!(api.ok("POST", PATH, "").await["value"], 2);
}
