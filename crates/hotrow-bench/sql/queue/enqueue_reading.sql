-- What the rows say: how many orders wait, and how many of them are there twice.
select count(*) as done, (count(*) - count(distinct order_id))::bigint as broken from hotrow_bench.waits
