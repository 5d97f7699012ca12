//! Where a string, comment or number ends and what it is worth, as PostgreSQL reads it; never what surrounds it.

use super::{INT4, INT8, NUMERIC};

pub(super) fn is_name_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// The place after a quoted string or name, where the doubled quote stands for itself.
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

/// The place after an `E''` string, where a backslash hides the byte after it.
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

/// The place after a comment; PostgreSQL's comments nest.
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

/// The place after a number, and whether it is a whole one; `None` for `0x1f`, `1_000`, `1abc`, `1..2`.
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

/// The type PostgreSQL gives a number; `None` for the two whose type depends on a minus sign in front.
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

/// Copies a string's inside with every doubled quote made single.
pub(super) fn unescape(inner: &[u8], values: &mut Vec<u8>) {
    let mut rest = inner;
    while let Some(quote) = rest.iter().position(|&b| b == b'\'') {
        values.extend_from_slice(&rest[..=quote]);
        rest = &rest[quote + 2..];
    }
    values.extend_from_slice(rest);
}

/// Writes `$n` without the machinery of formatting, which would cost as much as the scan.
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
