-- The writes that the applications show, and the number of rows that contradict each other: rows that are missing, rows with
-- fewer writes than another one, because each statement writes all of them, and rows whose two times differ.
select
    coalesce(sum(writes), 0)::bigint as done,
    (case when count(*) > 0 then abs(count(*) - current_setting('hotrow_bench.rows')::bigint) else 0 end
        + count(*) filter (where writes <> most or seen_at <> updated_at))::bigint as broken
from (select *, max(writes) over () as most from hotrow_bench.client_application) as application
