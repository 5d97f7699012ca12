//! Rows in bulk: INSERT with several rows in VALUES or in arrays, with and without ON CONFLICT, with duplicates, NULLs,
//! defaults, triggers, errors in one of the rows, and functions that hide `unnest`.

use super::{Draft, SETUP};

/// Types of keys, and their values.
const KEYS: &[(&str, &[&str])] = &[
    ("int", &["1", "2", "3", "4", "5", "9", "2147483648"]),
    ("bigint", &["1", "2", "3", "4", "9000000000"]),
    ("text", &["a", "b", "it's", "a\\b", "say \"x\"", "null", ""]),
    ("varchar(4)", &["a", "b", "c", "longer"]),
    ("uuid", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC999C0B4EF8BB6D6BB9BD380A12"]),
    ("mood_N", &["sad", "happy", "angry"]),
];

/// What follows the rows.
const ENDS: &[&str] = &[
    "",
    " returning *",
    " on conflict do nothing",
    " on conflict do nothing returning k, s",
    " on conflict (k) do nothing returning k",
    " on conflict (k) do update set n = t_N.n + excluded.n returning *",
    " on conflict (k) do update set n = t_N.n + excluded.n",
    " on conflict (k) do update set n = excluded.n where t_N.n < 3 returning k, n, v",
    " on conflict (k) do update set n = default, u = excluded.u returning k, n, u",
    " on conflict on constraint t_N_pkey do update set n = 7 returning k, d",
    " on conflict (u) do update set n = t_N.n + 1 returning k, u, n",
    " on conflict (d) do nothing",
];

/// A column list with its values: `k` is the key, the others are expressions.
const SHAPES: &[(&str, &[&str])] = &[
    ("k, n", &["k", "n"]),
    ("n, k", &["n", "k"]),
    ("k, n, u", &["k", "n", "n"]),
    ("k, u", &["k", "n"]),
    ("k", &["k"]),
    ("k, n, s", &["k", "n", "default"]),
    ("k, n, u", &["k", "1 + 1", "null"]),
    ("n, u", &["n", "n"]),
    ("k, n, g", &["k", "n", "n"]),
];

pub fn write(draft: &mut Draft) {
    let (kind, keys) = KEYS[draft.random.usize(..KEYS.len())];
    let generated = draft.pick(&["int", "int generated always as (n * 2) stored"]);
    draft.set_up(format!(
        "create type mood_N as enum ('sad', 'happy');
        create table t_N (k {kind} primary key, n int default 1 check (n < 50), u int unique, s int default 5,
            d text default 'd', g {generated}, v int not null default 0)"
    ));
    if draft.random.bool() {
        draft.set_up(
            "create function count_N() returns trigger language plpgsql as
                'begin new.v := coalesce(old.v, 0) + 1; return new; end';
            create trigger count before insert or update on t_N for each row execute function count_N()",
        );
    }
    draft.set_up_watch();
    draft.run(SETUP, "insert into t_N (k, n) values ($1, 1)", &[keys.first().copied()]);
    let mut hides = false;
    for _ in 0..draft.random.u8(8..40) {
        let session = draft.session();
        match draft.random.u8(..10) {
            0..=4 => values(draft, session, keys),
            5..=8 => arrays(draft, session, kind, keys),
            _ if draft.once_in(3) => {
                let change = match hides {
                    // Its parameter fits better than that of PostgreSQL's own function.
                    false => {
                        "create function unnest(int[]) returns setof int language plpgsql as
                            'begin perform set_config(''bytea_output'', ''escape'', false); return next 4; end'"
                    }
                    true => "drop function unnest(int[])",
                };
                hides = !hides;
                draft.set_up(change);
            }
            _ if draft.random.bool() => draft.watch(),
            _ => draft.run_one(session, &["delete from t_N where k = $1"], keys),
        }
    }
    if hides {
        draft.set_up("drop function unnest(int[])"); // its name has no number
    }
}

/// VALUES.
fn values(draft: &mut Draft, session: char, keys: &[&str]) {
    let (columns, shape) = SHAPES[draft.random.usize(..SHAPES.len())];
    let count = if draft.once_in(20) { 101 } else { draft.random.usize(1..6) };
    let (mut rows, mut given): (Vec<String>, Vec<Option<String>>) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let row = shape.iter().map(|value| match *value {
            "k" if draft.once_in(20) => "default".to_owned(),
            "k" => {
                given.push(Some(draft.pick(keys).to_owned()).filter(|_| !draft.once_in(16)));
                format!("${}", given.len())
            }
            "n" if draft.once_in(8) => "default".to_owned(),
            "n" => {
                let limit = if draft.once_in(12) { 60 } else { 9 };
                given.push(Some(draft.random.u8(..limit).to_string()).filter(|_| !draft.once_in(16)));
                format!("${}", given.len())
            }
            expression => expression.to_owned(),
        });
        let row: Vec<String> = row.collect();
        rows.push(format!("({})", row.join(", ")));
    }
    let end = draft.pick(ENDS);
    let sql = format!("insert into t_N ({columns}) values {}{end}", rows.join(", "));
    let given: Vec<_> = given.iter().map(|value| value.as_deref()).collect();
    draft.run(session, &sql, &given);
}

