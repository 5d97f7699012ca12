//! Tables of Citus that are distributed over several servers (nodes): the shard of a row, and the node that has the shard. It
//! asks no server.
//!
//! A node only decides where a statement runs. The statement names the distributed table on every node, so its answer is the same
//! on a wrong node. But a transaction on a wrong node writes elsewhere, and the node that runs it cannot tell its outcome after a
//! lost connection. Therefore the values of keys have to be exactly those of the rows, or the statement runs on no node.

mod hash;

use serde::Deserialize;

use crate::key::{Format, KeySpec, ParamValue, ValueForm};
use crate::limits;

/// How a table is distributed, as `distribution.sql` returns it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct Distribution {
    /// `pg_dist_partition.partmethod`: `h` if the rows are distributed by a hash.
    pub method: char,
    /// The column that decides in which shard a row is.
    #[serde(default)]
    pub column: String,
    #[serde(default)]
    pub type_oid: u32,
    /// Equal values of the column have equal bytes.
    #[serde(default)]
    pub is_deterministic: bool,
    /// The server's hash of [`PROBE`], if the type has a known hash.
    #[serde(default)]
    pub probe: Option<i32>,
    /// The privileges of the role on the table, as text. Citus does not bring all of them to all nodes.
    #[serde(default)]
    pub privileges: String,
    /// The node that was asked.
    pub local_node: i32,
    /// The shards in the order of their hashes, one entry for each placement.
    #[serde(default)]
    pub shards: Vec<Shard>,
    /// The nodes of the shards.
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// The gateway's configuration allows lanes to nodes.
    #[serde(skip)]
    pub has_lanes: bool,
}

/// A part of a table.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct Shard {
    /// Its number.
    pub id: i64,
    /// The least hash of its rows.
    pub least: i32,
    /// The greatest hash of its rows.
    pub greatest: i32,
    pub node: i32,
}

/// A server of the cluster.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct Node {
    /// Its number: Citus calls it the group.
    pub id: i32,
    pub host: String,
    pub port: u16,
}

const VARCHAR: u32 = 1043;

/// The value whose hash the server and this module compare: the number, the text with the same digits, or the UUID of 16 bytes
/// with this value.
pub const PROBE: i64 = 7;

impl Distribution {
    /// Whether the gateway can find the node of a row. If not, the reason as the end of a sentence.
    pub fn check(&self) -> Result<(), &'static str> {
        if !self.has_lanes {
            return Err("is distributed, and citus_lanes is off");
        }
        if self.method != 'h' {
            return Err("is not distributed by the hash of a column");
        }
        let Some(own) = self.hash_of_probe() else {
            return Err("is distributed by a column of another type than integers, text and uuid");
        };
        if !self.is_deterministic {
            return Err("is distributed by a column whose collation is not deterministic");
        }
        if self.probe != Some(own) {
            return Err("is distributed by a hash that the gateway does not know");
        }
        if self.shards.len() > limits::SHARDS_MAX {
            return Err("has too many shards");
        }
        let ends = self.shards.first().zip(self.shards.last());
        let is_whole = ends.is_some_and(|(first, last)| first.least == i32::MIN && last.greatest == i32::MAX)
            && self.shards.windows(2).all(|pair| pair[0].greatest.checked_add(1) == Some(pair[1].least));
        if !is_whole {
            return Err("has shards with several copies, or shards that are not available");
        }
        Ok(())
    }

    fn hash_of_probe(&self) -> Option<i32> {
        let digits = PROBE.to_string();
        let uuid = u128::try_from(PROBE).ok()?.to_be_bytes();
        let (format, bytes) = match self.type_oid {
            20 | 21 | 23 | 25 | VARCHAR => (Format::Text, digits.as_bytes()),
            2950 => (Format::Binary, &uuid[..]),
            _ => return None,
        };
        self.hash(ParamValue { format, bytes })
    }

    /// The hash of a value of the column. `None` if it cannot be read.
    fn hash(&self, value: ParamValue<'_>) -> Option<i32> {
        match ValueForm::of_type(self.type_oid) {
            ValueForm::Integer => value.integer().map(hash::integer),
            ValueForm::Uuid => value.uuid().map(|uuid| hash::bytes(&uuid)),
            // An INSERT into a varchar(n) drops blanks at the end of a longer text.
            ValueForm::Bytes if self.type_oid == VARCHAR && value.bytes.ends_with(b" ") => None,
            ValueForm::Bytes => Some(hash::bytes(value.bytes)),
            ValueForm::Bool => None,
        }
    }

    /// The shard of a value of the column.
    fn shard(&self, value: ParamValue<'_>) -> Option<&Shard> {
        let hash = self.hash(value)?;
        let place = self.shards.partition_point(|shard| shard.greatest < hash);
        self.shards.get(place).filter(|shard| shard.least <= hash)
    }

    /// The shards of the rows with this key, for one set of parameters. `None` if they cannot be found, or if there is none.
    pub fn shards<'p>(
        &self,
        key: &'p KeySpec,
        param: impl Fn(u16) -> Option<ParamValue<'p>>,
    ) -> Option<Vec<&Shard>> {
        let column = key.columns.iter().find(|column| column.name == self.column)?;
        let values = column.source.values(param)?;
        let shards: Option<Vec<_>> = values.into_iter().map(|value| self.shard(value)).collect();
        shards.filter(|shards| !shards.is_empty())
    }

    /// Whether another node means the same table: shards have different numbers in all tables. They may have moved meanwhile.
    pub fn is_of_same_table(&self, other: &Distribution) -> bool {
        let shards = |of: &Distribution| {
            of.shards.iter().map(|shard| (shard.id, shard.least, shard.greatest)).collect::<Vec<_>>()
        };
        shards(self) == shards(other)
    }

    /// The node with this number.
    pub fn node(&self, id: i32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }
}

