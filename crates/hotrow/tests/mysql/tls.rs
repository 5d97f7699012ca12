//! TLS on both sides, each with and without the other: with the command-line client of MariaDB, and packed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hotrow_mariadb::{PASSWORD, PrivateMariaDb, USER};
use hotrow_testkit::Gateway;
use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use crate::{install, root};

/// A self-signed certificate for 127.0.0.1 and localhost, and its key.
struct Pair {
    folder: TempDir,
    certificate: PathBuf,
    key: PathBuf,
}

impl Pair {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["127.0.0.1", "localhost"].map(str::to_owned)).unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            path
        };
        let (certificate, key) =
            (write("certificate.pem", certificate), write("key.pem", key.serialize_pem()));
        Pair { folder, certificate, key }
    }

    /// A server with this certificate. It runs as another user if this program runs as root.
    fn server(&self) -> PrivateMariaDb {
        if let Some(user) =
            nix::unistd::User::from_name("mysql").unwrap().filter(|_| nix::unistd::geteuid().is_root())
        {
            for path in [self.folder.path(), &self.certificate, &self.key] {
                chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
            }
        }
        let option = |name: &str, path: &Path| format!("--{name}={}", path.display());
        hotrow_testkit::mariadb(&[&option("ssl-cert", &self.certificate), &option("ssl-key", &self.key)])
    }

    /// The options of a gateway with this certificate.
    fn options(&self) -> [String; 4] {
        let text = |path: &Path| path.display().to_string();
        ["--tls-cert-file".into(), text(&self.certificate), "--tls-key-file".into(), text(&self.key)]
    }
}

fn mariadb(port: u16, options: &[&str], sql: &str) -> Output {
    Command::new("mariadb")
        .args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--batch", "--skip-column-names"])
        .args([&format!("--port={port}"), &format!("--user={USER}"), &format!("--password={PASSWORD}")])
        .args(options)
        .args(["--execute", sql])
        .output()
        .expect("the package of the server has its client")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

fn gateway(server: &PrivateMariaDb, parameters: &str, options: &[String]) -> Gateway {
    let url = format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{}/mysql{parameters}", server.port());
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    Gateway::in_front_of(&url, &options)
}

/// The cipher of the connection between the gateway and the server, and that between the client and the gateway.
fn ciphers(gateway: &Gateway, ca: Option<&Path>) -> [bool; 2] {
    let ca = ca.map(|path| format!("--ssl-ca={}", path.display()));
    let options = match &ca {
        Some(ca) => vec!["--ssl", "--ssl-verify-server-cert", ca],
        None => vec!["--skip-ssl"],
    };
    let server = text(&mariadb(gateway.port(), &options, "show session status like 'ssl_cipher'"));
    let client = text(&mariadb(gateway.port(), &options, "status"));
    let line =
        client.lines().find(|line| line.starts_with("SSL:")).expect("the client says whether it uses TLS");
    [server.trim() != "Ssl_cipher", line.contains("Cipher in use")]
}

#[test]
fn each_side_has_tls_or_not() {
    let pair = Pair::new();
    let server = pair.server();
    let ca = Some(pair.certificate.as_path());
    for (parameters, options, ca, expected) in [
        ("?sslmode=disable", vec![], None, [false, false]),
        ("?sslmode=disable", pair.options().to_vec(), None, [false, false]),
        ("?sslmode=disable", pair.options().to_vec(), ca, [false, true]),
        ("", vec![], None, [true, false]),
        ("?sslmode=require", pair.options().to_vec(), ca, [true, true]),
    ] {
        let gateway = gateway(&server, parameters, &options);
        assert_eq!(ciphers(&gateway, ca), expected, "{parameters} {options:?}");
    }
    // Accounts that need TLS can be used, because the gateway has it.
    root(server.port()).ok("create user tls@'%' identified by 'p' require ssl");
    let through = gateway(&server, "", &[]);
    let login = |port: u16| crate::client::Client::login(port, "tls", "p");
    assert_eq!(login(server.port()).err().map(|error| error.code), Some(1045));
    assert_eq!(login(through.port()).unwrap().value("select substring_index(current_user(), '@', 1)"), "tls");
}

#[test]
fn certificates_are_verified() {
    let (pair, other) = (Pair::new(), Pair::new());
    let server = pair.server();
    let verified = |certificate: &Path| {
        let parameters = format!("?sslmode=verify-full&sslrootcert={}", certificate.display());
        let gateway = gateway(&server, &parameters, &[]);
        let output = mariadb(gateway.port(), &[], "show session status like 'ssl_cipher'");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(verified(&pair.certificate).0);
    let (is_connected, error) = verified(&other.certificate);
    assert!(!is_connected && error.contains("the TLS handshake with the server failed"), "{error}");
    // A client that does not trust the gateway's certificate.
    let gateway = gateway(&server, "", &pair.options());
    let ca = format!("--ssl-ca={}", other.certificate.display());
    assert!(!mariadb(gateway.port(), &["--ssl", &ca], "select 1").status.success());
    let ca = format!("--ssl-ca={}", pair.certificate.display());
    assert_eq!(text(&mariadb(gateway.port(), &["--ssl", &ca], "select 1")), "1", "others go on");
}

#[test]
fn a_server_without_tls_is_refused_if_it_is_required() {
    let gateway = gateway(crate::server(), "?sslmode=require", &[]);
    let output = mariadb(gateway.port(), &[], "select 1");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("does not offer TLS") && error.contains("ssl_cert"), "{error}");
}

#[test]
#[ignore = "long: make test-all"]
fn statements_are_packed_under_tls() {
    let pair = Pair::new();
    let server = pair.server();
    install(&server);
    let mut direct = root(server.port());
    direct.ok("create database tls");
    direct.ok("create table tls.t (id int primary key, n int not null) engine=innodb");
    direct.ok("insert into tls.t values (1, 0)");
    let mut options = pair.options().to_vec();
    options.extend(["--pack".to_owned(), "true".to_owned()]);
    let gateway = gateway(&server, "?sslmode=require", &options);
    let ca = format!("--ssl-ca={}", pair.certificate.display());
    let sql = "update tls.t set n = n + 1 where id = 1;".repeat(50);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| text(&mariadb(gateway.port(), &["--ssl", &ca], &sql)));
        }
    });
    assert_eq!(direct.value("select n from tls.t"), "400");
    let batches: u64 = direct.value("select sum(n) from hotrow.batch").parse().unwrap();
    assert!(batches > 0, "nothing was packed");
}
