//! A result of one query: the status in it, its rows, and their form for prepared statements.

use crate::capabilities::{STATUS_AUTOCOMMIT, STATUS_IN_TRANSACTION};
use crate::message::{OK, Ok as OkPacket, eof_status, eof_warnings, with_eof_status, with_status};
use crate::reader::put_length_encoded;
use crate::{Reader, WireError};

/// The first byte of NULL in a row of texts.
const NULL: u8 = 0xfb;
/// The types of columns with integers, which have the same bytes with and without a sign, and with texts.
const TINY: u8 = 1;
const SHORT: u8 = 2;
const LONG: u8 = 3;
const LONGLONG: u8 = 8;
const INT24: u8 = 9;
const VAR_STRING: u8 = 253;
const STRING: u8 = 254;
/// Bits before those of the columns in the list of NULLs.
const NULLS_OFFSET: usize = 2;

/// The packets of a whole reply without an error: OK, or columns and rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    packets: Vec<Vec<u8>>,
    columns: usize,
    deprecates_eof: bool,
}

impl Whole {
    /// The packets as they came.
    pub fn of(packets: Vec<Vec<u8>>, deprecates_eof: bool) -> Result<Self, WireError> {
        let first = packets.first().ok_or(WireError::Truncated)?;
        let columns = match first.first() {
            Some(&OK) => 0,
            _ => usize::try_from(Reader::new(first).length_encoded()?).map_err(|_| WireError::Truncated)?,
        };
        let whole = Whole { packets, columns, deprecates_eof };
        if columns > 0 && whole.packets.len() <= whole.first_row() {
            return Err(WireError::Truncated);
        }
        Ok(whole)
    }

    /// The place behind the columns and their end.
    fn first_row(&self) -> usize {
        1 + self.columns + usize::from(!self.deprecates_eof)
    }

    /// The reply to the same statement outside of a transaction.
    pub fn outside_of_transaction(mut self) -> Result<Self, WireError> {
        let change = |status: u16| status & !STATUS_IN_TRANSACTION | STATUS_AUTOCOMMIT;
        let last = self.packets.len() - 1;
        if self.columns == 0 || self.deprecates_eof {
            self.packets[last] = with_status(&self.packets[last], change)?;
            return Ok(self);
        }
        for place in [1 + self.columns, last] {
            self.packets[place] = with_eof_status(&self.packets[place], change)?;
        }
        Ok(self)
    }

    /// The reply to an execution of the same statement. None if a column has a type whose form is not known here.
    pub fn of_execution(mut self) -> Option<Self> {
        if self.columns == 0 {
            return Some(self);
        }
        let types: Option<Vec<u8>> =
            self.packets[1..=self.columns].iter().map(|one| column_type(one)).collect();
        let types = types?;
        let (first, last) = (self.first_row(), self.packets.len() - 1);
        for row in &mut self.packets[first..last] {
            *row = binary_row(row, &types)?;
        }
        Some(self)
    }

    /// The packets of its rows.
    pub fn rows(&self) -> &[Vec<u8>] {
        self.packets.get(self.first_row()..self.packets.len() - 1).unwrap_or_default()
    }

    /// The values of its rows, as texts. Bytes that are not UTF-8 are replaced.
    pub fn texts(&self) -> Result<Vec<Vec<Option<String>>>, WireError> {
        self.rows().iter().map(|row| texts(row, self.columns)).collect()
    }

    /// The status, and the number of warnings.
    pub fn status_and_warnings(&self) -> Result<(u16, u16), WireError> {
        let last = self.packets.last().ok_or(WireError::Truncated)?;
        if self.columns == 0 || self.deprecates_eof {
            return Ok((OkPacket::read(last)?.status, OkPacket::warnings(last)?));
        }
        Ok((eof_status(last)?, eof_warnings(last)?))
    }

    /// The number of rows that the statement has changed. None if it returns rows.
    pub fn affected(&self) -> Option<u64> {
        (self.columns == 0).then(|| OkPacket::read(&self.packets[0]).ok()).flatten().map(|ok| ok.affected)
    }

    /// The packets.
    pub fn into_packets(self) -> Vec<Vec<u8>> {
        self.packets
    }
}

/// The values of a row of texts.
fn texts(row: &[u8], columns: usize) -> Result<Vec<Option<String>>, WireError> {
    let mut reader = Reader::new(row);
    let value = |_| Ok(value(&mut reader)?.map(|text| String::from_utf8_lossy(text).into_owned()));
    (0..columns).map(value).collect()
}

/// The next value of a row of texts.
fn value<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a [u8]>, WireError> {
    match reader.rest().first() {
        Some(&NULL) => reader.u8().map(|_| None),
        _ => reader.length_encoded_bytes().map(Some),
    }
}

/// The type in the description of a column.
fn column_type(description: &[u8]) -> Option<u8> {
    let mut reader = Reader::new(description);
    for _ in 0..6 {
        reader.length_encoded_bytes().ok()?; // the names
    }
    reader.bytes(1 + 2 + 4).ok()?; // the length of the rest, the collation, the width
    reader.u8().ok()
}

