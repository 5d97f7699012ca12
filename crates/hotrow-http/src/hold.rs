//! How long a hold lasts: seconds in JSON, an interval in PostgreSQL. What a hold is, the schema pack knows.

use std::error::Error;

use bytes::{Buf, BufMut, BytesMut};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

const MICROS_PER_SECOND: f64 = 1e6;
const MICROS_PER_DAY: i64 = 86_400_000_000;
const DAYS_PER_MONTH: i64 = 30; // as PostgreSQL compares intervals
/// A year: longer than any hold that the pack accepts, and short enough for a float to be exact.
const SECONDS_MAX: f64 = 31_536_000.0;

/// A length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    micros: i64,
}

impl<'de> Deserialize<'de> for Hold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        let micros = (seconds * MICROS_PER_SECOND).round() as i64;
        if micros < 1 || seconds > SECONDS_MAX {
            return Err(de::Error::custom("a hold is a number of seconds, more than 0 and at most 31536000"));
        }
        Ok(Hold { micros })
    }
}

impl Serialize for Hold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let seconds = self.micros as f64 / MICROS_PER_SECOND;
        if seconds.fract() == 0.0 {
            serializer.serialize_i64(seconds as i64)
        } else {
            serializer.serialize_f64(seconds)
        }
    }
}

impl ToSql for Hold {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_i64(self.micros);
        out.put_i32(0);
        out.put_i32(0);
        Ok(IsNull::No)
    }

    accepts!(INTERVAL);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Hold {
    fn from_sql(_: &Type, mut raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        if raw.len() != 16 {
            return Err("an interval has 16 bytes".into());
        }
        let (micros, days, months) = (raw.get_i64(), raw.get_i32(), raw.get_i32());
        let days = i64::from(days) + i64::from(months) * DAYS_PER_MONTH;
        Ok(Hold { micros: days.saturating_mul(MICROS_PER_DAY).saturating_add(micros) })
    }

    accepts!(INTERVAL);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Hold, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn seconds_whole_or_not() {
        for json in ["600", "0.05", "31536000", "1.5"] {
            assert_eq!(serde_json::to_string(&read(json).unwrap()).unwrap(), json);
        }
        assert_eq!(serde_json::to_string(&read("60.0").unwrap()).unwrap(), "60");
    }

    #[test]
    fn nonsense_is_refused() {
        for json in ["0", "-1", "0.0000001", "31536001", "1e300", "\"PT1M\"", "true"] {
            assert!(read(json).is_err(), "{json}");
        }
    }

    #[test]
    fn there_and_back_through_the_wire() {
        let (hold, mut wire) = (read("90.25").unwrap(), BytesMut::new());
        hold.to_sql(&Type::INTERVAL, &mut wire).unwrap();
        assert_eq!(Hold::from_sql(&Type::INTERVAL, &wire).unwrap(), hold);
        let day_and_month =
            [0_i64.to_be_bytes().as_slice(), &1_i32.to_be_bytes(), &1_i32.to_be_bytes()].concat();
        let hold = Hold::from_sql(&Type::INTERVAL, &day_and_month).unwrap();
        assert_eq!(serde_json::to_string(&hold).unwrap(), (31 * 86_400).to_string());
    }
}
