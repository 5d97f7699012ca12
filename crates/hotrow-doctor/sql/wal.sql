-- The WAL's counters. Version 18 moved writes and flushes to pg_stat_io.
select pg_catalog.to_json(w)::pg_catalog.text from pg_catalog.pg_stat_wal w
