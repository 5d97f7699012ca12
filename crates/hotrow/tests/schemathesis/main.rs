//! The HTTP API under schemathesis, which finds no answer that contradicts the OpenAPI document. Only `make openapi`
//! runs it, because it needs Python.

use std::path::{Path, PathBuf};
use std::process::Command;

use hotrow_testkit::{Gateway, free_port, migrate, server};

hotrow_testkit::shared_server!();

const TOKEN: &str = "schemathesis-0123456789";

/// The program that `make openapi` installs.
fn schemathesis() -> PathBuf {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/schemathesis/bin/schemathesis");
    let installed =
        Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success());
    assert!(installed, "schemathesis is missing: run make openapi, which installs it");
    program
}

#[test]
fn schemathesis_finds_no_contradiction() {
    let program = schemathesis();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    std::fs::write(&file, TOKEN).unwrap();
    migrate(&server().url());
    let port = free_port();
    let options = ["--http", &format!("127.0.0.1:{port}"), "--http-token-file", file.to_str().unwrap()];
    let gateway = Gateway::start(&options);
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis/run.sh"))
        .args([&format!("http://127.0.0.1:{port}"), TOKEN])
        .env("SCHEMATHESIS", program)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!gateway.log().contains("panicked"));
}
