//! Several servers behind one gateway: each database reaches its own server, and nothing of one server reaches clients of
//! another or holds them up. The modules contain the tests, and this file contains the code that they share.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod apart;
mod converted;
mod faults;
mod mapping;
mod reload;

use std::path::{Path, PathBuf};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, connect, patient, try_connect, until};
use nix::sys::signal::Signal;
use tokio_postgres::{Client, Config};

/// Two servers. Both were made in the same way, so objects that are made in the same order have the same OIDs.
struct Stage {
    one: PrivateServer,
    two: PrivateServer,
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let server = |label: &str| PrivateServer::builder().label(label).own_identifier().start().unwrap();
        Stage { one: server("one"), two: server("two"), folder: tempfile::tempdir().unwrap() }
    }

    /// The `[[server]]` tables of both.
    fn servers(&self) -> String {
        servers(self.one.port(), self.two.port())
    }

    /// A gateway with these tables, as text of the settings file, before those of the servers. Its lanes are patient unless the
    /// options say otherwise.
    fn gateway(&self, settings: &str, options: &[&str]) -> Gateway {
        let file = self.file("hotrow.toml", &format!("{settings}\n{}", self.servers()));
        Gateway::with(&patient(&[&["--config", file.to_str().unwrap()], options].concat()))
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        write(self.folder.path(), name, text)
    }

    /// Replaces the settings file, and waits until the log reports that the gateway has read it.
    async fn reload(&self, gateway: &Gateway, settings: &str) -> String {
        let seen = gateway.log().len();
        self.file("hotrow.toml", &format!("{settings}\n{}", self.servers()));
        gateway.signal(Signal::SIGHUP);
        let log = || gateway.log().split_off(seen);
        let done = || log().contains("reloaded: the settings") || log().contains("not reloaded");
        until("the settings are read again", || async { done() }).await;
        log()
    }
}

fn servers(one: u16, two: u16) -> String {
    let server = |name, port| {
        format!(
            "[[server]]\nname = \"{name}\"\nurl = \"postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable\"\n"
        )
    };
    server("one", one) + &server("two", two)
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// `[[database]]` tables: name, server, and more lines.
fn databases(tables: &[(&str, &str, &str)]) -> String {
    let table = |(name, server, more): &(&str, &str, &str)| {
        format!("[[database]]\nname = \"{name}\"\nserver = \"{server}\"\n{more}\n")
    };
    tables.iter().map(table).collect()
}

fn config(port: u16, database: &str) -> Config {
    let mut config = hotrow_testkit::config(port);
    config.dbname(database);
    config
}

async fn client(port: u16, database: &str) -> Client {
    connect(&config(port, database)).await
}

/// SQLSTATE, message and hint of the error for a client that cannot connect.
async fn refusal(config: &Config) -> (String, String) {
    let error = try_connect(config).await.err().unwrap();
    let error = error.as_db_error().unwrap();
    (error.code().code().to_owned(), format!("{} {}", error.message(), error.hint().unwrap_or_default()))
}
