with taken as (
    delete from hotrow_bench.waiting
    where ctid = (select ctid from hotrow_bench.waiting where pg_try_advisory_xact_lock(id) order by id limit 1)
    returning id, order_id, cts, payload
), noted as (
    insert into hotrow_bench.processed (id, order_id, cts, status) select id, order_id, cts, 1 from taken
)
select id, order_id, cts, payload from taken;
