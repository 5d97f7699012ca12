-- The total number of sold units, and the number of rows that violate an invariant (missing, oversold, or with a sum that
-- differs from the initial stock).
select
    coalesce(sum(sold), 0)::bigint as done,
    (count(*) filter (where stock + sold <> 1000000000 + id or stock < 0 or sold < 0)
        + abs(count(*) - current_setting('hotrow_bench.rows')::bigint))::bigint as broken
from hotrow_bench.inv
