//! What a statement that is passed through may leave behind in its session.

pub(crate) mod effect;
pub(crate) mod side_effects;
