//! The end and the value of a string, a comment or a number, as PostgreSQL reads it. The surrounding text is
//! read elsewhere.

use super::{INT4, INT8, NUMERIC};

pub(super) fn is_name_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// The offset after a quoted string or name. A doubled quote stands for itself.
pub(super) fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += bytes.get(at..)?.iter().position(|&b| b == quote || b == 0)?;
        match (bytes[at], bytes.get(at + 1)) {
            (0, _) => return None,
            (_, Some(&next)) if next == quote => at += 2,
            _ => return Some(at + 1),
        }
    }
}

/// The offset after an `E''` string. A backslash escapes the next byte.
pub(super) fn escaped_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match (*bytes.get(at)?, bytes.get(at + 1)) {
            (0, _) => return None,
            (b'\\', _) => at += 2,
            (b'\'', Some(b'\'')) => at += 2,
            (b'\'', _) => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// The offset after a comment. PostgreSQL's comments nest.
pub(super) fn comment_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start + 2, 1_usize);
    loop {
        match (*bytes.get(at)?, bytes.get(at + 1)) {
            (0, _) => return None,
            (b'*', Some(b'/')) => {
                at += 2;
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            (b'/', Some(b'*')) => {
                at += 2;
                depth += 1;
            }
            _ => at += 1,
        }
    }
}

/// The offset after a number, and whether it is an integer. `None` for `0x1f`, `1_000`, `1abc` and `1..2`.
pub(super) fn number_end(bytes: &[u8], start: usize) -> (usize, Option<bool>) {
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut at = digits(start);
    let mut whole = true;
    if bytes.get(at) == Some(&b'.') {
        whole = false;
        at = digits(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent > at + 1 + sign {
            whole = false;
            at = exponent;
        }
    }
    let clean = at;
    while bytes.get(at).is_some_and(|&b| b != b'$' && (is_name_part(b) || b == b'.')) {
        at += 1;
    }
    let clean = at == clean && bytes.get(at) != Some(&b'$');
    (at, clean.then_some(whole))
}

/// The type that PostgreSQL gives a number. `None` for the two numbers whose type depends on a preceding
/// minus sign.
pub(super) fn number_type(text: &str, whole: bool) -> Option<u32> {
    const INT4_LIMIT: u64 = 1 << 31;
    const INT8_LIMIT: u64 = 1 << 63;
    match text.parse::<u64>() {
        Ok(INT4_LIMIT | INT8_LIMIT) => None,
        Ok(..INT4_LIMIT) => Some(INT4),
        Ok(..INT8_LIMIT) => Some(INT8),
        _ if whole && !text.bytes().all(|b| b.is_ascii_digit()) => None,
        _ => Some(NUMERIC),
    }
}

/// Copies the contents of a string and undoubles its quotes.
pub(super) fn unescape(inner: &[u8], values: &mut Vec<u8>) {
    let mut rest = inner;
    while let Some(quote) = rest.iter().position(|&b| b == b'\'') {
        values.extend_from_slice(&rest[..=quote]);
        rest = &rest[quote + 2..];
    }
    values.extend_from_slice(rest);
}

/// Writes `$n` without the standard formatter, which would cost as much as the scan.
pub(super) fn push_parameter(out: &mut String, number: usize) {
    out.push('$');
    let mut divisor = 1000;
    let mut started = false;
    while divisor > 0 {
        let digit = u8::try_from(number / divisor % 10).expect("a remainder of ten fits a byte");
        started |= digit > 0;
        if started {
            out.push(char::from(b'0' + digit));
        }
        divisor /= 10;
    }
}
