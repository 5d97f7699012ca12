//! Splits the reply to a merged call into the rows of each call. It decodes only values that the gateway
//! itself requested.

use std::ops::Range;

use crate::classify::Returns;
use bytes::BytesMut;
use hotrow_wire::backend::{self, tag};
use hotrow_wire::{HEADER_BYTES, Reader, put_frame, split};

/// The rows of a merged call.
#[derive(Debug)]
pub struct Rows<'a> {
    bytes: &'a [u8],
    description: Range<usize>,
    /// Notices, which all callers get.
    others: Vec<Range<usize>>,
    rows: Vec<Range<usize>>,
    /// The index of each call's first row, followed by the number of rows.
    firsts: Vec<usize>,
    /// Number of leading columns, which the client does not see.
    lead: u16,
    /// The calls that found nothing, in order.
    waits: Vec<WaitingCall>,
}

/// A call that found nothing and can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingCall {
    /// Its index among the calls.
    pub call: usize,
    /// Milliseconds until the call is retried.
    pub again_in: u64,
    /// Maximum wait in milliseconds.
    pub at_most: u64,
}

/// The tag of a SELECT of one row.
const SELECT_1: &[u8] = b"C\0\0\0\rSELECT 1\0";

impl<'a> Rows<'a> {
    /// Splits the bytes. Fails with a description if they are not the reply of a batch function to `calls` calls.
    /// `binary` is the format of the leading columns.
    pub fn read(bytes: &'a [u8], returns: Returns, binary: bool, calls: usize) -> Result<Self, String> {
        let mut read = Rows {
            bytes,
            description: 0..0,
            others: Vec::new(),
            rows: Vec::new(),
            firsts: Vec::with_capacity(calls + 1),
            lead: returns.lead(),
            waits: Vec::new(),
        };
        let mut start = 0;
        while let Ok(Some(frame)) = split(&bytes[start..], |_| usize::MAX) {
            let range = start..start + frame.bytes.len();
            start = range.end;
            match frame.tag {
                tag::DATA_ROW => read.rows.push(range),
                tag::ROW_DESCRIPTION => read.description = range,
                tag::BIND_COMPLETE | tag::COMMAND_COMPLETE => {}
                _ => read.others.push(range),
            }
        }
        match returns {
            Returns::Row if read.rows.len() == calls => read.firsts.extend(0..=calls),
            Returns::Row => return Err(format!("returned {} rows", read.rows.len())),
            Returns::Rows | Returns::RowsOrWait => read.assign(binary, calls)?,
        }
        Ok(read)
    }

    /// Assigns each row to its call, and finds the calls that found nothing.
    fn assign(&mut self, binary: bool, calls: usize) -> Result<(), String> {
        let rows = std::mem::take(&mut self.rows);
        self.rows.reserve(rows.len());
        for row in rows {
            let values = self.lead_of(&row).map_or([None; 3], |(values, _)| values);
            let [number, again_in, at_most] =
                values.map(|value| value.and_then(|value| integer(value, binary)));
            let call = number.and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
            let last = self.firsts.len();
            if !(last.max(1)..=calls).contains(&call) {
                let number = number.map_or("no number".to_owned(), |number| number.to_string());
                return Err(format!("returned a row for call {number} after a row for call {last}"));
            }
            let has_row = call == last;
            self.firsts.resize(call, self.rows.len());
            let waits = self.waits.last().is_some_and(|waits| waits.call + 1 == call);
            match again_in {
                _ if waits => {
                    return Err(format!("returned a row for call {call}, which it had reported as waiting"));
                }
                Some(_) if has_row => {
                    return Err(format!("reported call {call} as waiting, although it has rows"));
                }
                Some(again_in) => {
                    let [again_in, at_most] = [again_in, at_most.unwrap_or(0)]
                        .map(|milliseconds| u64::try_from(milliseconds).unwrap_or(0));
                    self.waits.push(WaitingCall { call: call - 1, again_in, at_most });
                }
                None => self.rows.push(row),
            }
        }
        self.firsts.resize(calls + 1, self.rows.len());
        Ok(())
    }

    /// The calls that found nothing and can wait, in order.
    pub fn waits(&self) -> &[WaitingCall] {
        &self.waits
    }

