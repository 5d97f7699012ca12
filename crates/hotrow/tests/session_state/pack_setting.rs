//! The values of `hotrow.pack` at the start of a session, and values that it does not have.

use hotrow_testkit::{connect, sqlstate, try_connect, value};

use crate::Stage;

#[tokio::test]
async fn packing_can_be_switched_off_in_the_startup_packet() {
    let stage = Stage::new(&[]).await;
    let with = |options: &str| {
        let mut config = stage.gateway.config();
        config.options(format!("-c search_path={} {options}", stage.schema)).clone()
    };
    let client = connect(&with("-c hotrow.pack=off")).await;
    assert_eq!(value(&client, "show hotrow.pack").await, "off");
    assert!(!stage.packs(&client).await);
    client.batch_execute("set hotrow.pack = on").await.unwrap();
    assert!(stage.packs(&client).await);
    client.batch_execute("reset hotrow.pack").await.unwrap();
    assert!(!stage.packs(&client).await, "RESET takes the value of the start");

    let refused = try_connect(&with("-c hotrow.pack=banana")).await.err().unwrap();
    assert_eq!(sqlstate(&refused), "22023");
}

/// As with packing off for the pool, the session keeps no connection for itself.
#[tokio::test]
async fn a_session_in_shadow_mode_is_passed_through_and_gives_back_its_connection() {
    let stage = Stage::new(&[]).await;
    let mut config = stage.config();
    config.options(format!("-c search_path={} -c hotrow.pack=shadow", stage.schema));
    let client = connect(&config).await;
    assert_eq!(value(&client, "show hotrow.pack").await, "shadow");
    assert!(!stage.packs(&client).await);
    stage.all_is_given_back().await;
    assert!(stage.gateway.metrics().contains("pinned_clients{reason=\"hotrow.pack is off\"} 0"));
    client.batch_execute("begin").await.unwrap();
    client.batch_execute("set local hotrow.pack = on").await.unwrap();
    assert_eq!(value(&client, "show hotrow.pack").await, "on");
    client.batch_execute("commit").await.unwrap();
    assert_eq!(value(&client, "show hotrow.pack").await, "shadow");
    client.batch_execute("set hotrow.pack = on").await.unwrap();
    assert!(stage.packs(&client).await);
    client.batch_execute("reset all").await.unwrap();
    assert_eq!(value(&client, "show hotrow.pack").await, "shadow");
    assert!(!stage.packs(&client).await);
}

#[tokio::test]
async fn a_value_that_it_does_not_have_is_an_error_and_changes_nothing() {
    let stage = Stage::new(&[]).await;
    let client = stage.client().await;
    let wrong = "set hotrow.pack = banana";
    for _ in 0..2 {
        let (simple, extended) = (client.batch_execute(wrong).await, client.execute(wrong, &[]).await);
        client.batch_execute("begin").await.unwrap();
        let within = client.batch_execute(wrong).await;
        let failed = client.batch_execute("select 1").await;
        client.batch_execute("rollback").await.unwrap();
        let outcomes = [simple, extended.map(drop), within, failed].map(|outcome| outcome.unwrap_err());
        assert_eq!(outcomes.each_ref().map(sqlstate), ["22023", "22023", "22023", "25P02"]);
        assert_eq!(value(&client, "show hotrow.pack").await, "on");
        assert!(stage.packs(&client).await);
    }
}
