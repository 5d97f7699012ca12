//! Literals of all types and in all places, with other values each time, among comments of all kinds.

use super::{Draft, execute, parse};
use crate::program::Frame;

/// Statements. `~` is a place for a comment. `@kind@` is a literal of [`VALUES`].
const TEXTS: &[&str] = &[
    "update~t_N~set~at~=~timestamptz~@time@~where~id~=~@id@~returning~at",
    "update~t_N~set~at~=~@time@::timestamptz~+~interval~@interval@~where id =~@id@~returning at",
    "update t_N set~i = interval @interval@~, n = n + @number@ where id = @id@ returning~i,~n",
    "update t_N set s =~nullif(@text@,~@text@)~where id = @id@~returning s",
    "update t_N set s = lpad(@text@, @number@,~'*')~where id = @id@ returning s",
    "update t_N set s = concat_ws(@text@, s, @text@, @number@)~where~id = @id@ returning~length(s)",
    "update t_N set s = substring(@text@ from @number@ for 2)~where id = @id@ returning s",
    "update t_N set s = format(@format@, @text@, @number@)~where id~=~@id@ returning s",
    "update t_N set s = overlay(@text@ placing~@text@ from 1)~where id = @id@ returning s",
    "update t_N set s = trim(both @text@ from @text@)~where id = @id@ returning s",
    "update t_N set s = @text@~|| @text@~|| @number@~where id = @id@~returning s",
    "update t_N set e = @label@~where id = @id@~returning e",
    "update t_N set e = @label@::e_N, d =~@number@::d_N where id = @id@~returning e, d",
    "update t_N set d = cast(@number@ as d_N)~where id = @id@~and n < @number@ returning d",
    "update x_N set c = row(@number@,~@text@)::c_N where id = @id@~returning c",
    "update x_N set c.x = @number@~where id = @id@ returning (c).x, (c).y",
    "update x_N set b = @bits@, j = jsonb @json@~where id = @id@ returning b, j",
    "update x_N set a = array[@number@,~@number@], r = @range@~where id =~@id@ returning a, r",
    "update t_N set~n = case @text@ when 'b'~then @number@~else n + @number@ end where id = @id@ returning n",
    "update t_N set n = @number@~where id = @id@~and s is distinct from @text@ returning n",
    "update t_N set n = (@number@~- @number@)~* -@number@ where id = @id@ returning n",
    "insert into t_N (id,~s, n) values (@id@,~@text@,~@number@)~on conflict (id) do update set s = excluded.s, n =~excluded.n~+ @number@ returning~s, n",
    "insert into t_N~(id, at) values~(@id@, @time@)~on conflict do nothing returning at",
    "select~s, n~from~t_N~where~id~=~@id@~",
    "select @text@~, @number@~, n from t_N where id = @id@",
    "select s like @text@, s~~~@text@, n in (@number@,~@number@) from t_N where id = @id@",
    "select @class@::regclass::text, n~from t_N where id = @id@",
    "select date_trunc(@unit@, timestamptz @time@), extract(@field@ from timestamptz~@time@), n from t_N where id = @id@",
    "select to_char(timestamptz @time@, @text@), n from t_N where id = @id@",
    "select coalesce(s,~@text@)~, greatest(n, @number@) from t_N where id = @id@",
    "delete~from~t_N~where~id~=~@id@~and~s~=~@text@~returning~s",
    "begin;~update t_N set s = @text@ where id = @id@~;~commit",
    "update t_N set n = n + @number@ where id = @id@~;~select s from t_N where id = @id@",
    "select f_N(@text@,~@number@)~",
    "update t_N set s = f_N(@text@, n)~where id = @id@ returning s",
    "select~@number@::e_N,~n from t_N where id = @id@",
];

const VALUES: &[(&str, &[&str])] = &[
    ("id", &["1", "2", "3", "'1'", "+2", "(3)", "1::int", "'2'::int", "1e0::int", "int '3'"]),
    (
        "number",
        &[
            "1",
            "2",
            "17",
            "0",
            "-3",
            "'5'",
            "2147483647",
            "' 7 '",
            "'x'",
            "1.5",
            "null",
            "'0x1F'",
            ".5",
            "1e2",
        ],
    ),
    (
        "text",
        &[
            "'a'",
            "'b'",
            "''",
            "'It''s'",
            "'/* no comment */'",
            "'-- no comment'",
            "';'",
            "'$1'",
            "E'tab\\tquote\\''",
            "U&'d\\0061t'",
            "$$dollar '$$",
            "$q$ -- $$ /* $q$",
            "'a'\n'b'",
            "'é'",
            "null",
            "'%s'",
            "'a\\b'",
            "text 'typed'",
            "'7'",
        ],
    ),
    ("format", &["'%s-%s'", "'%2$s %1$s'", "'%L %I'", "'%%%s'", "'%s'", "'%x'", "'%5s|%-5s|'"]),
    (
        "time",
        &[
            "'2020-01-31 12:00'",
            "'2020-07-31 12:00:00.5+02'",
            "'01/02/2020'",
            "'Feb 3 2020 04:05 PST'",
            "'infinity'",
            "'2020-02-30'",
            "'2020-01-31 12:00 Europe/Paris'",
            "'31.01.2020'",
            "'epoch'",
        ],
    ),
    (
        "interval",
        &["'1 day'", "'2 hours -3 min'", "'1-2'", "'P1Y2M'", "'1' day", "'7' hour", "'x'", "'-1 mon'"],
    ),
    ("label", &["'a'", "'b'", "'it''s'", "'none'", "null"]),
    ("bits", &["b'101'", "B'000'", "x'5'", "'110'", "b'12'"]),
    ("json", &["'{\"a\": 1}'", "'[1, \"-- x\"]'", "'null'", "'{'", "'{\"b\":\"/* */\", \"a\":2}'"]),
    ("range", &["'[1,5)'", "'(,7]'", "'empty'", "int4range(1, 3)", "'[5,1]'"]),
    ("class", &["'t_N'", "'one.t_N'", "'nothing_N'", "'\"t_N\"'"]),
    ("unit", &["'day'", "'hour'", "'month'", "'fortnight'"]),
    ("field", &["day", "hour", "epoch", "'month'"]),
];

