-- The number of processed or new orders, because some techniques take orders and others enqueue them, and the number of
-- orders that are lost, duplicated, still leased, or overtaken by a later one.
with counted as (
    select
        (select count(*) from hotrow_bench.done) as processed,
        (select count(*) from hotrow_bench.waits) as waiting,
        (select coalesce(sum(orders), 0)::bigint from hotrow_bench.begun) as begun,
        (select max(id) from hotrow_bench.done) as furthest
)
select
    processed + greatest(processed + waiting - begun, 0) as done,
    (greatest(begun - processed - waiting, 0)
        + (select count(*) - count(distinct order_id) from (
            select order_id from hotrow_bench.done union all select order_id from hotrow_bench.waits) o)
        + (select count(*) from hotrow_bench.leased where leased_until > clock_timestamp())
        + (select coalesce(sum(count), 0) from hotrow.queue_lease)
        + (select count(*) from hotrow_bench.waits w where w.id < furthest)
    )::bigint as broken
from counted
