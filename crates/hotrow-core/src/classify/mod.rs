//! Decides once per statement text whether the statement can be packed, with which key, and why. It uses no
//! sockets and no clock.
//!
//! [`analyse`] reads the text. For a [`Candidate`], the gateway then queries [`Facts`] about its table
//! (`table_facts.sql`) and about the names in [`names_to_look_up`] (`function_facts.sql`, `merge_rules.sql`).
//! [`decide`] makes the decision. A statement that is not proven packable is passed through with a
//! [`Reason`]. Its possible effects on the session are its [`Effect`].
//!
//! | module | what lives there |
//! |---|---|
//! | `effects` | effects of passed-through statements on their session |
//! | `explain` | the text of `hotrow explain` about a statement |
//! | `facts` | facts from the catalogue about tables and names |
//! | `judge` | decisions about a candidate from the catalogue's facts |
//! | `known` | lists of PostgreSQL's own functions and types |
//! | `read` | reads a statement's text into a candidate or a command |
//! | `reason` | reasons why a statement is passed through |
//! | `remedy` | forms that can be packed instead |
//! | `text` | tokens, names and checks of SQL text that need no parser |

mod effects;
mod explain;
mod facts;
mod judge;
mod known;
mod read;
mod reason;
mod remedy;
mod text;

#[cfg(test)]
mod tests;

pub use effects::effect::Effect;
pub use explain::explain;
pub use facts::{
    Column, Facts, FunctionFact, Index, MergeRule, Parameter, Referrer, ResultKind, TableFacts, Trigger,
    TypeKind, View,
};
pub use judge::decision::{Decision, Packing, moves_any_sequence, names_to_look_up};
pub use judge::lock_statement::LockStatement;
pub use judge::merging::{Element, ElementSource, Merging, Returns};
pub use judge::namesakes::names_in_sources;
pub use judge::reach::{Reach, reach};
pub use judge::watch::{Watch, end_of_batch};
pub use judge::whole::decide;
pub use read::analyse::analyse;
pub use read::analysis::{Analysis, Boundary, Pass, Step, Switch, SwitchChange, Transaction};
pub use read::candidate::{
    Argument, ArgumentValue, Call, Candidate, Common, Conflict, Equality, InsertParts, Item, Operand, Output,
    Part, Reading, ResultColumn, Verb,
};
pub use reason::Reason;
pub use text::names::{FunctionName, TableName};
pub use text::pieces::{Piece, pieces};
