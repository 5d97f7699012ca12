//! The types to which a packed statement can cast. Types of columns are judged elsewhere.

use sqlparser::ast::{ArrayElemTypeDef, DataType};

use crate::classify::reason::Reason;
use crate::classify::text::names::TypeName;

/// Built-in types whose input function runs no user-defined code and depends on nothing but the value.
const PLAIN_TYPES: &str = "
    bigint, bit, bit varying, bool, boolean, box, bpchar, bytea, char, char varying, character,
    character varying, cidr, circle, date, daterange, dec, decimal, double precision, float, float4, float8,
    inet, int, int2, int4, int4range, int8, int8range, integer, interval, json, jsonb, jsonpath, line, lseg,
    macaddr, macaddr8, money, name, numeric, numrange, path, point, polygon, real, smallint, text, time,
    time with time zone, time without time zone, timestamp, timestamp with time zone,
    timestamp without time zone, timestamptz, timetz, tsquery, tsrange, tstzrange, tsvector, uuid, varbit,
    varchar
";

/// The plain name of a type: in lower case, without modifiers and array brackets.
pub(crate) fn plain_name(data_type: &DataType) -> String {
    let mut name = String::new();
    let mut depth = 0_u32;
    for letter in data_type.to_string().chars() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => name.push(letter.to_ascii_lowercase()),
            _ => {}
        }
    }
    let words: Vec<&str> = name.split_whitespace().collect();
    let name = words.join(" ");
    name.strip_prefix("pg_catalog.").map(str::to_owned).unwrap_or(name)
}

/// A type to which a packed statement can cast.
pub(crate) enum Target {
    /// The plain name of a built-in type.
    Builtin(String),
    /// A user's type, or an array of it. It has to be the type of a column of the statement's table.
    Own(TypeName),
}

pub(crate) fn target(data_type: &DataType) -> Result<Target, Reason> {
    let name = plain_name(data_type);
    if PLAIN_TYPES.split(',').any(|plain| plain.trim() == name) {
        return Ok(Target::Builtin(name));
    }
    let element = match data_type {
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, None)) => element,
        other => other,
    };
    match element {
        DataType::Custom(name, modifiers) if modifiers.is_empty() => Ok(Target::Own(TypeName::new(name)?)),
        _ => Err(Reason::Cast(name)),
    }
}
