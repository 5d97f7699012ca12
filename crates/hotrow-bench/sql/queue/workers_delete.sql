-- A worker's statement after it has processed the orders.
with done as (
    delete from hotrow_bench.leased where id = any($1) returning id, order_id, cts
)
insert into hotrow_bench.processed (id, order_id, cts, status) select id, order_id, cts, 1 from done
