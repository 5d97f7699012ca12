//! What the gateway does with a statement in front of MariaDB, and why, as text for `hotrow explain`.

use crate::mariadb::error::Error;
use crate::mariadb::{sampler, verdict};

/// Explains a text that a client of the URL's user and database sends.
pub async fn explain(url: &str, sql: &str) -> Result<String, Error> {
    let recording = sampler::about(&url.parse()?, sql).await?;
    let statement = &recording.statements[0];
    let judged = verdict::judge(&recording, statement);
    let mut lines = vec![format!("shape: {}", statement.shape), judged.kind.name().to_owned()];
    lines.extend(judged.table.map(|table| format!("  table     {table}")));
    lines.push(format!("  because   {}", judged.reason));
    lines.extend(judged.remedy.map(|remedy| format!("  next      {remedy}")));
    Ok(lines.join("\n"))
}
