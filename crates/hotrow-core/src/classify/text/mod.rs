//! A statement's text: its tokens and names, and checks that need no parser.

pub(crate) mod names;
pub(crate) mod pieces;
pub(crate) mod screen;
pub(crate) mod source;
pub(crate) mod tokens;