/// The nodes where the statements of a unit can run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitNode {
    /// On every node.
    #[default]
    Anywhere,
    /// On the server to which the pool's own lanes connect.
    Own,
    /// On this other node.
    Node(i32),
    /// On no single node.
    Nowhere,
}

impl UnitNode {
    /// The nodes where two parts of a unit can run together.
    #[must_use]
    pub fn and(self, other: UnitNode) -> UnitNode {
        match (self, other) {
            (UnitNode::Anywhere, node) | (node, UnitNode::Anywhere) => node,
            (one, other) if one == other => one,
            _ => UnitNode::Nowhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeyColumn, KeySource};

    fn distribution(type_oid: u32) -> Distribution {
        let shard = |id, least, greatest, node| Shard { id, least, greatest, node };
        let node = |id| Node { id, host: format!("node{id}"), port: 5432 };
        let mut distribution = Distribution {
            method: 'h',
            column: "id".to_owned(),
            type_oid,
            is_deterministic: true,
            probe: None,
            privileges: String::new(),
            local_node: 0,
            shards: vec![shard(8, i32::MIN, -1, 1), shard(9, 0, i32::MAX, 2)],
            nodes: vec![node(1), node(2)],
            has_lanes: true,
        };
        distribution.probe = distribution.hash_of_probe();
        distribution
    }

    /// As the server's functions `hashint8`, `hashtext` and `uuid_hash` return them.
    #[test]
    fn hashes_are_those_of_the_server() {
        for (number, expected) in [
            (0, -272_711_505),
            (1, -1_905_060_026),
            (-1, 385_747_274),
            (7, -978_793_473),
            (-7, -82_204_417),
            (1 << 32, -1_905_060_026),
            (-(1 << 32), -272_711_505),
            (i64::MAX, -1_524_351_049),
            (i64::MIN, -96_758_253),
        ] {
            assert_eq!(hash::integer(number), expected, "{number}");
        }
        for (text, expected) in [
            ("", -1_477_818_771),
            ("a", 1_075_015_857),
            ("ab", 1_718_550_461),
            ("abc", -785_388_649),
            ("abcd", -393_934_804),
            ("abcdefgh", -1_960_928_205),
            ("abcdefghi", -92_131_489),
            ("abcdefghijk", -1_483_803_693),
            ("abcdefghijkl", -1_586_087_212),
            ("abcdefghijklm", 405_849_808),
            ("Käse und Brot für alle 12345678", 1_307_005_970),
        ] {
            assert_eq!(hash::bytes(text.as_bytes()), expected, "{text}");
        }
        let uuid = 0x1234_5678_9abc_def0_1234_5678_9abc_def0_u128.to_be_bytes();
        assert_eq!(hash::bytes(&uuid), -1_402_197_482);
    }

    #[test]
    fn a_value_in_either_format_is_in_the_shard_with_its_hash() {
        let id = |format, bytes| ParamValue { format, bytes };
        let found = |type_oid, value| distribution(type_oid).shard(value).map(|shard| shard.id);
        for type_oid in [20, 21, 23] {
            assert_eq!(found(type_oid, id(Format::Text, b" 7 ")), Some(8));
            assert_eq!(found(type_oid, id(Format::Binary, &[0, 0, 0, 7])), Some(8));
            assert_eq!(found(type_oid, id(Format::Binary, &[0xff, 0xff])), Some(9), "-1");
            assert_eq!(found(type_oid, id(Format::Text, b"seven")), None);
        }
        assert_eq!(found(25, id(Format::Text, b"a")), Some(9));
        assert_eq!(found(1043, id(Format::Binary, b"abc")), Some(8));
        assert!(found(25, id(Format::Text, b"abc ")).is_some());
        assert_eq!(found(1043, id(Format::Text, b"abc ")), None, "the column's length may drop the blank");
    }

    #[test]
    fn rows_of_a_list_are_in_the_shards_of_their_values() {
        let source = KeySource::OneOf(vec![KeySource::Const("1".to_owned()), KeySource::Param(0)]);
        let column = |name: &str| KeyColumn {
            name: name.to_owned(),
            attnum: 1,
            form: ValueForm::Integer,
            source: source.clone(),
        };
        let key = |name| KeySpec { table: 1, columns: vec![column(name)] };
        let shards = |name, value: Option<&'static [u8]>| {
            let key = key(name);
            let value = value.map(|bytes| ParamValue { format: Format::Text, bytes });
            distribution(20).shards(&key, |_| value).map(|all| all.iter().map(|s| s.id).collect::<Vec<_>>())
        };
        assert_eq!(shards("id", Some(b"-1")), Some(vec![8, 9]));
        assert_eq!(shards("id", None), Some(vec![8]), "no row equals NULL");
        assert_eq!(shards("id", Some(b"x")), None);
        assert_eq!(shards("other", Some(b"-1")), None, "the key does not contain the column");
    }

