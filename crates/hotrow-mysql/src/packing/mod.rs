//! Which statements are packed, and where they go. `reader` and `table` decide, the other files ask the server.

mod facts;
mod harmless;
mod packer;
mod pools;
mod prepared;
mod reader;
mod table;

pub use harmless::killed;
pub use packer::{FirstPacket, Packer, Run};
pub use pools::Pools;
