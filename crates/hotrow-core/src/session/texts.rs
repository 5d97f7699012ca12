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
    normaliser: Normaliser,
    /// The statement of the last simple query, with the signature of its shape.
    last_simple: Option<(Bytes, Arc<S>)>,
    last_parsed: Option<Arc<S>>,
}

impl<S> Default for Texts<S> {
    fn default() -> Self {
        Texts { normaliser: Normaliser::new(), last_simple: None, last_parsed: None }
    }
}

impl<S: Statement> Texts<S> {
    /// The statement of a simple query's text.
    pub(super) fn simple<E: Environment<Statement = S>>(&mut self, env: &E, text: &[u8]) -> Arc<S> {
        let Ok(text) = str::from_utf8(text) else {
            return env.extended(text, b"");
        };
        let shape = self.normaliser.run(text);
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
    pub(super) fn shape<'t>(&'t mut self, text: &'t str) -> Shape<'t> {
        self.normaliser.run(text)
    }

    /// The statement of a Parse.
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
                let shape = self.normaliser.run(text);
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
