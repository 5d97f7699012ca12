//! Literals in the text: the literals that are taken out, and the literals that stay. Words and nesting are
//! read in `scanner`.

use super::lexeme::{is_name_part, number_end, number_type, push_parameter, quoted_end, unescape};
use super::lexicon::{is_unit, needs_literal_before, role};
use super::scanner::{Before, Clause, Scanner};
use super::{MAX_LITERALS, Slot, TEXT, UNSPECIFIED};

impl Scanner<'_> {
    /// Whether a literal here can be taken out of the text.
    pub(super) fn takes(&self) -> bool {
        let operand = match self.before {
            Before::Opening => true,
            Before::Word(start, end) => role(&self.bytes[start..end]).precedes_operand(),
            Before::Start | Before::Closing | Before::QuotedName => false,
        };
        operand && !self.now.keeps && self.now.clause == Clause::Operands
    }

    pub(super) fn string(&mut self, at: usize) -> Option<usize> {
        let end = quoted_end(self.bytes, at, b'\'')?;
        let next = self.not_continued(end)?;
        let mut word_end = next;
        while is_name_part(self.peek(word_end)) {
            word_end += 1;
        }
        let name = match self.before {
            // The name of the type is not copied yet.
            Before::Word(start, end) if self.is_type && self.copied <= start => Some(start..end),
            _ => None,
        };
        let following = &self.bytes[next..word_end];
        let is_taken = if name.is_some() { !is_unit(following) } else { self.takes() };
        if is_taken && !needs_literal_before(following) {
            let start = self.out.values.len();
            let inner = &self.bytes[at + 1..end - 1];
            unescape(inner, &mut self.out.values);
            match name {
                Some(name) => {
                    self.replace(name.start, end, start, UNSPECIFIED)?;
                    self.out.signature.push_str("::");
                    self.out.signature.push_str(&self.sql[name]);
                }
                None => {
                    let is_argument = self.now.any && self.is_argument(at, next);
                    self.replace(at, end, start, if is_argument { TEXT } else { UNSPECIFIED })?;
                }
            }
            // `$1and` is an error from PostgreSQL 15 on. `'x'and` is not.
            if is_name_part(self.peek(end)) {
                self.out.signature.push(' ');
            }
        }
        self.meet(Before::Closing)?;
        Some(end)
    }

    /// Whether what is between these offsets is a whole argument of a function.
    fn is_argument(&self, at: usize, next: usize) -> bool {
        let before = self.bytes[..at].iter().rfind(|byte| !byte.is_ascii_whitespace());
        matches!(before, Some(b'(' | b',')) && matches!(self.peek(next), b',' | b')')
    }

    pub(super) fn number(&mut self, at: usize) -> Option<usize> {
        let (end, whole) = number_end(self.bytes, at);
        if whole.is_none() && matches!(self.peek(end), b'\'' | b'&' | b'"') {
            // `1e'..'` was two tokens before PostgreSQL 15. It is too rare to support.
            return None;
        }
        // `where.5` is a word and a number. `where$1` would be one word.
        let glued = at > 0 && is_name_part(self.bytes[at - 1]);
        if !glued
            && let Some(type_oid) = whole.and_then(|whole| number_type(&self.sql[at..end], whole))
            && self.takes()
        {
            let start = self.out.values.len();
            self.out.values.extend_from_slice(&self.bytes[at..end]);
            self.replace(at, end, start, type_oid)?;
        }
        self.meet(Before::Closing)?;
        Some(end)
    }

    /// Replaces `at..end` with the next parameter.
    fn replace(&mut self, at: usize, end: usize, value_start: usize, type_oid: u32) -> Option<()> {
        if self.out.slots.len() == MAX_LITERALS {
            return None;
        }
        self.copy_to(at);
        self.copied = end;
        self.out.slots.push(Slot { value: value_start..self.out.values.len(), type_oid });
        push_parameter(&mut self.out.signature, self.out.slots.len());
        Some(())
    }

    /// A dollar-quoted string stays. A text that has parameters already is left unchanged.
    pub(super) fn dollar(&mut self, at: usize) -> Option<usize> {
        let mut tag_end = at + 1;
        if self.peek(tag_end).is_ascii_digit() {
            return None;
        }
        while is_name_part(self.peek(tag_end)) && self.peek(tag_end) != b'$' {
            tag_end += 1;
        }
        self.meet(Before::Closing)?;
        if self.peek(tag_end) != b'$' {
            return None;
        }
        let tag = &self.sql[at..=tag_end];
        let body = tag_end + 1;
        Some(body + self.sql[body..].find(tag)? + tag.len())
    }
}