/// Arrays, perhaps of different lengths.
fn arrays(draft: &mut Draft, session: char, kind: &str, keys: &[&str]) {
    let count = if draft.once_in(16) { 101 } else { draft.random.usize(0..6) };
    let of_keys: Vec<Option<String>> =
        (0..count).map(|_| Some(draft.pick(keys).to_owned()).filter(|_| !draft.once_in(16))).collect();
    let length = if draft.once_in(4) { draft.random.usize(0..7) } else { count };
    let numbers: Vec<Option<String>> =
        (0..length).map(|_| Some(draft.random.u8(..9).to_string()).filter(|_| !draft.once_in(16))).collect();
    let arrays = [array(draft, &of_keys), array(draft, &numbers)];
    let (k, n) = (format!("$1::{kind}[]"), "$2::int[]");
    let select = match draft.random.u8(..9) {
        0 => format!("(k, n) select * from unnest({k}, {n})"),
        1 => format!("(k, n) select * from unnest({k}, {n}) as t(a, b)"),
        2 => format!("(n, k) select t.b, a from unnest({k}, {n}) t(a, b) order by a desc, b"),
        3 => format!("(k, n, d) select unnest({k}), unnest({n}), 'x'"),
        4 => format!("(k, n) select pg_catalog.unnest({k}), coalesce(cardinality({n}), 3)"),
        5 => format!("(k, n, u) select a, b + 1, b from unnest({k}, {n}) t(a, b)"),
        6 => format!("(k, n) select a, b from unnest({k}, {n}) with ordinality as t(a, c, b)"),
        7 => format!("(k, n) select a, 2 from unnest({k}) a where {n} is not null"),
        _ => format!("(k, n) select unnest({k}), unnest({n}) limit 2"),
    };
    let end = draft.pick(ENDS);
    let values: Vec<_> = arrays.iter().map(|array| array.as_deref()).collect();
    draft.run(session, &format!("insert into t_N {select}{end}"), &values);
}

fn array(draft: &mut Draft, elements: &[Option<String>]) -> Option<String> {
    if draft.once_in(12) {
        let unusual = draft.pick(&["{{1},{2}}", "[2:3]={1,2}", "{1", "1", "{}", "null"]);
        return Some(unusual.to_owned()).filter(|unusual| unusual != "null");
    }
    let quoted = elements.iter().map(|element| match element {
        None => "NULL".to_owned(),
        Some(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    });
    Some(format!("{{{}}}", quoted.collect::<Vec<_>>().join(",")))
}
