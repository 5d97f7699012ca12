//! Turns calls of many clients into one call: builds its Bind from theirs, and each client's reply from its
//! rows. Whether calls are merged is decided elsewhere.

mod rows;

use crate::classify::{Element, ElementSource, Merging, Returns};
use bytes::BytesMut;
use hotrow_lane::key::hash_of;
use hotrow_lane::lane::Merge;
use hotrow_wire::frontend::{self, Bind};
use hotrow_wire::{put_cstr, put_frame};

pub use rows::Rows;

/// The group of a call: the same statement, with parameters and results in the same formats.
pub fn group(merging: &Merging, bind: &Bind<'_>) -> Merge {
    let mut formats = Vec::with_capacity(merging.elements.len() + 16);
    for element in &merging.elements {
        let value = match element.source {
            ElementSource::Const(_) => {
                formats.push(0);
                continue;
            }
            ElementSource::Param(index) => bind.value(index.into()),
            // A minus sign can be added to text only.
            ElementSource::NegatedParam(index) => {
                bind.value(index.into()).filter(|value| !value.binary && value.bytes.is_some())
            }
        };
        let Some(value) = value else { return Merge::NEVER };
        formats.push(u8::from(value.binary));
    }
    let results = bind.results();
    if results.iter().any(|byte| *byte != 0) {
        formats.extend_from_slice(results);
    }
    let group = merging.group ^ hash_of(&formats).rotate_left(17);
    Merge { group: group.max(1), most: merging.most }
}

/// One of the calls: its merge plan and its values.
pub type Call<'a> = (&'a Merging, Bind<'a>);

