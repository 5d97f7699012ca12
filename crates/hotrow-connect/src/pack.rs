//! Whether the hotrow schema can be trusted. The gateway checks this before it calls one of its functions.

use hotrow_core::normalise::without_comments;

use crate::upstream::{Error, Upstream};

/// A query for whether the role that asks can trust the functions of the hotrow schema, and can call a certain one. The
/// file describes its parameters. It must run before any function of the hotrow schema is called.
pub const PACK_TRUSTED: &str = include_str!("../sql/pack_trusted.sql");

/// A query for the functions of an array that do not exist or that the role that asks cannot execute.
pub const MISSING_FUNCTIONS: &str = include_str!("../sql/missing_functions.sql");

/// Whether this is a statement that the gateway's HTTP server sends on its own, not for a request to the API. A statement has no
/// comments.
pub fn is_own(statement: &[u8]) -> bool {
    [PACK_TRUSTED, MISSING_FUNCTIONS].iter().any(|own| without_comments(own).as_bytes() == statement)
}

/// A function of the hotrow schema that the gateway calls: its name and the types of its parameters.
pub type PackFunction = [&'static str; 2];
/// `hotrow.keep()`
pub const KEEP: PackFunction = ["keep", ""];
/// `hotrow.list_queues(text, int4)`
pub const LIST_QUEUES: PackFunction = ["list_queues", "25 23"];
/// `hotrow.claim_mark(text)`, which only a pack with the present form of marks has
pub const CLAIM_MARK: PackFunction = ["claim_mark", "25"];
/// `hotrow.merge_rules(text[])`
pub const MERGE_RULES: PackFunction = ["merge_rules", "1009"];
/// `hotrow.pack_rules(text[])`
pub const PACK_RULES: PackFunction = ["pack_rules", "1009"];
/// `hotrow.distribution_of(text)`, which only a distributed hotrow schema has
pub const DISTRIBUTION_OF: PackFunction = ["distribution_of", "25"];

/// Whether the role of this connection may run the hotrow schema's code and call this function. A role that cannot read the
/// catalog trusts no function.
pub async fn is_trusted(
    upstream: &mut Upstream,
    upstream_role: &str,
    [name, types]: PackFunction,
) -> Result<bool, Error> {
    match says_yes(upstream, PACK_TRUSTED, &[upstream_role, name, types]).await {
        Err(Error::Refused { .. }) => Ok(false),
        answer => answer,
    }
}

/// The answer to a yes-or-no query.
pub async fn says_yes(upstream: &mut Upstream, question: &str, values: &[&str]) -> Result<bool, Error> {
    let rows = upstream.query_catalog(question, values).await?;
    Ok(rows.first().and_then(|row| row.first()?.as_deref()) == Some("t"))
}
