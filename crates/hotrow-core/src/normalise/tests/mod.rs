//! Tests which literals are taken out of a text and which stay, case by case. `properties` tests arbitrary
//! texts.

mod properties;

use super::*;

/// The shape and the literals as `value:oid`, or `None` if the text was left unchanged.
fn run(sql: &str) -> Option<(String, Vec<String>)> {
    let mut normaliser = Normaliser::new();
    let shape = normaliser.run(sql);
    if shape.verbatim {
        assert_eq!(shape.shape, sql);
        assert_eq!(shape.literals().len(), 0);
        return None;
    }
    let literals = shape
        .literals()
        .map(|literal| format!("{}:{}", String::from_utf8(literal.value.to_vec()).unwrap(), literal.type_oid))
        .collect();
    Some((shape.shape.to_owned(), literals))
}

fn check(sql: &str, shape: &str, literals: &[&str]) {
    let (got_shape, got_literals) = run(sql).unwrap_or_else(|| panic!("left unchanged: {sql}"));
    assert_eq!(got_shape, shape, "{sql}");
    assert_eq!(got_literals, literals, "{sql}");
}

/// The statement has a shape, but no literal was taken out.
fn keeps(sql: &str) {
    check(sql, sql, &[]);
}

fn verbatim(sql: &str) {
    assert_eq!(run(sql), None, "{sql}");
}

#[test]
fn literals_become_parameters_of_their_own_type() {
    check(
        "UPDATE inv SET stock = stock - 1, note = 'it''s' WHERE id = 42 AND price < 9.50",
        "UPDATE inv SET stock = stock - $1, note = $2 WHERE id = $3 AND price < $4",
        &["1:23", "it's:0", "42:23", "9.50:1700"],
    );
    check("select 2147483647, 2147483649", "select $1, $2", &["2147483647:23", "2147483649:20"]);
    check("select 9223372036854775807", "select $1", &["9223372036854775807:20"]);
    check("select 9223372036854775809", "select $1", &["9223372036854775809:1700"]);
    check("select 99999999999999999999999", "select $1", &["99999999999999999999999:1700"]);
    check(
        "select 1e5, .5, 1., 2.5E-3",
        "select $1, $2, $3, $4",
        &["1e5:1700", ".5:1700", "1.:1700", "2.5E-3:1700"],
    );
    check("select 007", "select $1", &["007:23"]);
    check("select '', ''''", "select $1, $2", &[":0", "':0"]);
    check(
        "insert into t (a, b) values (1, 'x'), (2, 'ü')",
        "insert into t (a, b) values ($1, $2), ($3, $4)",
        &["1:23", "x:0", "2:23", "ü:0"],
    );
}

/// What such a text does depends on the values, and is learned for the text.
#[test]
fn values_of_settings_stay() {
    verbatim("set a to 'x'; set time zone interval '1:00' hour to minute");
    verbatim("set a = 5; select 5");
}

/// A preceding minus sign changes the type of these two, so they stay.
#[test]
fn the_two_literals_at_the_integer_limits_stay() {
    keeps("select -2147483648");
    keeps("select -9223372036854775808");
    check("select -5", "select -$1", &["5:23"]);
}

#[test]
fn blanks_and_comments_become_one_space() {
    check("  select\t1 ,\r\n 2  ; ", "select $1 , $2", &["1:23", "2:23"]);
    check("select 1--one\n,2", "select $1 ,$2", &["1:23", "2:23"]);
    check("/* a /* nested */ b */select/* c */1", "select $1", &["1:23"]);
    check("select a /* it's */ from t", "select a from t", &[]);
    check("select a; -- done\n/* really */", "select a", &[]);
    check("SELECT \"a  b\", 'c  d'", "SELECT \"a  b\", $1", &["c  d:0"]);
    check("/*+ IndexScan(t) */ select  1", "/*+ IndexScan(t) */ select $1", &["1:23"]);
    check("select 1 -- the end", "select $1", &["1:23"]);
}

#[test]
fn other_kinds_of_strings_stay() {
    for sql in [
        r"select E'it\'s', e'\\'",
        "select B'101', X'1F', x'1f'",
        r"select U&'d\0061t', u&'x'",
        "select N'national'",
        "select $$it's$$, $tag$ $$ 'a' $tag$",
    ] {
        keeps(sql);
    }
    check("select a & 'x', u & 'y'", "select a & $1, u & $2", &["x:0", "y:0"]);
}

