//! Queries of another session, whose answers show state that a session has left.

use super::Draft;

/// The table that the queries need.
const SETUP: &str =
    "create table w_N (id int primary key, at timestamptz, f float8, b bytea, i interval, name text);
    insert into w_N values (1, '2020-01-31 12:00+00', 0.1, '\\x00ff', '1 mon -2 hours', 'hotrow'),
        (2, '2020-07-31 12:00+00', 1.5, 'abc', '1 day', 'other')";

const QUERIES: &[&str] = &[
    "select name, setting from pg_settings where name in ('search_path', 'TimeZone', 'DateStyle', 'work_mem',
        'statement_timeout', 'lock_timeout', 'default_transaction_isolation', 'default_transaction_read_only',
        'session_replication_role', 'extra_float_digits', 'bytea_output', 'IntervalStyle', 'client_encoding', 'role',
        'geqo_threshold', 'synchronous_commit', 'client_min_messages', 'row_security', 'standard_conforming_strings')
        order by name",
    "show search_path",
    "show timezone",
    "show work_mem",
    "select current_user, session_user",
    "select current_schemas(false)",
    "select count(*) from pg_locks where locktype = 'advisory'
        and database = (select oid from pg_database where datname = current_database())
        and pid not in (select pid from pg_stat_activity where application_name like 'hotrow %')",
    "select count(*) from pg_class where relnamespace = pg_my_temp_schema()",
    "select count(*) from pg_cursors",
    "select * from pg_listening_channels() order by 1",
    "select at, f, b, i from w_N where id = 1",
    "update w_N set at = at where id = 2 returning at, f, b, i",
    "select name % 'hotrox' from w_N where id = 1",
    "select count(*) from pg_tables where schemaname = current_schema()",
];

impl Draft {
    /// Creates the table that the queries need.
    pub fn set_up_watch(&mut self) {
        self.set_up(SETUP);
    }

    /// Runs one of the queries in any session.
    pub fn watch(&mut self) {
        for _ in 0..self.random.u8(1..=3) {
            let (session, query) = (self.session(), self.pick(QUERIES));
            self.run(session, query, &[]);
        }
    }
}
