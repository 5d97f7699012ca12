-- Gives back the orders that were taken for a client that has gone.
select outcome
from hotrow.release_batch(pg_catalog.array_fill($1::text, array[pg_catalog.cardinality($2::bigint[])]), $2)
