//! Refusals by the gateway: the errors that replace the replies to a client's messages, and the transaction in which they leave
//! the client. It is the one in which an error of the server would leave it. After a BEGIN that is executed and a statement
//! that is refused, the transaction has failed, and statements that the client has sent already do not run outside of it.

use bytes::{Bytes, BytesMut};
use hotrow_wire::backend::{self, Problem};
use hotrow_wire::frontend::{self, Bind, Parse, tag};
use hotrow_wire::{Frame, split};

use super::begun::{Answer, Begun};
use super::environment::Stop;
use super::names::Names;
use super::planning::{Handled, Performing, Planning};
use super::texts::Texts;
use super::{Envelope, Environment, Session, SessionEnd, StatementOf, cancelled};
use crate::classify::{Analysis, Pass, Transaction};
use crate::unit::gather::Gathered;
use crate::unit::put_command_answer;

/// What the messages of a unit do to the session's transaction.
struct Course<S> {
    /// The BEGIN at their beginning.
    begin: Option<S>,
    /// They have a statement after it.
    has_more: bool,
    /// They leave a transaction open.
    leaves_open: bool,
}

impl<E: Environment> Session<E> {
    /// A cancel request has ended the session's wait: the message that is being handled, or the unit that runs alone, is
    /// refused.
    pub fn wait_cancelled(&mut self) {
        self.provided.is_cancelled = true;
    }

    /// Refuses a message for which the session has waited. Returns how many bytes are handled, and whether the next message is
    /// refused too. A BEGIN before it is not what the client waits for. Some messages are handled like any other.
    pub(super) fn take_cancelled(
        &mut self,
        planning: Planning,
        frame: Frame<'_>,
        input: &[u8],
    ) -> Result<Handled<(usize, bool)>, Stop<E>> {
        let (bytes, behind) = (frame.bytes.len(), &input[frame.bytes.len()..]);
        if self.phase.is_held() || self.skipping || frame.tag == tag::TERMINATE {
            return Ok(Handled::Continue(planning)); // a request for it finds it at the server
        }
        self.wait_for_blocks(&planning)?;
        match frame.tag {
            tag::QUERY if self.gather.is_empty() => {
                let statement = self.texts.simple(&self.env, frontend::query(frame.body())?);
                match statement.transaction() {
                    Some(Transaction::Begin { tag, .. })
                        if !behind.is_empty() && self.phase.begun().is_none() =>
                    {
                        self.lanes_done(&planning)?;
                        let performing = planning.perform();
                        self.begin(&statement, false);
                        self.renaming.remove(&self.env, &mut self.names, b"");
                        self.append_in_turn(&performing, |out| backend::put_command_complete(out, tag));
                        self.ready_in_turn(&performing);
                        return Ok(Handled::Break((bytes, true)));
                    }
                    Some(Transaction::End { .. }) if self.phase.begun().is_some() => {
                        return Ok(Handled::Continue(planning));
                    }
                    _ => self.refuse_text(planning, &statement, &cancelled(), behind)?,
                }
            }
            tag::FUNCTION_CALL if self.gather.is_empty() => {
                self.refuse_query(&planning.perform(), &cancelled());
            }
            _ => self.refuse_unit(planning, frame, behind, &cancelled())?,
        }
        Ok(Handled::Break((bytes, false)))
    }

    /// Refuses a Query. If its text begins with a BEGIN, the transaction of it has failed.
    pub(super) fn refuse_text(
        &mut self,
        planning: Planning,
        statement: &StatementOf<E>,
        problem: &Problem,
        behind: &[u8],
    ) -> Result<(), Stop<E>> {
        let begins = match &statement.analysis {
            Analysis::Pass(Pass { begins: Some(begins), .. }) if self.phase.begun().is_none() => Some(begins),
            _ => None,
        };
        let performing = match begins.map(|begins| &**begins) {
            Some((Transaction::Begin { tag, has_modes, .. }, text)) => {
                self.lanes_done(&planning)?;
                let performing = planning.perform();
                self.phase.begin(Begun::failed(Bytes::copy_from_slice(text.as_bytes()), *has_modes));
                self.append_in_turn(&performing, |out| backend::put_command_complete(out, tag));
                performing
            }
            _ => {
                if self.phase.begun().is_none() {
                    end_if_begin_failed(statement.leaves_open() == Some(true), behind, problem)?;
                }
                planning.perform()
            }
        };
        self.refuse_query(&performing, problem);
        Ok(())
    }

