//! What is special about tables that Citus distributes: lanes to its nodes, the shards that a batch changes, and what replies say
//! about changes on other nodes. Without a BEGIN, Citus would not take the messages up to a Sync for one transaction: a statement
//! whose shard has moved to another node, or whose table has become distributed, would be committed there at once.

use hotrow_core::classify::Watch;
use hotrow_lane::lane::{Batch, Changes};

use super::envelope::{Envelope, Run};
use super::target::Target;
use crate::lane::snapshot::Place;

/// A node, by its number, that is another server than the pool's.
#[derive(Debug)]
pub struct NodeTarget(pub i32);

impl Target for NodeTarget {
    fn place(&self) -> Place {
        Place { node: Some(self.0), ..Place::default() }
    }

    /// Each batch has a check that its shards are on the node.
    fn has_parts(&self) -> bool {
        false
    }

    /// Tables have other OIDs there. Those of statements with WITH are on the pool's server.
    fn watches(&self, run: &Run, found: &mut dyn FnMut(&Watch)) {
        if let Some(watch) = run.statement.watch_at(self.0) {
            found(&watch);
        }
    }
}

/// The shards that a batch changes, each once, as an array in text format. None if it changes none.
pub fn shards(batch: &Batch<Envelope>) -> Option<String> {
    let mut shards: Vec<i64> =
        batch.units.iter().flat_map(|unit| unit.payload.unit.shards.iter().copied()).collect();
    shards.sort_unstable();
    shards.dedup();
    let numbers: Vec<String> = shards.iter().map(ToString::to_string).collect();
    (!numbers.is_empty()).then(|| format!("{{{}}}", numbers.join(",")))
}

/// The changes of a statement on a distributed table, or of a call of a distributed function, by its command tag.
pub fn changes(tag: &[u8]) -> Changes {
    let mut words = tag.split(|byte| matches!(byte, b' ' | 0)).filter(|word| !word.is_empty());
    match (words.next(), words.next_back()) {
        (Some(b"INSERT" | b"UPDATE" | b"DELETE"), Some(b"0")) => Changes::None,
        (Some(b"INSERT" | b"UPDATE" | b"DELETE"), _) => Changes::Rows,
        _ => Changes::Hidden,
    }
}

/// Whether an error at a COMMIT can be that of a part of the transaction on another server. Citus commits a part on one other
/// node before its own transaction, and fails with XX000 if it does not get the answer, whether or not the part is committed.
pub fn can_be_of_other_server(code: &[u8]) -> bool {
    matches!(code, [b'0', b'8', ..] | [b'5', b'3' | b'7' | b'8', ..] | [b'X', b'X', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_tag_shows_the_changes_of_a_statement_on_a_distributed_table() {
        for (tag, expected) in [
            ("UPDATE 1", Changes::Rows),
            ("UPDATE 0", Changes::None),
            ("INSERT 0 2", Changes::Rows),
            ("INSERT 0 0", Changes::None),
            ("DELETE 10", Changes::Rows),
            ("DELETE 0", Changes::None),
            ("SELECT 1", Changes::Hidden),
            ("SELECT 0", Changes::Hidden),
            ("MERGE 1", Changes::Hidden),
            ("", Changes::Hidden),
        ] {
            assert_eq!(changes(format!("{tag}\0").as_bytes()), expected, "{tag}");
        }
    }
}
