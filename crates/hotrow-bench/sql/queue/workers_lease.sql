-- A worker's request: a hundred orders under a lease.
with next as (
    select id from hotrow_bench.leased where leased_until <= now() order by id limit 100 for update skip locked
), taken as (
    update hotrow_bench.leased l set leased_until = now() + '30 s', attempt = attempt + 1
    from next where l.id = next.id returning l.id, l.order_id, l.cts, l.payload, l.attempt
)
select id as receipt, id, order_id, cts, payload, attempt from taken order by id
