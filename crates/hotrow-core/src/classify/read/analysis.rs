//! What a statement's text says by itself: the types that reading it ends in.

use crate::classify::effects::effect::Effect;
use crate::classify::read::candidate::Candidate;
use crate::classify::reason::Reason;

/// What a statement's text says by itself.
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
    /// `DEALLOCATE name`: the name may be one the protocol prepared.
    Deallocate(String),
}

/// A statement that is passed through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pass {
    /// Why.
    pub reason: Reason,
    /// What it may leave behind in the session.
    pub effect: Effect,
    /// What it takes away when it succeeds outside a transaction block; to be applied before `effect`.
    pub clears: Effect,
    /// It can change the catalogue, so what is cached of it must be forgotten.
    pub ddl: bool,
    /// It begins or commits a transaction of the kind that lanes run.
    pub boundary: Option<Boundary>,
    /// Whether it leaves a transaction open, or ends one by COMMIT; none if it does neither.
    pub leaves_open: Option<bool>,
    /// `PREPARE name`: the name may be one that the protocol has.
    pub prepares: Option<String>,
}

/// Where a transaction begins and ends, with what the server says when it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Boundary {
    /// BEGIN, without options that change what its statements see.
    Begin(&'static str),
    /// COMMIT.
    Commit,
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
            leaves_open: None,
            prepares: None,
        }
    }

    pub(crate) fn unknown(reason: Reason) -> Self {
        Self { effect: Effect::UNKNOWN, ddl: true, ..Self::harmless(reason) }
    }
}

/// A command of the session that leaves this behind.
pub(crate) fn leaves(name: String, effect: Effect) -> Analysis {
    Analysis::Pass(Pass { effect, ..Pass::harmless(Reason::Session(name)) })
}

/// A command that takes this away.
pub(crate) fn clears(name: String, clears: Effect) -> Analysis {
    Analysis::Pass(Pass { clears, ..Pass::harmless(Reason::Session(name)) })
}
