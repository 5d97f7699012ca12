//! The computations of `mysql_native_password`. The server keeps SHA1(SHA1(password)). A client proves that it has
//! SHA1(password), which is as good as the password.

use sha1::{Digest, Sha1};

/// The name of the plugin.
pub const PLUGIN: &str = "mysql_native_password";
/// Bytes of the server's random number, and of all hashes.
pub const BYTES: usize = 20;

/// The result of SHA1.
pub type Hash = [u8; BYTES];

fn sha1(parts: &[&[u8]]) -> Hash {
    let mut digest = Sha1::new();
    for part in parts {
        digest.update(part);
    }
    digest.finalize().into()
}

fn xor(one: &Hash, other: &Hash) -> Hash {
    std::array::from_fn(|at| one[at] ^ other[at])
}

/// SHA1(password): what a client needs to log in.
pub fn key(password: &[u8]) -> Hash {
    sha1(&[password])
}

/// SHA1(SHA1(password)): what the server keeps.
pub fn stored(key: &Hash) -> Hash {
    sha1(&[key])
}

/// The client's proof under the server's random number. An empty password has an empty proof instead.
pub fn proof(nonce: &Hash, key: &Hash) -> Hash {
    xor(key, &sha1(&[nonce, &stored(key)]))
}

/// The client's key, from its proof and what the server keeps. None if the proof is wrong.
pub fn recover(nonce: &Hash, proof: &Hash, kept: &Hash) -> Option<Hash> {
    let key = xor(proof, &sha1(&[nonce, kept]));
    (stored(&key) == *kept).then_some(key)
}
