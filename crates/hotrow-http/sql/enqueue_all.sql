-- Many orders of one queue, one answer for each, in their order.
select id, status
from hotrow.enqueue_batch(
    pg_catalog.array_fill($1::text, array[pg_catalog.cardinality($2::uuid[])]), $2, $3, $4, $5, $6, $7)
