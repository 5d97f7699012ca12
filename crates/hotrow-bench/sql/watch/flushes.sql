-- How often the server has flushed its log, by whomever, and the milliseconds that took. Sessions report theirs about once a second.
select sum(fsyncs)::bigint, sum(fsync_time) from pg_stat_io where object = 'wal' and context = 'normal'
