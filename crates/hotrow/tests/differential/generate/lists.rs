//! Rows of lists of keys: IN, ANY of arrays in all spellings, with NULLs, duplicates and keys that do not exist.

use super::{Draft, SETUP};

/// Types of keys, their values in the table, and other values: missing and invalid ones.
const KEYS: &[(&str, &[&str], &[&str])] = &[
    ("int", &["1", "2", "3", "4", "5"], &["9", "x", "2147483648"]),
    ("bigint", &["1", "2", "3", "4", "9000000000"], &["9", "1.5"]),
    ("text", &["a", "b", "c", "it's", "a\\b"], &["x", ""]),
    ("varchar(4)", &["a", "b", "c", "d", "e"], &["x", "longer"]),
    ("numeric", &["1.50", "2", "3", "4", "5"], &["1.5", "x"]),
    (
        "uuid",
        &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"],
        &["A0EEBC999C0B4EF8BB6D6BB9BD380A11", "no"],
    ),
    ("mood_N", &["sad", "happy"], &["angry"]),
];

/// `@` stands for the condition.
const STATEMENTS: &[&str] = &[
    "update t_N set n = n + 1 where @",
    "update t_N set n = n + 1, m = n where @ returning m",
    "update t_N set n = n + 1 where @ and n < 3",
    "update t_N set n = 10 / (n - 2) where @",
    "update t_N set k = k where @ and n <> all('{5,6}')",
    "delete from t_N where @ and n > 2",
    "delete from t_N where @",
    "select k, n, m from t_N where @ order by k",
    "select n, k from t_N where @ order by n desc, 2",
    "select k from t_N where @ and k = any(array[k]) order by k limit 1",
    "select n from t_N where @ order by k offset 1",
    "select k, n from t_N where not (@) order by k",
];

pub fn write(draft: &mut Draft) {
    let (kind, present, other) = KEYS[draft.random.usize(..KEYS.len())];
    draft.set_up(format!(
        "create type mood_N as enum ('sad', 'happy');
        create table t_N (k {kind}, g int default 1, n int default 0, m int, primary key (k, g))"
    ));
    if draft.random.bool() {
        draft.set_up("alter table t_N drop constraint t_N_pkey; alter table t_N add primary key (k)");
    }
    draft.set_up_watch();
    for key in present {
        draft.run(SETUP, "insert into t_N (k) values ($1)", &[Some(key)]);
    }
    let choices: Vec<&str> = present.iter().cycle().take(3 * present.len()).chain(other).copied().collect();
    for _ in 0..draft.random.u8(8..40) {
        let session = draft.session();
        let (condition, values) = condition(draft, kind, &choices);
        let statement = draft.pick(STATEMENTS).replace('@', &condition);
        let values: Vec<_> = values.iter().map(|value| value.as_deref()).collect();
        draft.run(session, &statement, &values);
        if draft.once_in(8) {
            let key = Some(*present.first().expect("there is one"));
            draft.run(session, "insert into t_N (k) values ($1) on conflict do nothing", &[key]);
        }
    }
}

/// A condition on the key, and its values.
fn condition(draft: &mut Draft, kind: &str, choices: &[&str]) -> (String, Vec<Option<String>>) {
    let count = draft.random.usize(0..6);
    let keys: Vec<Option<String>> = (0..count)
        .map(|_| if draft.once_in(12) { None } else { Some(draft.pick(choices).to_owned()) })
        .collect();
    let list: Vec<_> = (1..=count).map(|number| format!("${number}")).collect();
    let list = list.join(", ");
    let array = array(draft, &keys);
    let and = draft.pick(&["", "", " and g = 1", " and g in (1, 2)", " and g = any('{1,2}')"]).to_owned();
    match draft.random.u8(..6) {
        0 | 1 if count > 0 => (format!("k in ({list}){and}"), keys),
        2 if count > 0 => (format!("k = any(array[{list}]::{kind}[]){and}"), keys),
        3 => (format!("t_N.k = some($1::{kind}[]){and}"), vec![Some(array)]),
        4 if draft.once_in(4) => (format!("k = any($1){and}"), vec![None]),
        _ => (format!("k = any($1){and}"), vec![Some(array)]),
    }
}

fn array(draft: &mut Draft, keys: &[Option<String>]) -> String {
    if draft.once_in(12) {
        return draft.pick(&["{{1},{2}}", "[2:3]={1,2}", "{1", "1", "{}"]).to_owned();
    }
    let long = if draft.once_in(12) { 40 } else { 1 };
    let elements = keys.iter().map(|key| match key {
        None => "NULL".to_owned(),
        Some(key) => format!("\"{}\"", key.replace('\\', "\\\\")),
    });
    let elements: Vec<_> = elements.collect();
    format!("{{{}}}", vec![elements.join(","); if elements.is_empty() { 1 } else { long }].join(","))
}
