//! Calls that the gateway merges: their arguments are expressions over parameters and constants, some of which fail. Also
//! calls of the hotrow schema, and the advisory lock in an update by key.

use super::{Draft, execute, parse};
use crate::program::Frame;

/// A function with a merge rule, which returns its arguments as text. Programs do not change it.
pub const ECHO: &str = "
    create schema calls;
    create function calls.echo_batch(k text[], n bigint[] default null, x numeric[] default null, s text[] default null,
        i interval[] default null, d timestamptz[] default null)
        returns setof text language sql as $$
            select format('%s|%s|%s|%s|%s|%s', e.k, e.n, e.x, e.s, e.i, e.d)
            from unnest(k, n, x, s, i, d) with ordinality e (k, n, x, s, i, d, call) order by e.call $$;
    create function calls.echo(k text, n bigint default null, x numeric default null, s text default null,
        i interval default null, d timestamptz default null) returns text language sql as $$
            select calls.echo_batch(array[k], array[n], array[x], array[s], array[i], array[d]) $$;
    create function calls.several(n bigint) returns setof bigint immutable language sql as $$
        select n where n % 3 > 0 union all select n + 100 where n % 3 > 1 $$;
    create function calls.differs(a int, b int) returns boolean immutable language sql as $$ select a <> b $$;
    create operator public.== (leftarg = int, rightarg = int, function = calls.differs);
    select hotrow.add_merge_rule('calls.echo(text,bigint,numeric,text,interval,timestamptz)',
        'calls.echo_batch(text[],bigint[],numeric[],text[],interval[],timestamptz[])',
        key_argument => 'k', key_space => 'calls')";

/// Arguments after the key. `$2` is a number, `$3` a text.
const ARGUMENTS: &[&str] = &[
    "$2::bigint + 1",
    "n => $2::int * 536870912",
    "n => 10 / ($2::int - 4)",
    "n => case when $2::int % 4 = 0 then $2::int else 10 / ($2::int % 4) end",
    "x => round($2::numeric / 7, 2), s => upper($3)",
    "x => 2.0 ^ $2::int - 1",
    "s => case $3::text when 'a' then 'x' when 'b' then null else $1 end || $3::text",
    "s => ($3::text in ('a', 'b') and $3::text is not null)::text, n => array_length(array[$2::int, 7], 1)",
    "s => coalesce(nullif($3::text, 'c'), lower($1)) || $2::int",
    "s => $3::varchar(1)",
    "s => ($2::int + 0.1)::float8::text",
    "i => interval '1 day' * $2::int + '2 hours'",
    "d => '2020-02-28 12:00+00'::timestamptz + interval '1 day' * $2::int",
    "n => extract(day from '2020-02-28'::timestamp + interval '1 day' * $2::int)::bigint",
    "s => ('2020-02-28'::date + $2::int)::text",
    "s => $3::int::text",
    "n => calls.several($2::bigint)",
    "n => case when $2::int == 4 then 1 else 2 end",
    "n => null::bigint + 10 / ($2::int - 4)",
    "n => case when $2::int > 4 then null end + 10 / ($2::int - 4)",
    "n => array_length(array[null, $2::int], 1), s => coalesce($3::text, null)",
    "n => try_cast($2 as bigint)",
];

/// Calls of the hotrow schema. `$1` is a number.
const PACK: &[&str] = &[
    "select * from hotrow.increment('c_N', $1::bigint + 1)",
    "select value from hotrow.increment('c_N', case when $1::int > 2 then 1 else -1 end)",
    "select * from hotrow.increment(counter => 'd_N', amount => abs($1::bigint) * 2)",
    "select hotrow.increment('c_N', $1::bigint / 0)",
];

pub fn write(draft: &mut Draft) {
    draft.set_up("create table t_N (id int primary key, n int default 0); insert into t_N values (1), (2)");
    for _ in 0..draft.random.u8(6..20) {
        let session = draft.session();
        match draft.random.u8(..8) {
            0..=4 => echo(draft, session),
            5 | 6 => {
                let call = draft.pick(PACK);
                at_once(draft, session, call, |draft| vec![draft.pick(NUMBERS)]);
            }
            _ => {
                let sql = "update t_N set n = n + 1 where id = $1 and pg_try_advisory_xact_lock($1::int) returning n";
                at_once(draft, session, sql, |draft| vec![draft.pick(NUMBERS)]);
            }
        }
        if draft.once_in(12) {
            let sql = draft.pick(&[
                "set datestyle = 'iso, dmy'",
                "set timezone = 'Asia/Tokyo'",
                "reset all",
                "begin",
                "commit",
            ]);
            draft.query(session, sql);
        }
    }
}

const NUMBERS: &[&str] = &["1", "2", "3", "4", "5", "8", "9", "-1"];

fn echo(draft: &mut Draft, session: char) {
    let (key, arguments) = (draft.pick(&["k1_N", "k2_N"]), draft.pick(ARGUMENTS));
    let sql = format!("select * from calls.echo($1, {arguments})");
    let (has_number, has_text) = (sql.contains("$2"), sql.contains("$3"));
    let sql = if has_number { sql } else { sql.replace("$3", "$2") };
    at_once(draft, session, &sql, |draft| {
        // One that cannot be read fails, and with it each batch that it is in.
        let number = if draft.once_in(30) { "x" } else { draft.pick(NUMBERS) };
        let text = draft.pick(&["a", "b", "c", "It's", "7"]);
        [(true, key), (has_number, number), (has_text, text)]
            .into_iter()
            .filter_map(|(has, value)| has.then_some(value))
            .collect()
    });
}

/// The same statement several times in one write, in one form. While a lane runs the first, the others gather, and calls are
/// merged.
pub(super) fn at_once<'v>(
    draft: &mut Draft,
    session: char,
    sql: &str,
    values: impl Fn(&mut Draft) -> Vec<&'v str>,
) {
    let (is_simple, binary) = (draft.random.bool(), draft.random.bool());
    let mut frames = Vec::new();
    for _ in 0..draft.random.u8(2..10) {
        let values = values(draft);
        if is_simple {
            let text = values.iter().enumerate().rev().fold(sql.to_owned(), |text, (index, value)| {
                text.replace(&format!("${}", index + 1), &format!("'{}'", value.replace('\'', "''")))
            });
            frames.push(Frame::Query(text));
        } else {
            let values = values.iter().map(|value| Some((*value).to_owned())).collect();
            let bind = Frame::Bind { portal: String::new(), statement: String::new(), binary, values };
            frames.extend([parse("", sql), bind, execute(""), Frame::Sync]);
        }
    }
    draft.frames(session, frames);
}
