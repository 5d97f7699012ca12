//! The manifests: `sql/AREA/functions.toml` declares each function of the pack that roles other than the owner can execute. Its
//! parameters are those of its SQL. The SQL made from the manifests is in `generate.rs`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::head::{Head, Parameter};

/// A function of the schema `hotrow`, as its manifest declares it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// The area, which is also the folder of the manifest.
    #[serde(skip)]
    pub area: &'static str,
    /// The name without the schema.
    #[serde(skip)]
    pub name: String,
    /// The parameters, without those of the answer.
    #[serde(skip)]
    pub parameters: Vec<Parameter>,
    /// The roles that can execute the function and its batch twin.
    pub grant: Grant,
    /// How a distributed pack finds the shard of a call. Without it, the function stays on the coordinator.
    pub distribute: Option<Distribute>,
    /// The merge rule, if there is a batch twin.
    pub merge: Option<MergeRule>,
    /// The HTTP route: method and path.
    pub http: Counterpart,
    /// The enum of `hotrow-model` that has the operation.
    pub model: Counterpart,
    /// The page in `docs/` that describes the function, if it is not the area's own page.
    pub docs: Option<Counterpart>,
}

/// The roles that can execute a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grant {
    /// The group role.
    Group,
    /// Every role.
    Public,
}

/// How a call of a distributed pack finds its shard.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribute {
    /// The shard of this parameter, a name.
    By(String),
    /// The shard that has the reservation with the ID in this parameter.
    Find(String),
    /// All names in this parameter have to be in one shard.
    OneOf(String),
    /// A page of names, after `after`, at most `max`.
    List,
    /// All shards, up to a number of rows in total.
    Sum,
    /// It needs several shards, and its text is in `sql/citus/feed_calls.sql`.
    Written,
}

/// The merge rule of a function: the arguments of `hotrow.add_merge_rule`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergeRule {
    /// The name of the batch twin, which has an array for each parameter of the function.
    pub batch: String,
    /// The parameter that is the key.
    pub key: String,
    /// The key space.
    pub key_space: String,
    /// The most calls that become one call, if the usual number is too large.
    pub most_calls: Option<u16>,
    /// The parameter that says how long a call waits.
    pub wait: Option<String>,
}

/// Where a function is found, or why it is not found there.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Counterpart {
    /// It is found here.
    At(String),
    /// It is missing on purpose, for this reason.
    None(String),
}

impl TryFrom<String> for Counterpart {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        match text.strip_prefix("none") {
            None => Ok(Self::At(text)),
            Some(rest) => match rest.strip_prefix(": ") {
                Some(reason) if !reason.is_empty() => Ok(Self::None(reason.to_owned())),
                _ => Err("a place that is left out needs a reason: \"none: why\""),
            },
        }
    }
}

/// The manifests by area.
const MANIFESTS: [(&str, &str); 5] = [
    ("counters", include_str!("../sql/counters/functions.toml")),
    ("sales", include_str!("../sql/sales/functions.toml")),
    ("queues", include_str!("../sql/queues/functions.toml")),
    ("feeds", include_str!("../sql/feeds/functions.toml")),
    ("base", include_str!("../sql/base/functions.toml")),
];

/// All functions that roles other than the owner can execute, without the batch twins.
pub fn functions() -> &'static [Function] {
    static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
        let read = |(area, manifest): &(&'static str, &str)| {
            let functions: BTreeMap<String, Function> = toml::from_str(manifest)
                .unwrap_or_else(|error| panic!("sql/{area}/functions.toml, which is compiled in: {error}"));
            let area = *area;
            functions.into_iter().map(move |(name, function)| {
                let Head { parameters, .. } = Head::of(&name);
                Function { area, name, parameters, ..function }
            })
        };
        MANIFESTS.iter().flat_map(read).collect()
    });
    &FUNCTIONS
}

impl Function {
    /// The function as `to_regprocedure` reads it: `hotrow.confirm(uuid)`.
    pub fn signature(&self) -> String {
        let types: Vec<_> = self.types().collect();
        format!("hotrow.{}({})", self.name, types.join(", "))
    }

    /// The batch twin in the same form, if there is one: `hotrow.confirm_batch(uuid[])`.
    pub fn batch_signature(&self) -> Option<String> {
        let merge = self.merge.as_ref()?;
        let types: Vec<_> = self.types().map(|name| format!("{name}[]")).collect();
        Some(format!("hotrow.{}({})", merge.batch, types.join(", ")))
    }

    fn types(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|parameter| parameter.of.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_are_parsed() {
        let named = |name: &str| functions().iter().find(|function| function.name == name).unwrap();
        assert_eq!(named("keep").signature(), "hotrow.keep()");
        assert_eq!(named("extend").signature(), "hotrow.extend(uuid, interval)");
        let extend = named("extend").batch_signature();
        assert_eq!(extend.as_deref(), Some("hotrow.extend_batch(uuid[], interval[])"));
        assert_eq!(named("sale").batch_signature(), None);
        let Parameter { name, of, default } = &named("reserve").parameters[2];
        assert_eq!((name.as_str(), of.as_str(), default.as_deref()), ("quantity", "bigint", Some("1")));
        assert_eq!((named("take").area, named("merge_rules").grant), ("queues", Grant::Public));
    }

    #[test]
    fn an_omitted_place_needs_a_reason() {
        let place = |text: &str| Counterpart::try_from(text.to_owned());
        assert_eq!(place("GET /v1/queues"), Ok(Counterpart::At("GET /v1/queues".to_owned())));
        assert_eq!(place("none: it has no state"), Ok(Counterpart::None("it has no state".to_owned())));
        for text in ["none", "none:", "none: "] {
            assert!(place(text).is_err(), "{text}");
        }
    }
}
