//! The effects of a passed-through statement on its session.

pub(crate) mod effect;
pub(crate) mod side_effects;
