//! The paths of this workspace's programs. cargo passes them only to the integration tests of their own package.

use std::path::PathBuf;
use std::process::Command;

/// A program of this workspace, which cargo puts two folders above the test's own executable
/// (`target/debug/deps/tls-1f2e` and `target/debug/hotrow`).
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this program has a path");
    let folder = test.ancestors().nth(2).expect("cargo puts tests into the folder deps");
    let path = folder.join(name);
    assert!(path.exists(), "{} is not built: cargo build --package {name}", path.display());
    path
}

/// A command for the gateway's program, without arguments.
pub fn hotrow() -> Command {
    Command::new(program("hotrow"))
}
