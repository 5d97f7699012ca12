-- WAL flushes since the start of the statistics, in versions 14 to 17. No row if the server does not count them.
select (pg_catalog.to_json(w) operator(pg_catalog.->>) 'wal_sync'::pg_catalog.text)::pg_catalog.int8 from pg_catalog.pg_stat_wal w
