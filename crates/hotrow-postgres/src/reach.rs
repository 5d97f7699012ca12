//! The addresses of a private server, and queries to it. This code never starts or stops the server.
use crate::folder::socket_file;
use crate::query::{Failure, Rows, ask};
use crate::{Error, PrivateServer};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// A server that accepts connections answers `select` at once. A server that does not answer in this time is not
/// ready.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

impl PrivateServer {
    /// The rows of `sql` as text, on a separate TCP connection. `sql` can contain several statements.
    pub fn query(&self, sql: &str) -> Result<Rows, Error> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port()));
        stream.map_err(Failure::from).and_then(|stream| ask(stream, sql)).map_err(|error| explain(sql, error))
    }

    /// The value of a setting, as the server reports it.
    pub fn setting_value(&self, name: &str) -> Result<String, Error> {
        let rows = self.ask_socket(&format!("select current_setting('{}')", name.replace('\'', "''")))?;
        Ok(rows.into_iter().flatten().flatten().next().unwrap_or_default())
    }

    pub(crate) fn ask_socket(&self, sql: &str) -> Result<Rows, Error> {
        let connect = || {
            let stream = UnixStream::connect(socket_file(&self.socket_dir(), self.port()))?;
            stream.set_read_timeout(Some(PROBE_TIMEOUT))?;
            stream.set_write_timeout(Some(PROBE_TIMEOUT))?;
            Ok(stream)
        };
        connect()
            .map_err(Failure::Connection)
            .and_then(|stream| ask(stream, sql))
            .map_err(|e| explain(sql, e))
    }

    /// `postgres://postgres@127.0.0.1:PORT/postgres`
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}:{}/postgres", self.host(), self.port())
    }

    /// The same over the Unix socket, in the form that libpq and tokio-postgres accept.
    pub fn socket_url(&self) -> String {
        let directory: String =
            self.socket_dir().as_os_str().as_encoded_bytes().iter().map(url_byte).collect();
        format!("postgres://postgres@{directory}:{}/postgres", self.port())
    }

    /// The address of the server.
    pub fn host(&self) -> &'static str {
        "127.0.0.1"
    }

    /// The port of the server. It does not change after a restart.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The folder of its Unix socket.
    pub fn socket_dir(&self) -> PathBuf {
        self.folder.socket()
    }
}

fn explain(sql: &str, failure: Failure) -> Error {
    let sql = sql.to_owned();
    match failure {
        Failure::Refused { sqlstate, message } => Error::Refused { sql, sqlstate, message },
        Failure::Connection(source) => Error::Connection { sql, source },
    }
}

/// One byte of a path, in the host part of a URL.
fn url_byte(byte: &u8) -> String {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(*byte).to_string(),
        other => format!("%{other:02X}"),
    }
}
