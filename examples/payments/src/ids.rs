//! IDs that are derived from others: all programs that derive an ID get the same one.

use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

fn derive(what: &str, from: impl AsRef<[u8]>) -> Uuid {
    let digest = Sha256::new().chain_update(what).chain_update(from).finalize();
    let half: [u8; 16] = digest[..16].try_into().expect("a digest has 32 bytes");
    Builder::from_custom_bytes(half).into_uuid()
}

/// The ID of the event of an attempt.
pub fn event_of(attempt: Uuid) -> Uuid {
    derive("event of ", attempt)
}

/// The ID of a webhook that contains none.
pub fn webhook_of(body: &[u8]) -> Uuid {
    derive("webhook of ", body)
}

/// The ID of the attempt after one that was not executed.
pub fn attempt_after(attempt: Uuid) -> Uuid {
    derive("attempt after ", attempt)
}
