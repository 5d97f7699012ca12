-- The number of WAL flushes of all processes, and their time in milliseconds. Sessions report their flushes about once per
-- second.
select sum(fsyncs)::bigint, sum(fsync_time) from pg_stat_io where object = 'wal' and context = 'normal'
