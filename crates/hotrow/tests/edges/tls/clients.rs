//! Well-behaved clients: psql in every `sslmode`, clients with certificates, and clients that begin with TLS.

use std::process::Command;

use hotrow_testkit::{needed_tool, until};

use crate::tls::certificates::{Authority, version_1};
use crate::tls::client::Client;
use crate::tls::{Gateway, Stage};

/// The output of psql with these variables.
pub fn psql(port: u16, variables: &[(&str, &str)], command: &str) -> String {
    let mut psql = Command::new(needed_tool("psql"));
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
async fn psql_can_connect_with_every_sslmode() {
    let stage = Stage::new(&[]).await;
    for (number, mode) in
        ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"].iter().enumerate()
    {
        let output = stage.psql(&[("PGSSLMODE", mode)]);
        assert!(output.ends_with(&format!("\n{}\n", number + 1)), "{mode}: {output}");
        let encrypted = output.contains("SSL connection (protocol: TLSv1.3");
        assert_eq!(encrypted, number > 1, "{mode}: {output}");
    }
    let old = stage.psql(&[("PGSSLMODE", "verify-full"), ("PGSSLMAXPROTOCOLVERSION", "TLSv1.2")]);
    assert!(old.contains("SSL connection (protocol: TLSv1.2") && old.ends_with("\n7\n"), "{old}");
}

#[tokio::test]
async fn a_version_1_certificate_is_accepted() {
    let stage = Stage::with(Authority::new("unused"), &version_1(), &[]).await;
    let output = stage.psql(&[("PGSSLMODE", "require"), ("PGSSLROOTCERT", "/nowhere")]);
    assert!(output.contains("SSL connection (protocol: TLSv1.3") && output.ends_with("\n1\n"), "{output}");
}

#[tokio::test]
async fn clients_that_require_tls_are_rejected_without_a_certificate() {
    let gateway = Gateway::start(&[]);
    let output = psql(gateway.port(), &[("PGSSLMODE", "require")], "select 1");
    assert!(output.contains("server does not support SSL, but SSL was required"), "{output}");
    let output = psql(gateway.port(), &[("PGSSLMODE", "prefer")], "select 1");
    assert!(output.ends_with("\n1\n") && !output.contains("SSL connection"), "{output}");
}

#[tokio::test]
async fn psql_rejects_untrusted_certificates() {
    let stage = Stage::new(&[]).await;
    let other = stage.path("other.crt");
    std::fs::write(&other, Authority::new("another authority").pem()).unwrap();
    let wrong = stage.psql(&[("PGSSLMODE", "verify-ca"), ("PGSSLROOTCERT", &other)]);
    assert!(wrong.contains("certificate verify failed"), "{wrong}");
    let elsewhere = [("PGSSLMODE", "verify-full"), ("PGHOST", "elsewhere.example")];
    let output = stage.psql(&elsewhere);
    assert!(output.contains("does not match host name \"elsewhere.example\""), "{output}");
    let authority = Authority::new("the correct authority");
    let expired = authority.issue_expired("gateway", &["localhost"]);
    let stage = Stage::with(authority, &expired, &[]).await;
    let output = stage.psql(&[("PGSSLMODE", "verify-ca")]);
    assert!(output.contains("certificate verify failed"), "{output}");
    assert!(stage.psql(&[("PGSSLMODE", "require"), ("PGSSLROOTCERT", "/nowhere")]).ends_with("\n1\n"));
    assert!(stage.gateway.log().contains("a client's TLS handshake failed"), "{}", stage.gateway.log());
}

#[tokio::test]
async fn a_client_certificate_is_verified_and_names_the_client() {
    let authority = Authority::new("clients");
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("clients.crt");
    std::fs::write(&ca, authority.pem()).unwrap();
    let options = ["--tls-client-ca-file", ca.to_str().unwrap(), "--log", "info,hotrow_gateway=trace"];
    let stage = Stage::new(&options).await;
    let with = |name: &str, pair: crate::tls::Pair| {
        let (certificate, key) = pair.write(folder.path(), name);
        stage.psql(&[("PGSSLMODE", "require"), ("PGSSLCERT", &certificate), ("PGSSLKEY", &key)])
    };
    assert!(with("ann", authority.issue("ann", &[])).ends_with("\n1\n"));
    assert!(stage.psql(&[("PGSSLMODE", "require")]).ends_with("\n2\n"), "a certificate is optional");
    let expired = with("old", authority.issue_expired("old", &[]));
    assert!(expired.contains("alert certificate expired"), "{expired}");
    let stranger = with("eve", Authority::new("clients").issue("eve", &[]));
    assert!(stranger.contains("SSL error: ") && !stranger.ends_with("\n3\n"), "{stranger}");
    until("the gateway has logged the clients", async || {
        let log = stage.gateway.log();
        log.contains("client_name: Some(\"ann\")") && log.contains("client_name: None")
    })
    .await;
    let log = stage.gateway.log();
    assert!(!log.contains("eve") && !log.contains("Some(\"old\")"), "{log}");
}

#[tokio::test]
async fn direct_tls_is_accepted_if_the_client_names_the_protocol() {
    let stage = Stage::new(&[]).await;
    let mut client = Client::direct(stage.gateway.port(), stage.authority.trust()).unwrap();
    client.login(&stage.schema);
    assert_eq!(client.value(UPDATE), "1");

    let mut without_protocol = stage.authority.trust();
    without_protocol.alpn_protocols.clear();
    let mut client = Client::direct(stage.gateway.port(), without_protocol.clone()).unwrap();
    client.send(&hotrow_testkit::raw::startup(0x0003_0000, &[("user", "postgres")]));
    assert!(matches!(client.message(), Ok(None) | Err(_)), "the connection is closed");
    let mut client = Client::request_tls(stage.gateway.port(), without_protocol.clone()).unwrap();
    client.login(&stage.schema);
    assert_eq!(client.value(UPDATE), "2", "a client that requested TLS need not name the protocol");

    without_protocol.alpn_protocols = vec![b"http/1.1".to_vec()];
    for begin in [Client::direct, Client::request_tls] {
        let error = begin(stage.gateway.port(), without_protocol.clone())
            .err()
            .expect("the gateway is not a web server");
        assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
    }
}

#[tokio::test]
async fn logins_are_bound_to_the_certificate_or_use_one() {
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
    let output = stage.psql(&[("PGSSLMODE", "require")]);
    assert!(output.contains("valid client certificate"), "{output}");
    let (certificate, key) = clients.issue("bob", &[]).write(folder.path(), "bob");
    let output = stage.psql(&[("PGSSLMODE", "require"), ("PGSSLCERT", &certificate), ("PGSSLKEY", &key)]);
    assert!(output.contains("certificate authentication failed"), "{output}");

    // The server does not know the user ann and reports this itself, after the gateway has accepted the login.
    let ann = |binding: &'static str, password: &'static str| {
        let uri = format!("postgres://ann@/postgres?sslmode=require&channel_binding={binding}");
        let mut psql = Command::new(needed_tool("psql"));
        psql.args(["-X", "-qAtc", "select 1", &uri]).env("PGHOST", "127.0.0.1");
        psql.env("PGPORT", stage.gateway.port().to_string()).env("PGPASSWORD", password);
        String::from_utf8(psql.output().unwrap().stderr).unwrap()
    };
    for binding in ["require", "prefer", "disable"] {
        let output = ann(binding, "secret");
        assert!(output.contains("role \"ann\" does not exist"), "{binding}: {output}");
    }
    let output = ann("require", "wrong");
    assert!(output.contains("password authentication failed"), "{output}");
}
