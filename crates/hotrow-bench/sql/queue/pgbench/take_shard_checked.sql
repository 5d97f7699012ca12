-- Warm-up: each order of a client must be later than the client's previous order.
\set shard :client_id % 64
with taken as (
    delete from hotrow_bench.sharded
    where id = (select id from hotrow_bench.sharded where id % 64 = :shard order by id limit 1 for update skip locked)
    returning id, order_id, cts, payload
), noted as (
    insert into hotrow_bench.processed (id, order_id, cts, status) select id, order_id, cts, 1 from taken
)
select id, order_id, cts, payload from taken \gset
\if :id <= :previous
select 'out of order'::int;
\endif
\set previous :id
