//! Tests the service with schemathesis: it finds no answer that contradicts the OpenAPI document. It needs Python, so
//! only `make openapi` runs it.

use std::path::Path;
use std::process::Command;

use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Python: make openapi"]
async fn schemathesis_finds_nothing() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The path at which `make openapi` installs it.
    let program = here.join("../../target/schemathesis/bin/schemathesis");
    assert!(program.exists(), "schemathesis is missing: run make openapi, which installs it");
    let mut stage = Stage::start().await;
    // A worker would send notifications to the random addresses of endpoints.
    tokio::task::block_in_place(|| stage.worker.kill_dash_nine());
    let folder = tempfile::tempdir().unwrap();
    let mut run = Command::new(here.join("tests/service/schemathesis.sh"));
    run.arg(stage.caller().base).env("SCHEMATHESIS", program).current_dir(folder.path());
    let output = tokio::task::block_in_place(|| run.output()).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
