-- How often the server has flushed its log, by whomever. Sessions report theirs about once a second.
select wal_sync from pg_stat_wal
