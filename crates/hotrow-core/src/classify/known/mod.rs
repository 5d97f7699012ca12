//! Lists of PostgreSQL's own functions and types.

pub(crate) mod builtin_types;
pub(crate) mod casts;
pub(crate) mod functions;
