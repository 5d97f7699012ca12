//! The manifests: `sql/AREA/functions.toml` declares each function of the hotrow schema that roles other than the owner can
//! execute. Its parameters are those of its SQL. The SQL made from the manifests is in `generate.rs`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};

use crate::head::{Head, Parameter};

/// The parameter with the ID of a request, by which a repeated call is recognised.
pub const REQUEST_ID: &str = "request_id";

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
    /// Whether the function only reads.
    #[serde(skip)]
    pub is_stable: bool,
    /// The roles that can execute the function and its batch function.
    pub grant: Grant,
    /// How a distributed hotrow schema finds the shard of a call. Without it, the function stays on the coordinator.
    pub distribute: Option<Distribute>,
    /// The merge rule, if there is a batch function.
    pub merge: Option<MergeRule>,
    /// The operation of the HTTP API.
    pub http: Counterpart<Operation>,
    /// The enum of `hotrow-model` that has the operation.
    pub model: Counterpart<String>,
    /// The page in `docs/` that describes the function, if it is not the area's own page.
    pub docs: Option<Counterpart<String>>,
}

/// An operation of the HTTP API, with its parts of the OpenAPI document. The schemas are in the area's `openapi.json`.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Method and path: `GET /v1/sales/{item}`. The path's parameters are the first parameters of the function.
    pub route: String,
    /// The ID in the document, if it is not the function's name.
    pub id: Option<String>,
    /// The tag in the document, if it is not the area's name.
    pub tag: Option<String>,
    /// One line about the operation.
    pub summary: String,
    /// More about it.
    pub description: Option<String>,
    /// The schema of the body, whose fields have the names of parameters.
    pub body: Option<String>,
    /// An example of the body, as JSON.
    pub example: Option<String>,
    /// The schema of the answer.
    pub answer: String,
    /// The name of the array in the answer, if there can be more than one row.
    pub rows: Option<String>,
}

impl Operation {
    /// The method, and the path.
    pub fn method_and_path(&self) -> (&str, &str) {
        self.route.split_once(' ').unwrap_or_default()
    }

    /// The names of the path's parameters.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.route.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0))
    }
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

/// How a call of a distributed hotrow schema finds its shard.
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
    /// The name of the batch function, which has an array for each parameter of the function.
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
#[derive(Debug, PartialEq, Eq)]
pub enum Counterpart<T> {
    /// It is found here.
    At(T),
    /// It is missing on purpose, for this reason.
    None(String),
}

impl<T> Counterpart<T> {
    /// Where it is found, if it is.
    pub fn at(&self) -> Option<&T> {
        match self {
            Self::At(place) => Some(place),
            Self::None(_) => None,
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Counterpart<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        match value.as_str().and_then(|text| text.strip_prefix("none")) {
            None => T::deserialize(value).map(Self::At).map_err(D::Error::custom),
            Some(rest) => match rest.strip_prefix(": ") {
                Some(reason) if !reason.is_empty() => Ok(Self::None(reason.to_owned())),
                _ => Err(D::Error::custom("a place that is left out needs a reason: \"none: why\"")),
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

/// All functions that roles other than the owner can execute, without the batch functions.
pub fn functions() -> &'static [Function] {
    static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
        let read = |(area, manifest): &(&'static str, &str)| {
            let functions: BTreeMap<String, Function> = toml::from_str(manifest)
                .unwrap_or_else(|error| panic!("sql/{area}/functions.toml, which is compiled in: {error}"));
            let area = *area;
            functions.into_iter().map(move |(name, function)| {
                let Head { parameters, is_stable, .. } = Head::of(&name);
                Function { area, name, parameters, is_stable, ..function }
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

    /// The batch function in the same form, if there is one: `hotrow.confirm_batch(uuid[])`.
    pub fn batch_signature(&self) -> Option<String> {
        let merge = self.merge.as_ref()?;
        let types: Vec<_> = self.types().map(|name| format!("{name}[]")).collect();
        Some(format!("hotrow.{}({})", merge.batch, types.join(", ")))
    }

    /// Whether a repeated call with the same ID gets the recorded answer.
    pub fn has_request_id(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.name == REQUEST_ID)
    }

    /// The parameters that requests over HTTP have. Those after the request ID are only for SQL.
    pub fn of_requests(&self) -> &[Parameter] {
        let last = self.parameters.iter().position(|parameter| parameter.name == REQUEST_ID);
        &self.parameters[..last.map_or(self.parameters.len(), |last| last + 1)]
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
        let place = |text: &str| Counterpart::deserialize(toml::Value::from(text));
        assert_eq!(place("counters.md"), Ok(Counterpart::At("counters.md".to_owned())));
        assert_eq!(place("none: it has no state"), Ok(Counterpart::None("it has no state".to_owned())));
        for text in ["none", "none:", "none: "] {
            assert!(place(text).is_err(), "{text}");
        }
    }
}
