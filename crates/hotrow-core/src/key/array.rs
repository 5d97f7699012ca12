//! Reads the elements of an array with one dimension, in both formats. The server handles arrays
//! that it cannot read.

use super::{Format, ParamValue};
use crate::limits;

/// An element as it is in the message. None is NULL.
type Element<'a> = Option<&'a [u8]>;

/// The elements that are not NULL. `None` if they cannot be read, or if there are too many.
pub(crate) fn elements(array: ParamValue<'_>) -> Option<Vec<ParamValue<'_>>> {
    Some(elements_and_nulls(array)?.into_iter().flatten().collect())
}

/// All elements, with a place for each NULL. `None` as above.
pub(crate) fn elements_and_nulls(array: ParamValue<'_>) -> Option<Vec<Option<ParamValue<'_>>>> {
    let (format, elements) = (array.format, read(array)?);
    if format == Format::Text && elements.iter().flatten().any(|bytes| bytes.contains(&b'\\')) {
        return None;
    }
    Some(elements.into_iter().map(|element| Some(ParamValue { format, bytes: element? })).collect())
}

/// Number of elements, also if some of them cannot be read. `None` if there are too many, or if it is not known.
pub(crate) fn count(array: ParamValue<'_>) -> Option<usize> {
    read(array).map(|elements| elements.len())
}

fn read(array: ParamValue<'_>) -> Option<Vec<Element<'_>>> {
    match array.format {
        Format::Text => text(std::str::from_utf8(array.bytes).ok()?),
        Format::Binary => binary(array.bytes),
    }
}

/// `{1,"two",NULL}`. Backslashes are left in the elements.
fn text(array: &str) -> Option<Vec<Element<'_>>> {
    let space = |c: char| c.is_ascii_whitespace() || c == '\x0b';
    let mut rest = array.trim_matches(space).strip_prefix('{')?.trim_start_matches(space);
    let mut elements = Vec::new();
    if rest == "}" {
        return Some(elements);
    }
    loop {
        let (element, after) = if let Some(quoted) = rest.strip_prefix('"') {
            let (element, after) = quoted.split_at(end_of_quoted(quoted)?);
            (Some(element), after.strip_prefix('"')?)
        } else {
            let (element, after) = rest.split_at(rest.find([',', '}'])?);
            let element = element.trim_end_matches(space);
            if element.is_empty() || element.contains(['{', '"', '\\']) {
                return None;
            }
            (Some(element).filter(|element| !element.eq_ignore_ascii_case("null")), after)
        };
        if elements.len() == limits::UNIT_ROWS_MAX {
            return None;
        }
        elements.push(element.map(str::as_bytes));
        let after = after.trim_start_matches(space);
        if after == "}" {
            return Some(elements);
        }
        rest = after.strip_prefix(',')?.trim_start_matches(space);
    }
}

/// The place of the quotation mark that ends an element.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// The format of `array_send`: the number of dimensions, a flag, the type of the elements, the length and the
/// first index of each dimension, then the elements.
fn binary(mut bytes: &[u8]) -> Option<Vec<Element<'_>>> {
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
            elements.push(None);
            continue;
        }
        let (element, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
        bytes = rest;
        elements.push(Some(element));
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

    fn not_null(format: Format, bytes: &[u8]) -> Option<Vec<&[u8]>> {
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
            assert_eq!(not_null(Format::Text, array.as_bytes()), expected, "{array}");
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
            assert_eq!(not_null(Format::Binary, &bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn nulls_and_escaped_elements_are_counted() {
        for (array, expected) in [
            (r#"{"a\"b,}",null, c }"#, Some(3)),
            (r#"{"\\","x"}"#, Some(2)),
            (r#"{"a\"}"#, None),
            (r"{a\,b}", None),
            ("{}", Some(0)),
            ("{{1},{2}}", None),
        ] {
            let array = ParamValue { format: Format::Text, bytes: array.as_bytes() };
            assert_eq!(count(array), expected, "{array:?}");
        }
        let nulls = format!("{{{}}}", vec!["null"; limits::UNIT_ROWS_MAX + 1].join(","));
        assert_eq!(count(ParamValue { format: Format::Text, bytes: nulls.as_bytes() }), None);
        let places = elements_and_nulls(ParamValue { format: Format::Text, bytes: b"{1,NULL,3}" }).unwrap();
        assert_eq!(places.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn as_many_elements_as_a_unit_can_have_rows() {
        for (count, is_read) in [(limits::UNIT_ROWS_MAX, true), (limits::UNIT_ROWS_MAX + 1, false)] {
            let array = format!("{{{}}}", vec!["7"; count].join(","));
            assert_eq!(
                not_null(Format::Text, array.as_bytes()).map(|all| all.len()),
                is_read.then_some(count)
            );
        }
    }
}