const COMMENTS: &[&str] = &[
    "/* c */",
    "/**/",
    "/* a /* nested */ b */",
    "/* /* /* deep */ */ */",
    "-- line\n",
    "--\n",
    "-- it's\n",
    "-- /* open\n",
    "/* -- */",
    "/* it's */",
    "/* \"name */",
    "/* $$ */",
    "/* $q$ ; $1 */",
    "/* ; commit; */",
    "-- ; rollback;\r\n",
    "-- return\r",
    "/*traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01',route='%2Fa%3Bb'*/",
    "/*action='run',controller='it\\'s'*/",
    "/*+ SeqScan(t_N) */",
    "/* \u{e9} \u{1f600} */",
    "/* * / */",
    "/***/",
    "/*/**/*/",
    "--",
    "/* never closed",
    "\n\t",
    "\u{c}",
];

const SETS: &[&str] = &[
    "set datestyle = 'iso, dmy'",
    "set timezone = 'Asia/Tokyo'",
    "set standard_conforming_strings = off",
    "set intervalstyle = 'sql_standard'",
    "set escape_string_warning = off",
    "reset all",
];

pub fn write(draft: &mut Draft) {
    draft.set_up_watch();
    draft.set_up(
        "create type e_N as enum ('a', 'b', 'it''s'); create domain d_N as int check (value < 100); create type c_N as (x int, y text);
        create table t_N (id int primary key, n int default 1, s text, at timestamptz, i interval, e e_N, d d_N);
        create table x_N (id int primary key, c c_N, b bit(3), j jsonb, a int[], r int4range);
        insert into t_N values (1, 1, 'a'), (2, 2, 'b'); insert into x_N values (1), (2);
        create or replace function f_N(text, int) returns text immutable language sql as $$ select $1 || '/* ' || $2 || '-- $1' /* $2 */ -- it's $$",
    );
    // Few texts, so that each is used again with other values.
    let texts: Vec<&str> = (0..draft.random.u8(2..5)).map(|_| draft.pick(TEXTS)).collect();
    for _ in 0..draft.random.u8(10..26) {
        let session = draft.session();
        if draft.once_in(20) {
            let set = draft.pick(SETS);
            draft.query(session, set);
            continue;
        }
        let text = draft.pick(&texts);
        let text = commented(draft, text);
        let frames = if draft.once_in(3) {
            let bound = draft.bound("", "", &[]);
            vec![parse("", &text), bound, execute(""), Frame::Sync]
        } else {
            vec![Frame::Query(text)]
        };
        draft.frames(session, frames);
    }
}

/// The text with values, and with comments in most runs.
fn commented(draft: &mut Draft, text: &str) -> String {
    let often = draft.pick(&[&2_u32, &6, &1_000]).to_owned();
    let mut all =
        if draft.once_in(4 * often) { draft.pick(COMMENTS).to_owned() + " " } else { String::new() };
    for (index, part) in text.replace("~~~", "\u{1}").split('@').enumerate() {
        if index % 2 == 1 {
            let (_, values) = VALUES.iter().find(|(kind, _)| *kind == part).expect("a kind of value");
            // The first values are those that succeed.
            let count = if draft.once_in(4) { values.len() } else { values.len().min(4) };
            all += draft.pick(&values[..count]);
            continue;
        }
        for char in part.chars() {
            match char {
                '~' if draft.once_in(2 * often) => {
                    all.push(' ');
                    // The last ones leave the rest of the text or the comment open.
                    let count = if draft.once_in(20) { COMMENTS.len() } else { COMMENTS.len() - 4 };
                    all += draft.pick(&COMMENTS[..count]);
                    all.push(' ');
                }
                '~' => all.push(' '),
                '\u{1}' => all += " ~~ ",
                other => all.push(other),
            }
        }
    }
    if draft.once_in(2 * often) {
        all += draft.pick(&[
            ";",
            " ;",
            "; -- end",
            " -- end",
            "/* end */",
            ";;",
            " /* never closed",
            "; /* ; */",
            ";\n",
        ]);
    }
    all
}
