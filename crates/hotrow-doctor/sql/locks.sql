-- Waits by type of lock, in version 19 and later.
select coalesce(pg_catalog.json_agg(l), '[]')::pg_catalog.text from pg_catalog.pg_stat_lock l
