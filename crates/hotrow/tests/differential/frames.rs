//! The bytes of a program's frames. Does not know the answers.

use hotrow_testkit::raw;

use crate::program::Frame;

/// The bytes of a frame. `oid` is the OID of the function that a Call names.
pub fn bytes(frame: &Frame, oid: u32) -> Vec<u8> {
    match frame {
        Frame::Connect(_) | Frame::Cancel | Frame::Race(..) | Frame::Paused(_) => Vec::new(),
        Frame::Leave => raw::frame(b'X', &[]),
        Frame::Query(text) => raw::query(text),
        Frame::Parse { name, text } => raw::parse(name, text),
        Frame::Bind { portal, statement, binary, values } => bind(portal, statement, *binary, values),
        Frame::Describe(kind, name) => raw::describe(*kind as u8, name),
        Frame::Close(kind, name) => raw::close(*kind as u8, name),
        Frame::Execute(portal, rows) => raw::execute(portal, *rows),
        Frame::Sync => raw::sync(),
        Frame::Flush => raw::flush(),
        Frame::Call(_, values) => call(oid, values),
        Frame::CopyData(data) => raw::frame(b'd', data.as_bytes()),
        Frame::CopyDone => raw::frame(b'c', &[]),
        Frame::CopyFail(why) => raw::frame(b'f', &[why.as_bytes(), &[0]].concat()),
    }
}

fn bind(portal: &str, statement: &str, binary: bool, values: &[Option<String>]) -> Vec<u8> {
    let names = [portal.as_bytes(), &[0], statement.as_bytes(), &[0]].concat();
    let formats: &[u8] = if binary { &[0, 1, 0, 1] } else { &[0, 0] };
    raw::frame(b'B', &[&names, &[0, 0][..], &counted(values), formats].concat())
}

fn call(oid: u32, values: &[Option<String>]) -> Vec<u8> {
    raw::frame(b'F', &[&oid.to_be_bytes(), &[0, 0][..], &counted(values), &[0, 0]].concat())
}

fn counted(values: &[Option<String>]) -> Vec<u8> {
    let mut bytes = u16::try_from(values.len()).expect("programs have few values").to_be_bytes().to_vec();
    for value in values {
        let length = value.as_ref().map_or(-1, |text| i32::try_from(text.len()).expect("values are short"));
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(value.as_deref().unwrap_or_default().as_bytes());
    }
    bytes
}
