//! The fields of a body that become parameters of a function. The parameter's type, and for some its name, decides which values a
//! field can have.

use std::fmt;

use hotrow_sql::Parameter;
use serde::de::{DeserializeOwned, DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::clients::Value;
use crate::document::Document;
use crate::input::{Name, Quantity, Text};
use crate::seconds::{Hold, Lease, Pause};
use crate::time::Time;

/// A field.
pub struct Field {
    /// The name of the parameter.
    pub name: &'static str,
    kind: Kind,
    /// The value of a field that is missing. Without a default, it must be there.
    pub default: Option<serde_json::Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Name,
    Text,
    Strategy,
    Quantity,
    Bigint,
    Int,
    Boolean,
    Hold,
    Lease,
    Pause,
    Time,
    Document,
    Uuid,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Strategy {
    Ledger,
    Log,
}

impl Kind {
    fn of(Parameter { name, of, .. }: &Parameter) -> Self {
        match (name.as_str(), of.as_str()) {
            ("buyer", _) => Kind::Name,
            ("strategy", _) => Kind::Strategy,
            ("quantity", _) => Kind::Quantity,
            ("hold", _) => Kind::Hold,
            ("lease", _) => Kind::Lease,
            (_, "text") => Kind::Text,
            (_, "bigint") => Kind::Bigint,
            (_, "int") => Kind::Int,
            (_, "boolean") => Kind::Boolean,
            (_, "interval") => Kind::Pause,
            (_, "timestamptz") => Kind::Time,
            (_, "jsonb") => Kind::Document,
            (_, "uuid") => Kind::Uuid,
            (name, of) => {
                panic!("{name}: a body has no {of}; add it here, or write a handler for the function")
            }
        }
    }
}

impl Field {
    /// The field of a parameter.
    pub fn of(parameter: &'static Parameter) -> Self {
        let default = parameter.default.as_deref().map(json);
        Field { name: &parameter.name, kind: Kind::of(parameter), default }
    }

    fn read<'de, D: Deserializer<'de>, T: DeserializeOwned, S: ToSql + Send + Sync + 'static>(
        &self,
        deserializer: D,
        sql: impl Fn(T) -> S,
    ) -> Result<Value, D::Error> {
        let Some(default) = &self.default else { return Ok(Box::new(sql(T::deserialize(deserializer)?))) };
        let value = match Option::<T>::deserialize(deserializer)? {
            Some(value) => Some(value),
            None => Option::<T>::deserialize(default).map_err(D::Error::custom)?,
        };
        Ok(Box::new(value.map(sql)))
    }
}

/// A default of the SQL as JSON: `'ledger'` as a text, `'7 days'` as seconds.
fn json(default: &str) -> serde_json::Value {
    let Some(text) = default.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) else {
        return serde_json::from_str(default)
            .unwrap_or_else(|error| panic!("the default {default}: {error}"));
    };
    let (number, unit) = text.split_once(' ').unwrap_or_default();
    let seconds = match unit.trim_end_matches('s') {
        "second" => 1,
        "minute" => 60,
        "hour" => 3_600,
        "day" => 86_400,
        _ => return text.into(),
    };
    number.parse::<i64>().map_or_else(|_| text.into(), |number| (number * seconds).into())
}

impl<'de> DeserializeSeed<'de> for &Field {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.kind {
            Kind::Name => self.read(deserializer, |Name(name)| name),
            Kind::Text => self.read(deserializer, |Text(text)| text),
            Kind::Strategy => self.read(deserializer, |strategy: Strategy| match strategy {
                Strategy::Ledger => "ledger",
                Strategy::Log => "log",
            }),
            Kind::Quantity => self.read(deserializer, |Quantity(quantity)| quantity),
            Kind::Bigint => self.read(deserializer, |number: i64| number),
            Kind::Int => self.read(deserializer, |number: i32| number),
            Kind::Boolean => self.read(deserializer, |is: bool| is),
            Kind::Hold => self.read(deserializer, |hold: Hold| hold),
            Kind::Lease => self.read(deserializer, |lease: Lease| lease),
            Kind::Pause => self.read(deserializer, |pause: Pause| pause),
            Kind::Time => self.read(deserializer, |time: Time| time),
            Kind::Document => self.read(deserializer, |Document(json)| json),
            Kind::Uuid => self.read(deserializer, |id: Uuid| id),
        }
    }
}

