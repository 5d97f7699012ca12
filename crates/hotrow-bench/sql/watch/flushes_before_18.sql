-- The number of WAL flushes of all processes, and their time in milliseconds. Sessions report their flushes about once per
-- second.
select wal_sync, wal_sync_time from pg_stat_wal
