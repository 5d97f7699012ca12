-- The ID of the next transaction that writes. Each such transaction increases it by one.
select pg_snapshot_xmax(pg_current_snapshot())::text::bigint