/// Appends the messages of one call that replaces these calls. All of them are in one group.
pub fn put_call(statement: &[u8], calls: &[Call<'_>], out: &mut BytesMut) {
    let Some((merging, first)) = calls.first() else { return };
    put_frame(out, frontend::tag::BIND, |out| {
        out.extend_from_slice(&[0]);
        put_cstr(out, statement);
        let count = u16::try_from(merging.elements.len()).unwrap_or(u16::MAX).to_be_bytes();
        out.extend_from_slice(&count);
        for element in &merging.elements {
            out.extend_from_slice(&[0, u8::from(is_binary(element, first))]);
        }
        out.extend_from_slice(&count);
        for (place, element) in merging.elements.iter().enumerate() {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            if is_binary(element, first) {
                put_binary_array(place, element.type_oid, calls, out);
            } else {
                put_text_array(place, calls, out);
            }
            let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
        put_results(first.results(), merging.returns, out);
    });
    out.extend_from_slice(frontend::DESCRIBE_PORTAL);
    out.extend_from_slice(frontend::EXECUTE);
}

/// The formats of the results. One format, or none, is for all columns. Otherwise the leading columns are
/// binary.
fn put_results(results: &[u8], returns: Returns, out: &mut BytesMut) {
    let lead = if results.len() > 2 { usize::from(returns.lead()) } else { 0 };
    out.extend_from_slice(&u16::try_from(lead + results.len() / 2).unwrap_or(u16::MAX).to_be_bytes());
    (0..lead).for_each(|_| out.extend_from_slice(&[0, 1]));
    out.extend_from_slice(results);
}

/// Whether the leading columns are binary.
pub fn is_lead_binary(bind: &Bind<'_>) -> bool {
    bind.results().len() > 2 || bind.results() == [0, 1]
}

/// Text is the same in both formats. The server reads text from a binary array without searching for quotes.
/// The search would be a third of its work if calls have 2,048 characters each.
fn is_binary(element: &Element, bind: &Bind<'_>) -> bool {
    const TEXT: u32 = 25;
    match element.source {
        ElementSource::NegatedParam(_) => false,
        _ if element.type_oid == TEXT => true,
        ElementSource::Param(index) => bind.value(index.into()).is_some_and(|value| value.binary),
        ElementSource::Const(_) => false,
    }
}

/// A call's value for the array with this index, and its sign.
fn value<'a>(place: usize, (merging, bind): &Call<'a>) -> (&'static str, Option<&'a [u8]>) {
    let param = |index: u16| bind.value(index.into()).and_then(|value| value.bytes);
    match &merging.elements[place].source {
        ElementSource::Param(index) => ("", param(*index)),
        ElementSource::NegatedParam(index) => ("-", param(*index)),
        ElementSource::Const(text) => ("", text.as_deref().map(str::as_bytes)),
    }
}

/// One dimension starting at 1, as array_recv reads it.
fn put_binary_array(place: usize, type_oid: u32, calls: &[Call<'_>], out: &mut BytesMut) {
    let nulls = calls.iter().any(|call| value(place, call).1.is_none());
    for word in [1, u32::from(nulls), type_oid, u32::try_from(calls.len()).unwrap_or(u32::MAX), 1] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    for call in calls {
        match value(place, call).1 {
            None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
            Some(bytes) => {
                out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// `{"one","two",NULL}`: every value is quoted. No value then has a special meaning.
fn put_text_array(place: usize, calls: &[Call<'_>], out: &mut BytesMut) {
    for (index, call) in calls.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"{" } else { b"," });
        let (sign, value) = value(place, call);
        let Some(value) = value else {
            out.extend_from_slice(b"NULL");
            continue;
        };
        out.extend_from_slice(b"\"");
        out.extend_from_slice(sign.as_bytes());
        for byte in value {
            if matches!(byte, b'"' | b'\\') {
                out.extend_from_slice(b"\\");
            }
            out.extend_from_slice(&[*byte]);
        }
        out.extend_from_slice(b"\"");
    }
    out.extend_from_slice(b"}");
}

#[cfg(test)]
mod tests {
    use crate::classify::Element;
    use hotrow_wire::split;

    use super::*;

    fn merging(sources: &[(ElementSource, u32)]) -> Merging {
        let elements =
            sources.iter().map(|(source, type_oid)| Element { source: source.clone(), type_oid: *type_oid });
        Merging {
            text: String::new(),
            types: Vec::new(),
            group: 7,
            elements: elements.collect(),
            returns: Returns::Row,
            most: 10,
        }
    }

    fn body(formats: &[u16], values: &[Option<&[u8]>], results: &[u16]) -> Vec<u8> {
        let mut body = vec![0, 0];
        let words = |words: &[u16], body: &mut Vec<u8>| {
            body.extend((words.len() as u16).to_be_bytes());
            words.iter().for_each(|word| body.extend(word.to_be_bytes()));
        };
        words(formats, &mut body);
        body.extend((values.len() as u16).to_be_bytes());
        for value in values {
            body.extend(value.map_or(-1, |value| value.len() as i32).to_be_bytes());
            body.extend_from_slice(value.unwrap_or_default());
        }
        words(results, &mut body);
        body
    }

    fn bind(body: &[u8]) -> Bind<'_> {
        Bind::read(body).unwrap()
    }

    /// The only message's parameters, formats and values.
    fn arrays(merging: &Merging, calls: &[Vec<u8>]) -> Vec<(bool, Vec<u8>)> {
        let calls: Vec<_> = calls.iter().map(|body| (merging, bind(body))).collect();
        let mut out = BytesMut::new();
        put_call(b"batch function", &calls, &mut out);
        let frame = split(&out, |_| usize::MAX).unwrap().unwrap();
        let bind = bind(frame.body());
        assert_eq!(bind.statement, b"batch function");
        assert_eq!(bind.results(), calls[0].1.results());
        let value = |index| bind.value(index).unwrap();
        (0..bind.count()).map(|index| (value(index).binary, value(index).bytes.unwrap().to_vec())).collect()
    }

    #[test]
    fn text_values_with_any_contents_are_quoted() {
        let merging = merging(&[
            (ElementSource::Param(0), 3802),
            (ElementSource::Const(Some("NULL".to_owned())), 3802),
            (ElementSource::Const(None), 3802),
            (ElementSource::NegatedParam(1), 20),
        ]);
        let calls = [
            body(&[], &[Some(b"a\"b\\c,{}"), Some(b"5")], &[]),
            body(&[0], &[None, Some(b"-6")], &[]),
            body(&[0, 0], &[Some("é".as_bytes()), Some(b"7")], &[]),
        ];
        let text = |text: &str| (false, text.as_bytes().to_vec());
        assert_eq!(
            arrays(&merging, &calls),
            [
                text(r#"{"a\"b\\c,{}",NULL,"é"}"#),
                text(r#"{"NULL","NULL","NULL"}"#),
                text("{NULL,NULL,NULL}"),
                text(r#"{"-5","--6","-7"}"#)
            ]
        );
    }

    #[test]
    fn each_call_keeps_its_constants() {
        let of = |text: &str| merging(&[(ElementSource::Const(Some(text.to_owned())), 3802)]);
        let (one, other) = (of("one"), of("other"));
        let body = body(&[], &[], &[]);
        let mut out = BytesMut::new();
        put_call(b"batch function", &[(&one, bind(&body)), (&other, bind(&body))], &mut out);
        let frame = split(&out, |_| usize::MAX).unwrap().unwrap();
        let array = bind(frame.body()).value(0).unwrap();
        assert_eq!(array.bytes.unwrap(), br#"{"one","other"}"#);
    }

    #[test]
    fn text_is_a_binary_array_in_either_format() {
        let merging =
            merging(&[(ElementSource::Param(0), 25), (ElementSource::Const(Some("\"c".to_owned())), 25)]);
        let array = |values: [&[u8]; 2], nulls: u8| {
            let head = [0, 0, 0, 1, 0, 0, 0, nulls, 0, 0, 0, 25, 0, 0, 0, 2, 0, 0, 0, 1];
            (true, [&head, values[0], values[1]].concat())
        };
        for format in [0, 1] {
            let calls = [body(&[format], &[Some(b"a\"{")], &[]), body(&[format], &[None], &[])];
            let due =
                [array([b"\0\0\0\x03a\"{", &[255; 4]], 1), array([b"\0\0\0\x02\"c", b"\0\0\0\x02\"c"], 0)];
            assert_eq!(arrays(&merging, &calls), due);
        }
    }

    #[test]
    fn binary_values_form_an_array_that_the_server_can_read() {
        let merging = merging(&[(ElementSource::Param(0), 20)]);
        let calls = [body(&[1], &[Some(&[0, 0, 0, 0, 0, 0, 0, 5])], &[1]), body(&[1], &[None], &[1])];
        let due = [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 20, 0, 0, 0, 2, 0, 0, 0, 1]
            .into_iter()
            .chain([0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5, 255, 255, 255, 255])
            .collect();
        assert_eq!(arrays(&merging, &calls), [(true, due)]);
    }

    #[test]
    fn a_group_has_one_format_for_all_values() {
        let merging = merging(&[(ElementSource::Param(0), 20), (ElementSource::NegatedParam(1), 20)]);
        let group = |formats: &[u16], results: &[u16]| {
            group(&merging, &bind(&body(formats, &[Some(b"1"), Some(b"2")], results)))
        };
        let one = group(&[], &[]);
        assert_eq!(one.most, 10);
        for (formats, results) in [(&[0][..], &[0][..]), (&[0, 0], &[]), (&[], &[0, 0])] {
            assert_eq!(group(formats, results), one);
        }
        assert_ne!(group(&[1, 0], &[]), one);
        assert_ne!(group(&[], &[1]), one);
        assert_ne!(group(&[1, 0], &[1]), group(&[1, 0], &[]));
        assert_eq!(group(&[0, 1], &[]), Merge::NEVER);
        // A constant is compatible with text values and not with binary ones.
        let constant = |first: ElementSource, second: ElementSource, formats: &[u16]| {
            let merging = self::merging(&[(first, 20), (second, 20)]);
            super::group(&merging, &bind(&body(formats, &[Some(b"1"), Some(b"2")], &[])))
        };
        let (one, other) = (ElementSource::Const(Some("1".to_owned())), ElementSource::Param(0));
        assert_eq!(constant(one.clone(), other.clone(), &[]), constant(other.clone(), one.clone(), &[]));
        assert_ne!(constant(one.clone(), other.clone(), &[1]), constant(other, one, &[1]));
    }

    #[test]
    fn the_leading_columns_have_a_format_too() {
        let sent = |results: &[u16], returns| {
            let merging = Merging { returns, ..merging(&[]) };
            let body = body(&[], &[], results);
            let mut out = BytesMut::new();
            put_call(b"batch function", &[(&merging, bind(&body))], &mut out);
            let frame = split(&out, |_| usize::MAX).unwrap().unwrap();
            bind(frame.body()).results().to_vec()
        };
        assert!(sent(&[], Returns::Rows).is_empty());
        assert_eq!(sent(&[1], Returns::Rows), [0, 1]);
        assert_eq!(sent(&[0, 1], Returns::Row), [0, 0, 0, 1]);
        assert_eq!(sent(&[0, 1], Returns::Rows), [0, 1, 0, 0, 0, 1]);
        assert_eq!(sent(&[0, 0], Returns::RowsOrWait), [0, 1, 0, 1, 0, 1, 0, 0, 0, 0]);
        for (results, binary) in [(&[][..], false), (&[0], false), (&[1], true), (&[0, 0], true)] {
            assert_eq!(is_lead_binary(&bind(&body(&[], &[], results))), binary);
        }
    }
}
