//! TLS to the server: every `sslmode` with valid and invalid certificates, and no readable text on the wire once TLS is
//! on.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, chown};
use std::sync::{Arc, Mutex};
use std::thread;

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{connect, describe, server, sqlstate, try_connect, until, value};
use tempfile::TempDir;

use crate::tls::certificates::{Authority, Pair, self_signed, version_1};
use crate::tls::clients::psql;
use crate::tls::{Gateway, Stage};

/// A server with a certificate for `localhost`, and the authority that the gateway trusts.
struct Secured {
    server: PrivateServer,
    authority: Authority,
    folder: TempDir,
}

const ENCRYPTED: &str = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
const OPEN_LIST: &str = "local all all trust\nhost all all 127.0.0.1/32 trust\nhost all all ::1/128 trust\n";

/// Writes a file to a server's data directory.
fn write_to(server: &PrivateServer, name: &str, text: &str) {
    let folder = std::fs::metadata(server.data_dir()).unwrap();
    let path = server.data_dir().join(name);
    std::fs::write(&path, text).unwrap();
    chown(&path, Some(folder.uid()), Some(folder.gid())).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

/// The server shows this certificate after its next start.
fn show(server: &PrivateServer, pair: &Pair) {
    write_to(server, "server.crt", &pair.certificate);
    write_to(server, "server.key", &pair.key);
}

impl Secured {
    fn new() -> Self {
        let authority = Authority::new("the correct authority");
        let pair = authority.issue("server", &["localhost"]);
        let server = PrivateServer::builder().label("tls").start().unwrap();
        let secured = Self { server, authority, folder: tempfile::tempdir().unwrap() };
        secured.write("root.crt", &secured.authority.pem());
        secured.write_to_server("clients.crt", &secured.authority.pem());
        show(&secured.server, &pair);
        secured.server.query("alter system set ssl_ca_file = 'clients.crt'").unwrap();
        secured.server.query("alter system set ssl = on").unwrap();
        secured.server.restart().unwrap();
        secured
    }

    fn write_to_server(&self, name: &str, text: &str) {
        write_to(&self.server, name, text);
    }

    /// Changes the server's certificate.
    fn set_certificate(&self, pair: &Pair) {
        show(&self.server, pair);
        self.server.restart().unwrap();
    }

    /// Sets the first lines of the server's access file, before those that are always there.
    fn set_access(&self, lines: &str) {
        self.write_to_server("pg_hba.conf", &format!("local all all trust\n{lines}\n{OPEN_LIST}"));
        self.server.restart().unwrap();
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn url(&self, host: &str, parameters: &str) -> String {
        let parameters = parameters.replace("ROOT", self.folder.path().join("root.crt").to_str().unwrap());
        format!("postgres://postgres@{host}:{}/postgres?{parameters}", self.server.port())
    }

    /// Whether a gateway with these parameters reaches the server under TLS, or the error.
    async fn reached(&self, host: &str, parameters: &str) -> Result<bool, String> {
        let gateway = Gateway::in_front_of(&self.url(host, parameters), &[]);
        match try_connect(&gateway.config()).await {
            Ok(client) => Ok(value(&client, ENCRYPTED).await == "t"),
            Err(error) => Err(describe(&error)),
        }
    }

    async fn check(&self, host: &str, parameters: &str, expected: Result<bool, &str>) {
        let reached = self.reached(host, parameters).await;
        let right = match (&reached, expected) {
            (Ok(encrypted), Ok(expected)) => *encrypted == expected,
            (Err(error), Err(expected)) => error.contains(expected),
            _ => false,
        };
        assert!(right, "{host} {parameters}: {reached:?} instead of {expected:?}");
    }
}

#[tokio::test]
async fn sslmode_has_the_meaning_of_libpq() {
    let secured = Secured::new();
    let other = secured.write("other.crt", &Authority::new("the correct authority").pem());
    secured.check("localhost", "sslmode=disable", Ok(false)).await;
    for encrypted in ["", "sslmode=prefer", "sslmode=require", "sslmode=verify-ca&sslrootcert=ROOT"] {
        secured.check("127.0.0.1", encrypted, Ok(true)).await;
    }
    let full = "sslmode=verify-full&sslrootcert=ROOT";
    secured.check("localhost", full, Ok(true)).await;
    secured.check("127.0.0.1", full, Err("not valid for name")).await;
    for mode in ["require", "verify-ca", "verify-full"] {
        let parameters = format!("sslmode={mode}&sslrootcert={other}");
        secured.check("localhost", &parameters, Err("invalid peer certificate")).await;
    }
    secured
        .check("localhost", "sslmode=verify-full&sslrootcert=system", Err("invalid peer certificate"))
        .await;
    // If TLS is only preferred, it is not used when it is unavailable.
    secured.check("localhost", &format!("sslmode=prefer&sslrootcert={other}"), Ok(false)).await;
    // A server before version 17 does not know a client that begins with TLS.
    let begins_tls =
        secured.server.query("select current_setting('server_version_num')::int >= 170000").unwrap();
    let begins_tls = begins_tls == [[Some("t".to_owned())]];
    let expected = if begins_tls { Ok(true) } else { Err("the TLS handshake with the server failed") };
    secured.check("localhost", "sslmode=require&sslnegotiation=direct", expected).await;

    secured.set_certificate(&secured.authority.issue_expired("server", &["localhost"]));
    secured.check("localhost", full, Err("certificate expired")).await;
    secured.check("localhost", "sslmode=require", Ok(true)).await;

    let own = self_signed(&["localhost"]);
    secured.set_certificate(&own);
    secured.check("localhost", full, Err("invalid peer certificate")).await;
    secured.write("root.crt", &own.certificate);
    secured.check("localhost", full, Ok(true)).await;
    secured.check("127.0.0.1", full, Err("not valid for name")).await;

    // Without names and extensions: TLS works with this certificate, and it can be trusted as it is.
    let old = version_1();
    secured.set_certificate(&old);
    secured.check("localhost", "sslmode=require", Ok(true)).await;
    secured.check("localhost", "sslmode=verify-ca&sslrootcert=ROOT", Err("invalid peer certificate")).await;
    secured.write("root.crt", &old.certificate);
    secured.check("localhost", "sslmode=verify-ca&sslrootcert=ROOT", Ok(true)).await;
    secured.check("localhost", full, Err("invalid peer certificate")).await;
}

#[tokio::test]
async fn another_authority_is_trusted_after_a_reload() {
    let secured = Secured::new();
    let url = secured.url("localhost", "sslmode=verify-full&sslrootcert=ROOT");
    let gateway = Gateway::in_front_of(&url, &[]);
    assert_eq!(value(&connect(&gateway.config()).await, ENCRYPTED).await, "t");
    let next = Authority::new("the next authority");
    secured.set_certificate(&next.issue("server", &["localhost"]));
    let mut config = gateway.config();
    let error = try_connect(config.options("-c work_mem=1MB")).await.err().unwrap();
    assert!(describe(&error).contains("invalid peer certificate"), "{error:?}");
    secured.write("root.crt", &next.pem());
    gateway.signal(nix::sys::signal::Signal::SIGHUP);
    until("the new authority is trusted", async || try_connect(&config).await.is_ok()).await;
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_replicas_other_authority_is_trusted_after_a_reload() {
    let secured = Secured::new();
    secured.server.query("create table item (id int primary key); insert into item values (1)").unwrap();
    let standby = secured.server.standby().unwrap();
    let root = secured.folder.path().join("root.crt");
    let replicas = format!(
        "host=localhost port={} sslmode=verify-full sslrootcert={}",
        standby.port(),
        root.to_str().unwrap()
    );
    let gateway =
        Gateway::in_front_of(&secured.url("127.0.0.1", "sslmode=disable"), &["--replicas", &replicas]);
    let client = connect(&gateway.config()).await;
    client.batch_execute("set hotrow.reads = replica").await.unwrap();
    let console = connect(gateway.config().dbname("hotrow")).await;
    let serves = async || {
        client.simple_query("select id from item where id = 1").await.unwrap();
        let shown = hotrow_testkit::rows(&console, "show replicas").await.unwrap();
        shown.first().is_some_and(|row| row[4].as_deref() == Some("serves"))
    };
    until("the replica serves", serves).await;
    let next = Authority::new("the next authority");
    show(&standby, &next.issue("server", &["localhost"]));
    standby.restart().unwrap();
    until("its certificate is not trusted", async || !serves().await).await;
    secured.write("root.crt", &next.pem());
    gateway.signal(nix::sys::signal::Signal::SIGHUP);
    until("the new authority is trusted", serves).await;
}

#[tokio::test]
async fn a_server_without_tls_is_used_if_tls_is_not_required() {
    for (parameters, encrypted) in [("sslmode=prefer", Some("f")), ("sslmode=require", None)] {
        let gateway = Gateway::in_front_of(&format!("{}?{parameters}", server().url()), &[]);
        match (try_connect(&gateway.config()).await, encrypted) {
            (Ok(client), Some(expected)) => assert_eq!(value(&client, ENCRYPTED).await, expected),
            (Err(error), None) => assert!(describe(&error).contains("does not speak TLS"), "{error:?}"),
            (outcome, _) => panic!("{parameters}: {:?}", outcome.map(drop)),
        }
    }
}

#[tokio::test]
async fn a_login_is_bound_to_the_certificate() {
    let secured = Secured::new();
    secured.server.query("create role ann login password 'secret'").unwrap();
    secured.set_access("host all ann all scram-sha-256");
    let url = |parameters: &str| secured.url("127.0.0.1", parameters).replace("postgres@", "ann:secret@");
    for (parameters, bound) in [
        ("sslmode=require&channel_binding=require", true),
        ("sslmode=require&channel_binding=disable", true),
        ("sslmode=disable", true),
        ("sslmode=disable&channel_binding=require", false),
    ] {
        let gateway = Gateway::in_front_of(&url(parameters), &[]);
        let mut config = gateway.config();
        config.user("ann");
        match try_connect(&config).await {
            Ok(client) => assert!(bound && value(&client, "select 1").await == "1", "{parameters}"),
            Err(error) => {
                assert!(
                    !bound && describe(&error).contains("channel_binding=require"),
                    "{parameters}: {error:?}"
                );
            }
        }
    }
    // Without authentication, the login is not bound, but binding was required.
    let gateway = Gateway::in_front_of(&secured.url("127.0.0.1", "channel_binding=require"), &[]);
    let error = try_connect(&gateway.config()).await.err().unwrap();
    assert!(describe(&error).contains("channel_binding=require"), "{error:?}");
}

#[tokio::test]
async fn the_gateway_sends_its_own_certificate() {
    let secured = Secured::new();
    secured.set_access("hostssl all postgres 127.0.0.1/32 cert\nhost all all 127.0.0.1/32 reject");
    let pair = secured.authority.issue("postgres", &[]);
    let (certificate, key) = pair.write(secured.folder.path(), "gateway");
    let parameters = format!("sslmode=require&sslcert={certificate}&sslkey={key}");
    secured.check("127.0.0.1", &parameters, Ok(true)).await;
    secured.check("127.0.0.1", "sslmode=require", Err("valid client certificate")).await;
    let migrate = hotrow_testkit::hotrow()
        .args(["migrate", "--upstream", &secured.url("127.0.0.1", &parameters)])
        .output()
        .unwrap();
    assert!(migrate.status.success(), "{}", String::from_utf8_lossy(&migrate.stderr));
    let plain = hotrow_testkit::hotrow()
        .args(["migrate", "--upstream", &secured.url("127.0.0.1", "sslmode=disable")])
        .output()
        .unwrap();
    assert!(!plain.status.success());
}

/// All bytes that passed, in either direction.
type Recorded = Arc<Mutex<Vec<u8>>>;

/// A proxy that records all bytes.
fn tapped(server: u16) -> (u16, Recorded) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let recorded = Recorded::default();
    let kept = recorded.clone();
    thread::spawn(move || {
        for gateway in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
            for (from, to) in [(gateway.try_clone(), server.try_clone()), (Ok(server), Ok(gateway))] {
                let (from, to, kept) = (from.unwrap(), to.unwrap(), kept.clone());
                thread::spawn(move || carry(from, to, &kept));
            }
        }
    });
    (port, recorded)
}

fn carry(mut from: TcpStream, mut to: TcpStream, kept: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        kept.lock().unwrap().extend_from_slice(&chunk[..count]);
        if to.write_all(&chunk[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn no_readable_text_crosses_the_wire_not_even_in_a_cancel_request() {
    let secured = Secured::new();
    let (port, recorded) = tapped(secured.server.port());
    let gateway = Gateway::in_front_of(
        &format!(
            "postgres://postgres@localhost:{port}/postgres?sslmode=verify-full&sslrootcert={}",
            secured.folder.path().join("root.crt").display()
        ),
        &[],
    );
    let client = connect(&gateway.config()).await;
    client
        .batch_execute(
            "create table readable (id int primary key, n int); insert into readable values (1, 0)",
        )
        .await
        .unwrap();
    for expected in 1..50 {
        let update = "update readable set n = n + 1 where id = 1 returning n";
        assert_eq!(value(&client, update).await, expected.to_string());
    }
    assert!(gateway.metric("packed_units_total") > 40, "lanes are under TLS too");
    let token = client.cancel_token();
    let sleeper = tokio::spawn(async move { client.batch_execute("select pg_sleep(60)").await });
    until("the statement sleeps", async || {
        let asleep = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
        secured.server.query(asleep).unwrap()[0][0].as_deref() == Some("1")
    })
    .await;
    token.cancel_query(tokio_postgres::NoTls).await.unwrap();
    assert_eq!(sqlstate(&sleeper.await.unwrap().unwrap_err()), "57014");
    let recorded = recorded.lock().unwrap();
    let contains = |what: &[u8]| recorded.windows(what.len()).any(|window| window == what);
    assert!(recorded.len() > 10_000, "the wire was recorded");
    assert!(contains(&crate::tls::client::SSL_REQUEST));
    for secret in [&b"readable"[..], b"postgres\0", b"pg_sleep", &[0x04, 0xd2, 0x16, 0x2e]] {
        assert!(!contains(secret), "{} was readable", secret.escape_ascii());
    }
}

#[tokio::test]
async fn much_data_is_copied_in_both_directions_with_tls_on_both_sides() {
    // The first gateway is the server of the second, which uses direct TLS.
    let stage = Stage::new(&[]).await;
    let first = stage.gateway.port();
    let parameters =
        format!("sslmode=verify-full&sslnegotiation=direct&sslrootcert={}", stage.path("root.crt"));
    let (certificate, key) = (stage.path("gateway.crt"), stage.path("gateway.key"));
    let second = Gateway::in_front_of(
        &format!("postgres://postgres@localhost:{first}/postgres?{parameters}"),
        &["--tls-cert-file", &certificate, "--tls-key-file", &key],
    );
    stage.direct.batch_execute("create table wide (id int primary key, text text)").await.unwrap();
    let (file, back) = (stage.path("in"), stage.path("out"));
    let mut random = fastrand::Rng::with_seed(51);
    let lines: String =
        (0..20_000).map(|id| format!("{id}\t{}\n", "x".repeat(random.usize(0..1_000)))).collect();
    std::fs::write(&file, &lines).unwrap();
    let options = format!("-c search_path={}", stage.schema);
    let variables = [("PGSSLMODE", "require"), ("PGOPTIONS", options.as_str())];
    for command in
        [format!("\\copy wide from {file}"), format!("\\copy (select * from wide order by id) to {back}")]
    {
        let output = psql(second.port(), &variables, &command);
        assert!(output.contains("SSL connection") && !output.contains("ERROR"), "{output}");
    }
    assert!(std::fs::read_to_string(&back).unwrap() == lines, "the copied file is unchanged");
    let output = psql(second.port(), &variables, "update t set n = n + 1 where id = 1 returning n");
    assert!(output.ends_with("\n1\n"), "{output}");
}
