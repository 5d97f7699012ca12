-- The writes that the services show, and the number of rows that contradict them: rows that are missing, and rows that have a
-- write without a time or a time without a write.
select
    coalesce(sum(writes), 0)::bigint as done,
    (abs(count(*) - current_setting('hotrow_bench.rows')::bigint)
        + count(*) filter (where (writes > 0) <> (last_seen_at > 'epoch')))::bigint as broken
from hotrow_bench.service
