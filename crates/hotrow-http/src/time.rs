//! Times: RFC 3339 in JSON, a timestamptz in PostgreSQL. The hotrow schema decides their use.

use std::error::Error;

use bytes::BytesMut;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, de};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// PostgreSQL counts from the year 2000.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
/// The beginning of the year 0. RFC 3339 has no form for earlier times.
const FIRST_SECOND: i64 = -62_167_219_200;

/// A time that RFC 3339 can express. PostgreSQL has other times, and infinity. In an answer they become the first or the last
/// time that RFC 3339 can express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Time(pub Timestamp);

impl Time {
    fn from_micros(micros: i64) -> Self {
        let is_past = micros < 0;
        match Timestamp::from_microsecond(micros.saturating_add(EPOCH_MICROS)) {
            Ok(at) if at.as_second() >= FIRST_SECOND => Time(at),
            _ if is_past => Time(Timestamp::constant(FIRST_SECOND, 0)),
            _ => Time(Timestamp::MAX),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let at = Timestamp::deserialize(deserializer)?;
        if at.as_second() < FIRST_SECOND {
            return Err(de::Error::custom("a time is before the year 0"));
        }
        Ok(Time(at))
    }
}

impl<'a> FromSql<'a> for Time {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Time::from_micros(i64::from_be_bytes(raw.try_into()?)))
    }

    accepts!(TIMESTAMPTZ);
}

impl ToSql for Time {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.0.to_sql(of, out)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_of_the_server_can_be_written() {
        for (micros, expected) in [
            (0, "2000-01-01T00:00:00Z"),
            (1, "2000-01-01T00:00:00.000001Z"),
            (i64::MAX, "9999-12-30T22:00:00.999999999Z"),
            (568_024_668_000_000_000, "9999-12-30T22:00:00.999999999Z"),
            (i64::MIN, "0000-01-01T00:00:00Z"),
            (-211_813_488_000_000_000, "0000-01-01T00:00:00Z"),
            (-63_082_281_600_000_000, "0001-01-01T00:00:00Z"),
        ] {
            let time = Time::from_sql(&Type::TIMESTAMPTZ, &i64::to_be_bytes(micros)).unwrap();
            assert_eq!(serde_json::to_string(&time).unwrap(), format!("\"{expected}\""), "{micros}");
        }
    }

    #[test]
    fn times_of_clients_come_back_unchanged() {
        for text in ["0000-01-01T00:00:00Z", "2024-02-29T12:00:00.000001Z", "9999-12-30T22:00:00Z"] {
            let json = format!("\"{text}\"");
            let (time, mut wire) = (serde_json::from_str::<Time>(&json).unwrap(), BytesMut::new());
            time.to_sql(&Type::TIMESTAMPTZ, &mut wire).unwrap();
            let back = Time::from_sql(&Type::TIMESTAMPTZ, &wire).unwrap();
            assert_eq!(serde_json::to_string(&back).unwrap(), json);
        }
        for text in
            ["-000001-12-31T23:59:59Z", "-009999-01-03T00:00:00Z", "10000-01-01T00:00:00Z", "infinity"]
        {
            assert!(serde_json::from_str::<Time>(&format!("\"{text}\"")).is_err(), "{text}");
        }
    }
}
