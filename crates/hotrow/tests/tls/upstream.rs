//! TLS towards the server: every `sslmode` against certificates that are right and wrong, and that nothing readable crosses
//! the wire once there is TLS.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, chown};
use std::sync::{Arc, Mutex};
use std::thread;

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{connect, describe, server, sqlstate, try_connect, until, value};
use tempfile::TempDir;

use crate::certificates::{Authority, Pair, self_signed, version_1};
use crate::clients::psql;
use crate::{Gateway, Stage};

/// A server with a certificate for `localhost`, and what is needed to believe it.
struct Secured {
    server: PrivateServer,
    authority: Authority,
    folder: TempDir,
}

const ENCRYPTED: &str = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
const OPEN_LIST: &str = "local all all trust\nhost all all 127.0.0.1/32 trust\nhost all all ::1/128 trust\n";

impl Secured {
    fn new() -> Self {
        let authority = Authority::new("the right one");
        let pair = authority.issue("server", &["localhost"]);
        let server = PrivateServer::builder().label("tls").start().unwrap();
        let secured = Self { server, authority, folder: tempfile::tempdir().unwrap() };
        secured.write("root.crt", &secured.authority.pem());
        secured.keep("clients.crt", &secured.authority.pem());
        secured.show(&pair);
        secured.server.query("alter system set ssl_ca_file = 'clients.crt'").unwrap();
        secured.server.query("alter system set ssl = on").unwrap();
        secured.server.restart().unwrap();
        secured
    }

    /// Puts a file where the server reads it.
    fn keep(&self, name: &str, text: &str) {
        let folder = std::fs::metadata(self.server.data_dir()).unwrap();
        let path = self.server.data_dir().join(name);
        std::fs::write(&path, text).unwrap();
        chown(&path, Some(folder.uid()), Some(folder.gid())).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }

    fn show(&self, pair: &Pair) {
        self.keep("server.crt", &pair.certificate);
        self.keep("server.key", &pair.key);
    }

    /// With another certificate.
    fn shows(&self, pair: &Pair) {
        self.show(pair);
        self.server.restart().unwrap();
    }

