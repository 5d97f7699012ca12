//! A connection of a program beside the gateway, such as the demo: it logs in by `mysql_native_password`, and runs texts and prepared
//! statements.

use hotrow_mysql_wire::WireError;
use hotrow_mysql_wire::command::Command;
use hotrow_mysql_wire::message::{ERR, Err as ErrPacket, Ok as OkPacket};
use hotrow_mysql_wire::rows::Whole;

use crate::own::{self, Credentials, OwnError};
use crate::socket::{Socket, SocketError};
use crate::upstream::Upstream;

/// What packing needs at the server, as a script for [`Client::script`].
pub const INSTALL: &str = include_str!("../sql/install.sql");

/// The flags of an execution without a cursor, and the number of its iterations.
const NO_CURSOR_ONCE: [u8; 5] = [0, 1, 0, 0, 0];
/// BIGINT with a sign.
const BIGINT: [u8; 2] = [8, 0];

/// A statement that a client has prepared. Its parameters are integers.
#[derive(Debug, Clone, Copy)]
pub struct Prepared {
    id: u32,
}

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
        let socket = own::login(socket, &greeting, upstream, &Credentials::own(upstream)).await?;
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

    /// Prepares a statement on this connection.
    pub async fn prepare(&mut self, sql: &str) -> Result<Prepared, OwnError> {
        let reply = own::reply(&mut self.socket, false, Command::StmtPrepare, sql.as_bytes()).await?;
        let id = reply[0].get(1..5).and_then(|id| id.try_into().ok()).ok_or(WireError::Truncated)?;
        Ok(Prepared { id: u32::from_le_bytes(id) })
    }

    /// Executes a prepared statement with the values of all its parameters. Returns the number of rows that it has changed, or of
    /// those that it returns.
    pub async fn execute_prepared(&mut self, prepared: Prepared, values: &[i64]) -> Result<u64, OwnError> {
        let reply =
            own::reply(&mut self.socket, false, Command::StmtExecute, &execution(prepared, values)).await?;
        let whole = Whole::of(reply, false)?;
        Ok(whole.affected().unwrap_or(whole.rows().len() as u64))
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

/// What follows the command's byte: the statement, and its values with their types.
fn execution(prepared: Prepared, values: &[i64]) -> Vec<u8> {
    let mut rest = [&prepared.id.to_le_bytes()[..], &NO_CURSOR_ONCE].concat();
    if !values.is_empty() {
        rest.resize(rest.len() + values.len().div_ceil(8), 0); // a bit for each NULL
        rest.push(1); // the types follow
        rest.extend(values.iter().flat_map(|_| BIGINT));
        rest.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    rest
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
    fn an_execution_has_its_integers_with_their_types() {
        let prepared = Prepared { id: 0x0102 };
        assert_eq!(execution(prepared, &[]), [2, 1, 0, 0, 0, 1, 0, 0, 0]);
        let head = [2, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0, 8, 0];
        let values = [[1, 0, 0, 0, 0, 0, 0, 0], [0xff; 8]].concat();
        assert_eq!(execution(prepared, &[1, -1]), [&head[..], &values].concat());
        assert_eq!(
            execution(prepared, &[0; 9])[9..12],
            [0, 0, 1],
            "nine parameters have two bytes for NULLs"
        );
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
