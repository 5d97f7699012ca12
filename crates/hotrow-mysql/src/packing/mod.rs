//! Which statements of a session are packed, and where they go. `hotrow-mysql-core` decides about a statement.

mod facts;
mod harmless;
mod left;
mod packer;
mod pools;
mod prepared;
mod rights;

pub use harmless::killed;
pub use packer::{FirstPacket, Packer, Run};
pub use pools::Pools;
