//! The results of reading a statement's text.

use crate::classify::effects::effect::Effect;
use crate::classify::read::candidate::Candidate;
use crate::classify::reason::Reason;

/// The result of reading a statement's text, before the catalogue is queried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Analysis {
    /// Packable if the catalogue agrees; see [`crate::classify::judge::decision::decide`].
    Candidate(Box<Candidate>),
    /// Passed through.
    Pass(Pass),
    /// `SET hotrow.pack`: the client switches packing on or off for its session.
    SetPack(bool),
    /// `RESET hotrow.pack` or `SET hotrow.pack TO DEFAULT`.
    ResetPack,
    /// `SHOW hotrow.pack`.
    ShowPack,
    /// `DEALLOCATE name`. The name can belong to a statement that was prepared through the protocol.
    Deallocate(String),
}

/// A statement that is passed through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pass {
    /// Why.
    pub reason: Reason,
    /// Its possible effects on the session.
    pub effect: Effect,
    /// The effects that it removes if it succeeds outside a transaction block. They are removed before
    /// `effect` is applied.
    pub clears: Effect,
    /// It can change the catalogue. Cached facts of the catalogue must be dropped.
    pub ddl: bool,
    /// It begins or commits a transaction of the kind that lanes run.
    pub boundary: Option<Boundary>,
    /// How it begins or ends a transaction, if the server is not needed for that before the first statement.
    pub transaction: Option<Transaction>,
    /// `true` if it leaves a transaction open, `false` if it ends one with COMMIT, `None` if it does neither.
    pub leaves_open: Option<bool>,
    /// `PREPARE name`. The name can belong to a statement that was prepared through the protocol.
    pub prepares: Option<String>,
}

/// The beginning or end of a transaction, with the server's command tag for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Boundary {
    /// BEGIN, without options that change the snapshot of its statements.
    Begin(&'static str),
    /// COMMIT.
    Commit,
}

/// The beginning or end of a transaction. The server cannot refuse it outside a transaction, or in one without
/// statements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transaction {
    /// BEGIN or START TRANSACTION, with the server's command tag for it.
    Begin(&'static str),
    /// COMMIT or ROLLBACK.
    End {
        /// COMMIT.
        commits: bool,
        /// AND CHAIN: another transaction like this one begins at once.
        chains: bool,
    },
}

impl Boundary {
    /// The command's tag.
    pub fn tag(self) -> &'static str {
        match self {
            Boundary::Begin(tag) => tag,
            Boundary::Commit => "COMMIT",
        }
    }
}

impl Pass {
    pub(crate) fn harmless(reason: Reason) -> Self {
        Self {
            reason,
            effect: Effect::NONE,
            clears: Effect::NONE,
            ddl: false,
            boundary: None,
            transaction: None,
            leaves_open: None,
            prepares: None,
        }
    }

    pub(crate) fn unknown(reason: Reason) -> Self {
        Self { effect: Effect::UNKNOWN, ddl: true, ..Self::harmless(reason) }
    }
}

/// A session command with this effect.
pub(crate) fn leaves(name: String, effect: Effect) -> Analysis {
    Analysis::Pass(Pass { effect, ..Pass::harmless(Reason::Session(name)) })
}

/// A session command that removes this effect.
pub(crate) fn clears(name: String, clears: Effect) -> Analysis {
    Analysis::Pass(Pass { clears, ..Pass::harmless(Reason::Session(name)) })
}
