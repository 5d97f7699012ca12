-- Warm-up: each order of a client must be later than the client's previous order.
with next as (
    select id from hotrow_bench.leased where leased_until <= now() order by id limit 1 for update skip locked
)
update hotrow_bench.leased l set leased_until = now() + '30 s', attempt = attempt + 1
from next where l.id = next.id returning l.id, l.order_id, l.cts, l.payload, l.attempt \gset
with done as (
    delete from hotrow_bench.leased where id = :id and attempt = :attempt returning id, order_id, cts
)
insert into hotrow_bench.processed (id, order_id, cts, status) select id, order_id, cts, 1 from done;
\if :id <= :previous
select 'out of order'::int;
\endif
\set previous :id
