//! Text that a server or a client has chosen, where people or SQL read it: terminals, log lines, suggested commands.

use std::borrow::Cow;

/// The text in one line, for a terminal or a log. Control characters and those that change the direction of text are
/// written as escapes, as in `\n` and `\u{1b}`: they could clear the screen, forge a line, or hide what a line says.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_hidden(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A name as SQL needs it, in double quotes. No name can end them.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A value as SQL needs it. No value can end its quotes, whatever `standard_conforming_strings` is.
pub fn literal(value: &str) -> String {
    let quoted = value.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', r"\\")),
        false => format!("'{quoted}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_line_or_controls_a_terminal() {
        for (text, shown) in [
            ("item (id = 7)", "item (id = 7)"),
            ("Größe 型 \u{1f600} C:\\temp", "Größe 型 \u{1f600} C:\\temp"),
            ("a\nb\r\tc", r"a\nb\r\tc"),
            ("\u{1b}]0;title\u{7}\u{1b}[2J", r"\u{1b}]0;title\u{7}\u{1b}[2J"),
            ("\u{7f}\u{9b}31m\u{85}", r"\u{7f}\u{9b}31m\u{85}"),
            ("\u{202e}drop\u{2066}\u{2028}\u{200b}", r"\u{202e}drop\u{2066}\u{2028}\u{200b}"),
        ] {
            assert_eq!(visible(text), shown);
            assert_eq!(visible(shown), shown, "the shown text is shown as it is");
        }
    }

    #[test]
    fn a_quoted_name_or_value_is_one_word() {
        assert_eq!(identifier("a to bob; --"), r#""a to bob; --""#);
        assert_eq!(identifier(r#"a" to bob; --"#), r#""a"" to bob; --""#);
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal(r"\'; drop table t; --"), r"E'\\''; drop table t; --'");
    }
}
