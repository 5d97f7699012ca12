//! User-defined casts between two built-in types: their functions run wherever the types meet.

use super::{Draft, SETUP};

/// Source, target, a value of the target, and a statement that converts one to the other.
const CASTS: &[(&str, &str, &str, &str)] = &[
    ("varchar", "int", "7", "update t_N set n = v where id = 1 returning n"),
    (
        "varchar",
        "int",
        "7",
        "insert into t_N (id, n) values (1, 'x'::varchar) on conflict (id) do update set n = excluded.n returning n",
    ),
    ("int", "date", "'2020-01-31'", "update t_N set day = n where id = 1 returning day"),
    ("bool", "date", "'2020-01-31'", "update t_N set day = (id = 1) where id = 1 returning day"),
    ("bool", "date", "'2020-01-31'", "select (id = 1)::date from t_N where id = 1"),
    ("text", "int", "5", "select lower('A') + 1"),
    ("text", "int", "5", "update t_N set n = upper(v) + 1 where id = 1 returning n"),
    ("jsonb", "text", "'made'", "update t_N set v = to_jsonb(n) where id = 1 returning v"),
];

/// Side effects of a cast's function.
const DOES: &[&str] = &[
    "perform set_config('datestyle', 'German', false)",
    "perform pg_try_advisory_lock(4711)",
    "perform set_config('app.tenant', 'ann', false)",
    "raise notice 'cast'",
    "null",
];

pub fn write(draft: &mut Draft) {
    draft.set_up_watch();
    draft.set_up(
        "create table t_N (id int primary key, n int, v varchar, day date);
        insert into t_N values (1, 3, '5', '2020-12-31'), (2, 4, '6', '2020-11-30')",
    );
    let (source, target, value, reaches) = CASTS[draft.random.usize(..CASTS.len())];
    let (does, volatility) = (draft.pick(DOES), draft.pick(&["immutable", "stable", "volatile"]));
    draft.set_up(format!(
        "create function c_N({source}) returns {target} language plpgsql {volatility} as $$ begin {does}; return {value}; end $$;
        create function h_N({source}) returns {target} language sql immutable as $$ select {value}::{target} $$"
    ));
    let (create, drop) = (
        |draft: &mut Draft, function: &str| {
            let context = draft.pick(&["as assignment", "as implicit", ""]);
            format!("create cast ({source} as {target}) with function {function}_N({source}) {context}")
        },
        format!("drop cast if exists ({source} as {target})"),
    );
    let using = |draft: &mut Draft| {
        // A statement that was prepared earlier keeps its cast until the server analyses it again.
        draft.named.clear();
        let session = draft.session();
        let sql = draft.pick(&[
            reaches,
            reaches,
            reaches,
            "select day from t_N where id = 2",
            "update t_N set id = 2 where id = 2 returning day",
        ]);
        draft.run(session, sql, &[]);
        if draft.once_in(4) {
            draft.frames(session, vec![crate::program::Frame::Leave]);
        }
        if draft.once_in(2) {
            draft.watch();
        }
    };
    for _ in 0..draft.random.u8(1..5) {
        (0..draft.random.u8(0..4)).for_each(|_| using(draft));
        let session = draft.session();
        let sql = match draft.random.u8(..4) {
            0 => drop.clone(),
            1 => create(draft, "h"),
            _ => create(draft, "c"),
        };
        draft.query(session, sql);
        (0..draft.random.u8(1..6)).for_each(|_| using(draft));
    }
    // A cast belongs to no schema, so the next program would find it.
    draft.query(SETUP, drop);
}
