//! Messages of a server: views of the messages whose contents matter, and the messages that the gateway
//! writes.

use bytes::BytesMut;

use crate::{Error, Reader, SqlState, put_cstr, put_frame};

/// Tags of server messages.
pub mod tag {
    /// Authentication requests and their end.
    pub const AUTHENTICATION: u8 = b'R';
    /// BackendKeyData.
    pub const BACKEND_KEY_DATA: u8 = b'K';
    /// BindComplete.
    pub const BIND_COMPLETE: u8 = b'2';
    /// CloseComplete.
    pub const CLOSE_COMPLETE: u8 = b'3';
    /// CommandComplete.
    pub const COMMAND_COMPLETE: u8 = b'C';
    /// CopyData.
    pub const COPY_DATA: u8 = b'd';
    /// CopyInResponse.
    pub const COPY_IN: u8 = b'G';
    /// DataRow.
    pub const DATA_ROW: u8 = b'D';
    /// EmptyQueryResponse.
    pub const EMPTY_QUERY: u8 = b'I';
    /// ErrorResponse.
    pub const ERROR: u8 = b'E';
    /// FunctionCallResponse.
    pub const FUNCTION_CALL: u8 = b'V';
    /// NoData.
    pub const NO_DATA: u8 = b'n';
    /// NoticeResponse.
    pub const NOTICE: u8 = b'N';
    /// NotificationResponse.
    pub const NOTIFICATION: u8 = b'A';
    /// ParameterDescription.
    pub const PARAMETER_DESCRIPTION: u8 = b't';
    /// ParameterStatus.
    pub const PARAMETER_STATUS: u8 = b'S';
    /// ParseComplete.
    pub const PARSE_COMPLETE: u8 = b'1';
    /// PortalSuspended.
    pub const PORTAL_SUSPENDED: u8 = b's';
    /// ReadyForQuery.
    pub const READY: u8 = b'Z';
    /// RowDescription.
    pub const ROW_DESCRIPTION: u8 = b'T';
}

/// The server's transaction status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Idle,
    /// In a transaction block.
    Transaction,
    /// In a failed transaction block.
    Failed,
}

/// ReadyForQuery outside a transaction.
pub const READY_IDLE: &[u8] = &[b'Z', 0, 0, 0, 5, b'I'];
/// ReadyForQuery inside a transaction block.
pub const READY_IN_TRANSACTION: &[u8] = &[b'Z', 0, 0, 0, 5, b'T'];
/// ReadyForQuery inside a failed transaction block.
pub const READY_FAILED: &[u8] = &[b'Z', 0, 0, 0, 5, b'E'];
/// ParseComplete.
pub const PARSE_COMPLETE: &[u8] = &[b'1', 0, 0, 0, 4];
/// BindComplete.
pub const BIND_COMPLETE: &[u8] = &[b'2', 0, 0, 0, 4];
/// CloseComplete.
pub const CLOSE_COMPLETE: &[u8] = &[b'3', 0, 0, 0, 4];
/// NoData.
pub const NO_DATA: &[u8] = &[b'n', 0, 0, 0, 4];
/// ParameterDescription of a statement without parameters.
pub const NO_PARAMETERS: &[u8] = &[b't', 0, 0, 0, 6, 0, 0];
/// EmptyQueryResponse.
pub const EMPTY_QUERY: &[u8] = &[b'I', 0, 0, 0, 4];
/// AuthenticationOk.
pub const AUTHENTICATION_OK: &[u8] = &[b'R', 0, 0, 0, 8, 0, 0, 0, 0];

/// ReadyForQuery's body.
pub fn status(body: &[u8]) -> Result<Status, Error> {
    match body {
        b"I" => Ok(Status::Idle),
        b"T" => Ok(Status::Transaction),
        b"E" => Ok(Status::Failed),
        _ => Err(Error::Malformed("invalid transaction status")),
    }
}

/// The fields of an ErrorResponse or NoticeResponse that the gateway uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report<'a> {
    /// ERROR, FATAL, PANIC, WARNING and others. Never translated.
    pub severity: &'a [u8],
    /// The SQLSTATE.
    pub code: &'a [u8],
    pub message: &'a [u8],
    /// Where it occurred, such as the row that was to be locked. Empty if the server does not say.
    pub context: &'a [u8],
    /// The server's function that reported it.
    pub routine: &'a [u8],
}

