//! A statement as text: its tokens, its names, what can be told without understanding it.

pub(crate) mod names;
pub(crate) mod pieces;
pub(crate) mod screen;
pub(crate) mod source;
pub(crate) mod tokens;
