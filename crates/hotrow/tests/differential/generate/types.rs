//! Types and texts of values for them, valid and invalid.

/// A type and texts that are written to it.
pub type Type = (&'static str, &'static [&'static str]);

pub const TYPES: &[Type] = &[
    ("int", &["0", "1", "7", "-5", "2147483647", "2147483648", "x"]),
    ("bigint", &["0", "42", "-9223372036854775808", "9223372036854775808"]),
    ("smallint", &["1", "32767", "32768"]),
    ("numeric", &["1.50", "NaN", "1e3", "12345678901234567890.123", "-0.0"]),
    ("numeric(6,2)", &["1.005", "9999.994", "99999.9"]),
    ("float8", &["1.5", "1e-300", "Infinity", "0.1", "12345678901234567890.123"]),
    ("float4", &["1.5", "0.1", "3.4e39"]),
    ("text", &["", "a", "it's", "ünïcode €", "a\\b", "null", "007", "%"]),
    ("varchar(5)", &["abc", "abc  ", "toolong"]),
    ("char(4)", &["ab", "abcd", "abcde"]),
    ("name", &["n", "a name"]),
    ("bool", &["t", "false", "maybe"]),
    ("date", &["2020-01-31", "infinity", "2020-02-30", "31.01.2020"]),
    ("timestamp", &["2020-01-31 12:34:56.789", "-infinity", "2020-01-31"]),
    ("timestamptz", &["2020-01-31 12:34:56+05", "2020-01-31 12:34:56", "2020-07-01 00:00 Europe/Berlin"]),
    ("time", &["12:34:56", "24:00", "25:00"]),
    ("timetz", &["12:34:56+02"]),
    ("interval", &["1 day", "1 mon -2 hours", "P1Y"]),
    ("interval(1)", &["1.26", "1 day 0.04 s", "1:30"]),
    ("interval minute", &["5", "1:30", "1 day 2:03", "x"]),
    ("interval minute to second", &["5", "1:30", "1:30:15"]),
    ("interval day to second(1)", &["3", "1 2:03", "4.56"]),
    ("interval year", &["5", "1-2", "14 months"]),
    ("interval hour[]", &["{5,1:30}", "{}"]),
    ("span_N", &["5", "1:30", "7 days"]),
    ("uuid", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC999C0B4EF8BB6D6BB9BD380A12", "no"]),
    ("json", &["{\"b\":1, \"a\":2, \"a\":3}", "[1, null]", "{"]),
    ("jsonb", &["{\"b\":1, \"a\":2, \"a\":3}", "1e2", "{"]),
    ("bytea", &["\\x00ff", "abc", "\\000"]),
    ("int[]", &["{1,2}", "{}", "{NULL,3}", "{{1},{2}}", "{1"]),
    ("text[]", &["{a,\"b c\",NULL}", "{}"]),
    ("inet", &["10.0.0.1", "10.0.0.1/8", "::1"]),
    ("cidr", &["10.0.0.0/8", "10.0.0.1/8"]),
    ("macaddr", &["08:00:2b:01:02:03"]),
    ("int4range", &["[1,5)", "empty", "[5,1]"]),
    ("tstzrange", &["[2020-01-01,)"]),
    ("point", &["(1,2)", "1,2"]),
    ("bit(3)", &["101", "1"]),
    ("varbit(3)", &["1", "1011"]),
    ("tsvector", &["a fat cat", "'a':1"]),
    ("money", &["1.00", "$2.50"]),
    ("oid", &["0", "4294967295"]),
    ("pg_lsn", &["0/16B3748"]),
    ("mood_N", &["sad", "happy", "angry"]),
    ("small_N", &["1", "11"]),
    ("pair_N", &["(1,a)", "(,)", "(1)"]),
];

/// Types of keys. All values are valid.
pub const KEYS: &[Type] = &[
    ("int", &["1", "2", "3"]),
    ("bigint", &["1", "2", "9000000000"]),
    ("text", &["a", "A", "it's"]),
    ("varchar(9)", &["a", "b", "a "]),
    ("char(3)", &["a", "b", "a "]),
    ("uuid", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("date", &["2020-01-31", "2020-02-01"]),
    ("timestamptz", &["2020-01-31 12:00+00", "2020-01-31 13:00+01", "2020-01-31 12:00"]),
    ("numeric", &["1", "1.0", "2"]),
    ("float8", &["1", "0.1"]),
    ("bool", &["t", "f"]),
    ("inet", &["10.0.0.1", "10.0.0.1/32"]),
    ("interval hour", &["5", "7 hours"]),
    ("mood_N", &["sad", "happy"]),
    ("small_N", &["1", "2"]),
    ("int[]", &["{1}", "{2}"]),
];

/// User-defined types.
pub const MADE: &str = "create type mood_N as enum ('sad', 'happy');
    create domain small_N as int check (value < 10);
    create domain minutes_N as interval minute; create domain span_N as minutes_N;
    create type pair_N as (n int, t text)";
