-- How many writing transactions this server has ever ended. Read from the snapshot because it is exact at once, while
-- pg_stat_database lags by a second and counts reads too.
select pg_snapshot_xmax(pg_current_snapshot())::text::bigint
