//! Prepared statements as texts: the values of an execution are written in place of the parameters, and the text is judged like
//! any other. Values whose meaning as a literal could differ are not written. No I/O.

use hotrow_mysql_core::reader;
use hotrow_mysql_wire::{Reader, WireError};

/// Bytes before the values of an execution: the statement's ID, flags and a number.
const HEAD_BYTES: usize = 9;

/// A prepared statement that may be packed.
#[derive(Debug)]
pub struct Prepared {
    /// The text between the parameters.
    parts: Vec<String>,
    /// The types of the parameters in the last execution that had them.
    types: Option<Vec<[u8; 2]>>,
    /// The number of changes of the session's settings before it was prepared.
    pub settings: u64,
    /// The session's database at that time. It runs there, whatever the session's database is later.
    pub database: Option<Vec<u8>>,
    /// Whether the server knows these types from an execution that was passed through.
    are_types_known: bool,
}

/// The most parameters of a statement that may be packed. Executions with as many numbers are short.
const PARAMETERS_MAX: usize = 1_000;

impl Prepared {
    /// None if the text cannot be packed with any values.
    pub fn of(text: &str, settings: u64, database: Option<&[u8]>) -> Option<Self> {
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
        (parts.len() <= PARAMETERS_MAX && reader::read(&parts.join("1")).is_some()).then_some(Prepared {
            parts,
            types: None,
            settings,
            database: database.map(<[u8]>::to_vec),
            are_types_known: false,
        })
    }

    /// The text with any values.
    pub fn sample(&self) -> String {
        self.parts.join("1")
    }

    /// The server has got the types of the last execution.
    pub fn passed(&mut self) {
        self.are_types_known = true;
    }

    /// The text of an execution, and the payload that runs it on a connection that has not seen the types before. The text is None
    /// if a value cannot be written.
    pub fn execute(&mut self, payload: &[u8]) -> Result<(Option<String>, Vec<u8>), WireError> {
        let mut reader = Reader::new(payload);
        let head = reader.bytes(HEAD_BYTES)?;
        let count = self.parts.len() - 1;
        let has_cursor = head[4] != 0;
        if count == 0 {
            return Ok((Some(self.parts[0].clone()).filter(|_| !has_cursor), payload.to_vec()));
        }
        let nulls = reader.bytes(count.div_ceil(8))?;
        if reader.u8()? == 1 {
            let types = (0..count).map(|_| Ok([reader.u8()?, reader.u8()?]));
            let types = Some(types.collect::<Result<Vec<_>, WireError>>()?);
            self.are_types_known &= self.types == types;
            self.types = types;
        }
        let Some(types) = &self.types else { return Ok((None, payload.to_vec())) };
        let whole = [head, nulls, &[1], types.as_flattened(), reader.rest()].concat();
        // A later execution with a long text is relayed in pieces, and can lack the types.
        let may_be_long = types.iter().any(|[kind, _]| TEXTS.contains(kind));
        let is_passed = has_cursor || may_be_long && !self.are_types_known;
        let text = if is_passed { None } else { self.text(types, nulls, &mut reader).unwrap_or_default() };
        Ok((text, whole))
    }

    /// The text with the values. None if a value cannot be written.
    fn text(
        &self,
        types: &[[u8; 2]],
        nulls: &[u8],
        reader: &mut Reader<'_>,
    ) -> Result<Option<String>, WireError> {
        let mut text = self.parts[0].clone();
        for (place, (kind, part)) in types.iter().zip(&self.parts[1..]).enumerate() {
            let is_null = nulls[place / 8] & (1 << (place % 8)) != 0;
            // A number without a sign is one in calculations, and its digits are not.
            let is_read = is_null || kind[1] & UNSIGNED == 0 || is_alone(&self.parts[place], part);
            let value = match is_null {
                true => Some("null".to_owned()),
                false => value(*kind, reader)?.filter(|_| is_read),
            };
            let Some(value) = value else { return Ok(None) };
            // With blanks, so that it never joins what stands beside it.
            text += &format!(" {value} {part}");
        }
        Ok(Some(text))
    }
}

