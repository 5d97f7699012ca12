//! Commands after which a session keeps a server connection, and the form after which its statements are packed.

use hotrow_core::classify::{Analysis, Remedy, analyse};
use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, config, connect, patient};

/// Commands of a session, and others.
pub struct Session {
    pub remedy: Remedy,
    /// The command that gets the advice.
    command: &'static str,
    /// What the session does before it.
    first: &'static str,
    /// Whether the session keeps a connection after it.
    pins: bool,
    /// The commands that follow the advice.
    instead: &'static str,
}

/// All of them.
pub fn all() -> Vec<Session> {
    let pins = |remedy, first, command, instead| Session { remedy, command, first, pins: true, instead };
    vec![
        Session {
            remedy: Remedy::SameSettings,
            command: "set datestyle = 'German'",
            first: "",
            pins: false,
            instead: "",
        },
        pins(Remedy::LocalSetting, "", "set app.x = '1'", "begin; set local app.x = '1'; commit"),
        pins(
            Remedy::LocalSetConfig,
            "",
            "select set_config('app.x', '1', false)",
            "begin; select set_config('app.x', '1', true); commit",
        ),
        pins(
            Remedy::ConstantSetting,
            "",
            "select set_config('app.' || 'x', '1', true)",
            "begin; select set_config('app.x', '1', true); commit",
        ),
        pins(Remedy::RandomInClient, "", "select setseed(0.5)", ""),
        pins(Remedy::LocalRole, "", "set role other", "begin; set local role other; commit"),
        pins(Remedy::ResetAll, "set app.x = '1'", "reset app.x", "set app.x = '1'; reset all"),
        pins(Remedy::PreparedByProtocol, "", "prepare p as select 1", ""),
    ]
}

#[tokio::test]
async fn sessions_that_follow_the_advice_are_packed() {
    let server = PrivateServer::builder().label("advice").start().unwrap();
    let direct = connect(&config(server.port())).await;
    direct
        .batch_execute(
            "create table t (id int primary key, n int); insert into t values (1, 0);
             create role other; grant all on t to other",
        )
        .await
        .unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port());
    let gateway = Gateway::in_front_of(&url, &patient(&[]));
    let update = "update t set n = n + 1 where id = 1";
    let packs = async |before: &[&str]| {
        let client = connect(&gateway.config()).await;
        for command in before.iter().flat_map(|text| text.split("; ")).filter(|text| !text.is_empty()) {
            client.batch_execute(command).await.unwrap_or_else(|error| panic!("{command}: {error}"));
        }
        let packed = gateway.metric("packed_units_total");
        client.query(update, &[]).await.map(drop).unwrap();
        gateway.metric("packed_units_total") > packed
    };
    assert!(packs(&[]).await);
    for Session { remedy, command, first, pins, instead } in all() {
        let Analysis::Pass(pass) = analyse(command) else { panic!("{command}") };
        assert_eq!(pass.reason.remedy(), Some(remedy.text()), "{command}");
        assert_eq!(packs(&[first, command]).await, !pins, "{command}");
        assert!(packs(&[instead]).await, "{remedy:?}: {instead}");
    }
}
