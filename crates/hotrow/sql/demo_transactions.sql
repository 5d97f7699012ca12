-- The number of writing transactions that have ended on this server. The snapshot is exact at once, while pg_stat_database
-- is a second late and also counts reads.
select pg_snapshot_xmax(pg_current_snapshot())::text::bigint