/// A body with these fields and no other, as the values of the parameters. Its errors are those of a derived deserializer.
#[derive(Clone, Copy)]
pub struct Fields(pub &'static [Field]);

impl<'de> DeserializeSeed<'de> for Fields {
    type Value = Vec<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Value>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Value>, A::Error> {
        let mut found: Vec<Option<Value>> = self.0.iter().map(|_| None).collect();
        while let Some(place) = map.next_key_seed(Place(self.0))? {
            let field = &self.0[place];
            if found[place].is_some() {
                return Err(A::Error::duplicate_field(field.name));
            }
            found[place] = Some(map.next_value_seed(field)?);
        }
        let all = self.0.iter().zip(found).map(|(field, value)| match value {
            Some(value) => Ok(value),
            None if field.default.is_none() => Err(A::Error::missing_field(field.name)),
            None => field.deserialize(().into_deserializer()),
        });
        all.collect()
    }
}

/// The place of a field, by its name.
struct Place(&'static [Field]);

impl<'de> DeserializeSeed<'de> for Place {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Place {
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("field identifier")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<usize, E> {
        self.0.iter().position(|field| field.name == name).ok_or_else(|| unknown_field(name, self.0))
    }
}

/// As serde writes it, whose function needs the names in a constant.
fn unknown_field<E: Error>(name: &str, fields: &[Field]) -> E {
    let names: Vec<_> = fields.iter().map(|field| format!("`{}`", field.name)).collect();
    let expected = match &names[..] {
        [] => return E::custom(format_args!("unknown field `{name}`, there are no fields")),
        [one] => one.clone(),
        [one, other] => format!("{one} or {other}"),
        all => format!("one of {}", all.join(", ")),
    };
    E::custom(format_args!("unknown field `{name}`, expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::parse;

    /// The fields of `reserve`, as a derived deserializer has them.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its errors are compared")]
    struct Reserve {
        buyer: Name,
        quantity: Option<Quantity>,
        hold: Option<Hold>,
    }

    #[test]
    fn errors_are_those_of_a_derived_deserializer() {
        let parameter = |(name, of, default): (&str, &str, Option<&str>)| Parameter {
            name: name.to_owned(),
            of: of.to_owned(),
            default: default.map(str::to_owned),
        };
        let parameters =
            [("buyer", "text", None), ("quantity", "bigint", Some("1")), ("hold", "interval", Some("null"))];
        let parameters: &[_] = Box::leak(Box::new(parameters.map(parameter)));
        let fields: &[_] = Box::leak(Box::new(parameters.iter().map(Field::of).collect::<Vec<_>>()));
        for body in [
            "{}",
            "{\"buyer\": \"ann\"}",
            "{\"buyer\": null}",
            "{\"buyer\": \"\",\n \"quantity\": 1}",
            "{\"quantity\": 0}",
            "{\"quantity\": null, \"buyer\": 1}",
            "{\"buyer\": \"ann\", \"quantity\": \"1\"}",
            "{\"buyer\": \"ann\", \"buyer\": \"bob\"}",
            "{\"buyer\": \"ann\", \"hold\": 0}",
            "{\"buyer\": \"ann\", \"item\": 0}",
            "{\"buyer\": \"ann\"} {}",
            "{\"buyer\": ",
            "{\"buyer\" 1}",
            "{1: 1}",
        ] {
            let derived =
                serde_json::from_str::<Reserve>(body).map(|_| ()).map_err(|error| error.to_string());
            let found = parse(body.as_bytes(), Fields(fields)).map(|_| ());
            let found =
                found.map_err(|problem| problem.detail().strip_prefix("the body: ").unwrap().to_owned());
            assert_eq!(found, derived, "{body}");
        }
    }

    #[test]
    fn the_defaults_of_the_sql_can_be_read() {
        for (sql, expected) in [
            ("null", "null"),
            ("1", "1"),
            ("true", "true"),
            ("'ledger'", "\"ledger\""),
            ("'7 days'", "604800"),
        ] {
            assert_eq!(json(sql).to_string(), expected);
        }
    }
}
