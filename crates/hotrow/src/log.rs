//! The fields of a log line in the text format. Names and messages in them come from clients and servers.

use std::fmt::Debug;

use hotrow_core::untrusted::visible;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

/// Writes an event's message and fields in one line, whatever they contain.
pub fn one_line() -> impl for<'writer> FormatFields<'writer> + Send + Sync + 'static {
    let field = |out: &mut Writer<'_>, field: &Field, value: &dyn Debug| {
        let value = format!("{value:?}");
        match field.name() {
            "message" => write!(out, "{}", visible(&value)),
            name => write!(out, "{name}={}", visible(&value)),
        }
    };
    debug_fn(field).delimited(" ")
}