    /// Answers a simple query with an error of the gateway, in its turn.
    pub(super) fn refuse_query(&mut self, performing: &Performing, problem: &Problem) {
        self.fail_begun();
        self.append_in_turn(performing, |out| problem.put(out));
        self.ready_in_turn(performing);
    }

    /// Refuses the messages of an extended query that have been gathered, and this one. Later ones are ignored up to the Sync.
    pub(super) fn refuse_unit(
        &mut self,
        planning: Planning,
        frame: Frame<'_>,
        behind: &[u8],
        problem: &Problem,
    ) -> Result<(), Stop<E>> {
        let is_whole = frame.tag == tag::SYNC;
        let (rest, next) = if is_whole { behind.split_at(0) } else { split_at_sync(behind) };
        let messages = [self.gather.raw(), frame.bytes, rest];
        let course = course(&self.env, &self.names, &mut self.texts, messages);
        let begin = course.begin.filter(|_| course.has_more && self.phase.begun().is_none());
        if begin.is_some() {
            self.lanes_done(&planning)?;
        }
        let performing = planning.perform();
        let gather = std::mem::take(&mut self.gather);
        if self.phase.begun().is_none() {
            match begin {
                Some(begin) => {
                    if let Ok(Gathered::Several(statements)) = gather.form()
                        && let Some(first) = statements.first().filter(|_| is_whole)
                        && let Some(Transaction::Begin { tag, .. }) = begin.transaction()
                    {
                        let answer = Answer::from(tag);
                        self.append_in_turn(&performing, |out| {
                            put_command_answer(first, |out| answer.put_result(out), out)
                        });
                    }
                    self.begin(&begin, false);
                }
                None => end_if_begin_failed(course.leaves_open, next, problem)?,
            }
        }
        self.fail_begun();
        self.append_in_turn(&performing, |out| problem.put(out));
        match is_whole {
            true => self.ready_in_turn(&performing),
            false => self.skipping = true,
        }
        Ok(())
    }

    /// The earliest unfinished unit, which a lane has given back, is refused.
    pub fn refuse_returned(&mut self, unit: &E::Envelope, problem: &Problem) {
        let mut refusals = BytesMut::new();
        let open = unit.unit().put_refusal(problem, &mut refusals);
        self.renaming.forget_first(&self.env, &mut self.names);
        self.answer_returned(&refusals);
        if let Some(begin) = open {
            self.phase.begin(Begun::failed(Bytes::from_static(begin.as_bytes()), false));
        }
    }
}

/// What these messages would do to the session's transaction.
fn course<E: Environment>(
    env: &E,
    names: &Names<E::Statement>,
    texts: &mut Texts<E::Statement>,
    messages: [&[u8]; 3],
) -> Course<StatementOf<E>> {
    let mut course = Course { begin: None, has_more: false, leaves_open: false };
    let (mut is_first, mut parsed) = (true, Vec::new());
    for mut messages in messages {
        while let Ok(Some(frame)) = split(messages, |_| usize::MAX) {
            messages = &messages[frame.bytes.len()..];
            let statement = match frame.tag {
                tag::PARSE => Parse::read(frame.body()).ok().map(|parse| {
                    parsed.push(parse.name);
                    texts.parsed(env, &parse)
                }),
                tag::BIND => {
                    let name = Bind::read(frame.body()).ok().map(|bind| bind.statement);
                    let name = name.filter(|name| !parsed.contains(name));
                    let named = name.and_then(|name| names.get(name));
                    named.map(|named| named.statement.clone())
                }
                _ => None,
            };
            let Some(statement) = statement else { continue };
            match statement.begins_empty() {
                true if is_first => course.begin = Some(statement.clone()),
                true => {}
                false => course.has_more = true,
            }
            course.leaves_open = statement.leaves_open().unwrap_or(course.leaves_open);
            is_first = false;
        }
    }
    course
}

/// The messages up to the first Sync, and those after it.
fn split_at_sync(messages: &[u8]) -> (&[u8], &[u8]) {
    let mut end = 0;
    while let Ok(Some(frame)) = split(&messages[end..], |_| usize::MAX) {
        end += frame.bytes.len();
        if frame.tag == tag::SYNC {
            break;
        }
    }
    messages.split_at(end)
}

/// Called before an error of the gateway. If the error replaces the beginning of a transaction and the client
/// has sent more, the session ends. Otherwise the later statements would run outside any transaction.
fn end_if_begin_failed(begins: bool, behind: &[u8], problem: &Problem) -> Result<(), SessionEnd> {
    match begins && !behind.is_empty() {
        true => Err(SessionEnd::Problem(Problem { fatal: true, ..problem.clone() })),
        false => Ok(()),
    }
}
