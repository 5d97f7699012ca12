//! The statements of the client's texts. Clients often repeat a text, so the last ones are kept.

use std::sync::Arc;

use bytes::Bytes;
use hotrow_wire::frontend::{self, Parse, tag};
use hotrow_wire::{Error, Frame};

use super::{Environment, LongText, Statement};
use crate::limits;
use crate::normalise::{Normaliser, Shape};

/// Finds the statements of texts.
pub(super) struct Texts<S> {
    scanned: Scanned,
    /// The statement of the last simple query, with the signature of its shape.
    last_simple: Option<(Bytes, Arc<S>)>,
    last_parsed: Option<Arc<S>>,
}

/// The shape of the last text. A message needs it more than once: for the statement, for its row and for its unit, and again
/// after each need.
#[derive(Default)]
struct Scanned {
    normaliser: Normaliser,
    /// The last text. Empty if it is longer than any unit that can be packed.
    text: String,
}

impl Scanned {
    fn shape(&mut self, text: &str) -> Shape<'_> {
        if self.text == text && !text.is_empty() {
            return self.normaliser.last();
        }
        self.text.clear();
        if text.len() <= limits::UNIT_BYTES_MAX {
            self.text.push_str(text);
        }
        self.normaliser.run(text)
    }
}

impl<S> Default for Texts<S> {
    fn default() -> Self {
        Texts { scanned: Scanned::default(), last_simple: None, last_parsed: None }
    }
}

impl<S: Statement> Texts<S> {
    /// The statement of a simple query's text.
    pub(super) fn simple<E: Environment<Statement = S>>(&mut self, env: &E, text: &[u8]) -> Arc<S> {
        let Ok(text) = str::from_utf8(text) else {
            return env.extended(text, b"");
        };
        let shape = self.scanned.shape(text);
        if let Some((signature, statement)) = &self.last_simple
            && signature[..] == *shape.signature
            && statement.is_current()
        {
            return statement.clone();
        }
        let statement = env.simple(&shape);
        self.last_simple = Some((Bytes::copy_from_slice(shape.signature), statement.clone()));
        statement
    }

    /// The shape of a simple query's text.
    pub(super) fn shape(&mut self, text: &str) -> Shape<'_> {
        self.scanned.shape(text)
    }

    pub(super) fn parsed<E: Environment<Statement = S>>(&mut self, env: &E, parse: &Parse<'_>) -> Arc<S> {
        if let Some(statement) = &self.last_parsed
            && statement.text == parse.text
            && statement.types == parse.types
            && statement.is_current()
        {
            return statement.clone();
        }
        let statement = env.extended(parse.text, parse.types);
        self.last_parsed = Some(statement.clone());
        statement
    }

    /// The text of a Query or Parse, if it is so long that it is classified elsewhere first, and is not known.
    pub(super) fn unknown_long<E: Environment<Statement = S>>(
        &mut self,
        env: &E,
        frame: Frame<'_>,
    ) -> Result<Option<LongText>, Error> {
        match frame.tag {
            tag::QUERY => {
                let Ok(text) = str::from_utf8(frontend::query(frame.body())?) else { return Ok(None) };
                let shape = self.scanned.shape(text);
                let is_last =
                    self.last_simple.as_ref().is_some_and(|(signature, _)| signature[..] == *shape.signature);
                let is_short = shape.signature.len() <= limits::CLASSIFIED_INLINE_BYTES_MAX;
                let is_known = is_short || is_last || env.knows_simple(&shape);
                Ok((!is_known).then(|| LongText::Simple(text.to_owned())))
            }
            tag::PARSE => {
                let Parse { text, types, .. } = Parse::read(frame.body())?;
                let is_last = self
                    .last_parsed
                    .as_ref()
                    .is_some_and(|statement| statement.text == text && statement.types == types);
                let is_known = is_last || env.knows_extended(text, types);
                Ok((!is_known).then(|| LongText::Extended(text.to_owned(), types.to_owned())))
            }
            _ => Ok(None),
        }
    }

    /// Texts may mean other statements from now on.
    pub(super) fn forget(&mut self) {
        (self.last_simple, self.last_parsed) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(shape: &Shape<'_>) -> String {
        let Shape { shape: text, verbatim, signature, .. } = shape;
        format!("{text:?} {verbatim} {signature:?} {:?}", shape.literals().collect::<Vec<_>>())
    }

    #[test]
    fn a_repeated_text_has_the_shape_of_its_scan() {
        let long = format!("select '{}'", "x".repeat(limits::UNIT_BYTES_MAX));
        let texts = ["", "select 1", "select 2", "select 1 + 2, 'a'", "select 'not closed", "begin", &long];
        let mut scanned = Scanned::default();
        for first in texts {
            for second in texts {
                for text in [first, first, second] {
                    let expected = whole(&Normaliser::new().run(text));
                    assert_eq!(whole(&scanned.shape(text)), expected, "{first:.20}, then {second:.20}");
                }
            }
        }
    }
}
