//! TLS on both sides: clients that request it in every way, servers that offer it, rejections, and everything else
//! working as without TLS. The tests generate the certificates.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod certificates;
mod client;
mod clients;
mod faulty;
mod logins;
mod reload;
mod traffic;
mod upstream;

use certificates::{Authority, Pair};
use client::Client;
use hotrow_testkit::{Gateway, new_schema};
use tempfile::TempDir;

/// A gateway with a certificate, and the authority that clients trust.
struct Stage {
    gateway: Gateway,
    authority: Authority,
    folder: TempDir,
    schema: String,
    direct: tokio_postgres::Client,
}

impl Stage {
    /// A gateway with a certificate for this machine.
    async fn new(options: &[&str]) -> Self {
        let authority = Authority::new("the correct authority");
        let pair = authority.issue("gateway", &["localhost", "127.0.0.1"]);
        Self::with(authority, &pair, options).await
    }

    /// A gateway with this certificate.
    async fn with(authority: Authority, pair: &Pair, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = pair.write(folder.path(), "gateway");
        std::fs::write(folder.path().join("root.crt"), authority.pem()).unwrap();
        let (schema, direct) = new_schema().await;
        let table = "create table t (id int primary key, n int); insert into t select id, 0 from generate_series(1, 9) id";
        direct.batch_execute(table).await.unwrap();
        let tls = ["--tls-cert-file", &certificate, "--tls-key-file", &key];
        let gateway = Gateway::start(&[&tls[..], options].concat());
        Self { gateway, authority, folder, schema, direct }
    }

    /// A path in the stage's folder.
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// A client that is logged in under TLS.
    fn client(&self) -> Client {
        let mut client = Client::request_tls(self.gateway.port(), self.authority.trust()).unwrap();
        client.login(&self.schema);
        client
    }
}