#[test]
fn other_kinds_of_numbers_stay() {
    for sql in [
        "select 0x1F, 0b11, 0o17, 1_000, 1abc, 1.5.6, 1e5x",
        "select t1, t2.c3, a$1 from t4",
        "select x from t where y = 1..2",
    ] {
        keeps(sql);
    }
}

#[test]
fn constants_of_a_type_become_casts() {
    check(
        "select interval '1 day', date '2020-01-01' + TIME '10:00' from t where a > (Timestamptz 'it''s')",
        "select $1::interval, $2::date + $3::TIME from t where a > ($4::Timestamptz)",
        &["1 day:0", "2020-01-01:0", "10:00:0", "it's:0"],
    );
    check(
        "select - timestamp 'x'from t where a between date '1' and date '2'",
        "select - $1::timestamp from t where a between $2::date and $3::date",
        &["x:0", "1:0", "2:0"],
    );
    for sql in [
        "select interval'2 h'",
        "select interval '5' day, interval '1:2' hour to minute",
        "select timestamp with time zone '2020-01-01 00:00Z'",
        "select interval(3) '1.5 s', \"char\" 'x', s.t 'y', bool 't'",
        "select f(date '2020-01-01'), a.date '2020', a date '2020' from t",
        "select a at time zone 'UTC', date 'a' is null",
        "select date 'a'\n'b'",
    ] {
        assert!(run(sql).is_none_or(|(shape, literals)| shape == sql && literals.is_empty()), "{sql}");
    }
    check("select '1 day'::interval", "select $1::interval", &["1 day:0"]);
}

#[test]
fn a_string_for_a_parameter_of_any_type_is_text() {
    check(
        "select concat_ws('-', a, 'x', 5), format( '%s %s' , lower('y'), b || 'z')",
        "select concat_ws($1, a, $2, $3), format( $4 , lower($5), b || $6)",
        &["-:25", "x:25", "5:23", "%s %s:25", "y:0", "z:0"],
    );
    check(
        "select substring('abc', 2), left('abc', 1)",
        "select substring($1, $2), left($3, $4)",
        &["abc:0", "2:23", "abc:0", "1:23"],
    );
}

#[test]
fn literals_in_a_type_or_a_function_stay() {
    for sql in [
        "select a::varchar(10), b::numeric(10,2), cast(c as numeric(10, 2))",
        "select json_build_object('a', 5), make_date('day', t), f((1), 'x')",
        "select count(*) filter (where a = 1)",
        "select nextval('s'), \"f\"(1), first(2)",
        "select pg_catalog.nextval('s'), a::public.geometry(Point, 4326), a.b.c(1), \"a\".b(1)",
        "select cast(a as public.geometry(4, 5)), num_nulls(shop.f('x'))",
    ] {
        keeps(sql);
    }
    check(
        "select coalesce(a, 0), greatest(b - 3, 0)",
        "select coalesce(a, $1), greatest(b - $2, $3)",
        &["0:23", "3:23", "0:23"],
    );
    check(
        "select a from t where b = any('{1,2}') and c <> some (array[1, 'x'])",
        "select a from t where b = any($1) and c <> some (array[$2, $3])",
        &["{1,2}:0", "1:23", "x:0"],
    );
    check(
        "select a from t where b in (1, 'x') and (c = 2)",
        "select a from t where b in ($1, $2) and (c = $3)",
        &["1:23", "x:0", "2:23"],
    );
    check("select array[1, 'a']", "select array[$1, $2]", &["1:23", "a:0"]);
}