    /// The leading values of a row, and the offset of the client's values.
    fn lead_of(&self, row: &Range<usize>) -> Option<([Option<&'a [u8]>; 3], usize)> {
        let body = &self.bytes[row.clone()][HEADER_BYTES..];
        let mut reader = Reader::new(body);
        reader.u16().ok().filter(|count| *count >= self.lead)?;
        let mut values = [None; 3];
        for value in &mut values[..usize::from(self.lead)] {
            *value = match usize::try_from(reader.i32().ok()?) {
                Ok(length) => Some(reader.bytes(length).ok()?),
                Err(_) => None,
            };
        }
        Some((values, body.len() - reader.rest().len()))
    }

    /// Appends the reply that the caller with this index would have got after BindComplete.
    pub fn put(&self, place: usize, described: bool, out: &mut BytesMut) {
        if described {
            self.put_description(out);
        }
        self.others.iter().for_each(|range| out.extend_from_slice(&self.bytes[range.clone()]));
        let rows = self.firsts[place]..self.firsts[place + 1];
        let count = rows.len();
        rows.for_each(|index| self.put_row(index, out));
        if count == 1 {
            out.extend_from_slice(SELECT_1);
        } else {
            backend::put_command_complete(out, &format!("SELECT {count}"));
        }
    }

    fn put_row(&self, index: usize, out: &mut BytesMut) {
        let row = &self.bytes[self.rows[index].clone()];
        if self.lead == 0 {
            return out.extend_from_slice(row);
        }
        let body = &row[HEADER_BYTES..];
        let start = self.lead_of(&self.rows[index]).map_or(0, |(_, start)| start);
        put_less(tag::DATA_ROW, body, self.lead, start, out);
    }

    fn put_description(&self, out: &mut BytesMut) {
        let frame = &self.bytes[self.description.clone()];
        if self.lead == 0 || frame.is_empty() {
            return out.extend_from_slice(frame);
        }
        let body = &frame[HEADER_BYTES..];
        let mut reader = Reader::new(body.get(2..).unwrap_or_default());
        for _ in 0..self.lead {
            // If the body ended early, nothing would remain of it.
            let _ = reader.cstr().and_then(|_| reader.bytes(FIELD_BYTES));
        }
        put_less(tag::ROW_DESCRIPTION, body, self.lead, body.len() - reader.rest().len(), out);
    }
}

/// Bytes of a field in a RowDescription after its name.
const FIELD_BYTES: usize = 18;

/// A message that begins with a count, without its first parts, which end at `start`.
fn put_less(tag: u8, body: &[u8], parts: u16, start: usize, out: &mut BytesMut) {
    let count = u16::from_be_bytes([body[0], body[1]]);
    put_frame(out, tag, |out| {
        out.extend_from_slice(&count.saturating_sub(parts).to_be_bytes());
        out.extend_from_slice(body.get(start..).unwrap_or_default());
    });
}

/// An int4 or int8 in the given format.
fn integer(value: &[u8], binary: bool) -> Option<i64> {
    match (binary, value.len()) {
        (false, _) => str::from_utf8(value).ok()?.parse().ok(),
        (true, 4) => Some(i32::from_be_bytes(value.try_into().ok()?).into()),
        (true, _) => Some(i64::from_be_bytes(value.try_into().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(messages: &[(u8, &[u8])]) -> BytesMut {
        let mut bytes = BytesMut::new();
        for (tag, body) in messages {
            put_frame(&mut bytes, *tag, |out| out.extend_from_slice(body));
        }
        bytes
    }

    /// A row of a call number in text format and one more value.
    fn row(call: &str, value: &str) -> Vec<u8> {
        let mut body = vec![0, 2];
        for text in [call, value] {
            body.extend((text.len() as u32).to_be_bytes());
            body.extend(text.as_bytes());
        }
        body
    }

    fn put(rows: &Rows<'_>, place: usize, described: bool) -> BytesMut {
        let mut out = BytesMut::new();
        rows.put(place, described, &mut out);
        out
    }

    #[test]
    fn each_caller_gets_its_own_row() {
        let bytes = came(&[
            (tag::BIND_COMPLETE, b""),
            (tag::ROW_DESCRIPTION, b"desc"),
            (tag::DATA_ROW, b"one"),
            (tag::NOTICE, b"hear"),
            (tag::DATA_ROW, b"two"),
            (tag::COMMAND_COMPLETE, b"SELECT 2\0"),
        ]);
        let rows = Rows::read(&bytes, Returns::Row, false, 2).unwrap();
        assert_eq!(
            &put(&rows, 1, true)[..],
            b"T\0\0\0\x08descN\0\0\0\x08hearD\0\0\0\x07twoC\0\0\0\x0dSELECT 1\0"
        );
        assert_eq!(&put(&rows, 0, false)[..], b"N\0\0\0\x08hearD\0\0\0\x07oneC\0\0\0\x0dSELECT 1\0");
        assert!(Rows::read(&bytes, Returns::Row, false, 3).unwrap_err().contains("2 rows"));
    }

    #[test]
    fn each_caller_gets_its_own_rows_without_the_call_number() {
        let field = |name: &[u8]| [name, &[0], &[7; FIELD_BYTES]].concat();
        let description = [&[0, 2][..], &field(b"hotrow_call"), &field(b"v")].concat();
        let rows = [row("2", "a"), row("2", "bc"), row("4", "d")];
        let mut messages = vec![(tag::ROW_DESCRIPTION, &description[..])];
        messages.extend(rows.iter().map(|row| (tag::DATA_ROW, &row[..])));
        let bytes = came(&messages);
        let rows = Rows::read(&bytes, Returns::Rows, false, 5).unwrap();
        let due = |described: bool, values: &[&[u8]], command: &[u8]| {
            let description = [&[0, 1][..], &field(b"v")].concat();
            let mut messages =
                if described { vec![(tag::ROW_DESCRIPTION, &description[..])] } else { Vec::new() };
            let bodies = values.iter().map(|value| [&[0, 1, 0, 0, 0, value.len() as u8], *value].concat());
            let bodies: Vec<_> = bodies.collect();
            messages.extend(bodies.iter().map(|body| (tag::DATA_ROW, &body[..])));
            messages.push((tag::COMMAND_COMPLETE, command));
            came(&messages)
        };
        assert_eq!(put(&rows, 0, true), due(true, &[], b"SELECT 0\0"));
        assert_eq!(put(&rows, 1, true), due(true, &[b"a", b"bc"], b"SELECT 2\0"));
        assert_eq!(put(&rows, 2, false), due(false, &[], b"SELECT 0\0"));
        assert_eq!(put(&rows, 3, false), due(false, &[b"d"], b"SELECT 1\0"));
        assert_eq!(put(&rows, 4, false), due(false, &[], b"SELECT 0\0"));
    }

    #[test]
    fn an_invalid_or_unsorted_call_number_is_an_error() {
        let read = |calls: &[&str]| {
            let rows: Vec<_> = calls.iter().map(|call| row(call, "v")).collect();
            let bytes = came(&rows.iter().map(|row| (tag::DATA_ROW, &row[..])).collect::<Vec<_>>());
            Rows::read(&bytes, Returns::Rows, false, 3).map(|rows| rows.firsts)
        };
        assert_eq!(read(&["1", "1", "3"]), Ok(vec![0, 2, 2, 3]));
        assert_eq!(read(&[]), Ok(vec![0, 0, 0, 0]));
        for calls in [&["0"][..], &["4"], &["-1"], &["2", "1"], &["x"], &["1", "3", "2"]] {
            assert!(read(calls).is_err(), "{calls:?}");
        }
        let binary = came(&[(tag::DATA_ROW, &[0, 1, 0, 0, 0, 4, 0, 0, 0, 2])]);
        assert_eq!(Rows::read(&binary, Returns::Rows, true, 2).unwrap().firsts, [0, 0, 1]);
        assert!(Rows::read(&binary, Returns::Rows, true, 1).is_err());
    }

    #[test]
    fn a_call_that_found_nothing_waits_and_has_no_rows() {
        let row = |call: &str, again: Option<&str>, at_most: Option<&str>| {
            let mut body = vec![0, 4];
            for value in [Some(call), again, at_most, Some("v")] {
                body.extend(value.map_or(-1, |value| value.len() as i32).to_be_bytes());
                body.extend(value.unwrap_or_default().as_bytes());
            }
            body
        };
        let read = |rows: &[Vec<u8>]| {
            let bytes = came(&rows.iter().map(|row| (tag::DATA_ROW, &row[..])).collect::<Vec<_>>());
            Rows::read(&bytes, Returns::RowsOrWait, false, 4)
                .map(|rows| (rows.waits.clone(), rows.firsts.clone()))
        };
        let waits = |call, again_in, at_most| WaitingCall { call, again_in, at_most };
        let (found, nothing) = (|call| row(call, None, None), |call| row(call, Some("500"), Some("9000")));
        assert_eq!(
            read(&[found("1"), nothing("2"), row("3", Some("-1"), None), found("4")]),
            Ok((vec![waits(1, 500, 9000), waits(2, 0, 0)], vec![0, 1, 1, 1, 2]))
        );
        for rows in [[found("2"), nothing("2")], [nothing("2"), found("2")], [nothing("2"), nothing("2")]] {
            assert!(read(&rows).is_err());
        }
    }
}
