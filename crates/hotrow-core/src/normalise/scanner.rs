//! The only pass over the bytes of a text: words, white space and nesting. Literals are taken out in
//! `literals`.

use super::Normaliser;
use super::lexeme::{comment_end, escaped_end, is_name_part, quoted_end};
use super::lexicon::{Role, is_type_of_constants, may_turn_clause, role, starts_query};

/// The token before the current byte, as far as it matters for a literal.
#[derive(Clone, Copy)]
pub(super) enum Before {
    Start,
    /// An unquoted word, by its offsets in the text.
    Word(usize, usize),
    /// An operator, a comma, an opening parenthesis or a bracket. An operand can follow.
    Opening,
    /// A value, a quoted name, a closing parenthesis or a dot. No operand can follow.
    Closing,
    /// A quoted name. A parenthesis after it belongs to a function.
    QuotedName,
}

/// The rule inside the innermost parentheses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nesting {
    /// Inside the arguments of a function or a type. Literals stay, because the server would infer other
    /// types for parameters.
    pub(super) keeps: bool,
    /// Inside the arguments of a function that takes values of any type.
    pub(super) any: bool,
    pub(super) clause: Clause,
}

/// The role of literals in the current clause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Clause {
    /// Operands, which can become parameters.
    #[default]
    Operands,
    /// Positions in ORDER BY, GROUP BY or DISTINCT.
    Positions,
    /// Part of an index's predicate in ON CONFLICT.
    Predicate,
}