    #[test]
    fn a_table_is_the_same_on_nodes_that_agree_about_its_shards() {
        let (here, mut there) = (distribution(20), distribution(20));
        there.local_node = 1;
        there.shards[0].node = 2;
        assert!(here.is_of_same_table(&there), "a shard has moved");
        there.shards[0].id = 7;
        assert!(!here.is_of_same_table(&there));
    }

    #[test]
    fn a_distribution_that_the_gateway_does_not_understand_is_refused() {
        assert_eq!(distribution(20).check(), Ok(()));
        assert_eq!(distribution(2950).check(), Ok(()));
        let broken = |change: &dyn Fn(&mut Distribution)| {
            let mut distribution = distribution(25);
            change(&mut distribution);
            distribution.check().is_err()
        };
        assert!(broken(&|it| it.has_lanes = false));
        assert!(broken(&|it| it.method = 'n'));
        assert!(broken(&|it| it.type_oid = 1114));
        assert!(broken(&|it| it.is_deterministic = false));
        assert!(broken(&|it| it.probe = Some(1)));
        assert!(broken(&|it| it.shards.truncate(1)));
        assert!(broken(&|it| it.shards[1].least = 1));
        assert!(broken(&|it| it.shards.push(it.shards[1].clone())), "a second copy");
        assert!(broken(&|it| it.shards.clear()));
    }

    #[test]
    fn parts_of_a_unit_run_together_on_one_node_only() {
        use UnitNode::{Anywhere, Node, Nowhere, Own};
        for (one, other, expected) in [
            (Anywhere, Anywhere, Anywhere),
            (Anywhere, Node(1), Node(1)),
            (Own, Anywhere, Own),
            (Node(1), Node(1), Node(1)),
            (Node(1), Node(2), Nowhere),
            (Own, Node(1), Nowhere),
            (Nowhere, Anywhere, Nowhere),
        ] {
            assert_eq!(one.and(other), expected);
            assert_eq!(other.and(one), expected);
        }
    }
}
