//! Splits a text with several statements, to prepare each of them separately. It does not judge them.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::classify::text::tokens;

/// One statement of several in one shape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Its text, its parameters numbered from 1.
    pub text: String,
    /// The index, from zero, of its first parameter among the shape's parameters.
    pub first: usize,
    /// Number of its parameters.
    pub count: usize,
}

/// The statements of a shape whose parameters `$1`..`$n` are in order. Empty statements are left out. `None`
/// if the split is not certain.
pub fn pieces(shape: &str) -> Option<Vec<Piece>> {
    tokens::read(shape).ok()?;
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, shape).tokenize_with_location().ok()?;
    let mut offsets = Offsets { text: shape, offset: 0, at: Location { line: 1, column: 1 } };
    let mut pieces = Vec::new();
    let mut piece = Piece { text: String::new(), first: 0, count: 0 };
    let (mut copied, mut is_empty) = (0, true);
    for TokenWithSpan { token, span } in &tokens {
        match token {
            Token::SemiColon => {
                let offset = offsets.of(span.start).filter(|offset| shape[*offset..].starts_with(';'))?;
                piece.text.push_str(&shape[copied..offset]);
                copied = offset + 1;
                let first = piece.first + piece.count;
                let whole = std::mem::replace(&mut piece, Piece { text: String::new(), first, count: 0 });
                if !std::mem::replace(&mut is_empty, true) {
                    pieces.push(trimmed(whole));
                }
            }
            Token::Placeholder(name) => {
                let expected = format!("${}", piece.first + piece.count + 1);
                let offset = offsets.of(span.start).filter(|offset| shape[*offset..].starts_with(name))?;
                if *name != expected {
                    return None;
                }
                piece.count += 1;
                piece.text.push_str(&shape[copied..offset]);
                piece.text.push_str(&format!("${}", piece.count));
                copied = offset + name.len();
                is_empty = false;
            }
            Token::Whitespace(_) => {}
            _ => is_empty = false,
        }
    }
    piece.text.push_str(&shape[copied..]);
    if !is_empty {
        pieces.push(trimmed(piece));
    }
    Some(pieces)
}

fn trimmed(piece: Piece) -> Piece {
    Piece { text: piece.text.trim().to_owned(), ..piece }
}

/// Finds the byte offsets of positions that are given as line and column. The positions are in ascending
/// order.
struct Offsets<'a> {
    text: &'a str,
    offset: usize,
    at: Location,
}

impl Offsets<'_> {
    fn of(&mut self, wanted: Location) -> Option<usize> {
        while self.at != wanted {
            let next = self.text[self.offset..].chars().next()?;
            self.offset += next.len_utf8();
            if next == '\n' {
                self.at = Location { line: self.at.line + 1, column: 1 };
            } else {
                self.at.column += 1;
            }
        }
        Some(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(shape: &str) -> Vec<(String, usize, usize)> {
        pieces(shape).unwrap().into_iter().map(|piece| (piece.text, piece.first, piece.count)).collect()
    }

    #[test]
    fn each_statement_gets_its_own_parameters() {
        assert_eq!(
            texts(
                "begin; update t set n = n + $1\n where id = $2 ;; -- ü; not here\n select 'a;b', $3; commit;"
            ),
            [
                ("begin".to_owned(), 0, 0),
                ("update t set n = n + $1\n where id = $2".to_owned(), 0, 2),
                ("-- ü; not here\n select 'a;b', $1".to_owned(), 2, 1),
                ("commit".to_owned(), 3, 0),
            ]
        );
        assert_eq!(texts(" ; "), []);
        assert_eq!(
            texts("select $$;$$; select \"a;\" from t"),
            [("select $$;$$".to_owned(), 0, 0), ("select \"a;\" from t".to_owned(), 0, 0)]
        );
    }

    #[test]
    fn an_uncertain_text_is_not_split() {
        assert_eq!(pieces("select $2; select $1"), None);
        assert_eq!(pieces("select 'open"), None);
        assert_eq!(pieces("select 1\u{a0}; select 2"), None);
    }
}
