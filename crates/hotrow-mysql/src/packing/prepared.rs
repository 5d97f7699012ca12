//! Prepared statements as texts: the values of an execution are written in place of the parameters, and the text is judged like
//! any other. Values whose meaning as a literal could differ are not written. No I/O.

use hotrow_mysql_wire::{Reader, WireError};

use crate::packing::reader;

/// Bytes before the values of an execution: the statement's ID, flags and a number.
const HEAD_BYTES: usize = 9;

/// A prepared statement that may be packed.
#[derive(Debug)]
pub struct Prepared {
    /// The text between the parameters.
    parts: Vec<String>,
    /// The types of the parameters in the last execution that had them.
    types: Option<Vec<[u8; 2]>>,
}

impl Prepared {
    /// None if the text cannot be packed with any values.
    pub fn of(text: &str) -> Option<Self> {
        let (mut parts, mut quote) = (vec![String::new()], None);
        for letter in text.chars() {
            match (quote, letter) {
                (None, '?') => parts.push(String::new()),
                (None, '\'' | '`') => quote = Some(letter),
                (Some(open), letter) if open == letter => quote = None,
                _ => {}
            }
            if (quote, letter) != (None, '?') {
                parts.last_mut().expect("there is one part at least").push(letter);
            }
        }
        reader::read(&parts.join("1")).is_some().then_some(Prepared { parts, types: None })
    }

    /// The text of an execution, and the payload that runs it on a connection that has not seen the types before. The text is None
    /// if a value cannot be written.
    pub fn execute(&mut self, payload: &[u8]) -> Result<(Option<String>, Vec<u8>), WireError> {
        let mut reader = Reader::new(payload);
        let head = reader.bytes(HEAD_BYTES)?;
        let count = self.parts.len() - 1;
        if count == 0 {
            return Ok((Some(self.parts[0].clone()).filter(|_| head[4] == 0), payload.to_vec()));
        }
        let nulls = reader.bytes(count.div_ceil(8))?;
        if reader.u8()? == 1 {
            let types = (0..count).map(|_| Ok([reader.u8()?, reader.u8()?]));
            self.types = Some(types.collect::<Result<_, WireError>>()?);
        }
        let Some(types) = &self.types else { return Ok((None, payload.to_vec())) };
        let whole = [head, nulls, &[1], types.as_flattened(), reader.rest()].concat();
        let mut text = self.parts[0].clone();
        for (place, (kind, part)) in types.iter().zip(&self.parts[1..]).enumerate() {
            let is_null = nulls[place / 8] & (1 << (place % 8)) != 0;
            let value = if is_null { Some("null".to_owned()) } else { value(*kind, &mut reader)? };
            let Some(value) = value else { return Ok((None, whole)) };
            // With blanks, so that it never joins what stands beside it.
            text += &format!(" {value} {part}");
        }
        let has_cursor = head[4] != 0;
        Ok((Some(text).filter(|_| !has_cursor), whole))
    }
}

/// A value as a literal. None if its meaning could differ.
fn value([kind, flags]: [u8; 2], reader: &mut Reader<'_>) -> Result<Option<String>, WireError> {
    let is_unsigned = flags & 0x80 != 0;
    let (number, bytes) = match kind {
        1 => (u64::from(reader.u8()?), 1),
        2 => (u64::from(reader.u16()?), 2),
        3 | 9 => (u64::from(reader.u32()?), 4),
        8 => (u64::from(reader.u32()?) | u64::from(reader.u32()?) << 32, 8),
        6 => return Ok(Some("null".to_owned())),
        0x0f | 0xfd | 0xfe => {
            let text = std::str::from_utf8(reader.length_encoded_bytes()?).ok();
            let plain = text.filter(|text| text.is_ascii() && !text.contains(['\\', '\0']));
            return Ok(plain.map(|text| format!("'{}'", text.replace('\'', "''"))));
        }
        _ => return Ok(None),
    };
    let shift = 64 - 8 * bytes;
    let signed = (number << shift).cast_signed() >> shift;
    Ok(Some(match signed {
        ..0 if !is_unsigned => format!("({signed})"),
        _ => number.to_string(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_becomes_a_text() {
        let mut prepared = Prepared::of("update t set a = a - ?, b = '?''?' where id = ? and c = ?").unwrap();
        let head = [7, 0, 0, 0, 0, 1, 0, 0, 0];
        let types = [1, 3, 0, 8, 0x80, 0xfe, 0];
        let values = |a: i32| [&a.to_le_bytes()[..], &u64::MAX.to_le_bytes(), b"\x04it's"].concat();
        let payload = [&head[..], &[0], &types, &values(-5)].concat();
        let (text, whole) = prepared.execute(&payload).unwrap();
        let expected =
            "update t set a = a -  (-5) , b = '?''?' where id =  18446744073709551615  and c =  'it''s' ";
        assert_eq!((text.as_deref(), &whole), (Some(expected), &payload));
        assert!(reader::read(expected).is_some());
        let without_types = [&head[..], &[0, 0], &values(5)].concat();
        let (text, whole) = prepared.execute(&without_types).unwrap();
        assert!(text.unwrap().contains("a -  5 ,"));
        assert_eq!(
            whole,
            [&head[..], &[0], &types, &values(5)].concat(),
            "the server has not seen the types"
        );
        let null = [&head[..], &[1, 0], &values(5)[4..]].concat();
        assert!(prepared.execute(&null).unwrap().0.unwrap().contains("a -  null "));
        let double = [&head[..], &[0, 1, 5, 0, 8, 0, 0xfe, 0], &[0; 16], b"\x01x"].concat();
        assert_eq!(prepared.execute(&double).unwrap().0, None);
        assert!(prepared.execute(&head[..5]).is_err());
        assert!(Prepared::of("select ?").is_none());
    }
}
