//! Built-in types that arguments of merged calls and lists of keys can have: their arrays and their implicit conversions.

/// Names, oid, oid of the array.
const TYPES: &[(&str, u32, u32)] = &[
    ("boolean bool", 16, 1000),
    ("bytea", 17, 1001),
    ("bigint int8", 20, 1016),
    ("smallint int2", 21, 1005),
    ("integer int int4", 23, 1007),
    ("text", 25, 1009),
    ("json", 114, 199),
    ("real float4", 700, 1021),
    ("double_precision float8", 701, 1022),
    ("varchar character_varying", 1043, 1015),
    ("date", 1082, 1182),
    ("timestamp timestamp_without_time_zone", 1114, 1115),
    ("timestamptz timestamp_with_time_zone", 1184, 1185),
    ("interval", 1186, 1187),
    ("numeric decimal", 1700, 1231),
    ("uuid", 2950, 2951),
    ("jsonb", 3802, 3807),
];

pub(crate) const BOOLEAN: u32 = 16;
pub(crate) const BIGINT: u32 = 20;
pub(crate) const SMALLINT: u32 = 21;
pub(crate) const INTEGER: u32 = 23;
pub(crate) const NUMERIC: u32 = 1700;
pub(crate) const TEXT: u32 = 25;
pub(crate) const VARCHAR: u32 = 1043;
/// A parameter whose type the client did not declare.
pub(crate) const OPEN: [u32; 2] = [0, 705];

/// Whether a type has the same OID on every server.
pub(crate) fn is_builtin(oid: u32) -> bool {
    const FIRST_NORMAL_OBJECT_ID: u32 = 16_384;
    oid < FIRST_NORMAL_OBJECT_ID
}

/// The type with this name, in lower case and without modifiers.
pub(crate) fn of_name(name: &str) -> Option<u32> {
    let name = name.replace(' ', "_");
    TYPES.iter().find(|(names, ..)| names.split(' ').any(|one| one == name)).map(|(_, oid, _)| *oid)
}

/// A name of this type.
pub(crate) fn name_of(oid: u32) -> Option<&'static str> {
    TYPES.iter().find(|(_, one, _)| *one == oid).and_then(|(names, ..)| names.split(' ').next())
}

/// The type of an array of this type.
pub(crate) fn array_of(oid: u32) -> Option<u32> {
    TYPES.iter().find(|(_, element, _)| *element == oid).map(|(.., array)| *array)
}

/// The type of the elements of an array of this type.
pub(crate) fn element_of(oid: u32) -> Option<u32> {
    TYPES.iter().find(|(.., array)| *array == oid).map(|(_, element, _)| *element)
}

/// Whether each value of the first type is a value of the second one: both are integers, and the second one has more bits.
pub(crate) fn widens(from: u32, to: u32) -> bool {
    matches!((from, to), (SMALLINT, INTEGER | BIGINT) | (INTEGER, BIGINT))
}

/// Whether a function with a parameter of type `wanted` accepts `given` without an explicit cast.
pub(crate) fn fits(given: u32, wanted: u32) -> bool {
    const NUMBERS: [u32; 6] = [SMALLINT, INTEGER, BIGINT, NUMERIC, 700, 701];
    let rank = |oid| NUMBERS.iter().position(|one| *one == oid);
    given == wanted
        || matches!((given, wanted), (1043, 25) | (25, 1043))
        || matches!((rank(given), rank(wanted)), (Some(given), Some(wanted)) if given < wanted)
}
