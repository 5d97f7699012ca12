//! A connection of a program beside the gateway, such as the demo: it logs in by `mysql_native_password` and runs texts.

use hotrow_mysql_wire::command::Command;
use hotrow_mysql_wire::message::{ERR, Err as ErrPacket, Ok as OkPacket};

use crate::own::{self, Credentials, OwnError};
use crate::socket::{Socket, SocketError};
use crate::upstream::Upstream;

/// What packing needs at the server, as a script for [`Client::script`].
pub const INSTALL: &str = include_str!("../sql/install.sql");

/// A connection that has logged in. Affected rows are changed rows.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    version: String,
}

impl Client {
    /// Connects and logs in.
    pub async fn open(upstream: &Upstream) -> Result<Self, OwnError> {
        let (socket, greeting) = own::connect(upstream).await?;
        let socket = own::log_in(socket, &greeting, upstream, &Credentials::own(upstream)).await?;
        Ok(Client { socket, version: String::from_utf8_lossy(&greeting.version).into_owned() })
    }

    /// The server's version as it greets with it, such as `10.11.6-MariaDB-log`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Runs a statement that returns no rows.
    pub async fn execute(&mut self, sql: &str) -> Result<OkPacket, OwnError> {
        self.socket.send(0, &Command::Query.payload(sql.as_bytes())).await?;
        let payload = self.socket.next().await?.payload;
        match payload.first() {
            Some(&ERR) => Err(ErrPacket::read(&payload)?.into()),
            _ => Ok(OkPacket::read(&payload)?),
        }
    }

    /// The rows of a query, as texts.
    pub async fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, OwnError> {
        own::rows(&mut self.socket, false, sql).await
    }

    /// Runs the statements of a script that return no rows, with the delimiters that the `mariadb` client knows.
    pub async fn script(&mut self, script: &str) -> Result<(), OwnError> {
        for statement in statements(script) {
            self.execute(&statement).await?;
        }
        Ok(())
    }
}

/// The statements of a script. A statement ends with a line, and so does a command that changes the delimiter.
pub fn statements(script: &str) -> Vec<String> {
    let (mut statements, mut delimiter) = (Vec::new(), ";");
    let mut statement = String::new();
    for line in script.lines().filter(|line| !line.trim_start().starts_with("-- ")) {
        if let Some(new) = line.strip_prefix("delimiter ") {
            delimiter = new.trim();
        } else if let Some(last) = line.trim_end().strip_suffix(delimiter) {
            statement += last;
            statements.push(std::mem::take(&mut statement).trim().to_owned());
        } else {
            statement += line;
            statement.push('\n');
        }
    }
    statements
}

impl OwnError {
    /// The operating system's error, if the connection was lost. Otherwise, the server's answer or what is wrong with it.
    pub fn lost(self) -> Result<std::io::Error, String> {
        match self {
            OwnError::Socket(SocketError::System(error)) => Ok(error),
            OwnError::Socket(SocketError::Closed) => Ok(std::io::ErrorKind::UnexpectedEof.into()),
            OwnError::Refused(error) => Err(error.to_string()),
            other => Err(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_divided_at_their_delimiters() {
        let script = "-- A comment; no statement.\nselect 1;\ndelimiter $$;\ncreate a\nbegin b; end $$;\ncreate c $$;\n\
                      delimiter ;\nselect\n2;\n";
        assert_eq!(statements(script), ["select 1", "create a\nbegin b; end", "create c", "select\n2"]);
    }

    #[test]
    fn the_script_for_packing_is_complete() {
        let statements = statements(INSTALL);
        let created = statements.iter().filter(|one| one.starts_with("create"));
        assert_eq!(created.count(), INSTALL.matches("\ncreate ").count());
        let is_known = |one: &String| ["create", "insert", "drop"].iter().any(|word| one.starts_with(word));
        assert!(statements.iter().all(is_known));
    }
}
