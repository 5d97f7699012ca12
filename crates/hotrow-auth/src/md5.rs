//! Authentication with md5: the secret that a server stores, and the response of a client.

use crate::hash;
use crate::secret::Password;

/// The response to a server that requests md5.
pub type Md5Response = Password;

/// The secret that a server stores.
pub(crate) fn md5_secret(user: &str, password: &Password) -> Password {
    Password::new([b"md5", &hash::md5_hex(&[password.bytes(), user.as_bytes()])[..]].concat())
}

/// The response that a client sends. It is computed from the stored secret without its `md5` prefix.
pub(crate) fn md5_response(secret: &Password, salt: [u8; 4]) -> Md5Response {
    let digits = secret.bytes().strip_prefix(b"md5").unwrap_or(secret.bytes());
    Password::new([b"md5", &hash::md5_hex(&[digits, &salt])[..]].concat())
}
