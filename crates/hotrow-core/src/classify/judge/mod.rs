//! Decides about a candidate with what the catalogue says: packed with which key, or passed through and why.

pub(crate) mod decision;
pub(crate) mod lock_statement;
pub(crate) mod merging;
pub(crate) mod namesakes;
pub(crate) mod reach;
pub(crate) mod row;
pub(crate) mod table;
pub(crate) mod watch;
