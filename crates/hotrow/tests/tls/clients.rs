//! Clients that come in order: psql in every `sslmode`, clients with certificates, and those that begin with TLS.

use std::process::Command;

use hotrow_testkit::{tool, until};

use crate::certificates::{Authority, version_1};
use crate::client::Client;
use crate::{Gateway, Stage};

/// What psql says under these variables.
pub fn psql(port: u16, variables: &[(&str, &str)], command: &str) -> String {
    let mut psql = Command::new(tool("psql").expect("psql is installed"));
    psql.args(["-X", "-U", "postgres", "-d", "postgres", "-p", &port.to_string()]);
    psql.args(["-c", "\\conninfo", "-qAtc", command]);
    psql.env("PGHOST", "localhost").env("PGHOSTADDR", "127.0.0.1").env("LC_ALL", "C");
    psql.env("PGSSLROOTCERT", "/nowhere").env("PGSSLCERT", "/nowhere").env("PGSSLKEY", "/nowhere");
    psql.envs(variables.iter().copied());
    let output = psql.output().unwrap();
    [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat()
}

const UPDATE: &str = "update t set n = n + 1 where id = 1 returning n";

impl Stage {
    fn psql(&self, variables: &[(&str, &str)]) -> String {
        let options = format!("-c search_path={}", self.schema);
        let root = self.path("root.crt");
        let usual = [("PGOPTIONS", options.as_str()), ("PGSSLROOTCERT", root.as_str())];
        psql(self.gateway.port(), &[&usual, variables].concat(), UPDATE)
    }
}

#[tokio::test]
async fn psql_comes_in_with_every_sslmode() {
    let stage = Stage::new(&[]).await;
    for (number, mode) in
        ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"].iter().enumerate()
    {
        let said = stage.psql(&[("PGSSLMODE", mode)]);
        assert!(said.ends_with(&format!("\n{}\n", number + 1)), "{mode}: {said}");
        let encrypted = said.contains("SSL connection (protocol: TLSv1.3");
        assert_eq!(encrypted, number > 1, "{mode}: {said}");
    }
    let old = stage.psql(&[("PGSSLMODE", "verify-full"), ("PGSSLMAXPROTOCOLVERSION", "TLSv1.2")]);
    assert!(old.contains("SSL connection (protocol: TLSv1.2") && old.ends_with("\n7\n"), "{old}");
}

#[tokio::test]
async fn a_certificate_of_the_first_version_will_do() {
    let stage = Stage::with(Authority::new("nobody's"), &version_1(), &[]).await;
    let said = stage.psql(&[("PGSSLMODE", "require"), ("PGSSLROOTCERT", "/nowhere")]);
    assert!(said.contains("SSL connection (protocol: TLSv1.3") && said.ends_with("\n1\n"), "{said}");
}

#[tokio::test]
async fn without_a_certificate_those_who_need_tls_stay_out() {
    let gateway = Gateway::start(&[]);
    let said = psql(gateway.port(), &[("PGSSLMODE", "require")], "select 1");
    assert!(said.contains("server does not support SSL, but SSL was required"), "{said}");
    let said = psql(gateway.port(), &[("PGSSLMODE", "prefer")], "select 1");
    assert!(said.ends_with("\n1\n") && !said.contains("SSL connection"), "{said}");
}

#[tokio::test]
async fn psql_does_not_believe_what_it_should_not() {
    let stage = Stage::new(&[]).await;
    let other = stage.path("other.crt");
    std::fs::write(&other, Authority::new("another one").pem()).unwrap();
    let wrong = stage.psql(&[("PGSSLMODE", "verify-ca"), ("PGSSLROOTCERT", &other)]);
    assert!(wrong.contains("certificate verify failed"), "{wrong}");
    let elsewhere = [("PGSSLMODE", "verify-full"), ("PGHOST", "elsewhere.example")];
    let said = stage.psql(&elsewhere);
    assert!(said.contains("does not match host name \"elsewhere.example\""), "{said}");
    let authority = Authority::new("the right one");
    let expired = authority.issue_expired("gateway", &["localhost"]);
    let stage = Stage::with(authority, &expired, &[]).await;
    let said = stage.psql(&[("PGSSLMODE", "verify-ca")]);
    assert!(said.contains("certificate verify failed"), "{said}");
    assert!(stage.psql(&[("PGSSLMODE", "require"), ("PGSSLROOTCERT", "/nowhere")]).ends_with("\n1\n"));
    assert!(stage.gateway.log().contains("a client's TLS handshake failed"), "{}", stage.gateway.log());
}

#[tokio::test]
async fn a_client_certificate_is_verified_and_says_who_it_is() {
    let authority = Authority::new("clients");
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("clients.crt");
    std::fs::write(&ca, authority.pem()).unwrap();
    let options = ["--tls-client-ca-file", ca.to_str().unwrap(), "--log", "info,hotrow_gateway=trace"];
    let stage = Stage::new(&options).await;
    let with = |name: &str, pair: crate::Pair| {
        let (certificate, key) = pair.write(folder.path(), name);
        stage.psql(&[("PGSSLMODE", "require"), ("PGSSLCERT", &certificate), ("PGSSLKEY", &key)])
    };
    assert!(with("ann", authority.issue("ann", &[])).ends_with("\n1\n"));
    assert!(stage.psql(&[("PGSSLMODE", "require")]).ends_with("\n2\n"), "nobody has to show one");
    let expired = with("old", authority.issue_expired("old", &[]));
    assert!(expired.contains("alert certificate expired"), "{expired}");
    let stranger = with("eve", Authority::new("clients").issue("eve", &[]));
    assert!(stranger.contains("SSL error: ") && !stranger.ends_with("\n3\n"), "{stranger}");
    until("the gateway has said who came", async || {
        let log = stage.gateway.log();
        log.contains("client_name: Some(\"ann\")") && log.contains("client_name: None")
    })
    .await;
    let log = stage.gateway.log();
    assert!(!log.contains("eve") && !log.contains("Some(\"old\")"), "{log}");
}

#[tokio::test]
async fn tls_may_begin_without_asking_when_the_client_names_the_protocol() {
    let stage = Stage::new(&[]).await;
    let mut client = Client::direct(stage.gateway.port(), stage.authority.believe()).unwrap();
    client.log_in(&stage.schema);
    assert_eq!(client.value(UPDATE), "1");

    let mut silent = stage.authority.believe();
    silent.alpn_protocols.clear();
    let mut client = Client::direct(stage.gateway.port(), silent.clone()).unwrap();
    client.send(&hotrow_testkit::raw::startup(0x0003_0000, &[("user", "postgres")]));
    assert!(matches!(client.message(), Ok(None) | Err(_)), "it is sent away");
    let mut client = Client::ask(stage.gateway.port(), silent.clone()).unwrap();
    client.log_in(&stage.schema);
    assert_eq!(client.value(UPDATE), "2", "who has asked need not name it");

    silent.alpn_protocols = vec![b"http/1.1".to_vec()];
    for begin in [Client::direct, Client::ask] {
        let error = begin(stage.gateway.port(), silent.clone()).err().expect("it is no web server");
        assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
    }
}

#[tokio::test]
async fn log_ins_are_bound_to_the_certificate_or_made_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let clients = Authority::new("clients");
    let list = "hostssl all postgres all cert\nhostssl all ann all scram-sha-256\n";
    let (hba, users) = (write("hba", list), write("users", "\"ann\" \"secret\""));
    let ca = write("clients.crt", &clients.pem());
    let stage = Stage::new(&["--hba-file", &hba, "--users-file", &users, "--tls-client-ca-file", &ca]).await;
    let (certificate, key) = clients.issue("postgres", &[]).write(folder.path(), "postgres");
    let certified = [("PGSSLMODE", "require"), ("PGSSLCERT", &certificate), ("PGSSLKEY", &key)];
    assert!(stage.psql(&certified).ends_with("\n1\n"));
    let said = stage.psql(&[("PGSSLMODE", "require")]);
    assert!(said.contains("valid client certificate"), "{said}");
    let (certificate, key) = clients.issue("bob", &[]).write(folder.path(), "bob");
    let said = stage.psql(&[("PGSSLMODE", "require"), ("PGSSLCERT", &certificate), ("PGSSLKEY", &key)]);
    assert!(said.contains("certificate authentication failed"), "{said}");

    // Nobody called ann is known to the server: it is the server that says so, once the gateway has let her in.
    let ann = |binding: &'static str, password: &'static str| {
        let uri = format!("postgres://ann@/postgres?sslmode=require&channel_binding={binding}");
        let mut psql = Command::new(tool("psql").expect("psql is installed"));
        psql.args(["-X", "-qAtc", "select 1", &uri]).env("PGHOST", "127.0.0.1");
        psql.env("PGPORT", stage.gateway.port().to_string()).env("PGPASSWORD", password);
        String::from_utf8(psql.output().unwrap().stderr).unwrap()
    };
    for binding in ["require", "prefer", "disable"] {
        let said = ann(binding, "secret");
        assert!(said.contains("role \"ann\" does not exist"), "{binding}: {said}");
    }
    let said = ann("require", "wrong");
    assert!(said.contains("password authentication failed"), "{said}");
}
