//! The messages that a server answers, and their effects.

use bytes::Bytes;

use super::prepared::{Preparation, StatementName};
use crate::classify::Step;

/// A message that the server answers, or skips after an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<S> {
    /// The client's Parse: the name, its meaning if the Parse succeeds, and the statement that the connection
    /// then has prepared.
    Parse(Bytes, Box<S>, Option<Preparation>),
    /// A Parse of the gateway, and the statement that the connection then has prepared. None for one that it runs at once.
    OwnParse(Option<Preparation>),
    /// A Parse of the gateway with an empty text under one of the client's names. The next message finds the
    /// name in use, or removes it.
    Placeholder(Bytes),
    /// A Bind of the client's statement with this name, and the record of its portal if it succeeds. No change of
    /// records if none is needed.
    Bind(Bytes, Option<Box<PortalChange<S>>>),
    Describe,
    /// A Describe of the gateway, of the client's statement with this name.
    OwnDescribe(Bytes),
    Execute(RunEffects),
    /// The client's Close: the statement's name, if it closes a statement.
    Close(Option<Bytes>),
    /// The gateway's Close: the statement that the connection no longer has, if it had it.
    OwnClose(Option<StatementName>),
    Sync,
    Query(RunEffects),
    /// The gateway's messages without a Sync that begin a transaction which the client has begun. If they fail, the
    /// server ignores what follows.
    OwnBegin,
    /// Messages of the gateway up to a Sync, whose outcome the session looks at itself.
    OwnUnit,
    FunctionCall,
}

/// A portal, and the record of its statement. Without a record, the portal loses the one that it has.
pub type PortalChange<S> = (Bytes, Option<S>);

/// The effects of a statement that runs, in addition to its result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunEffects {
    /// It can be COPY FROM STDIN.
    pub may_copy: bool,
    /// It is DEALLOCATE of the client's statement with this name.
    pub deallocates: Option<Bytes>,
    /// It is DEALLOCATE ALL, or has the same effect.
    pub deallocates_all: bool,
    /// What it does to the gateway's settings, for each command tag that reports it.
    pub steps: Vec<Step>,
}

impl<S> Message<S> {
    /// Whether replies to it, other than errors, can show rows, or what a function has found in them.
    pub(super) fn can_show_rows(&self) -> bool {
        !matches!(
            self,
            Message::Parse(..)
                | Message::OwnParse(_)
                | Message::Placeholder(_)
                | Message::Describe
                | Message::OwnDescribe(_)
                | Message::Close(_)
                | Message::OwnClose(_)
                | Message::Sync
        )
    }

    /// The message's effects if it succeeds: on one of the client's names, and on the statements that the
    /// connection has prepared.
    #[expect(clippy::type_complexity, reason = "two changes, each of a name and its new value")]
    pub(super) fn changes(
        &self,
    ) -> (Option<(&Bytes, Option<&S>)>, Option<(StatementName, Option<Preparation>)>) {
        static UNNAMED: Bytes = Bytes::new();
        let prepares = |preparation: &Preparation| (preparation.name, Some(*preparation));
        match self {
            Message::Parse(name, meaning, preparation) => {
                (Some((name, Some(meaning))), preparation.as_ref().map(prepares))
            }
            Message::OwnParse(preparation) => (None, preparation.as_ref().map(prepares)),
            Message::Close(Some(name)) => {
                (Some((name, None)), name.is_empty().then_some((StatementName::Unnamed, None)))
            }
            Message::OwnClose(place) => (None, place.map(|place| (place, None))),
            Message::Execute(RunEffects { deallocates: Some(name), .. }) => (Some((name, None)), None),
            // The server drops the unnamed statement at every Query.
            Message::Query(_) => (Some((&UNNAMED, None)), Some((StatementName::Unnamed, None))),
            Message::OwnBegin | Message::OwnUnit => (None, Some((StatementName::Unnamed, None))),
            _ => (None, None),
        }
    }
}
