-- The number of waiting orders, and the number of duplicates among them.
select count(*) as done, (count(*) - count(distinct order_id))::bigint as broken from hotrow_bench.waits
