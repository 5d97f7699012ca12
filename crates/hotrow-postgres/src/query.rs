//! One query to a server, in the simple query protocol, on its own connection. It is not a driver: it has no
//! types, parameters, passwords or TLS.
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{DataRowBody, ErrorResponseBody, Message};
use postgres_protocol::message::frontend;
use std::io::{self, Read, Write};

/// The rows of an answer, each value as text, `None` for NULL.
pub type Rows = Vec<Vec<Option<String>>>;

/// The reason why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    Refused { sqlstate: String, message: String },
    Connection(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Connection(error)
    }
}

/// Logs in as `postgres`, sends `sql`, and returns the rows of all its statements.
pub(crate) fn ask(mut stream: impl Read + Write, sql: &str) -> Result<Rows, Failure> {
    let mut out = BytesMut::new();
    frontend::startup_message([("user", "postgres"), ("database", "postgres")], &mut out)?;
    stream.write_all(&out)?;
    let mut incoming = BytesMut::new();
    until_ready(&mut stream, &mut incoming)?;

    out.clear();
    frontend::query(sql, &mut out)?;
    stream.write_all(&out)?;
    let rows = until_ready(&mut stream, &mut incoming)?;

    // The answer is complete. If the server has already ended, Terminate is not needed.
    out.clear();
    frontend::terminate(&mut out);
    let _ = stream.write_all(&out);
    Ok(rows)
}

/// Reads up to ReadyForQuery. An error is returned only after the server is ready again or has closed the
/// connection.
fn until_ready(stream: &mut impl Read, incoming: &mut BytesMut) -> Result<Rows, Failure> {
    let mut rows = Rows::new();
    let mut refusal = None;
    loop {
        match next(stream, incoming) {
            Ok(Message::DataRow(body)) => rows.push(values(&body)?),
            Ok(Message::ErrorResponse(body)) => refusal = Some(failure(&body)?),
            Ok(Message::ReadyForQuery(_)) => return refusal.map_or(Ok(rows), Err),
            Ok(_) => {}
            Err(error) => return Err(refusal.unwrap_or(Failure::Connection(error))),
        }
    }
}

fn next(stream: &mut impl Read, incoming: &mut BytesMut) -> io::Result<Message> {
    loop {
        if let Some(message) = Message::parse(incoming)? {
            return Ok(message);
        }
        let mut chunk = [0; 8192];
        let length = stream.read(&mut chunk)?;
        if length == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        incoming.extend_from_slice(&chunk[..length]);
    }
}

fn values(body: &DataRowBody) -> io::Result<Vec<Option<String>>> {
    body.ranges()
        .map(|range| Ok(range.map(|range| String::from_utf8_lossy(&body.buffer()[range]).into_owned())))
        .collect()
}

fn failure(body: &ErrorResponseBody) -> io::Result<Failure> {
    let (mut sqlstate, mut message) = (String::new(), String::new());
    let mut fields = body.fields();
    while let Some(field) = fields.next()? {
        let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => sqlstate = value,
            b'M' => message = value,
            _ => {}
        }
    }
    Ok(Failure::Refused { sqlstate, message })
}
