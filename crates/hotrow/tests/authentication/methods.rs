//! Each method with correct, wrong, empty and missing passwords, for users that exist and users that do not.

use crate::{Stage, login, psql};

#[tokio::test]
async fn only_correct_passwords_are_accepted() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let old = stage.role("old", "md5", "olds password").await;
    let list =
        format!("local all all password\nhost all {ann}_only,{old} all md5\nhost all all all scram-sha-256");
    let gateway = stage.gateway(&list, &[]);
    let nobody = stage.name("nobody");
    for (user, password) in [(&ann, "anns password"), (&old, "olds password")] {
        let failed = format!("28P01 password authentication failed for user \"{user}\"");
        assert_eq!(login(gateway.port(), user, password).await.as_ref(), Ok(user));
        assert_eq!(psql("127.0.0.1", gateway.port(), user, password).as_ref(), Ok(user));
        assert_eq!(stage.by_socket(user, password).as_ref(), Ok(user), "in cleartext");
        for wrong in ["x", "", "anns passwor", "anns password ", &stage.secret(user).await] {
            assert_eq!(login(gateway.port(), user, wrong).await, Err(failed.clone()), "{wrong:?}");
            if !wrong.is_empty() {
                let text = psql("127.0.0.1", gateway.port(), user, wrong).unwrap_err();
                assert!(text.ends_with(&failed[6..]), "{text}");
                let text = stage.by_socket(user, wrong).unwrap_err();
                assert!(text.ends_with(&failed[6..]), "{text}");
            }
        }
    }
    let failed = format!("28P01 password authentication failed for user \"{nobody}\"");
    assert_eq!(login(gateway.port(), &nobody, "x").await, Err(failed.clone()));
    assert_eq!(login(gateway.port(), &nobody, "").await, Err(failed.clone()));
    assert!(stage.by_socket(&nobody, "x").unwrap_err().ends_with(&failed[6..]));
    assert!(gateway.metric("logins_failed_total") >= 20);
}

#[tokio::test]
async fn a_client_that_knows_only_md5_is_accepted_if_the_access_file_allows_it() {
    use hotrow_testkit::raw::{Raw, frame, startup};
    let stage = Stage::new().await;
    let old = stage.role("old", "md5", "olds password").await;
    let gateway = stage.gateway("host all all all md5", &[]);
    let mut raw = Raw::open(gateway.port()).await;
    raw.send(&startup(0x0003_0000, &[("user", &old), ("database", "postgres")])).await;
    let request = raw.message().await.unwrap();
    assert_eq!((request.tag, &request.body[..4]), (b'R', &[0, 0, 0, 5][..]));
    let salt = request.body[4..].try_into().unwrap();
    let response = postgres_protocol::authentication::md5_hash(old.as_bytes(), b"olds password", salt);
    raw.send(&frame(b'p', &[response.as_bytes(), &[0]].concat())).await;
    assert_eq!(raw.until_ready(1).await[0].body, [0, 0, 0, 0]);
    drop(gateway);
    // With SCRAM, the same user cannot prove anything, because the server stores only a hash of another kind.
    let strict = stage.gateway("host all all all scram-sha-256", &[]);
    let refused = login(strict.port(), &old, "olds password").await.unwrap_err();
    assert!(refused.starts_with("28P01"), "{refused}");
}

#[tokio::test]
async fn users_without_password_or_login_right_or_with_an_expired_password_are_rejected() {
    let stage = Stage::new().await;
    let gateway = stage.gateway("host all all all scram-sha-256", &[]);
    let (bare, group, expired, later) =
        (stage.name("bare"), stage.name("grp"), stage.name("expired"), stage.name("later"));
    let roles = format!(
        "create role {bare} login; create role {group} password 'x';
         create role {expired} login password 'x' valid until '2020-01-01';
         create role {later} login password 'x' valid until '2120-01-01'"
    );
    stage.direct.batch_execute(&roles).await.unwrap();
    for user in [&bare, &group, &expired] {
        let refused = login(gateway.port(), user, "x").await.unwrap_err();
        assert!(refused.starts_with("28P01 password authentication failed"), "{user}: {refused}");
    }
    assert_eq!(login(gateway.port(), &later, "x").await.as_ref(), Ok(&later));
}
