//! Decides once per statement text whether the statement can be packed, with which key, and why. It uses no
//! sockets and no clock.
//!
//! [`analyse`] reads the text. For a [`Candidate`], the [`Catalog`] then has [`Facts`] about its table and its names, or says
//! what the gateway has to ask the server (`table_facts.sql`, `function_facts.sql`, `merge_rules.sql`, `pack_rules.sql`).
//! [`decide`] makes the decision. A statement that is not proven packable is passed through with a
//! [`Reason`]. Its possible effects on the session are its [`Effect`].
//!
//! | module | what lives there |
//! |---|---|
//! | `catalog` | what is known of the catalog, by object, and what has to be asked |
//! | `effects` | effects of passed-through statements on their session |
//! | `explain` | the text of `hotrow explain` about a statement |
//! | `facts` | facts from the catalog about tables and names |
//! | `judge` | decisions about a candidate from the catalog's facts |
//! | `known` | lists of PostgreSQL's own functions and types |
//! | `read` | reads a statement's text into a candidate or a command |
//! | `reason` | reasons why a statement is passed through |
//! | `remedy` | what to do about these reasons: forms that can be packed instead, or nothing |
//! | `text` | tokens, names and checks of SQL text that need no parser |

mod catalog;
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

pub use catalog::{Answers, Asked, Catalog, Dated, Lack, Questions};
pub use effects::effect::Effect;
pub use explain::explain;
pub use facts::{
    Column, DeclaredParameter, Facts, FunctionFact, Index, MergeRule, OwnType, PackRule, Parameter, Referrer,
    Refusal, ResultKind, Rules, TableFacts, Trigger, TypeKind, View,
};
pub use judge::code::Names;
pub use judge::decision::{Decision, Packing};
pub use judge::lock_statement::LockStatement;
pub use judge::merging::{Element, ElementSource, Merging, Returns};
pub use judge::reach::{Found, FoundCode, Reach, reach};
pub use judge::watch::{Watch, end_of_batch};
pub use judge::whole::decide;
pub use read::analyse::analyse;
pub use read::analysis::{
    Alters, Analysis, BlockCommand, Pass, Step, Switch, SwitchChange, SwitchValue, Transaction,
    differ_in_tables_only,
};
pub use read::candidate::{
    Argument, ArgumentValue, Call, Candidate, Common, Conflict, Equality, Head, InsertParts, Item, Operand,
    Output, Part, Reading, ResultColumn, Verb,
};
pub use reason::{Reason, StatementKind};
pub use remedy::Remedy;
pub use text::names::{FunctionName, TableName};
pub use text::pieces::{Piece, pieces};
