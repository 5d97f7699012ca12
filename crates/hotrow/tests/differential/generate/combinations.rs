//! More combinations of settings than a role has pools for, in sessions that use, change and reset them by turns.

use super::{Draft, bind, execute, parse};
use crate::program::Frame;

/// More sessions than there are pools with settings for a role: 25.
const SESSIONS: std::ops::RangeInclusive<char> = 'A'..='Z';
const MORE: std::ops::RangeInclusive<char> = 'e'..='j';

const SETS: &[&str] = &[
    "set search_path = two, one",
    "set search_path = two",
    "set search_path to one, two, pg_catalog",
    "set statement_timeout = '8s'",
    "set timezone = 'Asia/Tokyo'",
    "set time zone 'Europe/Paris'",
    "set datestyle = 'german'",
    "set datestyle = 'sql, dmy'",
    "set standard_conforming_strings = off",
    "set intervalstyle = 'iso_8601'",
    "set extra_float_digits = -5",
    "set bytea_output = 'escape'",
    "set client_encoding = 'LATIN1'",
    "set default_transaction_read_only = on",
    "set default_transaction_isolation = 'repeatable read'",
    "set enable_seqscan = off",
    "select set_config('search_path', 'two', false)",
    "select set_config('timezone', 'America/New_York', false)",
    "begin; set intervalstyle = 'postgres_verbose'; commit",
    "begin; set timezone = 'Asia/Tokyo'; rollback",
    "begin; set local timezone = 'Asia/Tokyo'; update t_N set n = n + 1 where id = 1 returning at; commit",
    "set role pg_monitor",
    "set app.tenant_N = 'mine'",
];

const RESETS: &[&str] = &[
    "reset all",
    "discard all",
    "reset search_path",
    "reset timezone",
    "set timezone to default",
    "reset work_mem",
    "reset datestyle",
    "set client_encoding to default",
    "discard plans",
    "reset role",
    "deallocate all",
    "set work_mem = '5MB'",
    "select pg_advisory_unlock_all()",
];

const USES: &[&str] = &[
    "update t_N set n = n + 1 where id = $1 returning n, at",
    "select who, n, at from t_N where id = $1",
    "update t_N set at = '01/02/2020 10:00' where id = $1 returning extract(epoch from at)",
    "update t_N set i = i + interval '1 day' where id = $1 returning i",
    "insert into t_N (id) values ($1) on conflict (id) do update set n = t_N.n + 1 returning who, n",
    "select 'a\\b', 0.1::float8, '\\x00ff'::bytea, $1::int",
    "select current_setting('work_mem'), current_setting('search_path'), current_setting('statement_timeout'), $1::int",
    "select current_setting('timezone'), current_setting('datestyle'), current_user, $1::int",
    "select 'ü', $1::int",
    "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and $1::int > 0",
    "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and $1::int > 0",
    "begin; update t_N set n = n + 1 where id = $1; commit",
    "select timestamptz '2020-01-31 12:00', date '2020-01-31', n from t_N where id = $1",
];

/// Statements that are prepared once, and live while the settings change.
const KEPT: &[&str] = &[
    "update t_N set n = n + 1 where id = 2 returning n, at",
    "select who, at from t_N where id = 2",
    "select extract(epoch from timestamptz '01/02/2020 10:00'), n from t_N where id = 2",
    "select current_setting('work_mem'), interval '1 day 2 hours'",
];

/// An update of the table of the schema `two` leaves a lock in its session.
const LEAVES: &str = "
    create function two.leaves_N() returns trigger language plpgsql as
        $$ begin perform pg_advisory_lock_shared(old.id); return new; end $$;
    create trigger leaves after update on two.t_N for each row execute function two.leaves_N()";

pub fn write(draft: &mut Draft) {
    for (schema, start) in [("one", 0), ("two", 1_000)] {
        draft.set_up(format!(
            "create table {schema}.t_N (id int primary key, n int default {start}, who text default '{schema}', at timestamptz default '2020-01-31 12:00+00', i interval default '1 hour');
            insert into {schema}.t_N values (1), (2); grant all on {schema}.t_N to public; grant usage on schema {schema} to public"
        ));
    }
    draft.set_up(LEAVES.to_owned());
    let sessions: Vec<char> = SESSIONS.chain(MORE).collect();
    for (index, session) in sessions.iter().enumerate() {
        // Only some of the sessions need settings of their own: the pools of earlier programs still exist.
        let set = draft.pick(SETS).to_owned();
        let own = format!("set work_mem = '{}kB'", 1_100 + index);
        if draft.random.bool() {
            draft.query(*session, own);
            draft.query(*session, set);
        } else if set.starts_with("set ") {
            draft.query(*session, format!("{own}; {set}"));
        }
        if draft.once_in(3) {
            keep(draft, *session);
        }
    }
    for _ in 0..draft.random.u8(20..60) {
        let session = sessions[draft.random.usize(..sessions.len())];
        match draft.random.u8(..16) {
            0 => {
                let set = draft.pick(SETS);
                draft.query(session, set);
            }
            1 => {
                let reset = draft.pick(RESETS);
                draft.query(session, reset);
            }
            2 => {
                let (set, end) = (draft.pick(SETS), draft.pick(&["commit", "rollback"]));
                draft.query(session, "begin");
                draft.query(session, set);
                using(draft, session);
                draft.query(session, end);
            }
            3 => {
                for text in ["begin", "set local search_path = two"] {
                    draft.query(session, text);
                }
                draft.run_one(session, &USES[..1], &["1", "2"]);
                draft.query(session, "commit");
            }
            4 if draft.once_in(8) => draft.frames(session, vec![Frame::Leave]),
            5 => keep(draft, session),
            6..=7 => {
                let frames = vec![bind("", "kept"), execute(""), Frame::Sync];
                draft.frames(session, frames);
            }
            _ => using(draft, session),
        }
    }
}

fn keep(draft: &mut Draft, session: char) {
    let text = draft.pick(KEPT);
    let close = Frame::Close('S', "kept".to_owned());
    draft.frames(session, vec![close, parse("kept", text), bind("", "kept"), execute(""), Frame::Sync]);
}

fn using(draft: &mut Draft, session: char) {
    // A `*` or a name that `search_path` decides may mean another table when it was prepared earlier: docs/differences.md.
    draft.named.clear();
    draft.run_one(session, USES, &["1", "2", "3"]);
}
