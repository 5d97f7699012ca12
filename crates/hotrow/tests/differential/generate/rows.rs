//! Rows of all types, written and read by key.

use super::types::{KEYS, MADE, TYPES, Type};
use super::{Draft, SETUP};

const COLUMNS: [&str; 3] = ["x", "y", "z"];

pub fn write(draft: &mut Draft) {
    draft.set_up(MADE);
    draft.set_up_watch();
    let key = KEYS[draft.random.usize(..KEYS.len())];
    let columns = COLUMNS.map(|_| TYPES[draft.random.usize(..TYPES.len())]);
    create(draft, key, &columns);
    for _ in 0..draft.random.u8(8..40) {
        let session = draft.session();
        statement(draft, session, key, &columns);
        if draft.once_in(12) {
            draft.watch();
        }
    }
}

fn create(draft: &mut Draft, key: Type, columns: &[Type; 3]) {
    let mut texts = vec![format!("k {} primary key", key.0)];
    for (name, column) in COLUMNS.iter().zip(columns) {
        let extra = match draft.random.u8(..8) {
            0 => " not null".to_owned(),
            1 => format!(" default '{}'", column.1[0].replace('\'', "''")),
            2 => format!(" check ({name} is null or {name}::text <> 'a')"),
            _ => String::new(),
        };
        texts.push(format!("{name} {}{extra}", column.0));
    }
    if draft.once_in(3) {
        texts.push("n int generated always as (1 + 1) stored".to_owned());
    }
    draft.set_up(format!("create table t_N ({}, count int default 0)", texts.join(", ")));
    for value in key.1 {
        draft.run(SETUP, "insert into t_N (k) values ($1)", &[Some(value)]);
    }
}

fn statement(draft: &mut Draft, session: char, key: Type, columns: &[Type; 3]) {
    let index = draft.random.usize(..3);
    let (column, kind) = (COLUMNS[index], columns[index]);
    let k = Some(draft.pick(key.1));
    let v = if draft.once_in(8) { None } else { Some(draft.pick(kind.1)) };
    let returning = draft
        .pick(&["", "", " returning *", " returning k", &format!(" returning {column} as v")])
        .to_owned();
    let from = draft.random.u8(..16);
    let (sql, values) = match from {
        0..=2 => (format!("update t_N set {column} = $1 where k = $2{returning}"), vec![v, k]),
        3 | 4 => (format!("update t_N set count = count + 1 where k = $1{returning}"), vec![k]),
        5 => (
            format!("update t_N set count = count + 1, {column} = $1 where k = $2 and count >= 1{returning}"),
            vec![v, k],
        ),
        6 | 7 => (format!("insert into t_N (k, {column}) values ($1, $2){returning}"), vec![k, v]),
        8 => (
            format!(
                "insert into t_N (k, {column}) values ($1, $2) on conflict (k) do update set count = t_N.count + 1, {column} = excluded.{column}{returning}"
            ),
            vec![k, v],
        ),
        9 => (
            format!("insert into t_N (k, {column}) values ($1, $2) on conflict do nothing{returning}"),
            vec![k, v],
        ),
        10 => (format!("delete from t_N where k = $1{returning}"), vec![k]),
        11 => ("select * from t_N where k = $1".to_owned(), vec![k]),
        12 => (format!("select {column}, count, k from t_N where k = $1"), vec![k]),
        13 => (format!("select {column}, count from t_N order by k limit 2"), vec![]),
        14 => (
            format!("update t_N set {column} = {column}, count = 10 / (count - 1) where k = $1{returning}"),
            vec![k],
        ),
        _ => (format!("update t_N set {column} = default where k = $1{returning}"), vec![k]),
    };
    draft.run(session, &sql, &values);
}
