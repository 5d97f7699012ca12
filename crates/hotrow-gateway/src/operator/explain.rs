//! What the gateway would do with a statement, for people.

use std::sync::Arc;

use hotrow_core::classify::{self, Analysis, Piece};

use crate::config::Config;
use crate::pool::Pool;
use crate::pool::identity::Identity;
use crate::server::held::HeldConnections;

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
#[error("can't ask the server: {0}")]
pub struct Error(#[from] crate::server::held::Error);

/// Says what becomes of a text that a client of the upstream URL's user and database sends.
pub async fn explain(config: Config, sql: &str) -> Result<String, Error> {
    let mut normaliser = hotrow_core::normalise::Normaliser::new();
    let shape = normaliser.run(sql);
    let types: Vec<u32> = shape.literals().map(|literal| literal.type_oid).collect();
    let user = ("user".to_owned(), config.upstream.user.clone());
    let database = ("database".to_owned(), config.upstream.database.clone());
    let held = Arc::new(HeldConnections::new(&config));
    let credential = config.upstream.credential();
    let identity = Identity::new(&[user, database]);
    let pool = Pool::open(Arc::new(config), held, Arc::default(), identity, credential).await?;
    let pieces = match classify::pieces(shape.shape) {
        Some(pieces) if pieces.len() > 1 => pieces,
        _ => vec![Piece { text: shape.shape.to_owned(), first: 0, count: types.len() }],
    };
    let mut text = String::new();
    if pieces.len() > 1 {
        text.push_str("one unit, packed if each of its statements is\n\n");
    }
    for piece in &pieces {
        let types = types.get(piece.first..piece.first + piece.count).unwrap_or_default();
        text.push_str(&explain_one(&pool, &piece.text, types).await?);
        text.push('\n');
    }
    let length = text.trim_end().len();
    text.truncate(length);
    if let Some(reason) = pool.context.unpackable() {
        text.push_str(&format!("\n\nbut nothing of these clients is packed: {reason}"));
    }
    Ok(text)
}

async fn explain_one(pool: &Pool, shape: &str, types: &[u32]) -> Result<String, Error> {
    let analysis = classify::analyse(shape);
    let decision = match &analysis {
        Analysis::Candidate(candidate) => {
            Some(classify::decide(candidate, &pool.facts(candidate).await?, types))
        }
        _ => None,
    };
    Ok(format!("shape: {shape}\n{}", classify::explain(&analysis, decision.as_ref())))
}