const UNSIGNED: u8 = 0x80;
/// The types of texts.
const TEXTS: [u8; 3] = [0x0f, 0xfd, 0xfe];

/// Whether a value between these texts is a whole expression.
fn is_alone(before: &str, after: &str) -> bool {
    let (before, after) = (before.trim_ascii_end(), after.trim_ascii_start());
    let signs = ['+', '-', '*', '/'];
    !(before.ends_with(signs) || after.starts_with(signs) || before.ends_with('(') && after.starts_with(')'))
}

/// A value as a literal. None if its meaning could differ.
fn value([kind, flags]: [u8; 2], reader: &mut Reader<'_>) -> Result<Option<String>, WireError> {
    let is_unsigned = flags & UNSIGNED != 0;
    let (number, bytes) = match kind {
        1 => (u64::from(reader.u8()?), 1),
        2 => (u64::from(reader.u16()?), 2),
        3 | 9 => (u64::from(reader.u32()?), 4),
        8 => (u64::from(reader.u32()?) | u64::from(reader.u32()?) << 32, 8),
        _ if TEXTS.contains(&kind) => {
            let text = std::str::from_utf8(reader.length_encoded_bytes()?).ok();
            let plain = text.filter(|text| text.is_ascii() && !text.contains(['\\', '\0']));
            return Ok(plain.map(|text| format!("'{}'", text.replace('\'', "''"))));
        }
        _ => return Ok(None),
    };
    let shift = 64 - 8 * bytes;
    let signed = (number << shift).cast_signed() >> shift;
    Ok(match signed {
        _ if is_unsigned => Some(number.to_string()),
        _ if signed == i64::MIN => None, // its digits without the sign are a number of another type
        ..0 => Some(format!("({signed})")),
        _ => Some(number.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_becomes_a_text() {
        let mut prepared =
            Prepared::of("update t set a = a - ?, b = '?''?' where id = ? and c = ?", 0, None).unwrap();
        let head = [7, 0, 0, 0, 0, 1, 0, 0, 0];
        let types = [1, 3, 0, 8, 0x80, 0xfe, 0];
        let values = |a: i32| [&a.to_le_bytes()[..], &u64::MAX.to_le_bytes(), b"\x04it's"].concat();
        let payload = [&head[..], &[0], &types, &values(-5)].concat();
        assert_eq!(
            prepared.execute(&payload).unwrap(),
            (None, payload.clone()),
            "the server gets the types first"
        );
        prepared.passed();
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
        let least =
            [&head[..], &[0, 1, 8, 0, 8, 0x80, 0xfe, 0], &i64::MIN.to_le_bytes(), &[0; 8], b"\x01x"].concat();
        assert_eq!(prepared.execute(&least).unwrap().0, None);
        let untyped = [&head[..], &[0, 1, 6, 0, 8, 0x80, 0xfe, 0], &[0; 8], b"\x01x"].concat();
        assert_eq!(prepared.execute(&untyped).unwrap().0, None, "NULL has a bit");
        let double = [&head[..], &[0, 1, 5, 0, 8, 0, 0xfe, 0], &[0; 16], b"\x01x"].concat();
        assert_eq!(prepared.execute(&double).unwrap().0, None);
        assert!(prepared.execute(&head[..5]).is_err());
        assert!(Prepared::of("select ?", 0, None).is_none());
    }

    #[test]
    fn a_number_without_a_sign_is_written_only_as_a_whole_expression() {
        for (sql, is_written) in [
            ("update t set a = ? where id = 1", true),
            ("insert into t (a, id) values (?, 1)", true),
            ("update t set a = a - ? where id = 1", false),
            ("update t set a = ? - 7 where id = 1", false),
            ("update t set a = (?) - 7 where id = 1", false),
        ] {
            let payload =
                [&[7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, UNSIGNED][..], &5_u64.to_le_bytes()].concat();
            let (text, _) = Prepared::of(sql, 0, None).unwrap().execute(&payload).unwrap();
            assert_eq!(text.is_some(), is_written, "{sql}");
        }
    }
}
