//! The row for which a unit contends, as a number on which gateways agree.
//!
//! A key only decides which lane a unit uses and in which order a batch takes its locks. Two keys for one row cost speed but
//! never correctness, and so does one key for two rows.

use std::hash::Hasher;

/// A row: its table and a hash of the values that identify it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// The table's number, or a number for the key space of a merge rule.
    pub table: u32,
    /// A hash of the key columns' values (see [`RowHasher`]).
    pub hash: u64,
}

/// Hashes keys for tables of bounded size. The values are hashed already, so this only adds the table.
#[derive(Clone, Copy, Default, Debug)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u32(&mut self, table: u32) {
        self.write_u64(table.into());
    }

    fn write_u64(&mut self, part: u64) {
        self.0 = (self.0 ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// A hash that is the same in every build.
pub fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = RowHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// Hashes the values that identify a row: FNV-1a with 64 bits. It is simple enough to stay the same in every build, which the
/// standard hasher does not promise.
#[derive(Clone, Copy, Debug)]
pub struct RowHasher(u64);

impl Default for RowHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for RowHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// FNV's low bits are weak for short inputs, and lanes are chosen by remainder. The bits are therefore
    /// mixed once more.
    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    }
}

impl RowHasher {
    /// One value with its tag and length. Adjacent values therefore cannot run into each other.
    pub fn part(&mut self, tag: u8, bytes: &[u8]) {
        self.write(&[tag]);
        self.write(&(bytes.len() as u64).to_be_bytes());
        self.write(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_many_tables_and_rows_spread_in_a_table() {
        let mut low = std::collections::HashSet::new();
        for table in 0..32 {
            for row in 0..32_u64 {
                let mut hasher = KeyHasher::default();
                std::hash::Hash::hash(&Key { table, hash: hash_of(&row.to_be_bytes()) }, &mut hasher);
                low.insert(hasher.finish() % 1024);
            }
        }
        assert!(low.len() > 500, "1024 keys have {} of 1024 places", low.len());
    }
}
