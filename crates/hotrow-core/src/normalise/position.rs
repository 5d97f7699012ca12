//! Where the scanner is: what comes next, and what has been written.

use super::lexeme::comment_end;
use super::scanner::{Before, Scanner};

impl Scanner<'_> {
    /// The byte at `at`, or zero after the end.
    pub(super) fn peek(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Copies the uncopied text up to `at`.
    pub(super) fn copy_to(&mut self, at: usize) {
        self.out.signature.push_str(&self.sql[self.copied..at]);
        self.copied = at;
    }

    /// Records the token that was read. A text that does not start with a word is left unchanged.
    pub(super) fn meet(&mut self, what: Before) -> Option<()> {
        if matches!(self.before, Before::Start) && !matches!(what, Before::Word(..)) {
            return None;
        }
        self.before = what;
        Some(())
    }

    /// Skips white space and comments. Returns whether they contain a newline. `None` if a comment does not
    /// end.
    pub(super) fn skip_blank(&self, mut at: usize) -> Option<(usize, bool)> {
        let mut line_ended = false;
        loop {
            match self.peek(at) {
                b'\n' | b'\r' => {
                    line_ended = true;
                    at += 1;
                }
                b' ' | b'\t' | 0x0c => at += 1,
                b'-' if self.peek(at + 1) == b'-' => {
                    let rest = &self.bytes[at..];
                    at += rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
                }
                b'/' if self.peek(at + 1) == b'*' && self.peek(at + 2) != b'+' => {
                    at = comment_end(self.bytes, at)?;
                }
                _ => return Some((at, line_ended)),
            }
        }
    }

    /// `'a'` newline `'b'` is one literal. Such a text is left unchanged.
    pub(super) fn not_continued(&self, end: usize) -> Option<usize> {
        let (next, _) = self.skip_blank(end)?;
        (self.peek(next) != b'\'').then_some(next)
    }
}
