-- What the rows say: how many units were sold in all, and how many rows broke a promise (missing, oversold, or no longer
-- adding up to the stock they started with).
select
    coalesce(sum(sold), 0)::bigint as done,
    (count(*) filter (where stock + sold <> 1000000000 + id or stock < 0 or sold < 0)
        + abs(count(*) - current_setting('hotrow_bench.rows')::bigint))::bigint as broken
from hotrow_bench.inv
