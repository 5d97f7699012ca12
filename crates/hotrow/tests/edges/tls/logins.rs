//! Logins under TLS: bound to the connection, with a cleartext password, by certificate; and rejected without TLS.

use std::process::Command;

use hotrow_testkit::needed_tool;

use crate::tls::Stage;
use crate::tls::certificates::Authority;

const LIST: &str = "hostssl all bound all scram-sha-256
hostssl all clear all password
hostssl all named all cert
hostssl all twofold all scram-sha-256 clientcert=verify-full
hostssl all any_one all scram-sha-256 clientcert=verify-ca
hostnossl all plain all scram-sha-256
";

/// A gateway with that access file, its clients' authority, and a user for each line.
async fn stage() -> (Stage, Authority) {
    let authority = Authority::new("clients");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("clients.crt"), authority.pem()).unwrap();
    std::fs::write(path("hba.conf"), LIST).unwrap();
    let options = ["--tls-client-ca-file", &path("clients.crt"), "--hba-file", &path("hba.conf")];
    let stage = Stage::new(&options).await;
    for user in ["bound", "clear", "named", "twofold", "any_one", "plain"] {
        let role = format!(
            "do $$ begin if not exists (select from pg_roles where rolname = '{user}') then
             create role {user} login password 'pass of {user}'; end if; exception when duplicate_object or unique_violation then null; end $$"
        );
        stage.direct.batch_execute(&role).await.unwrap();
    }
    (stage, authority)
}

impl Stage {
    /// The user according to the server, or the error.
    fn login(&self, user: &str, mode: &str, variables: &[(&str, &str)]) -> String {
        let mut psql = Command::new(needed_tool("psql"));
        psql.args(["-X", "-w", "-U", user, "-d", "postgres", "-p", &self.gateway.port().to_string()]);
        psql.args(["-qAtc", "select current_user"]);
        psql.env("PGHOST", "localhost").env("PGHOSTADDR", "127.0.0.1").env("LC_ALL", "C");
        psql.env("PGSSLMODE", mode).env("PGSSLROOTCERT", self.path("root.crt"));
        psql.env("PGPASSWORD", format!("pass of {user}"));
        psql.env("PGSSLCERT", "/nowhere").env("PGSSLKEY", "/nowhere").envs(variables.iter().copied());
        let output = psql.output().unwrap();
        [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .concat()
            .trim()
            .to_owned()
    }
}

#[tokio::test]
async fn a_login_is_bound_to_its_connection_if_the_client_requests_it() {
    let (stage, _) = stage().await;
    for binding in ["require", "prefer", "disable"] {
        let variables = [("PGCHANNELBINDING", binding)];
        assert_eq!(stage.login("bound", "verify-full", &variables), "bound", "{binding}");
        let wrong = [("PGCHANNELBINDING", binding), ("PGPASSWORD", "x")];
        let output = stage.login("bound", "verify-full", &wrong);
        assert!(output.ends_with("password authentication failed for user \"bound\""), "{output}");
    }
    let required = [("PGCHANNELBINDING", "require")];
    let output = stage.login("plain", "disable", &required);
    assert!(output.contains("channel binding required"), "{output}");
    assert_eq!(stage.login("plain", "disable", &[]), "plain");
}

#[tokio::test]
async fn a_cleartext_password_is_accepted_only_over_tls() {
    let (stage, _) = stage().await;
    assert_eq!(stage.login("clear", "require", &[]), "clear");
    let output = stage.login("clear", "require", &[("PGPASSWORD", "x")]);
    assert!(output.ends_with("password authentication failed for user \"clear\""), "{output}");
    let output = stage.login("clear", "disable", &[]);
    assert!(output.contains("no pg_hba.conf entry for host \"127.0.0.1\", user \"clear\""), "{output}");
    assert!(output.contains("no encryption"), "{output}");
    let output = stage.login("plain", "require", &[]);
    assert!(output.contains("no pg_hba.conf entry") && output.contains("SSL encryption"), "{output}");
}

#[tokio::test]
async fn a_certificate_is_required_and_has_to_name_the_user() {
    let (stage, authority) = stage().await;
    let folder = tempfile::tempdir().unwrap();
    let with = |user: &str, name: &str| {
        let (certificate, key) = authority.issue(name, &[]).write(folder.path(), name);
        stage.login(user, "require", &[("PGSSLCERT", &certificate), ("PGSSLKEY", &key)])
    };
    for user in ["named", "twofold", "any_one"] {
        assert_eq!(with(user, user), user);
        let output = stage.login(user, "require", &[]);
        assert!(output.contains("connection requires a valid client certificate"), "{user}: {output}");
    }
    for user in ["named", "twofold"] {
        let output = with(user, "eve");
        assert!(
            output.contains(&format!("certificate authentication failed for user \"{user}\"")),
            "{output}"
        );
    }
    assert_eq!(with("any_one", "eve"), "any_one", "any certificate is accepted, with the password");
    let (certificate, key) = authority.issue("twofold", &[]).write(folder.path(), "twofold");
    let wrong = [("PGSSLCERT", &*certificate), ("PGSSLKEY", &*key), ("PGPASSWORD", "x")];
    let output = stage.login("twofold", "require", &wrong);
    assert!(output.ends_with("password authentication failed for user \"twofold\""), "{output}");
}
