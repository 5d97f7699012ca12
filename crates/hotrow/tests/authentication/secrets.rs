//! Passwords, hashes and keys never appear in the gateway's log, metrics or errors, at any log level.

use crate::{GATES_PASSWORD, Stage, login};
use hotrow_testkit::{config, connect, try_connect, value};

#[tokio::test]
async fn nothing_secret_is_logged_measured_or_reported() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "sesame-of-ann").await;
    let old = stage.role("old", "md5", "sesame-of-old").await;
    let bob = stage.role("bob", "scram-sha-256", "sesame-of-bob").await;
    let users = stage.file("users.txt", &format!("\"{bob}\" \"sesame-of-bob\""));
    let list = "local all all password\nhost all all all md5";
    let options = ["--users-file", &users, "--log", "trace"];
    let gateway = stage.gateway(list, &options);
    let mut texts = Vec::new();
    for (user, password) in [(&ann, "sesame-of-ann"), (&old, "sesame-of-old"), (&bob, "sesame-of-bob")] {
        assert_eq!(login(gateway.port(), user, password).await.as_ref(), Ok(user));
        assert_eq!(stage.by_socket(user, password).as_ref(), Ok(user));
        texts.push(login(gateway.port(), user, &format!("{password}-wrong")).await.unwrap_err());
        texts.push(stage.by_socket(user, &format!("{password}-wrong")).unwrap_err());
    }
    let client = connect(&config(gateway.port()).user(&*ann).password("sesame-of-ann").to_owned()).await;
    value(&client, "select 1").await;
    // Statements can contain passwords, too.
    let change = format!("alter role {ann} password 'sesame-of-ann-2'");
    client.batch_execute(&change).await.unwrap();
    client.batch_execute(&format!("{change} nonsense")).await.unwrap_err();
    let nowhere = config(gateway.port()).user(&*ann).password("sesame-of-ann").dbname("nowhere").to_owned();
    texts.push(try_connect(&nowhere).await.err().unwrap().to_string());
    texts.extend([gateway.metrics(), gateway.log()]);
    assert!(gateway.log().contains("DEBUG sqlparser"), "everything is logged");
    let mut secrets = vec!["sesame".to_owned(), GATES_PASSWORD.to_owned()];
    for user in [&ann, &old, &bob] {
        let secret = stage.secret(user).await;
        // `$` and `:` separate the salt and the keys of a verifier.
        secrets.extend(secret.split(['$', ':']).filter(|part| part.len() > 20).map(str::to_owned));
    }
    assert!(secrets.len() > 6, "{secrets:?}");
    for secret in secrets {
        for text in &texts {
            let line = text.lines().find(|line| line.contains(&secret));
            assert!(line.is_none(), "{secret} appears: {line:?}");
        }
    }
}
