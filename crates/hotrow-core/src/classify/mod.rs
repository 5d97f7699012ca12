//! Decides once per statement text whether it may be packed, with which key, and why; never meets a socket or a clock.
//!
//! [`analyse`] reads the text alone. For a [`Candidate`] the gateway then fetches [`Facts`] about its table
//! (`table_facts.sql`) and about the names in [`names_to_look_up`] (`function_facts.sql`, `merge_rules.sql`), and
//! [`decide`] settles it.
//! Anything that is not proven packable is passed through, with a [`Reason`]; what it may leave behind in the session
//! is its [`Effect`].

mod ahead;
mod analysis;
mod builtin_types;
mod call;
mod calls;
mod candidate;
mod casts;
mod decision;
mod draft;
mod effect;
mod explain;
mod expression;
mod facts;
mod functions;
mod insert;
mod judge;
mod merging;
mod names;
mod pieces;
mod point;
mod reach;
mod reason;
mod row;
mod screen;
mod settings;
mod side_effects;
mod source;
mod table;
mod tokens;
mod utility;
mod watch;
mod worded;

#[cfg(test)]
mod tests;

pub use ahead::Ahead;
pub use analysis::{Analysis, Boundary, Pass, analyse};
pub use call::{Argument, ArgumentValue, Call, Item, Output};
pub use candidate::{Candidate, Conflict, Equality, InsertParts, Operand, Verb};
pub use decision::{Decision, Kind, Packing, decide, moves_any_sequence, names_to_look_up};
pub use effect::Effect;
pub use explain::explain;
pub use facts::{
    Column, Facts, FunctionFact, Index, MergeRule, Parameter, Referrer, ResultKind, TableFacts, Trigger,
    TypeKind,
};
pub use judge::names_in_sources;
pub use merging::{Element, ElementSource, Merging, Returns};
pub use names::{FunctionName, TableName};
pub use pieces::{Piece, pieces};
pub use reach::{Reach, reach};
pub use reason::Reason;
pub use watch::{Watch, end_of_batch};
