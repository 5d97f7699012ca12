-- The checkpoints' counters, in version 17 and later. Earlier versions have them in pg_stat_bgwriter.
select pg_catalog.to_json(c)::pg_catalog.text from pg_catalog.pg_stat_checkpointer c
