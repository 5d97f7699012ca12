//! Decides about a candidate with facts from the catalog: it is packed with a key, or passed through with a
//! reason.

pub(crate) mod code;
pub(crate) mod composed;
pub(crate) mod decision;
pub(crate) mod declared;
pub(crate) mod declared_source;
pub(crate) mod lock_statement;
pub(crate) mod merging;
pub(crate) mod namesakes;
pub(crate) mod reach;
pub(crate) mod row;
pub(crate) mod table;
pub(crate) mod view;
pub(crate) mod watch;
pub(crate) mod whole;
