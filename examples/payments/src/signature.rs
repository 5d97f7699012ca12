//! Signed messages: `t=<seconds>,v1=<hex of HMAC-SHA256(secret, t.body)>`, in and out. Pure: the time is an argument.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The header that carries it.
pub const HEADER: &str = "payment-signature";

/// How old a message may be, and how far ahead the sender's clock.
pub const TOLERANCE_SECONDS: i64 = 300;

/// The reason why a message is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Distrust {
    /// The signature has another form.
    #[error("the signature is not of the form t=<seconds>,v1=<hex>")]
    Malformed,
    /// The signature has another secret or is of another body.
    #[error("the signature is not that of this body")]
    Wrong,
    /// The signature is too old, or from the future.
    #[error("the signature is more than {TOLERANCE_SECONDS} seconds off")]
    Stale,
}

fn mac(secret: &str, at: i64, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(at.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    mac
}

/// The header's value.
pub fn sign(secret: &str, at: i64, body: &[u8]) -> String {
    let mut value = format!("t={at},v1=");
    for byte in mac(secret, at, body).finalize().into_bytes() {
        write!(value, "{byte:02x}").expect("writing to a string cannot fail");
    }
    value
}

/// Whether the message is recent and its sender knows the secret. One valid `v1` of several is enough: while a secret is
/// replaced, there are two.
pub fn verify(secret: &str, now: i64, header: &str, body: &[u8]) -> Result<(), Distrust> {
    let mut at = None;
    let mut signatures = Vec::new();
    for part in header.split(',') {
        match part.trim().split_once('=').ok_or(Distrust::Malformed)? {
            ("t", value) => at = Some(value.parse::<i64>().map_err(|_| Distrust::Malformed)?),
            ("v1", value) => signatures.push(bytes(value).ok_or(Distrust::Malformed)?),
            _ => {} // a future scheme
        }
    }
    let at = at.ok_or(Distrust::Malformed)?;
    if signatures.is_empty() {
        return Err(Distrust::Malformed);
    }
    let genuine = |signature: &Vec<u8>| mac(secret, at, body).verify_slice(signature).is_ok();
    if !signatures.iter().any(genuine) {
        return Err(Distrust::Wrong);
    }
    let off = now.checked_sub(at).and_then(i64::checked_abs).ok_or(Distrust::Stale)?;
    if off > TOLERANCE_SECONDS { Err(Distrust::Stale) } else { Ok(()) }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digit = |at: usize| hex.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
        return None;
    }
    (0..hex.len()).step_by(2).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    #[test]
    fn a_signature_is_valid_for_five_minutes() {
        let header = sign("secret", NOW, b"{}");
        for now in [NOW, NOW + TOLERANCE_SECONDS, NOW - TOLERANCE_SECONDS] {
            assert_eq!(verify("secret", now, &header, b"{}"), Ok(()));
        }
        assert_eq!(verify("secret", NOW + TOLERANCE_SECONDS + 1, &header, b"{}"), Err(Distrust::Stale));
        assert_eq!(verify("secret", NOW - TOLERANCE_SECONDS - 1, &header, b"{}"), Err(Distrust::Stale));
    }

    #[test]
    fn another_body_secret_or_time_is_rejected() {
        let header = sign("secret", NOW, b"{}");
        assert_eq!(verify("secret", NOW, &header, b"{ }"), Err(Distrust::Wrong));
        assert_eq!(verify("other", NOW, &header, b"{}"), Err(Distrust::Wrong));
        let later = header.replace(&NOW.to_string(), &(NOW + 1).to_string());
        assert_eq!(verify("secret", NOW, &later, b"{}"), Err(Distrust::Wrong));
    }

    #[test]
    fn one_of_two_signatures_is_enough() {
        let (old, new) = (sign("old", NOW, b"{}"), sign("new", NOW, b"{}"));
        let both = format!("{old},{}", new.split_once(',').unwrap().1);
        assert_eq!(verify("new", NOW, &both, b"{}"), Ok(()));
    }

    #[test]
    fn malformed_signatures_are_rejected() {
        let hex = "00".repeat(32);
        for header in ["", "t=1", "v1=00", "t=x,v1=00", "t=1,v1=0", "t=1,v1=zz", "t=1,v1=é0", "nonsense"] {
            assert_eq!(verify("secret", NOW, header, b""), Err(Distrust::Malformed), "{header}");
        }
        let least = format!("t={},v1={hex}", i64::MIN);
        assert_eq!(verify("secret", NOW, &least, b""), Err(Distrust::Wrong));
    }
}
