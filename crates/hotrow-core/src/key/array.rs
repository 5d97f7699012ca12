//! Reads the elements of an array with one dimension, in both formats. The server handles arrays
//! that it cannot read.

use super::{Format, ParamValue};
use crate::limits;

/// The elements that are not NULL. `None` if they cannot be read, or if there are too many.
pub(crate) fn elements(array: ParamValue<'_>) -> Option<Vec<ParamValue<'_>>> {
    match array.format {
        Format::Text => text(std::str::from_utf8(array.bytes).ok()?),
        Format::Binary => binary(array.bytes),
    }
}

/// `{1,"two",NULL}`. An element with a backslash is not read.
fn text(array: &str) -> Option<Vec<ParamValue<'_>>> {
    let space = |c: char| c.is_ascii_whitespace() || c == '\x0b';
    let mut rest = array.trim_matches(space).strip_prefix('{')?.trim_start_matches(space);
    let mut elements = Vec::new();
    if rest == "}" {
        return Some(elements);
    }
    loop {
        let (element, after) = if let Some(quoted) = rest.strip_prefix('"') {
            let (element, after) = quoted.split_once('"')?;
            (Some(element), after)
        } else {
            let (element, after) = rest.split_at(rest.find([',', '}'])?);
            let element = element.trim_end_matches(space);
            if element.is_empty() || element.contains(['{', '"']) {
                return None;
            }
            (Some(element).filter(|element| !element.eq_ignore_ascii_case("null")), after)
        };
        if let Some(element) = element {
            if element.contains('\\') || elements.len() == limits::UNIT_ROWS_MAX {
                return None;
            }
            elements.push(ParamValue { format: Format::Text, bytes: element.as_bytes() });
        }
        let after = after.trim_start_matches(space);
        if after == "}" {
            return Some(elements);
        }
        rest = after.strip_prefix(',')?.trim_start_matches(space);
    }
}

/// The format of `array_send`: the number of dimensions, a flag, the type of the elements, the length and the
/// first index of each dimension, then the elements.
fn binary(mut bytes: &[u8]) -> Option<Vec<ParamValue<'_>>> {
    let dimensions = word(&mut bytes)?;
    let (_, _) = (word(&mut bytes)?, word(&mut bytes)?);
    if dimensions == 0 {
        return bytes.is_empty().then(Vec::new);
    }
    let (count, _) = (usize::try_from(word(&mut bytes)?).ok()?, word(&mut bytes)?);
    if dimensions != 1 || count > limits::UNIT_ROWS_MAX {
        return None;
    }
    let mut elements = Vec::with_capacity(count);
    for _ in 0..count {
        let length = word(&mut bytes)?;
        if length == -1 {
            continue;
        }
        let (element, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
        bytes = rest;
        elements.push(ParamValue { format: Format::Binary, bytes: element });
    }
    bytes.is_empty().then_some(elements)
}

fn word(bytes: &mut &[u8]) -> Option<i32> {
    let (word, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(i32::from_be_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: Format, bytes: &[u8]) -> Option<Vec<&[u8]>> {
        let elements = elements(ParamValue { format, bytes })?;
        assert!(elements.iter().all(|element| element.format == format));
        Some(elements.into_iter().map(|element| element.bytes).collect())
    }

    #[test]
    fn text() {
        for (array, expected) in [
            ("{}", Some(&[][..])),
            (" { } ", Some(&[])),
            ("{1}", Some(&["1"])),
            ("{1, 2 ,3}", Some(&["1", "2", "3"])),
            ("{null,1,NULL}", Some(&["1"])),
            (r#"{"null","a,b}{", c d }"#, Some(&["null", "a,b}{", "c d"])),
            (r#"{""}"#, Some(&[""])),
            (r#"{"a\"b"}"#, None),
            (r"{a\b}", None),
            ("{{1},{2}}", None),
            ("[2:3]={1,2}", None),
            ("{1,}", None),
            ("{,1}", None),
            ("{1", None),
            ("{1}}", None),
            (r#"{"1"2}"#, None),
            (r#"{1"2"}"#, None),
            ("1", None),
            ("", None),
        ] {
            let expected =
                expected.map(|elements| elements.iter().map(|element| element.as_bytes()).collect());
            assert_eq!(read(Format::Text, array.as_bytes()), expected, "{array}");
        }
    }

    #[test]
    fn binary() {
        let array = |dimensions: i32, rest: &[i32]| -> Vec<u8> {
            [&[dimensions, 0, 23], rest].concat().into_iter().flat_map(i32::to_be_bytes).collect()
        };
        let (one, two) = (1_i32.to_be_bytes(), 2_i32.to_be_bytes());
        for (bytes, expected) in [
            (array(0, &[]), Some(vec![])),
            (array(1, &[2, 1, 4, 1, 4, 2]), Some(vec![&one[..], &two])),
            (array(1, &[2, 5, -1, 4, 2]), Some(vec![&two[..]])),
            (array(1, &[0, 1]), Some(vec![])),
            (array(2, &[1, 1, 1, 1, 4, 1]), None),
            (array(1, &[2, 1, 4, 1]), None),
            (array(1, &[1, 1, 4, 1, 4]), None),
            (array(1, &[1, 1, -2]), None),
            (array(1, &[-1, 1]), None),
            (array(1, &[i32::MAX, 1]), None),
            (vec![0, 0], None),
        ] {
            assert_eq!(read(Format::Binary, &bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn as_many_elements_as_a_unit_can_have_rows() {
        for (count, is_read) in [(limits::UNIT_ROWS_MAX, true), (limits::UNIT_ROWS_MAX + 1, false)] {
            let array = format!("{{{}}}", vec!["7"; count].join(","));
            assert_eq!(read(Format::Text, array.as_bytes()).map(|all| all.len()), is_read.then_some(count));
        }
    }
}