impl<'a> Report<'a> {
    /// Parses the body.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body);
        let mut report = Report::default();
        loop {
            match reader.u8()? {
                0 => return Ok(report),
                b'V' => report.severity = reader.cstr()?,
                b'S' if report.severity.is_empty() => report.severity = reader.cstr()?,
                b'C' => report.code = reader.cstr()?,
                b'M' => report.message = reader.cstr()?,
                b'W' => report.context = reader.cstr()?,
                b'R' => report.routine = reader.cstr()?,
                _ => {
                    reader.cstr()?;
                }
            }
        }
    }

    /// Whether the connection stays open after this error.
    pub fn is_error(&self) -> bool {
        self.severity == b"ERROR"
    }
}

pub fn parameter_status(body: &[u8]) -> Result<(&str, &str), Error> {
    let mut reader = Reader::new(body);
    let status = (reader.text()?, reader.text()?);
    reader.end()?;
    Ok(status)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification<'a> {
    /// The process ID of the backend that has sent it.
    pub process_id: u32,
    pub channel: &'a [u8],
    /// The payload, which may be empty.
    pub payload: &'a [u8],
}

impl<'a> Notification<'a> {
    /// Parses the body.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body);
        let notification =
            Notification { process_id: reader.u32()?, channel: reader.cstr()?, payload: reader.cstr()? };
        reader.end()?;
        Ok(notification)
    }

    /// Appends it as a message.
    pub fn put(&self, out: &mut BytesMut) {
        put_frame(out, tag::NOTIFICATION, |out| {
            out.extend_from_slice(&self.process_id.to_be_bytes());
            put_cstr(out, self.channel);
            put_cstr(out, self.payload);
        });
    }
}

/// A DataRow's values. `None` is NULL.
pub fn data_row(body: &[u8]) -> Result<Vec<Option<&[u8]>>, Error> {
    let mut reader = Reader::new(body);
    let count = reader.u16()?;
    let mut values = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        values.push(match usize::try_from(reader.i32()?) {
            Ok(length) => Some(reader.bytes(length)?),
            Err(_) => None,
        });
    }
    reader.end()?;
    Ok(values)
}

/// Appends a ParameterStatus.
pub fn put_parameter_status(out: &mut BytesMut, name: &str, value: &str) {
    put_frame(out, tag::PARAMETER_STATUS, |out| {
        put_cstr(out, name.as_bytes());
        put_cstr(out, value.as_bytes());
    });
}

/// Appends BackendKeyData.
pub fn put_backend_key_data(out: &mut BytesMut, process_id: u32, secret: &[u8]) {
    put_frame(out, tag::BACKEND_KEY_DATA, |out| {
        out.extend_from_slice(&process_id.to_be_bytes());
        out.extend_from_slice(secret);
    });
}

/// Appends NegotiateProtocolVersion: the gateway supports this minor version and none of these options.
pub fn put_negotiate<'a>(out: &mut BytesMut, minor: u32, unknown: impl Iterator<Item = &'a str> + Clone) {
    put_frame(out, b'v', |out| {
        out.extend_from_slice(&((crate::startup::MAJOR << 16) | minor).to_be_bytes());
        let count = u32::try_from(unknown.clone().count()).unwrap_or(u32::MAX);
        out.extend_from_slice(&count.to_be_bytes());
        for name in unknown {
            put_cstr(out, name.as_bytes());
        }
    });
}

/// Appends CommandComplete.
pub fn put_command_complete(out: &mut BytesMut, command: &str) {
    put_frame(out, tag::COMMAND_COMPLETE, |out| put_cstr(out, command.as_bytes()));
}

/// An error or warning of the gateway for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// FATAL if the connection ends, otherwise ERROR.
    pub fatal: bool,
    /// The SQLSTATE.
    pub code: SqlState,
    pub message: String,
    pub hint: String,
}

impl Problem {
    /// An error after which the session continues.
    pub fn error(code: SqlState, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Problem { fatal: false, code, message: message.into(), hint: hint.into() }
    }

    /// An error that ends the session.
    pub fn fatal(code: SqlState, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Problem { fatal: true, code, message: message.into(), hint: hint.into() }
    }

    /// Appends the ErrorResponse.
    pub fn put(&self, out: &mut BytesMut) {
        let severity = if self.fatal { "FATAL" } else { "ERROR" };
        put_frame(out, tag::ERROR, |out| {
            let fields = [
                (b'S', severity),
                (b'V', severity),
                (b'C', self.code.code()),
                (b'M', &*self.message),
                (b'H', &*self.hint),
            ];
            for (field, text) in fields.into_iter().filter(|(_, text)| !text.is_empty()) {
                out.extend_from_slice(&[field]);
                // A zero byte would end the field early.
                out.extend(text.bytes().map(|byte| if byte == 0 { b' ' } else { byte }));
                out.extend_from_slice(&[0]);
            }
            out.extend_from_slice(&[0]);
        });
    }
}
