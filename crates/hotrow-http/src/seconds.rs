//! Durations: seconds in JSON, an interval in PostgreSQL. The hotrow schema decides their use.

use std::error::Error;
use std::time::Duration;

use crate::limits;
use bytes::{Buf, BufMut, BytesMut};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

const MICROS_PER_SECOND: f64 = 1e6;
const MICROS_PER_DAY: i64 = 86_400_000_000;
const DAYS_PER_MONTH: i64 = 30; // as PostgreSQL compares intervals
const MONTH: i64 = 30 * 86_400;
/// Short enough for a float to be exact.
const YEAR: i64 = 365 * 86_400;

/// A duration with a minimum in microseconds and a maximum in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds<const MICROS_MIN: i64, const MAX: i64> {
    micros: i64,
}

/// The length of a hold. The maximum is longer than any hold that the hotrow schema accepts.
pub type Hold = Seconds<1, YEAR>;
/// The length of a lease.
pub type Lease = Seconds<1, MONTH>;
/// The time that a request waits for an order.
pub type Wait = Seconds<0, { limits::HTTP_WAIT_SECONDS_MAX }>;
/// A pause, or a retention.
pub type Pause = Seconds<0, YEAR>;

impl<const MICROS_MIN: i64, const MAX: i64> Seconds<MICROS_MIN, MAX> {
    /// A duration of this many seconds. The caller guarantees the bounds.
    pub const fn new(seconds: i64) -> Self {
        Seconds { micros: seconds * 1_000_000 }
    }

    /// The same as a duration for timers.
    pub fn duration(self) -> Duration {
        Duration::from_micros(self.micros.unsigned_abs())
    }
}

impl<'de, const MICROS_MIN: i64, const MAX: i64> Deserialize<'de> for Seconds<MICROS_MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        if !(MICROS_MIN as f64 / MICROS_PER_SECOND..=MAX as f64).contains(&seconds) {
            let least = if MICROS_MIN > 0 { "more than 0" } else { "at least 0" };
            let range = format!("a duration is a number of seconds, {least} and at most {MAX}");
            return Err(de::Error::custom(range));
        }
        Ok(Seconds { micros: (seconds * MICROS_PER_SECOND).round() as i64 })
    }
}

impl<const MICROS_MIN: i64, const MAX: i64> Serialize for Seconds<MICROS_MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let seconds = self.micros as f64 / MICROS_PER_SECOND;
        if seconds.fract() == 0.0 {
            serializer.serialize_i64(seconds as i64)
        } else {
            serializer.serialize_f64(seconds)
        }
    }
}

impl<const MICROS_MIN: i64, const MAX: i64> ToSql for Seconds<MICROS_MIN, MAX> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_i64(self.micros);
        out.put_i32(0);
        out.put_i32(0);
        Ok(IsNull::No)
    }

    accepts!(INTERVAL);
    to_sql_checked!();
}

impl<'a, const MICROS_MIN: i64, const MAX: i64> FromSql<'a> for Seconds<MICROS_MIN, MAX> {
    fn from_sql(_: &Type, mut raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        if raw.len() != 16 {
            return Err("an interval has 16 bytes".into());
        }
        let (micros, days, months) = (raw.get_i64(), raw.get_i32(), raw.get_i32());
        let days = i64::from(days) + i64::from(months) * DAYS_PER_MONTH;
        Ok(Seconds { micros: days.saturating_mul(MICROS_PER_DAY).saturating_add(micros) })
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
    fn whole_and_fractional_seconds_are_exact() {
        for json in ["600", "0.05", "31536000", "1.5"] {
            assert_eq!(serde_json::to_string(&read(json).unwrap()).unwrap(), json);
        }
        assert_eq!(serde_json::to_string(&read("60.0").unwrap()).unwrap(), "60");
        assert_eq!(serde_json::from_str::<Wait>("0").unwrap().duration(), Duration::ZERO);
        assert_eq!(serde_json::from_str::<Wait>("0.25").unwrap().duration(), Duration::from_millis(250));
    }

    #[test]
    fn invalid_durations_are_rejected() {
        for json in ["0", "-1", "0.0000001", "0.0000009", "31536001", "1e300", "\"PT1M\"", "true"] {
            assert!(read(json).is_err(), "{json}");
        }
        for json in ["-0.1", "-1e-38", "60.1", "1e300"] {
            assert!(serde_json::from_str::<Wait>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn durations_survive_the_wire_format() {
        let (hold, mut wire) = (read("90.25").unwrap(), BytesMut::new());
        hold.to_sql(&Type::INTERVAL, &mut wire).unwrap();
        assert_eq!(Hold::from_sql(&Type::INTERVAL, &wire).unwrap(), hold);
        let day_and_month =
            [0_i64.to_be_bytes().as_slice(), &1_i32.to_be_bytes(), &1_i32.to_be_bytes()].concat();
        let hold = Hold::from_sql(&Type::INTERVAL, &day_and_month).unwrap();
        assert_eq!(serde_json::to_string(&hold).unwrap(), (31 * 86_400).to_string());
    }
}
