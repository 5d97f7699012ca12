-- The number of processed orders, and the number of orders that are lost, both waiting and processed, processed twice, still
-- leased, or overtaken by a later one.
with processed as (
    select id, order_id from hotrow_bench.done
),
furthest as (
    select id % 64 as lane, max(id) as id from processed group by 1
    union all
    select null, max(id) from processed
)
select
    (select count(*) from processed) as done,
    (abs((select count(*) from processed) + (select count(*) from hotrow_bench.waits)
            - (select coalesce(sum(orders), 0) from hotrow_bench.begun))
        + (select count(*) from hotrow_bench.waits join processed using (order_id))
        + (select count(*) - count(distinct order_id) from processed)
        + (select count(*) from hotrow_bench.leased where leased_until > clock_timestamp())
        + (select coalesce(sum(count), 0) from hotrow.queue_lease)
        + (select count(*) from hotrow_bench.waits w join furthest f on f.lane is not distinct from w.lane
            where w.id < f.id)
    )::bigint as broken