fn binary_row(row: &[u8], types: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::new(row);
    let mut nulls = vec![0_u8; (types.len() + NULLS_OFFSET).div_ceil(8)];
    let mut values = Vec::new();
    for (place, kind) in types.iter().enumerate() {
        let Some(text) = value(&mut reader).ok()? else {
            nulls[(place + NULLS_OFFSET) / 8] |= 1 << ((place + NULLS_OFFSET) % 8);
            continue;
        };
        let bytes = match *kind {
            TINY => 1,
            SHORT => 2,
            LONG | INT24 => 4,
            LONGLONG => 8,
            VAR_STRING | STRING => {
                put_length_encoded(&mut values, text.len() as u64);
                values.extend_from_slice(text);
                continue;
            }
            _ => return None,
        };
        let number: i128 = std::str::from_utf8(text).ok()?.parse().ok()?;
        values.extend_from_slice(&number.to_le_bytes()[..bytes]);
    }
    reader.rest().is_empty().then(|| [&[OK][..], &nulls, &values].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(kind: u8) -> Vec<u8> {
        [&b"\x03def\x01d\x01t\x01t\x01c\x01c\x0c\x2d\x00\x0b\x00\x00\x00"[..], &[kind, 0, 0, 0, 0, 0]]
            .concat()
    }

    #[test]
    fn a_row_of_texts_becomes_one_of_an_execution() {
        let row = b"\x02-2\xfb\x0518446\x03abc\x0215\x02xy";
        let packets = |row: &[u8]| {
            let columns = [TINY, LONG, SHORT, VAR_STRING, INT24, STRING].map(description);
            let end = b"\xfe\x00\x00\x03\x00";
            [&[vec![6]][..], &columns, &[end.to_vec(), row.to_vec(), end.to_vec()]].concat()
        };
        let whole = Whole::of(packets(row), false).unwrap().outside_of_transaction().unwrap();
        let seen = whole.of_execution().unwrap().into_packets();
        let expected = b"\x00\x08\xfe\x0e\x48\x03abc\x0f\x00\x00\x00\x02xy";
        assert_eq!(seen[8], expected);
        assert_eq!(
            (&seen[7][..], &seen[9][..]),
            (&b"\xfe\x00\x00\x02\x00"[..], &b"\xfe\x00\x00\x02\x00"[..])
        );
        assert_eq!(seen[..7], packets(row)[..7]);
        let wrong = Whole::of(packets(b"\x01x\xfb\xfb\xfb\xfb\xfb"), false).unwrap();
        assert_eq!(wrong.of_execution(), None);
        assert!(Whole::of(packets(row)[..5].to_vec(), false).is_err());
    }

    #[test]
    fn rows_are_read_as_texts() {
        let end = [b"\xfe\x00\x00\x02\x00".to_vec()];
        let columns = [description(LONG), description(VAR_STRING)];
        let rows = [b"\x017\xfb".to_vec(), b"\xfb\x02xy".to_vec()];
        let with_end = [&[vec![2]][..], &columns, &end, &rows, &end].concat();
        let without_end = [&[vec![2]][..], &columns, &rows, &end].concat();
        let text = |text: &str| Some(text.to_owned());
        for (packets, deprecates_eof) in [(with_end, false), (without_end, true)] {
            let whole = Whole::of(packets, deprecates_eof).unwrap();
            assert_eq!(whole.texts().unwrap(), [[text("7"), None], [None, text("xy")]]);
        }
        let ok = Whole::of(vec![b"\x00\x00\x00\x02\x00\x00\x00".to_vec()], false).unwrap();
        assert!(ok.texts().unwrap().is_empty());
        let short =
            Whole::of(vec![vec![2], description(LONG), description(LONG), vec![1, 7], vec![0xfe]], true);
        assert_eq!(short.unwrap().texts(), Err(WireError::Truncated));
    }

    #[test]
    fn a_type_whose_form_differs_is_not_written() {
        let packets = vec![
            vec![1],
            description(12),
            vec![0xfe, 0, 0, 3, 0],
            b"\x0a2020-01-01".to_vec(),
            vec![0xfe, 0, 0, 3, 0],
        ];
        assert_eq!(Whole::of(packets, false).unwrap().of_execution(), None);
    }

    #[test]
    fn the_status_of_an_ok_packet_changes() {
        for (ok, columns) in
            [(&b"\x00\x01\x00\x03\x00\x00\x00"[..], false), (b"\xfe\x00\x00\x03\x00\x00\x00", true)]
        {
            let before = if columns { vec![vec![1], description(LONG)] } else { Vec::new() };
            let whole = Whole::of([&before[..], &[ok.to_vec()]].concat(), true);
            let last = whole.unwrap().outside_of_transaction().unwrap().into_packets().pop().unwrap();
            assert_eq!(last[3..], [2, 0, 0, 0]);
        }
    }
}
