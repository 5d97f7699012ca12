//! One statement in many spellings: literals, names, comments, casts, expressions, and clauses that a packed statement
//! can have.

use super::Draft;

const INTS: &[&str] = &[
    "1",
    "01",
    "+1",
    "-1",
    "- 1",
    "-(1)",
    "1.0",
    "1.4",
    "1e0",
    "'1'",
    "' 1 '",
    "int '1'",
    "'1'::int",
    "cast(1 as int)",
    "1::bigint",
    "1.5::int",
    "E'\\x31'",
    "U&'\\0031'",
    "$$1$$",
    "$a$1$a$",
    "length('a')",
    "1 + 0",
    "2 - 1",
    "(select 1)",
    "null",
    "null::int",
    "true::int",
    "B'1'::int",
    "'one'",
    "abs(-1)",
    "coalesce(null, 1)",
    "case when true then 1 end",
    "9999999999",
    "greatest(1, 0)",
    "-2147483648",
    "'{1}'::int[]",
    "nullif(1, 2)",
    "1 /* one */",
    "(1)",
    "row(1)",
];

const TEXTS: &[&str] = &[
    "'a'",
    "'it''s'",
    "E'a\\tb'",
    "E'\\''",
    "$$a$$",
    "$q$it's$q$",
    "''",
    "'a' 'b'",
    "'a'\n'b'",
    "U&'\\00fc'",
    "N'a'",
    "'a'::varchar(1)",
    "text 'a'",
    "'a' || 'b'",
    "1",
    "1.50",
    "null",
    "upper('a')",
    "'\\'",
    "'--'",
    "'/*'",
    "'$1'",
    "':x'",
    "'ü€'",
    "true",
    "date '2020-01-31'",
    "b'101'",
    "x'1f'",
    "current_user",
    "concat('a', 1)",
    "repeat('ab', 3)",
    "'null'",
    "'  a  '",
    "'ünïcödé'",
];

pub fn write(draft: &mut Draft) {
    draft.set_up(
        "create table \"T_N\" (\"Id\" int primary key, \"select\" text);
        create table t_N (id int primary key, n int default 0, v text, b bigint, m numeric, c char(3));
        insert into t_N (id) values (1), (2); insert into \"T_N\" values (1, 'x')",
    );
    for _ in 0..draft.random.u8(8..30) {
        let session = draft.session();
        let sql = statement(draft);
        draft.run(session, &sql, &[]);
        if draft.random.bool() {
            draft.run(session, &sql, &[]);
        }
    }
}

fn statement(draft: &mut Draft) -> String {
    let (id, n, text) = (draft.pick(INTS), draft.pick(INTS), draft.pick(TEXTS));
    let id = if draft.random.bool() { "1" } else { id };
    match draft.random.u8(..22) {
        0 => format!("update t_N set n = {n} where id = {id} returning n"),
        1 => format!("update t_N set v = {text} where id = {id} returning v"),
        2 => format!("update t_N set b = {n}, m = {n} where id = {id} returning b, m"),
        3 => format!("update t_N set c = {text} where id = {id} returning c, c = 'a', length(c)"),
        4 => format!(
            "insert into t_N (id, n) values ({id}, {n}) on conflict (id) do update set n = excluded.n returning id, n"
        ),
        5 => format!("insert into t_N (id, v) values ({id}, {text}) on conflict do nothing"),
        6 => format!("delete from t_N where id = {id} and n = {n}"),
        7 => format!("select id, n, v from t_N where id = {id}"),
        8 => format!("select n, {text} as t, {n} as k from t_N where id = {id}"),
        9 => format!("select {n}, {text}"),
        10 => format!("UPDATE \"t_n\".t_N SET n=n+1 WHERE id={id}"),
        11 => format!("update only t_N as x set n = x.n + 1 where x.id = {id} returning x.n as \"N\""),
        12 => format!("update t_N t set (n, v) = ({n}, {text}) where t.id = {id} returning *"),
        13 => format!("update \"T_N\" set \"select\" = {text} where \"Id\" = {id} returning \"select\""),
        14 => format!("/* first */ update t_N -- second\n set n = n + 1 /* /* nested */ */ where id = {id};"),
        15 => format!("update t_N set n = {n} where {id} = id"),
        16 => format!("update t_N set n = n + 1 where id = {id} and (v is null or v <> {text}) returning n"),
        17 => format!("update t_N set n = n + 1 where id in ({id}) returning n"),
        18 => format!("update t_N set n = n + 1 where id = any (array[{id}]) returning n"),
        19 => format!(
            "insert into t_N values ({id}, default, {text}) on conflict (id) do update set v = t_N.v || excluded.v where t_N.n < {n} returning v"
        ),
        20 => format!("select * from one.t_N where id = {id} limit 1;"),
        _ => format!("select v from t_N where id = {id} and v = {text}"),
    }
}
