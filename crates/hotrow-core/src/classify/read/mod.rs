//! Reads the text of a statement: a candidate for packing, a command, or a statement that is passed through
//! with a reason. It does not query the catalog.

pub(crate) mod alters;
pub(crate) mod analyse;
pub(crate) mod analysis;
pub(crate) mod builder;
pub(crate) mod call;
pub(crate) mod calls;
pub(crate) mod candidate;
pub(crate) mod commands;
pub(crate) mod common;
pub(crate) mod computed;
pub(crate) mod expression;
pub(crate) mod head;
pub(crate) mod insert;
pub(crate) mod keyword_syntax;
pub(crate) mod kind;
pub(crate) mod point;
pub(crate) mod query;
pub(crate) mod settings;
pub(crate) mod unnest;
pub(crate) mod view;
