//! A transaction whose BEGIN, statements and COMMIT arrive as separate messages at once. It is one unit, like a
//! transaction in one message. If parts are missing or cannot be packed, each message is handled on its own.

use std::sync::Arc;
use std::time::Instant;

use hotrow_core::classify::{Analysis, Boundary, Pass};
use hotrow_core::limits;
use hotrow_core::unit::gather::{Gather, Gathered, Single};
use hotrow_wire::frontend::{self, tag};
use hotrow_wire::{Frame, split};

use super::{Session, SessionEnd};
use crate::lane::{Draft, Plan};
use crate::statements::Statement;

/// A part of a transaction that is answered by one ReadyForQuery.
enum Part<'a> {
    /// A Query of one statement: its text.
    Simple(&'a str, Arc<Statement>),
    /// Extended queries up to their Sync.
    Extended(Gather),
}

impl Session {
    /// If the bytes begin with a BEGIN, and everything up to the COMMIT is there and can be packed, sends it to a lane.
    /// Returns the number of its bytes, or 0.
    pub(super) async fn block(&mut self, input: &[u8], since: Instant) -> Result<usize, SessionEnd> {
        let free = self.holding.is_none() && self.gather.is_empty() && !self.skipping;
        if !free || !self.packs() {
            return Ok(0);
        }
        let mut rest = input;
        while let Ok(Some(frame)) = split(rest, |_| limits::UNIT_BYTES_MAX)
            && input.len() - rest.len() <= limits::UNIT_BYTES_MAX
        {
            if frame.bytes.len() > limits::CLASSIFIED_INLINE_BYTES_MAX {
                self.classify_long(frame).await?;
            }
            rest = &rest[frame.bytes.len()..];
        }
        let Some((parts, bytes)) = self.parts_of_block(input) else { return Ok(0) };
        self.wait_for_blocks().await?;
        if self.holding.is_some() {
            return Ok(0);
        }
        self.settle_names();
        if !self.naming.is_empty() {
            self.drain_lanes().await?; // before this, the meaning of its names is not known
            if self.holding.is_some() {
                return Ok(0);
            }
        }
        // No statement in it can use the unnamed statement, because the first Query removes it.
        let unnamed = self.expected.names.remove_entry(&b""[..]);
        let (mut scratch, mut normaliser) =
            (std::mem::take(&mut self.scratch), std::mem::take(&mut self.normaliser));
        let mut draft = Draft::new(&mut scratch);
        let mut all = true;
        for part in &parts {
            // If the catalogue returns an error, the separate messages meet and report it again.
            all = match part {
                Part::Simple(text, statement) => match self.plan(statement).await.unwrap_or_default() {
                    Some(plan) => {
                        draft.simple(plan, &normaliser.run(text), 0..usize::MAX);
                        draft.statements() <= limits::UNIT_STATEMENTS_MAX
                    }
                    None => false,
                },
                Part::Extended(gather) => self.draft_extended(&mut draft, gather).await,
            };
            if !all {
                break;
            }
            draft.ready();
        }
        let packed = all.then(|| draft.finish([&input[..bytes], &[]]));
        (self.scratch, self.normaliser) = (scratch, normaliser);
        self.expected.names.extend(unnamed);
        let Some(packed) = packed else { return Ok(0) };
        let changes = self.unnamed_removal();
        self.submit(self.envelope(packed, since), changes).await?;
        Ok(bytes)
    }

    /// Adds the messages before one Sync. False if a transaction with them cannot be packed. Named statements cannot be
    /// packed, because the name would be valid before the statement is known to be correct.
    async fn draft_extended(&mut self, draft: &mut Draft<'_>, gather: &Gather) -> bool {
        let statements = match gather.form() {
            Ok(Gathered::Single(single)) => vec![single],
            Ok(Gathered::Several(statements)) => statements,
            _ => return false,
        };
        let names = |single: &Single<'_>| {
            single.parse.as_ref().is_some_and(|parse| !parse.name.is_empty())
                || !single.closes.0.is_empty()
                || !single.closes.1.is_empty()
                || !single.bind.portal.is_empty()
        };
        let Ok(Some(plans)) = self.plan_all(&statements).await else { return false };
        let is_nested = plans.iter().any(|plan| matches!(plan, Plan::Boundary(..)));
        if is_nested
            || statements.iter().any(names)
            || draft.statements() + plans.len() > limits::UNIT_STATEMENTS_MAX
        {
            return false;
        }
        statements.iter().zip(plans).for_each(|(single, plan)| draft.extended(plan, single));
        true
    }

    /// The messages from a BEGIN up to its COMMIT, and the number of their bytes. None if they are incomplete.
    fn parts_of_block<'a>(&mut self, input: &'a [u8]) -> Option<(Vec<Part<'a>>, usize)> {
        let mut parts = Vec::new();
        let mut gather = Gather::default();
        let mut bytes = 0;
        while parts.len() < limits::UNIT_STATEMENTS_MAX {
            let frame = split(&input[bytes..], |_| limits::UNIT_BYTES_MAX).ok()??;
            bytes += frame.bytes.len();
            if bytes > limits::UNIT_BYTES_MAX {
                return None;
            }
            match frame.tag {
                tag::QUERY if gather.is_empty() => {
                    let text = str::from_utf8(frontend::query(frame.body()).ok()?).ok()?;
                    let statement = self.simple_statement(text.as_bytes());
                    let boundary = match &statement.analysis {
                        Analysis::Pass(Pass { boundary, .. }) => *boundary,
                        _ => None,
                    };
                    let begins = matches!(boundary, Some(Boundary::Begin(_)));
                    if begins != parts.is_empty() || !statement.pieces.is_empty() {
                        return None;
                    }
                    parts.push(Part::Simple(text, statement));
                    if boundary == Some(Boundary::Commit) {
                        return (parts.len() > 2).then_some((parts, bytes));
                    }
                }
                tag::PARSE | tag::BIND | tag::DESCRIBE | tag::EXECUTE | tag::CLOSE if !parts.is_empty() => {
                    gather.push(frame);
                }
                tag::SYNC if !parts.is_empty() => parts.push(Part::Extended(std::mem::take(&mut gather))),
                _ => return None,
            }
        }
        None
    }
}

/// Whether this message, the first of these bytes, may be a Query that begins a transaction, and more bytes follow. A
/// cheap check.
pub fn may_begin(frame: Frame<'_>, input: &[u8]) -> bool {
    let words: [&[u8]; 2] = [b"begin", b"start"];
    let begins =
        |word: &&[u8]| frame.body().get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word));
    frame.tag == tag::QUERY && frame.bytes.len() < input.len() && words.iter().any(begins)
}
