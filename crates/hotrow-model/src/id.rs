//! IDs of requests and reservations. The caller gives every ID; the model draws none.

use std::fmt;
use std::str::FromStr;

use crate::ParseError;

/// IDs up to this one are written short, as `r1`. Scripts use them, and no server draws one.
const SHORT_MAX: u128 = 9_999;

/// A UUID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u128);

impl Id {
    /// As PostgreSQL writes it.
    pub fn uuid(self) -> String {
        let digits = format!("{:032x}", self.0);
        let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
        parts.join("-")
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 <= SHORT_MAX {
            return write!(formatter, "r{}", self.0);
        }
        formatter.write_str(&self.uuid())
    }
}

impl FromStr for Id {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let id = match text.strip_prefix('r') {
            Some(number) => number.parse().ok(),
            None => {
                let digits = text.replace('-', "");
                (digits.len() == 32).then(|| u128::from_str_radix(&digits, 16).ok()).flatten()
            }
        };
        id.map(Self).ok_or_else(|| ParseError::new("an id such as r1, or a uuid", text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_and_written_like_postgresql_or_short() {
        let text = "0b9a2c3d-0000-4fff-8000-00000000002a";
        assert_eq!(text.parse::<Id>().unwrap().to_string(), text);
        assert_eq!("r7".parse::<Id>().unwrap().to_string(), "r7");
        assert_eq!(Id(7).uuid(), "00000000-0000-0000-0000-000000000007");
        assert!("0b9a2c3d".parse::<Id>().is_err());
    }
}
