//! Log-ins by md5: what a server keeps of a password, and what a client answers.

use crate::hash;
use crate::secret::Password;

/// The answer to a server that asks for md5.
pub type Md5Response = Password;

/// What a server keeps for md5.
pub(crate) fn md5_secret(user: &str, password: &Password) -> Password {
    Password::new([b"md5", &hash::md5_hex(&[password.bytes(), user.as_bytes()])[..]].concat())
}

/// What a client sends for md5: made from what the server keeps, without its `md5`.
pub(crate) fn md5_response(secret: &Password, salt: [u8; 4]) -> Md5Response {
    let digits = secret.bytes().strip_prefix(b"md5").unwrap_or(secret.bytes());
    Password::new([b"md5", &hash::md5_hex(&[digits, &salt])[..]].concat())
}
