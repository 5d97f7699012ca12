//! The hash functions of logins. All calls go through this file, which makes their cost countable.

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha2::{Digest, Sha256};

use crate::secret::Key;

/// HMAC-SHA-256 of all parts.
pub fn hmac(key: &[u8], parts: &[&[u8]]) -> Key {
    count(1);
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    Key::new(mac.finalize().into_bytes().into())
}

/// SHA-256.
pub fn sha256(bytes: &[u8]) -> Key {
    count(1);
    Key::new(Sha256::digest(bytes).into())
}

/// PBKDF2 with HMAC-SHA-256, which makes a password expensive to guess.
pub fn pbkdf2(password: &[u8], salt: &[u8], iterations: u32) -> Key {
    count(u64::from(iterations));
    let mut salted = Key::new([0; 32]);
    pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, iterations, salted.bytes_mut());
    salted
}

/// MD5 of all parts in hexadecimal digits.
pub fn md5_hex(parts: &[&[u8]]) -> [u8; 32] {
    count(1);
    let mut md5 = Md5::new();
    parts.iter().for_each(|part| md5.update(part));
    let mut hex = [0; 32];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(md5.finalize()) {
        let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    hex
}

#[cfg(not(test))]
fn count(_hashes: u64) {}

#[cfg(test)]
thread_local! {
    static COUNT: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
fn count(hashes: u64) {
    COUNT.with(|count| count.set(count.get() + hashes));
}

/// Number of hashes that `work` computes.
#[cfg(test)]
pub fn counted<T>(work: impl FnOnce() -> T) -> (T, u64) {
    COUNT.with(|count| count.set(0));
    let result = work();
    (result, COUNT.with(std::cell::Cell::get))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn md5_in_hexadecimal_digits() {
        assert_eq!(&md5_hex(&[b"message", b" ", b"digest"]), b"f96b697d7cb7938d525a2f31aaf161d0"); // RFC 1321
    }
}
