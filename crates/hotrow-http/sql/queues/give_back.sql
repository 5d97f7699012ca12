-- Gives back what was taken for somebody who has gone.
select outcome
from hotrow.release_batch(pg_catalog.array_fill($1::text, array[pg_catalog.cardinality($2::bigint[])]), $2)