/// The text that is read and the buffers that are filled. If a step returns `None`, the text is left
/// unchanged.
pub(super) struct Scanner<'a> {
    pub(super) sql: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) out: &'a mut Normaliser,
    /// Everything before this offset was copied or replaced.
    pub(super) copied: usize,
    pub(super) before: Before,
    /// The last word is the name of a type at the place of an operand: a string that follows is a constant of that type.
    pub(super) is_type: bool,
    pub(super) now: Nesting,
    /// The last word is the DISTINCT of IS DISTINCT FROM.
    compares: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(sql: &'a str, out: &'a mut Normaliser) -> Self {
        let (before, now) = (Before::Start, Nesting::default());
        Self { sql, bytes: sql.as_bytes(), out, copied: 0, before, is_type: false, now, compares: false }
    }

    /// Reads the whole text. `Some` if the shape is complete.
    pub(super) fn scan(mut self) -> Option<()> {
        let mut at = 0;
        while at < self.bytes.len() {
            at = match self.bytes[at] {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0c => self.blank(at)?,
                b'-' if self.peek(at + 1) == b'-' => self.blank(at)?,
                b'/' if self.peek(at + 1) == b'*' && self.peek(at + 2) == b'+' => self.hint(at)?,
                b'/' if self.peek(at + 1) == b'*' => self.blank(at)?,
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.word(at)?,
                b'0'..=b'9' => self.number(at)?,
                b'.' if self.peek(at + 1).is_ascii_digit() => self.number(at)?,
                b'\'' => self.string(at)?,
                b'"' => {
                    let end = quoted_end(self.bytes, at, b'"')?;
                    self.meet(Before::QuotedName)?;
                    end
                }
                b'$' => self.dollar(at)?,
                b'(' | b'[' => self.open(at)?,
                b')' | b']' => {
                    self.now = self.out.nesting.pop()?;
                    self.meet(Before::Closing)?;
                    at + 1
                }
                b';' => {
                    self.copy_to(at);
                    return (self.skip_blank(at + 1)?.0 == self.bytes.len()).then_some(());
                }
                0 => return None,
                b',' | b'=' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'^' | b'|' | b'&' | b'~'
                | b'!' | b'@' | b'#' | b'?' | b':' => {
                    self.meet(Before::Opening)?;
                    at + 1
                }
                _ => {
                    self.meet(Before::Closing)?;
                    at + 1
                }
            };
        }
        self.copy_to(at);
        (!matches!(self.before, Before::Start)).then_some(())
    }

    /// White space and comments: replaced by one space, or by nothing at the start.
    fn blank(&mut self, at: usize) -> Option<usize> {
        let (end, _) = self.skip_blank(at)?;
        if end == at + 1 && self.bytes[at] == b' ' && self.copied < at {
            return Some(end);
        }
        self.copy_to(at);
        self.copied = end;
        if !self.out.signature.is_empty() && !self.out.signature.ends_with(' ') {
            self.out.signature.push(' ');
        }
        Some(end)
    }

    /// A planner hint stays, because it is part of the prepared text.
    fn hint(&mut self, at: usize) -> Option<usize> {
        comment_end(self.bytes, at)
    }

    /// A word, and a string directly after it. `E'..'`, `B'..'`, `U&'..'` and, without a space, `date'..'` stay unchanged.
    fn word(&mut self, at: usize) -> Option<usize> {
        let mut end = at + 1;
        while is_name_part(self.peek(end)) {
            end += 1;
        }
        let word = &self.bytes[at..end];
        if matches!(self.before, Before::Start) && !starts_query(word) {
            return None;
        }
        let compared = std::mem::take(&mut self.compares);
        if may_turn_clause(word) && !compared {
            self.turn_clause(at, word);
        }
        self.is_type = is_type_of_constants(word) && self.takes();
        self.meet(Before::Word(at, end))?;
        let unicode =
            word.eq_ignore_ascii_case(b"u") && self.peek(end) == b'&' && self.peek(end + 1) == b'\'';
        let quote = end + usize::from(unicode);
        if self.peek(quote) != b'\'' {
            return Some(end);
        }
        self.meet(Before::Closing)?;
        let close = if word.eq_ignore_ascii_case(b"e") {
            escaped_end(self.bytes, quote)?
        } else {
            quoted_end(self.bytes, quote, b'\'')?
        };
        self.not_continued(close)?;
        Some(close)
    }

    /// The word at this offset can begin or end a clause.
    fn turn_clause(&mut self, at: usize, word: &[u8]) {
        let role = role(word);
        let turns = matches!(role, Role::Positions | Role::Predicate | Role::Ends | Role::Frees);
        if !turns || self.is_label(at) {
            return;
        }
        let is_in_positions = self.now.clause == Clause::Positions;
        match role {
            Role::Positions if word.eq_ignore_ascii_case(b"distinct") && self.follows(&["is", "not"]) => {
                self.compares = true;
            }
            Role::Positions => self.now.clause = Clause::Positions,
            Role::Predicate if self.follows(&["on"]) => self.now.clause = Clause::Predicate,
            // Columns can have these names.
            Role::Ends if !is_in_positions => self.now.clause = Clause::Operands,
            Role::Frees if is_in_positions => self.now.clause = Clause::Operands,
            _ => {}
        }
    }

    /// Whether one of these words comes before.
    fn follows(&self, words: &[&str]) -> bool {
        match self.before {
            Before::Word(start, end) => {
                words.iter().any(|word| self.bytes[start..end].eq_ignore_ascii_case(word.as_bytes()))
            }
            _ => false,
        }
    }

    /// Whether the word at this offset is a name, although it may be a keyword elsewhere: `t.limit`, `as limit`.
    fn is_label(&self, at: usize) -> bool {
        self.follows(&["as"])
            || self.bytes[..at].iter().rfind(|byte| !byte.is_ascii_whitespace()) == Some(&b'.')
    }

    /// Whether the word at this offset is qualified, as in `shop.sell`, and is not a type after `::`. Each of
    /// its parameters has one type. A parameter in the place of a literal therefore gets the same type. If
    /// the function is polymorphic, the server reports an error and the original text runs.
    fn is_users_function(&self, start: usize) -> bool {
        let before = &self.bytes[..start];
        let Some((b'.', before)) = before.split_last() else { return false };
        let length = before.iter().rev().take_while(|byte| is_name_part(**byte)).count();
        let (before, qualifier) = before.split_at(before.len() - length);
        let previous = before.iter().rfind(|byte| !byte.is_ascii_whitespace());
        !qualifier.is_empty()
            && !qualifier.eq_ignore_ascii_case(b"pg_catalog")
            && !matches!(previous, Some(b':' | b'.' | b'"' | b'/'))
    }

    fn open(&mut self, at: usize) -> Option<usize> {
        let keeps = self.bytes[at] == b'('
            && match self.before {
                Before::Word(start, end) => {
                    role(&self.bytes[start..end]).is_callable() && !self.is_users_function(start)
                }
                Before::QuotedName => true,
                Before::Start | Before::Opening | Before::Closing => false,
            };
        let any = self.bytes[at] == b'('
            && matches!(self.before, Before::Word(start, end) if role(&self.bytes[start..end]) == Role::Any);
        self.meet(Before::Opening)?;
        self.out.nesting.push(self.now);
        self.now.keeps |= keeps;
        self.now.any = any;
        Some(at + 1)
    }
}
