//! Short labels of keys, by which viewers tell rows apart whose values are hidden.
//!
//! A label is a part of the SHA-256 digest of the key, after a secret of this process. Without the secret, a viewer could
//! compute the labels of all values that an ID can have, and compare. The secret is random, is never shown, and is another one
//! after each start. A digest that is cut to 24 bits cannot be extended, so the secret needs no stronger construction.

use std::sync::OnceLock;

use hotrow_lane::key::Key;
use sha2::{Digest, Sha256};

/// Bytes of a label. Two of a hundred keys have the same label once in 3,000 lists.
const BYTES: usize = 3;

/// None if the system has no random numbers.
static SECRET: OnceLock<Option<[u8; 32]>> = OnceLock::new();

/// The label of a key of a database, such as `3fa91c`. It stays the same as long as this process runs.
pub fn label(database: &str, key: Key) -> Option<String> {
    let secret = SECRET.get_or_init(|| {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).ok().map(|()| secret)
    });
    secret.as_ref().map(|secret| keyed(secret, database, key))
}

fn keyed(secret: &[u8; 32], database: &str, key: Key) -> String {
    let row = Sha256::new().chain_update(secret).chain_update(key.table.to_be_bytes());
    let digest = row.chain_update(key.hash.to_be_bytes()).chain_update(database).finalize();
    digest.iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { table: 1, hash: 7 };

    #[test]
    fn a_label_depends_on_the_whole_key_and_on_the_secret() {
        let label = keyed(&[1; 32], "shop", KEY);
        assert!(label.len() == 6 && label.bytes().all(|byte| byte.is_ascii_hexdigit()), "{label}");
        assert_eq!(label, keyed(&[1; 32], "shop", KEY));
        let others = [
            keyed(&[2; 32], "shop", KEY),
            keyed(&[1; 32], "store", KEY),
            keyed(&[1; 32], "shop", Key { table: 2, ..KEY }),
            keyed(&[1; 32], "shop", Key { hash: 8, ..KEY }),
        ];
        assert!(others.iter().all(|other| *other != label), "{label}: {others:?}");
    }

    #[test]
    fn a_label_stays_the_same_and_its_secret_is_no_constant() {
        let shown = label("shop", KEY);
        assert!(shown.is_some() && shown == label("shop", KEY));
        assert_ne!(shown, Some(keyed(&[0; 32], "shop", KEY)));
    }
}
