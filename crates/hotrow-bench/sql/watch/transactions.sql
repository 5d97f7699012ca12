-- The number of the next transaction that writes: it grows by one for each.
select pg_snapshot_xmax(pg_current_snapshot())::text::bigint
