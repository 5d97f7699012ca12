//! Settings: changed, shown, reset, in and outside transactions, and their effect on answers.

use super::Draft;
use crate::program::{Frame, Step};

const SETS: &[&str] = &[
    "set work_mem = '5MB'",
    "set work_mem = '5MB'",
    "set session work_mem to 5120",
    "set time zone 'Asia/Tokyo'",
    "set time zone 'Asia/Tokyo'",
    "set datestyle = 'sql, dmy'",
    "set extra_float_digits = -5",
    "set bytea_output = 'escape'",
    "set intervalstyle = 'iso_8601'",
    "set search_path = two, one",
    "set client_encoding = 'LATIN1'",
    "set standard_conforming_strings = off",
    "set default_transaction_isolation = 'repeatable read'",
    "set default_transaction_read_only = on",
    "set session characteristics as transaction isolation level serializable",
    "set role pg_monitor",
    "set session authorization other",
    "set local time zone 'Asia/Tokyo'",
    "set statement_timeout = '9s'",
    "select set_config('work_mem', '6MB', false)",
    "select set_config('timezone', 'Asia/Tokyo', true)",
    "set names 'LATIN1'",
    "select set_config('local.tenant', 'e', true)",
    "select set_config('role.tenant', 'f', true), set_config('work_mem', '7MB', true)",
    "select set_config('role', 'pg_monitor', true)",
    "select set_config('role', 'none', true)",
    "set nothing_of_the_kind = 1",
    // Custom settings whose names begin with words of the syntax.
    "set local.tenant = 'a'",
    "set transaction.tenant to b",
    "set session role.tenant to c",
    "set local local.tenant = 'd'",
    "set work_mem = 'much'",
];

/// An empty value can be left of another session's `SET LOCAL`.
const CUSTOM: &str = "select nullif(current_setting(name || '.tenant', true), '') from unnest(array['local', 'transaction', 'role']) name";

const RESETS: &[&str] = &[
    "reset all",
    "reset work_mem",
    "reset timezone",
    "reset role",
    "reset session authorization",
    "set time zone default",
    "discard all",
    "discard plans",
    "set search_path to default",
    "reset client_encoding",
    "set names default",
];

pub fn write(draft: &mut Draft) {
    draft.set_up_watch();
    draft.set_up(
        "create table one.t_N (id int primary key, n int default 1); insert into one.t_N values (1);
        create table two.t_N (id int primary key, n int default 2); insert into two.t_N values (1);
        grant all on one.t_N to public; grant usage on schema one, two to public; grant all on w_N to public",
    );
    for _ in 0..draft.random.u8(10..35) {
        let session = draft.session();
        let sql = match draft.random.u8(..10) {
            0 | 1 => draft.pick(SETS),
            2 => draft.pick(RESETS),
            3 => draft.pick(&["begin", "commit", "rollback", "savepoint s", "rollback to s", "select 1 / 0"]),
            4 => "update t_N set n = n + 10 where id = 1 returning n",
            5 => "select n from t_N where id = 1",
            6 => "select date '2020-01-31', '\\x00ff'::bytea, 0.1::float8, interval '1 day', 'ü'",
            7 => "select 'a\\b', E'\\'x'",
            8 => CUSTOM,
            _ => {
                draft.watch();
                continue;
            }
        };
        if draft.once_in(3) { draft.run(session, sql, &[]) } else { draft.query(session, sql) }
    }
}

/// The session's application name, among other names in its pool.
pub fn application_name(draft: &mut Draft) {
    for session in ['a', 'b'] {
        let name = format!("program-{session}");
        let connect = Frame::Connect(vec![("application_name".to_owned(), name)]);
        draft.steps.push(Step::new(session, vec![connect]));
    }
    draft.set_up_watch();
    for _ in 0..draft.random.u8(8..25) {
        let session = draft.session();
        let sql = draft.pick(&[
            "begin",
            "commit",
            "rollback",
            "set application_name = 'another'",
            "set local application_name = 'local'",
            "reset application_name",
            "set application_name to default",
            "reset all",
            "discard all",
            "show application_name",
            "show application_name",
            "select current_setting('application_name')",
            "select f from w_N where id = 1",
        ]);
        draft.query(session, sql);
    }
}
