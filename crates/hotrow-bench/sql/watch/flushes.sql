-- How often the server has flushed its log, by whomever. Sessions report theirs about once a second.
select sum(fsyncs)::bigint from pg_stat_io where object = 'wal'
