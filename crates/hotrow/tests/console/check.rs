//! `hotrow serve --check`: the settings and the files that they name, without a start.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use hotrow_testkit::hotrow;

/// Checks a settings file with this text, in a folder with other files. The files' mode is 0600.
fn check(folder: &Path, settings: &str, files: &[(&str, &str)]) -> Output {
    let path = |name: &str| folder.join(name);
    let here = settings.replace("HERE", &folder.display().to_string());
    for (name, text) in files.iter().chain(&[("hotrow.toml", here.as_str())]) {
        std::fs::write(path(name), text).unwrap();
        std::fs::set_permissions(path(name), Permissions::from_mode(0o600)).unwrap();
    }
    hotrow().args(["serve", "--check", "--config"]).arg(path("hotrow.toml")).output().unwrap()
}

const UPSTREAM: &str = "upstream = \"host=127.0.0.1 port=1 user=gate password=g4te\"\n";

#[test]
fn right_settings_are_accepted_although_the_address_is_in_use_and_no_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("listen = \"{}\"\n", taken.local_addr().unwrap());
    let text = format!("{UPSTREAM}{listen}hba_file = \"HERE/hba.conf\"\nusers_file = \"HERE/users.txt\"\n");
    let files = [("hba.conf", "host all all all scram-sha-256\n"), ("users.txt", "\"ann\" \"anns\"\n")];
    let output = check(folder.path(), &text, &files);
    let (said, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{log}");
    assert!(said.contains("can be used") && log.is_empty(), "{said}{log}");
}

#[test]
fn each_wrong_file_is_an_error_that_names_it() {
    let (hba, users) = ("hba_file = \"HERE/hba.conf\"\n", "users_file = \"HERE/users.txt\"\n");
    let tls = "tls_cert_file = \"HERE/a.crt\"\ntls_key_file = \"HERE/a.key\"\n";
    let open = "metrics = \"0.0.0.0:9187\"\n";
    for (settings, files, expected) in [
        ("lane = 2\n", &[][..], "hotrow.toml:2: unknown field"),
        ("lanes = 0\n", &[], "hotrow.toml:2: lanes is 0"),
        (hba, &[("hba.conf", "host all all all peer\n")], "hba.conf: line 1"),
        (users, &[("users.txt", "ann\n")], "users.txt: line 1"),
        (users, &[], "cannot read users_file"),
        (tls, &[("a.crt", "no certificate\n"), ("a.key", "")], "a.crt"),
        ("log = \"hotrow=loud\"\n", &[], "log filter"),
        ("http = \"127.0.0.1:0\"\nhttp_token_file = \"HERE/tokens\"\n", &[("tokens", "short\n")], "line 1"),
        ("listen = \"0.0.0.0:6432\"\n", &[], "there is no access file"),
        (open, &[], "hotrow.toml:2: metrics is 0.0.0.0:9187, which other machines can reach"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = check(folder.path(), &format!("{UPSTREAM}{settings}"), files);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{settings}: {error}");
        assert!(error.starts_with("hotrow: ") && error.contains(expected), "{settings}: {error}");
        assert!(!error.contains("g4te"), "{error}");
    }
}

#[test]
fn a_password_that_every_user_can_read_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hotrow.toml");
    std::fs::write(&path, UPSTREAM).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let output = hotrow().args(["serve", "--check", "--config"]).arg(&path).output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(log.contains("WARN") && log.contains("chmod 640") && !log.contains("g4te"), "{log}");
}
