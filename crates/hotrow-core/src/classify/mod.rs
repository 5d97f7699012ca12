//! Decides once per statement text whether it may be packed, with which key, and why; never meets a socket or a clock.
//!
//! [`analyse`] reads the text alone. For a [`Candidate`] the gateway then fetches [`Facts`] about its table
//! (`table_facts.sql`) and about the names in [`names_to_look_up`] (`function_facts.sql`, `merge_rules.sql`), and
//! [`decide`] settles it.
//! Anything that is not proven packable is passed through, with a [`Reason`]; what it may leave behind in the session
//! is its [`Effect`].

mod effects;
mod explain;
mod facts;
mod judge;
mod known;
mod read;
mod reason;
mod text;

#[cfg(test)]
mod tests;

pub use effects::effect::Effect;
pub use explain::explain;
pub use facts::{
    Column, Facts, FunctionFact, Index, MergeRule, Parameter, Referrer, ResultKind, TableFacts, Trigger,
    TypeKind,
};
pub use judge::decision::{Decision, Packing, decide, moves_any_sequence, names_to_look_up};
pub use judge::lock_statement::LockStatement;
pub use judge::merging::{Element, ElementSource, Merging, Returns};
pub use judge::namesakes::names_in_sources;
pub use judge::reach::{Reach, reach};
pub use judge::watch::{Watch, end_of_batch};
pub use read::analyse::analyse;
pub use read::analysis::{Analysis, Boundary, Pass};
pub use read::candidate::{
    Argument, ArgumentValue, Call, Candidate, Conflict, Equality, InsertParts, Item, Operand, Output, Verb,
};
pub use reason::Reason;
pub use text::names::{FunctionName, TableName};
pub use text::pieces::{Piece, pieces};