#[test]
fn positions_and_predicates_stay() {
    check(
        "select a, 7 from t where b = 1 order by 1, 'x' limit 10 offset 20",
        "select a, $1 from t where b = $2 order by 1, 'x' limit $3 offset $4",
        &["7:23", "1:23", "10:23", "20:23"],
    );
    keeps("select a, b from t group by 1, 2");
    check(
        "select distinct on (1) a from t where b = 2",
        "select distinct on (1) a from t where b = $1",
        &["2:23"],
    );
    check("select a is distinct from 5", "select a is distinct from $1", &["5:23"]);
    check(
        "insert into t values (1) on conflict (id) where gone = 0 do update set a = 2 where t.b = 3",
        "insert into t values ($1) on conflict (id) where gone = 0 do update set a = $2 where t.b = $3",
        &["1:23", "2:23", "3:23"],
    );
    check(
        "select a from t where b is not distinct from 5 order by a is distinct from now(), 1 desc",
        "select a from t where b is not distinct from $1 order by a is distinct from now(), 1 desc",
        &["5:23"],
    );
    check(
        "update t set a = 1 where b in (select c from u order by set, t.limit, u . from, 1 limit 2)",
        "update t set a = $1 where b in (select c from u order by set, t.limit, u . from, 1 limit $2)",
        &["1:23", "2:23"],
    );
    check(
        "select a from t where x in (select y from u where z = 1 order by 2) and b = 3 fetch first 5 rows only",
        "select a from t where x in (select y from u where z = $1 order by 2) and b = $2 fetch first $3 rows only",
        &["1:23", "3:23", "5:23"],
    );
}

/// For example, `$1 is null` has no type, but `'a' is null` has one.
#[test]
fn strings_that_the_server_must_see_stay() {
    for sql in ["select 'a' is null", "select 'a' collate \"C\"", "select 'a' notnull"] {
        keeps(sql);
    }
    check("select 'a'/* x */ IS NULL", "select 'a' IS NULL", &[]);
}

#[test]
fn a_parameter_does_not_merge_with_the_next_token() {
    check("select a from t where b='x'and c=1", "select a from t where b=$1 and c=$2", &["x:0", "1:23"]);
    keeps("select a from t where b = c and'y' = d");
    keeps("select a from t where.5 < b");
    keeps("select 1$$a$$");
}

#[test]
fn some_texts_are_left_unchanged() {
    for sql in [
        "",
        "   ",
        "-- nothing",
        "select 'a'\n'b'",
        "select 'a' -- x\n'b'",
        "select 'a",
        "select \"a",
        "select /* a",
        "select /* a /* b */",
        "select $$a",
        r"select E'a\'",
        "select $1, 'a'",
        "select 1; select 2",
        "select 1;;",
        "select 'a\0b'",
        "select\0 1",
        "set a = 1",
        "(select 1)",
        "begin",
        "select 1)",
        "explain select 1",
        "select 1e'a'",
        "select 1$1",
    ] {
        verbatim(sql);
    }
    let many = |count| format!("select {}", vec!["1"; count].join(","));
    verbatim(&many(MAX_LITERALS + 1));
    assert_eq!(run(&many(MAX_LITERALS)).unwrap().1.len(), MAX_LITERALS);
}

#[test]
fn signatures_depend_on_the_types() {
    let signature = |sql: &str| Normaliser::new().run(sql).signature.to_vec();
    assert_eq!(signature("select 1"), b"select $1\0i");
    assert_eq!(signature("select  2;"), b"select $1\0i");
    assert_eq!(signature("select '1'"), b"select $1\0s");
    assert_eq!(signature("select 3000000000, 1.5"), b"select $1, $2\0ln");
    assert_eq!(signature("select $1"), b"select $1\0");
}

/// The buffers of one text must not affect the next.
#[test]
fn a_normaliser_can_be_used_again() {
    let mut normaliser = Normaliser::new();
    assert_eq!(normaliser.run("select f((1, 'a'").literals().len(), 0);
    assert_eq!(normaliser.run("select (1, 'a')").literals().len(), 2);
    assert!(normaliser.run("select 1, 'a").verbatim);
    let shape = normaliser.run("select 5");
    assert_eq!((shape.shape, shape.literal(0).unwrap().value), ("select $1", &b"5"[..]));
    assert_eq!(shape.literal(1), None);
}

#[test]
fn arguments_of_a_qualified_function_are_taken_out() {
    check("select * from shop.sell('a', 5)", "select * from shop.sell($1, $2)", &["a:0", "5:23"]);
    check(
        "select hotrow.increment('a', amount => -5)",
        "select hotrow.increment($1, amount => -$2)",
        &["a:0", "5:23"],
    );
    check("select a + s.f(1, g(2))", "select a + s.f($1, g(2))", &["1:23"]);
}