    /// Who may come in, before those who always may.
    fn lets_in(&self, lines: &str) {
        self.keep("pg_hba.conf", &format!("local all all trust\n{lines}\n{OPEN_LIST}"));
        self.server.restart().unwrap();
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn url(&self, host: &str, words: &str) -> String {
        let words = words.replace("ROOT", self.folder.path().join("root.crt").to_str().unwrap());
        format!("postgres://postgres@{host}:{}/postgres?{words}", self.server.port())
    }

    /// Whether a gateway with these words reaches the server under TLS, or why it doesn't at all.
    async fn reached(&self, host: &str, words: &str) -> Result<bool, String> {
        let gateway = Gateway::in_front_of(&self.url(host, words), &[]);
        match try_connect(&gateway.config()).await {
            Ok(client) => Ok(value(&client, ENCRYPTED).await == "t"),
            Err(error) => Err(describe(&error)),
        }
    }

    async fn check(&self, host: &str, words: &str, expected: Result<bool, &str>) {
        let reached = self.reached(host, words).await;
        let right = match (&reached, expected) {
            (Ok(encrypted), Ok(expected)) => *encrypted == expected,
            (Err(error), Err(expected)) => error.contains(expected),
            _ => false,
        };
        assert!(right, "{host} {words}: {reached:?} instead of {expected:?}");
    }
}

#[tokio::test]
async fn sslmode_means_what_it_means_to_libpq() {
    let secured = Secured::new();
    let other = secured.write("other.crt", &Authority::new("the right one").pem());
    secured.check("localhost", "sslmode=disable", Ok(false)).await;
    for encrypted in ["", "sslmode=prefer", "sslmode=require", "sslmode=verify-ca&sslrootcert=ROOT"] {
        secured.check("127.0.0.1", encrypted, Ok(true)).await;
    }
    let full = "sslmode=verify-full&sslrootcert=ROOT";
    secured.check("localhost", full, Ok(true)).await;
    secured.check("127.0.0.1", full, Err("not valid for name")).await;
    for mode in ["require", "verify-ca", "verify-full"] {
        let words = format!("sslmode={mode}&sslrootcert={other}");
        secured.check("localhost", &words, Err("invalid peer certificate")).await;
    }
    secured
        .check("localhost", "sslmode=verify-full&sslrootcert=system", Err("invalid peer certificate"))
        .await;
    // Where TLS is only preferred, it is left out when it can't be had.
    secured.check("localhost", &format!("sslmode=prefer&sslrootcert={other}"), Ok(false)).await;
    secured
        .check(
            "localhost",
            "sslmode=require&sslnegotiation=direct",
            Err("the TLS handshake with the server failed"),
        )
        .await;

    secured.shows(&secured.authority.issue_expired("server", &["localhost"]));
    secured.check("localhost", full, Err("certificate expired")).await;
    secured.check("localhost", "sslmode=require", Ok(true)).await;

    let own = self_signed(&["localhost"]);
    secured.shows(&own);
    secured.check("localhost", full, Err("invalid peer certificate")).await;
    secured.write("root.crt", &own.certificate);
    secured.check("localhost", full, Ok(true)).await;
    secured.check("127.0.0.1", full, Err("not valid for name")).await;

    // Without names and extensions: there is TLS with it, and it may be known as it stands.
    let old = version_1();
    secured.shows(&old);
    secured.check("localhost", "sslmode=require", Ok(true)).await;
    secured.check("localhost", "sslmode=verify-ca&sslrootcert=ROOT", Err("invalid peer certificate")).await;
    secured.write("root.crt", &old.certificate);
    secured.check("localhost", "sslmode=verify-ca&sslrootcert=ROOT", Ok(true)).await;
    secured.check("localhost", full, Err("invalid peer certificate")).await;
}

#[tokio::test]
async fn another_authority_is_believed_after_a_reload() {
    let secured = Secured::new();
    let url = secured.url("localhost", "sslmode=verify-full&sslrootcert=ROOT");
    let gateway = Gateway::in_front_of(&url, &[]);
    assert_eq!(value(&connect(&gateway.config()).await, ENCRYPTED).await, "t");
    let next = Authority::new("the next one");
    secured.shows(&next.issue("server", &["localhost"]));
    let mut config = gateway.config();
    let error = try_connect(config.options("-c work_mem=1MB")).await.err().unwrap();
    assert!(describe(&error).contains("invalid peer certificate"), "{error:?}");
    secured.write("root.crt", &next.pem());
    gateway.signal(nix::sys::signal::Signal::SIGHUP);
    until("the new one is believed", async || try_connect(&config).await.is_ok()).await;
}

#[tokio::test]
async fn a_server_without_tls_is_taken_where_none_is_required() {
    for (words, encrypted) in [("sslmode=prefer", Some("f")), ("sslmode=require", None)] {
        let gateway = Gateway::in_front_of(&format!("{}?{words}", server().url()), &[]);
        match (try_connect(&gateway.config()).await, encrypted) {
            (Ok(client), Some(expected)) => assert_eq!(value(&client, ENCRYPTED).await, expected),
            (Err(error), None) => assert!(describe(&error).contains("does not speak TLS"), "{error:?}"),
            (outcome, _) => panic!("{words}: {:?}", outcome.map(drop)),
        }
    }
}

#[tokio::test]
async fn a_log_in_is_bound_to_the_certificate() {
    let secured = Secured::new();
    secured.server.query("create role ann login password 'secret'").unwrap();
    secured.lets_in("host all ann all scram-sha-256");
    let url = |words: &str| secured.url("127.0.0.1", words).replace("postgres@", "ann:secret@");
    for (words, bound) in [
        ("sslmode=require&channel_binding=require", true),
        ("sslmode=require&channel_binding=disable", true),
        ("sslmode=disable", true),
        ("sslmode=disable&channel_binding=require", false),
    ] {
        let gateway = Gateway::in_front_of(&url(words), &[]);
        let mut config = gateway.config();
        config.user("ann");
        match try_connect(&config).await {
            Ok(client) => assert!(bound && value(&client, "select 1").await == "1", "{words}"),
            Err(error) => {
                assert!(!bound && describe(&error).contains("channel_binding=require"), "{words}: {error:?}");
            }
        }
    }
    // Nobody is asked for anything: nothing is bound, and that was required.
    let gateway = Gateway::in_front_of(&secured.url("127.0.0.1", "channel_binding=require"), &[]);
    let error = try_connect(&gateway.config()).await.err().unwrap();
    assert!(describe(&error).contains("channel_binding=require"), "{error:?}");
}

#[tokio::test]
async fn the_gateway_shows_a_certificate_of_its_own() {
    let secured = Secured::new();
    secured.lets_in("hostssl all postgres 127.0.0.1/32 cert\nhost all all 127.0.0.1/32 reject");
    let pair = secured.authority.issue("postgres", &[]);
    let (certificate, key) = pair.write(secured.folder.path(), "gateway");
    let words = format!("sslmode=require&sslcert={certificate}&sslkey={key}");
    secured.check("127.0.0.1", &words, Ok(true)).await;
    secured.check("127.0.0.1", "sslmode=require", Err("valid client certificate")).await;
    let migrate = hotrow_testkit::hotrow()
        .args(["migrate", "--upstream", &secured.url("127.0.0.1", &words)])
        .output()
        .unwrap();
    assert!(migrate.status.success(), "{}", String::from_utf8_lossy(&migrate.stderr));
    let plain = hotrow_testkit::hotrow()
        .args(["migrate", "--upstream", &secured.url("127.0.0.1", "sslmode=disable")])
        .output()
        .unwrap();
    assert!(!plain.status.success());
}

/// Everything that went through, either way.
type Overheard = Arc<Mutex<Vec<u8>>>;

/// A wire that is listened to.
fn tapped(server: u16) -> (u16, Overheard) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let overheard = Overheard::default();
    let kept = overheard.clone();
    thread::spawn(move || {
        for gateway in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
            for (from, to) in [(gateway.try_clone(), server.try_clone()), (Ok(server), Ok(gateway))] {
                let (from, to, kept) = (from.unwrap(), to.unwrap(), kept.clone());
                thread::spawn(move || carry(from, to, &kept));
            }
        }
    });
    (port, overheard)
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
async fn nothing_readable_crosses_the_wire_not_even_a_cancel_request() {
    let secured = Secured::new();
    let (port, overheard) = tapped(secured.server.port());
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
    until("it sleeps", async || {
        let asleep = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
        secured.server.query(asleep).unwrap()[0][0].as_deref() == Some("1")
    })
    .await;
    token.cancel_query(tokio_postgres::NoTls).await.unwrap();
    assert_eq!(sqlstate(&sleeper.await.unwrap().unwrap_err()), "57014");
    let overheard = overheard.lock().unwrap();
    let heard = |what: &[u8]| overheard.windows(what.len()).any(|window| window == what);
    assert!(overheard.len() > 10_000, "the wire was listened to");
    assert!(heard(&crate::client::SSL_REQUEST));
    for secret in [&b"readable"[..], b"postgres\0", b"pg_sleep", &[0x04, 0xd2, 0x16, 0x2e]] {
        assert!(!heard(secret), "{} was heard", secret.escape_ascii());
    }
}

#[tokio::test]
async fn much_data_goes_both_ways_under_tls_on_both_sides() {
    // The first gateway is the server of the second, which begins with TLS without asking.
    let stage = Stage::new(&[]).await;
    let first = stage.gateway.port();
    let words = format!("sslmode=verify-full&sslnegotiation=direct&sslrootcert={}", stage.path("root.crt"));
    let (certificate, key) = (stage.path("gateway.crt"), stage.path("gateway.key"));
    let second = Gateway::in_front_of(
        &format!("postgres://postgres@localhost:{first}/postgres?{words}"),
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
        let said = psql(second.port(), &variables, &command);
        assert!(said.contains("SSL connection") && !said.contains("ERROR"), "{said}");
    }
    assert!(std::fs::read_to_string(&back).unwrap() == lines, "what comes out is what went in");
    let said = psql(second.port(), &variables, "update t set n = n + 1 where id = 1 returning n");
    assert!(said.ends_with("\n1\n"), "{said}");
}
