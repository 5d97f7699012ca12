//! The span of a client that a statement belongs to: the `traceparent` in a comment of its text, as sqlcommenter writes it.

use hotrow_wire::frontend::{self, Bind, Parse, tag};
use hotrow_wire::split;

/// A client's span, and the trace that it is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
}

/// The first sampled span that a text in these messages of a client names. `text_of` has the texts of statements that were
/// prepared before them, by name.
pub fn of_messages<'n>(
    mut messages: &[u8],
    text_of: impl Fn(&[u8]) -> Option<&'n [u8]>,
) -> Option<SpanContext> {
    let mut parsed: Vec<&[u8]> = Vec::new();
    while let Ok(Some(frame)) = split(messages, |_| usize::MAX) {
        messages = &messages[frame.bytes.len()..];
        let text = match frame.tag {
            tag::QUERY => frontend::query(frame.body()).ok(),
            tag::PARSE => {
                let parse = Parse::read(frame.body()).ok()?;
                parsed.push(parse.name);
                Some(parse.text)
            }
            tag::BIND => {
                let name = Bind::read(frame.body()).ok()?.statement;
                if parsed.contains(&name) { None } else { text_of(name) }
            }
            _ => None,
        };
        let found = text.and_then(of_text);
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The sampled span that a comment behind a statement names, or one before it. Other comments are not looked for: only a parser
/// could tell them from strings.
fn of_text(text: &[u8]) -> Option<SpanContext> {
    let mut rest = text;
    while let Some(before) = without_end(rest).strip_suffix(b"*/") {
        let start = before.windows(2).rposition(|two| two == b"/*")?;
        let found = of_comment(&before[start + 2..]);
        if found.is_some() {
            return found;
        }
        rest = &before[..start];
    }
    while let Some(behind) = rest.trim_ascii_start().strip_prefix(b"/*") {
        let end = behind.windows(2).position(|two| two == b"*/")?;
        let found = of_comment(&behind[..end]);
        if found.is_some() {
            return found;
        }
        rest = &behind[end + 2..];
    }
    None
}

/// A text without the spaces and semicolons at its end.
fn without_end(text: &[u8]) -> &[u8] {
    let last = text.iter().rposition(|byte| !byte.is_ascii_whitespace() && *byte != b';');
    &text[..last.map_or(0, |last| last + 1)]
}

/// From the pairs `key='value'` of a comment. A comma in a value is encoded.
fn of_comment(comment: &[u8]) -> Option<SpanContext> {
    let mut pairs = comment.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    pairs.find_map(|pair| sampled(pair.strip_prefix(b"traceparent='")?.strip_suffix(b"'")?))
}

/// From a value `00-<trace>-<span>-<flags>` with the flag that its trace is recorded.
fn sampled(value: &[u8]) -> Option<SpanContext> {
    let mut parts = value.split(|byte| *byte == b'-');
    let [version]: [u8; 1] = number(parts.next()?)?;
    let context = SpanContext { trace_id: number(parts.next()?)?, span_id: number(parts.next()?)? };
    let [flags]: [u8; 1] = number(parts.next()?)?;
    let is_valid = version == 0
        && parts.next().is_none()
        && context.trace_id.iter().any(|byte| *byte != 0)
        && context.span_id.iter().any(|byte| *byte != 0);
    (is_valid && flags & 1 == 1).then_some(context)
}

/// A number of N bytes in lowercase hexadecimal digits.
fn number<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use hotrow_wire::put_frame;

    use super::*;

    const PARENT: &str = "traceparent='00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'";

    fn span(text: &str) -> Option<u8> {
        of_text(text.as_bytes()).map(|context| context.span_id[7])
    }

    #[test]
    fn ids_are_read_from_a_comment_behind_or_before_the_statement() {
        let context = of_text(format!("select 1 /*{PARENT}*/").as_bytes()).unwrap();
        assert_eq!(context.trace_id[..2], [0x0a, 0xf7]);
        assert_eq!(context.span_id, [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]);
        for text in [
            format!("select 1/*{PARENT}*/;  \n"),
            format!("/*{PARENT}*/ select 1"),
            format!("/*+ SeqScan(t) */ /* {PARENT} */ select 1"),
            format!("select 1 /*application='shop',db_driver='x%2Cy', {PARENT},tracestate='a%3D1'*/"),
            format!("select 1 /*{PARENT}*/ /*controller:orders*/"),
            format!("/*{PARENT}*/"),
        ] {
            assert_eq!(span(&text), Some(0x31), "{text}");
        }
    }

    #[test]
    fn anything_else_than_a_sampled_parent_of_version_0_is_ignored() {
        let with = |from: &str, to: &str| format!("select 1 /*{}*/", PARENT.replace(from, to));
        for text in [
            with("-01'", "-00'"),
            with("-01'", "-02'"),
            with("-01'", "-1'"),
            with("-01'", "'"),
            with("-01'", "-01-00'"),
            with("'00-", "'01-"),
            with("'00-", "'ff-"),
            with("0af7651916cd43dd8448eb211c80319c", "00000000000000000000000000000000"),
            with("0af7651916cd43dd8448eb211c80319c", "0AF7651916CD43DD8448EB211C80319C"),
            with("0af7", "0xf7"),
            with("0af7", "af7"),
            with("b7ad6b7169203331", "0000000000000000"),
            with("b7ad", "é7ad"),
            with("'00-", "00-"),
            with("-01'", "-01"),
            with("traceparent", "Xtraceparent"),
            format!("select '/*{PARENT}*/ '"),
            format!("select 1 /*{PARENT}"),
            format!("select 1 {PARENT}*/"),
            format!("select 1 -- {PARENT}"),
            "select 1 /*/".to_owned(),
            "/*/".to_owned(),
            "*/".to_owned(),
            ";;".to_owned(),
            String::new(),
        ] {
            assert_eq!(span(&text), None, "{text}");
        }
    }

    fn unit(messages: &[(u8, &str)]) -> BytesMut {
        let mut out = BytesMut::new();
        for (tag, body) in messages {
            put_frame(&mut out, *tag, |out| out.extend_from_slice(body.as_bytes()));
        }
        out
    }

    #[test]
    fn a_bind_has_the_comment_of_the_last_parse_of_its_name() {
        let named = format!("select 1 /*{PARENT}*/");
        let text_of = |name: &[u8]| (name == b"s").then_some(named.as_bytes());
        let of =
            |messages: &[(u8, &str)]| of_messages(&unit(messages), text_of).map(|found| found.span_id[7]);
        let (bind, other) = ("\0s\0\0\0\0\0\0\0", "\0t\0\0\0\0\0\0\0");
        assert_eq!(of(&[(tag::BIND, bind)]), Some(0x31));
        assert_eq!(of(&[(tag::BIND, other)]), None);
        assert_eq!(of(&[(tag::BIND, other), (tag::BIND, bind)]), Some(0x31));
        assert_eq!(of(&[(tag::PARSE, "s\0select 2\0\0\0"), (tag::BIND, bind)]), None);
        let parse = format!("t\0{named}\0\0\0");
        assert_eq!(of(&[(tag::PARSE, &parse), (tag::BIND, other)]), Some(0x31));
        assert_eq!(of(&[(tag::QUERY, "begin\0"), (tag::QUERY, &format!("{named}\0"))]), Some(0x31));
        assert_eq!(of(&[(tag::QUERY, "no end")]), None);
    }
}
