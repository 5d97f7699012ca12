-- How often the server has flushed its log, by whomever, and the milliseconds that took. Sessions report theirs about once a second.
select wal_sync, wal_sync_time from pg_stat_wal
