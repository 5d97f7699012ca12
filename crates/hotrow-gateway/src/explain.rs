//! What the gateway would do with a statement, for people.

use std::sync::Arc;

use hotrow_core::classify::{self, Analysis};

use crate::config::Config;
use crate::held::HeldConnections;
use crate::pool::{Identity, Pool};

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
#[error("can't ask the server: {0}")]
pub struct Error(#[from] crate::held::Error);

/// Says what becomes of a statement that a client of the upstream URL's user and database sends.
pub async fn explain(config: Config, sql: &str) -> Result<String, Error> {
    let mut normaliser = hotrow_core::normalise::Normaliser::new();
    let shape = normaliser.run(sql);
    let types: Vec<u32> = shape.literals().map(|literal| literal.type_oid).collect();
    let analysis = classify::analyse(shape.shape);
    let user = ("user".to_owned(), config.upstream.user.clone());
    let database = ("database".to_owned(), config.upstream.database.clone());
    let held = Arc::new(HeldConnections::new(&config));
    let pool = Pool::open(Arc::new(config), held, Identity::new(&[user, database])).await?;
    let decision = match &analysis {
        Analysis::Candidate(candidate) => {
            Some(classify::decide(candidate, &pool.facts(candidate).await?, &types))
        }
        _ => None,
    };
    let mut text = format!("shape: {}\n{}", shape.shape, classify::explain(&analysis, decision.as_ref()));
    if let Some(reason) = pool.unpackable() {
        text.push_str(&format!("\nbut nothing of these clients is packed: {reason}"));
    }
    Ok(text)
}
