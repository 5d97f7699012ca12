//! Tests that the next start ends the server of a killed owner and removes its folder.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the lints' exception for tests covers only functions with #[test]"
)]
use hotrow_postgres::PrivateServer;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Names the folder for the server of the owner, a second run of this program that will be killed.
const OWNER_OF: &str = "HOTROW_TEST_OWNER_OF";

#[test]
fn the_server_of_an_ended_owner_is_stopped_and_its_folder_removed() {
    if let Some(folder) = std::env::var_os(OWNER_OF) {
        return own(Path::new(&folder));
    }
    let folder = tempfile::Builder::new()
        .prefix("hotrow")
        .permissions(Permissions::from_mode(0o711))
        .tempdir()
        .unwrap();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_server_of_an_ended_owner_is_stopped_and_its_folder_removed", "--nocapture"])
        .env(OWNER_OF, folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said = lines.filter_map(|line| line.strip_prefix("started ").map(str::to_owned)).next().unwrap();
    let (port, home) = said.split_once(' ').unwrap();
    let (port, home): (u16, &Path) = (port.parse().unwrap(), Path::new(home));

    let sibling = PrivateServer::builder().parent(folder.path()).start().unwrap();
    assert!(home.exists(), "the folder of a running owner was removed");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok(), "the server of a running owner was stopped");

    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok(), "the server still runs");

    let next = PrivateServer::builder().parent(folder.path()).start().unwrap();
    assert!(!home.exists());
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    for living in [&sibling, &next] {
        assert_eq!(living.query("select 1").unwrap().len(), 1);
    }
    drop((sibling, next));
    let left = fs::read_dir(folder.path()).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir());
    assert_eq!(left.count(), 0);
}

/// The owner: starts a server, prints its address, and waits to be killed.
fn own(folder: &Path) {
    let server = PrivateServer::builder().parent(folder).start().unwrap();
    println!("\nstarted {} {}", server.port(), server.data_dir().parent().unwrap().display());
    // If the test fails before it kills this process, its end of the pipe closes, and this process ends in order.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}
