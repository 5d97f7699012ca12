//! Takes the comments out of a text that keeps its literals: that of a Parse message, which has parameters of its own.

use std::borrow::Cow;

use super::lexeme::{comment_end, is_name_part, quoted_end};

/// The text without its comments, with one space in the place of each. A planner's hint (`/*+ ... */`) stays. The text is
/// unchanged if it has no comment, or if settings or errors decide what is a comment.
///
/// A backslash in quotes is such a case (`standard_conforming_strings`), as are two strings with nothing but white space and
/// comments between them: they can be one string.
pub fn without_comments(sql: &str) -> Cow<'_, str> {
    match contains(sql) {
        true => strip(sql).map_or(Cow::Borrowed(sql), Cow::Owned),
        false => Cow::Borrowed(sql),
    }
}

/// White space for PostgreSQL, up to the vertical tab, which is white space in some versions only.
const BLANKS: [char; 5] = [' ', '\t', '\n', '\r', '\x0c'];

/// A cheap first check.
fn contains(sql: &str) -> bool {
    let is_start = |pair: &[u8]| matches!(pair, b"--" | b"/*");
    sql.as_bytes().windows(2).any(is_start) && !sql.contains(['\\', '\x0b'])
}

/// None if the text cannot be read with certainty.
fn strip(sql: &str) -> Option<String> {
    let bytes = sql.as_bytes();
    let peek = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let mut out = String::with_capacity(sql.len());
    let (mut at, mut copied) = (0, 0);
    // Nothing but white space and comments has followed a string.
    let mut after_string = false;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'\'' if after_string => return None,
            quote @ (b'\'' | b'"') => {
                after_string = quote == b'\'';
                quoted_end(bytes, at, quote)?
            }
            b'-' if peek(at + 1) == b'-' => {
                let length = bytes[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                length.map_or(bytes.len(), |length| at + length)
            }
            b'/' if peek(at + 1) == b'*' => comment_end(bytes, at)?,
            b'$' if !peek(at + 1).is_ascii_digit() => {
                after_string = false;
                dollar_end(sql, at)?
            }
            byte if is_name_part(byte) => {
                after_string = false;
                at + bytes[at..].iter().take_while(|byte| is_name_part(**byte)).count()
            }
            byte => {
                after_string &= byte.is_ascii_whitespace();
                at + 1
            }
        };
        let is_comment = matches!(bytes[at], b'-' | b'/') && end > at + 1;
        if is_comment && !sql[at..end].starts_with("/*+") {
            out.push_str(&sql[copied..at]);
            copied = end;
            if out.is_empty() || out.ends_with(BLANKS) {
                copied = sql.len() - sql[end..].trim_start_matches(BLANKS).len();
                at = copied;
                continue;
            }
            out.push(' ');
        }
        at = end;
    }
    out.push_str(&sql[copied..]);
    out.truncate(out.trim_end_matches(BLANKS).len());
    Some(out)
}

/// The offset after a string in dollars. None if this is no such string, or one without an end.
fn dollar_end(sql: &str, at: usize) -> Option<usize> {
    let tag = sql[at + 1..].find('$').map(|length| &sql[at..at + length + 2])?;
    let is_tag = tag[1..tag.len() - 1].bytes().all(|byte| is_name_part(byte) && byte != b'$');
    let body = at + tag.len();
    sql[body..].find(tag).filter(|_| is_tag).map(|length| body + length + tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_taken_out() {
        for (sql, expected) in [
            ("select $1 /*traceparent='00-1-01'*/", "select $1"),
            ("/* app:shop */ select $1", "select $1"),
            ("select/**/$1 -- end", "select $1"),
            ("select $1 -- a\nfrom t", "select $1 from t"),
            ("select /* a /* nested */ b */ $1, 'x'", "select $1, 'x'"),
            ("select '--', \"/*\", $$--$$, $a$/*$a$ /* b */", "select '--', \"/*\", $$--$$, $a$/*$a$"),
            ("select /*+ SeqScan(t) */ /* b */ a from t", "select /*+ SeqScan(t) */ a from t"),
            ("select a$b$c /*x*/, d from t", "select a$b$c , d from t"),
            ("/* nothing else */", ""),
            ("select 'it''s' /* a */ , 1", "select 'it''s' , 1"),
        ] {
            assert_eq!(without_comments(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_text_stays_if_settings_or_errors_decide_what_is_a_comment() {
        for sql in [
            "select $1 - $2 / $3 * $4",
            "select 'a\\'--' /* b */",
            "select 'a' -- c\n'b'",
            "select 'a'\n/* c */'b'",
            "select $1 /* no end",
            "select 'no end /* a */",
            "select $a$ no end /* a */",
        ] {
            assert_eq!(without_comments(sql), sql);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_text_means_the_same_without_its_comments(
            words in proptest::collection::vec("a|'a'|\"a\"|--[a-z ']{0,5}\n|/\\*[a-z' ]{0,5}\\*/|[$]1|,|\n|-|/|[$]a[$]--[$]a[$]", 0..12),
        ) {
            let sql = format!("select {} where a = $1", words.join(" "));
            let stripped = without_comments(&sql);
            proptest::prop_assert_eq!(&without_comments(&stripped), &stripped);
            let before = crate::classify::analyse(&sql);
            if matches!(before, crate::classify::Analysis::Candidate(_)) {
                proptest::prop_assert_eq!(before, crate::classify::analyse(&stripped));
            }
        }
    }
}
