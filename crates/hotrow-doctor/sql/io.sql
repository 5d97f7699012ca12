-- Reads, writes and flushes by object, in version 16 and later.
select coalesce(pg_catalog.json_agg(i), '[]')::pg_catalog.text from pg_catalog.pg_stat_io i
